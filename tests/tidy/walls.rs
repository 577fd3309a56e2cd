//! Which folder may look into which: the arrows between the modules of a crate point one way (ARCHITECTURE.md draws
//! them).

use crate::code::CodePath;
use crate::finding::{Finding, expect_none, find_paths};
use crate::workspace::{RUST_FILES, RustFile};

/// A folder that must not look into some modules of its own crate.
struct Wall {
    folder: &'static str,
    never: &'static [&'static str],
}

fn breaches(wall: &Wall, files: &[RustFile]) -> Vec<Finding> {
    let inside = files.iter().filter(|file| file.path.starts_with(wall.folder));
    find_paths(inside, |file, path| {
        let module = in_own_crate(&file.path, path);
        module.is_some_and(|module| wall.never.contains(&module))
    })
}

/// The first module below the crate root that `path` goes into, if it names one of its own crate by `crate`, `super`
/// or `self`.
fn in_own_crate<'a>(file: &'a str, path: &'a CodePath) -> Option<&'a str> {
    let first = path.segments.first()?;
    if !matches!(first.as_str(), "crate" | "super" | "self") {
        return None;
    }
    let (_, below) = file.split_once("/src/")?;
    let below = below.trim_end_matches(".rs").trim_end_matches("/mod");
    let mut module: Vec<&str> = match first.as_str() {
        "crate" => Vec::new(),
        _ => below.split('/').collect(),
    };
    for segment in &path.segments {
        match segment.as_str() {
            "crate" | "self" => {}
            "super" => drop(module.pop()),
            name => module.push(name),
        }
    }
    module.first().copied()
}

#[test]
fn the_faces_do_not_know_raft() {
    for folder in [
        "lease-store/src/resp/",
        "lease-store/src/admin/",
        "lease-store/src/service/",
    ] {
        let wall = Wall {
            folder,
            never: &["raft"],
        };
        expect_none(
            breaches(&wall, &RUST_FILES),
            "A face asks the store, never Raft: add the answer to crate::store.",
        );
    }
}

#[test]
fn raft_does_not_know_the_faces() {
    let wall = Wall {
        folder: "lease-store/src/raft/",
        never: &["resp", "admin", "server"],
    };
    expect_none(
        breaches(&wall, &RUST_FILES),
        "Raft carries what it is given: pass it in, or send it out as an effect.",
    );
}

#[test]
fn the_machine_and_the_wire_do_not_know_each_other() {
    let walls = [
        Wall {
            folder: "lease-core/src/machine/",
            never: &["wire"],
        },
        Wall {
            folder: "lease-core/src/wire/",
            never: &["machine"],
        },
    ];
    for wall in walls {
        expect_none(
            breaches(&wall, &RUST_FILES),
            "A command is a log format, a request a promise to clients: convert by hand, in lease-store.",
        );
    }
}

#[test]
fn the_ledgers_decisions_do_not_know_its_stores() {
    let wall = Wall {
        folder: "reward-ledger/src/core/",
        never: &["store", "http", "outbox"],
    };
    expect_none(
        breaches(&wall, &RUST_FILES),
        "decide takes a View: let the store read it and hand it in.",
    );
}

#[cfg(test)]
mod samples {
    use super::*;

    #[test]
    fn a_wall_is_seen_through_crate_super_and_groups() {
        let wall = Wall {
            folder: "lease-store/src/resp/",
            never: &["raft"],
        };
        let caught = |path: &str, text: &str| !breaches(&wall, &[RustFile::new(path, text)]).is_empty();
        assert!(caught(
            "lease-store/src/resp/mod.rs",
            "use crate::{raft::node::RaftNode, store};"
        ));
        assert!(caught(
            "lease-store/src/resp/auth.rs",
            "use super::super::raft::node;"
        ));
        assert!(caught(
            "lease-store/src/resp/mod.rs",
            "fn f() { crate::raft::node::start() }"
        ));
        assert!(!caught("lease-store/src/resp/auth.rs", "use super::raft::node;"));
        assert!(!caught("lease-store/src/store.rs", "use crate::raft::node;"));
    }
}
