//! What a file may be: its length, its name, its first line.

use crate::finding::{Finding, expect_none};
use crate::workspace::{METADATA, RUST_FILES, RustFile, from_root, must_read};

/// One subject fits into 300 lines; at 500 a file has two.
const LINES_MAX: usize = 500;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "helpers", "common", "manager", "misc"];

fn too_long(files: &[RustFile]) -> Vec<Finding> {
    let long = files.iter().filter(|file| file.lines > LINES_MAX);
    long.map(|file| Finding::new(&file.path, 0, format!("{} lines", file.lines)))
        .collect()
}

fn emptily_named(files: &[RustFile]) -> Vec<Finding> {
    let says_nothing = |file: &&RustFile| {
        let mut parts = file.path.trim_end_matches(".rs").split('/');
        parts.any(|part| EMPTY_NAMES.contains(&part))
    };
    files
        .iter()
        .filter(says_nothing)
        .map(|file| Finding::new(&file.path, 0, "says nothing"))
        .collect()
}

fn opens_with_docs(text: &str) -> bool {
    text.starts_with("//! ")
}

#[test]
fn no_file_is_longer_than_the_wall() {
    expect_none(
        too_long(&RUST_FILES),
        "Over 500 lines: find the second subject in the file and give it a module of its own.",
    );
}

#[test]
fn every_module_is_a_noun_of_the_domain() {
    expect_none(emptily_named(&RUST_FILES), "Name the module after what it holds.");
}

#[test]
fn every_crate_root_says_what_it_is() {
    let targets = METADATA.packages.iter().flat_map(|package| &package.targets);
    let roots = targets.map(|target| from_root(&target.src_path));
    let silent = roots.filter(|root| !opens_with_docs(&must_read(root)));
    let findings = silent.map(|root| Finding::new(&root, 1, "no `//!`")).collect();
    expect_none(
        findings,
        "Open the file with `//!`: one sentence, then what it leaves to others.",
    );
}

#[cfg(test)]
mod samples {
    use super::*;

    #[test]
    fn a_file_beyond_the_wall_is_caught() {
        let of_lines = |lines| RustFile::new("a/src/b.rs", &"\n".repeat(lines));
        assert!(too_long(&[of_lines(LINES_MAX)]).is_empty());
        assert!(!too_long(&[of_lines(LINES_MAX + 1)]).is_empty());
    }

    #[test]
    fn a_name_that_says_nothing_is_caught_as_file_and_as_folder() {
        assert!(!emptily_named(&[RustFile::new("a/src/utils.rs", "")]).is_empty());
        assert!(!emptily_named(&[RustFile::new("tests/common/mod.rs", "")]).is_empty());
        assert!(emptily_named(&[RustFile::new("a/src/commonality.rs", "")]).is_empty());
    }

    #[test]
    fn a_silent_root_is_caught() {
        assert!(opens_with_docs("//! The store.\n"));
        assert!(!opens_with_docs("mod a;\n//! Too late.\n"));
    }
}
