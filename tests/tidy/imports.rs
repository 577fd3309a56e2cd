//! Who may name which crate: a dependency that must stay replaceable is known to one folder.

use crate::finding::{Finding, expect_none, find_paths};
use crate::workspace::{RUST_FILES, RustFile};

/// Crates that only some places may name.
struct Confined {
    crates: &'static [&'static str],
    /// Folders (with `/` at the end), files, or `*/NAME` for every file called so.
    homes: &'static [&'static str],
}

const RAFT: Confined = Confined {
    crates: &["openraft", "openraft_macros", "raft_log"],
    homes: &["lease-store/src/raft/"],
};

/// The runtime traits are the seam itself: the files that time and chance enter through.
const RAFT_RUNTIME: Confined = Confined {
    crates: &["openraft_rt", "openraft_rt_tokio", "openraft_rt_sim"],
    homes: &[
        "lease-store/src/raft/",
        "lease-store/src/runtime.rs",
        "lease-store/src/role.rs",
        "lease-store/src/clock.rs",
        "lease-store/src/simulation/",
    ],
};

/// benches/ measures our store beside the bare one.
const SLED: Confined = Confined {
    crates: &["sled"],
    homes: &["reward-ledger/src/store/sled/", "benches/"],
};

const CODEC: Confined = Confined {
    crates: &["bincode"],
    homes: &["*/codec.rs"],
};

/// tests/ and benches/ look into the tables from outside, as a service in another language does; the ladder's published
/// transaction is such a service.
const SQL: Confined = Confined {
    crates: &["sqlx", "tokio_postgres", "postgres", "deadpool_postgres"],
    homes: &[
        "reward-ledger/src/store/postgres/",
        "tests/",
        "benches/",
        "examples/protection_ladder/",
    ],
};

/// The reference servers in examples/ are services of their own.
const HTTP_SERVER: Confined = Confined {
    crates: &["axum", "hyper", "hyper_util", "tower", "tower_http"],
    homes: &["lease-store/src/admin/", "reward-ledger/src/http/", "examples/"],
};

fn strays(rule: &Confined, files: &[RustFile]) -> Vec<Finding> {
    let by_name = |file: &RustFile, home: &str| {
        let name = home.strip_prefix('*');
        name.is_some_and(|name| file.path.ends_with(name))
    };
    let at_home =
        |file: &RustFile| file.is_in(rule.homes) || rule.homes.iter().any(|home| by_name(file, home));
    let outside = files.iter().filter(|file| !at_home(file));
    find_paths(outside, |_, path| {
        rule.crates.iter().any(|name| path.enters_crate(name))
    })
}

#[test]
fn only_the_raft_folder_knows_openraft() {
    expect_none(
        strays(&RAFT, &RUST_FILES),
        "openraft is an alpha and must stay replaceable: give lease-store/src/raft/ a function of ours for this.",
    );
}

#[test]
fn only_the_seam_knows_the_runtime_traits() {
    expect_none(
        strays(&RAFT_RUNTIME, &RUST_FILES),
        "Take spawn, sleep, now and random from lease-store/src/runtime.rs, so that the simulation drives this too.",
    );
}

#[test]
fn only_the_sled_store_knows_sled() {
    expect_none(strays(&SLED, &RUST_FILES), "Go through the ledger's store trait.");
}

#[test]
fn one_codec_module_a_crate_knows_bincode() {
    expect_none(
        strays(&CODEC, &RUST_FILES),
        "bincode is no longer maintained and must be replaceable in one place: encode and decode in codec.rs.",
    );
}

#[test]
fn only_the_postgres_store_knows_an_sql_driver() {
    expect_none(strays(&SQL, &RUST_FILES), "Go through the ledger's store trait.");
}

#[test]
fn only_admin_and_http_know_the_http_framework() {
    expect_none(
        strays(&HTTP_SERVER, &RUST_FILES),
        "Keep HTTP at the edge: move this into admin/ or http/, and call a function that knows no HTTP.",
    );
}

#[cfg(test)]
mod samples {
    use super::*;

    fn caught(rule: &Confined, path: &str, text: &str) -> bool {
        !strays(rule, &[RustFile::new(path, text)]).is_empty()
    }

    #[test]
    fn a_confined_crate_is_caught_outside_its_home_however_it_is_named() {
        let elsewhere = "lease-store/src/store.rs";
        assert!(caught(&RAFT, elsewhere, "use openraft::Raft;"));
        assert!(caught(&RAFT, elsewhere, "use {std::fmt, openraft::Raft};"));
        assert!(caught(&RAFT, elsewhere, "use openraft as or;"));
        assert!(caught(&RAFT, elsewhere, "fn f(raft: ::openraft::Raft<T>) {}"));
        assert!(caught(
            &RAFT,
            "fence-client/tests/a.rs",
            "fn f() { openraft\n::Raft::new() }"
        ));
        assert!(caught(
            &CODEC,
            "lease-core/src/machine/lease.rs",
            "use bincode::config;"
        ));
        assert!(caught(
            &HTTP_SERVER,
            "reward-ledger/src/ledger.rs",
            "use axum::Router;"
        ));
        assert!(caught(
            &SQL,
            "reward-ledger/src/audit/mod.rs",
            "use sqlx::PgPool;"
        ));
        assert!(caught(
            &RAFT_RUNTIME,
            "lease-store/src/proposer.rs",
            "use openraft_rt::Instant;"
        ));
    }

    #[test]
    fn a_confined_crate_may_be_named_at_home_and_in_words() {
        assert!(!caught(
            &RAFT,
            "lease-store/src/raft/node.rs",
            "use openraft::Raft;"
        ));
        assert!(!caught(
            &RAFT,
            "lease-store/src/store.rs",
            "//! As openraft::Raft does.\nlet openraft = 1;"
        ));
        assert!(!caught(
            &CODEC,
            "lease-store/src/raft/codec.rs",
            "use bincode::config;"
        ));
    }

    #[test]
    fn a_module_called_as_the_crate_is_not_the_crate() {
        let text = "pub use self::sled::SledStore; use crate::store::{memory, sled::SledStore};";
        assert!(!caught(&SLED, "reward-ledger/src/store/mod.rs", text));
        assert!(caught(&SLED, "reward-ledger/src/store/mod.rs", "use ::sled::Db;"));
    }
}
