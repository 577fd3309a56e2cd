//! The documents name tests, and the tests they name exist.

use std::collections::BTreeSet;

use crate::code::Function;
use crate::finding::{Finding, expect_none};
use crate::workspace::{RUST_FILES, RustFile, must_read};

/// The heads of a table's last column when it names tests.
const NAMES_TESTS: [&str; 4] = ["held by", "test", "tests", "named test"];

/// One row of a table that names tests: its first cell, and what stands between backticks in its last.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    id: String,
    line: usize,
    tests: Vec<String>,
}

/// Every row of the tables whose last column names tests.
fn rows(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut names_tests = false;
    let mut in_table = false;
    for (at, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else {
            in_table = false;
            continue;
        };
        let last = cells.last().copied().unwrap_or_default();
        if !in_table {
            in_table = true;
            names_tests = NAMES_TESTS.contains(&last.to_lowercase().as_str());
        } else if names_tests && !last.starts_with("--") && !last.starts_with(":-") {
            rows.push(Row {
                id: cells.first().copied().unwrap_or_default().to_owned(),
                line: at + 1,
                tests: between_backticks(last),
            });
        }
    }
    rows
}

pub(crate) fn cells(line: &str) -> Option<Vec<&str>> {
    let inside = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inside.split('|').map(str::trim).collect())
}

pub(crate) fn between_backticks(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether `name` is a test that exists: `the_test`, `module::the_test`, or `a/file.rs::the_test`. What stands before
/// the last `::` must be found in the path of the file that holds it.
pub(crate) fn is_a_test(name: &str, files: &[RustFile]) -> bool {
    let (place, test) = name.rsplit_once("::").unwrap_or(("", name));
    let holds = |file: &&RustFile| {
        // A case of a suite that every store passes is a test, once for each of them.
        let in_suite = file.path.contains("/conformance/");
        let is_it = |function: &Function| function.name == test && (function.is_test() || in_suite);
        file.code.functions.iter().any(is_it)
    };
    files.iter().filter(holds).any(|file| {
        if place.contains('/') {
            return file.path.ends_with(place);
        }
        let path = file.path.trim_end_matches(".rs").replace('-', "_");
        let parts: BTreeSet<&str> = path.split('/').collect();
        place
            .split("::")
            .all(|part| part.is_empty() || part == "tests" || parts.contains(part))
    })
}

fn missing_tests(document: &str, text: &str, files: &[RustFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in rows(text) {
        if row.tests.is_empty() {
            findings.push(Finding::new(
                document,
                row.line,
                format!("{} names no test", row.id),
            ));
        }
        for name in row.tests.iter().filter(|name| !is_a_test(name, files)) {
            findings.push(Finding::new(
                document,
                row.line,
                format!("{}: there is no test {name}", row.id),
            ));
        }
    }
    findings
}

/// The numbers of the rows `I1`, `I2`, .. in their order.
fn invariants(text: &str) -> Vec<usize> {
    rows(text)
        .iter()
        .filter_map(|row| row.id.strip_prefix('I')?.parse().ok())
        .collect()
}

#[test]
fn every_invariant_names_a_test_that_exists() {
    let text = must_read("ARCHITECTURE.md");
    expect_none(
        missing_tests("ARCHITECTURE.md", &text, &RUST_FILES),
        "Each invariant stands in a table whose last column is `held by`, with the names of real tests in backticks.",
    );
    let numbers = invariants(&text);
    let in_order: Vec<usize> = (1..=numbers.len()).collect();
    assert!(
        !numbers.is_empty(),
        "ARCHITECTURE.md has no table of invariants (| I1 | .. | `test` |)"
    );
    assert_eq!(
        numbers, in_order,
        "the invariants are numbered from I1 without a gap"
    );
}

#[test]
fn every_guarantee_that_names_a_test_names_a_real_one() {
    let text = must_read("docs/guarantees.md");
    expect_none(
        missing_tests("docs/guarantees.md", &text, &RUST_FILES),
        "A table whose last column is `test` or `held by` names real tests, in backticks.",
    );
}

#[test]
fn every_case_names_a_test_that_exists() {
    let text = must_read("docs/cases.md");
    expect_none(
        missing_tests("docs/cases.md", &text, &RUST_FILES),
        "Each case stands in a table whose last column is `test`, with the names of real tests in backticks.",
    );
    assert!(!rows(&text).is_empty(), "docs/cases.md has no table of cases");
}

#[cfg(test)]
mod samples {
    use super::*;

    const TABLE: &str = "| # | invariant | held by |\n|---|---|---|\n\
        | I1 | rises | `a_token_rises`, `machine::a_token_rises` |\n| I2 | stays | review |\n\n\
        | a | size |\n|---|---|\n| `x` | `y` |\n";

    fn files() -> [RustFile; 2] {
        [
            RustFile::new("lease-core/src/machine/tests.rs", "#[test] fn a_token_rises() {}"),
            RustFile::new("lease-core/src/wire/mod.rs", "fn not_a_test() {}"),
        ]
    }

    #[test]
    fn only_tables_that_name_tests_are_read() {
        let rows = rows(TABLE);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            rows.first().unwrap().tests,
            ["a_token_rises", "machine::a_token_rises"]
        );
        assert_eq!(invariants(TABLE), [1, 2]);
    }

    #[test]
    fn an_invariant_without_a_test_or_with_a_made_up_one_is_caught() {
        let found = missing_tests("A.md", TABLE, &files());
        assert_eq!(found, [Finding::new("A.md", 4, "I2 names no test")]);
        let made_up = TABLE
            .replace("machine::", "wire::")
            .replace("review", "`not_a_test`");
        assert_eq!(missing_tests("A.md", &made_up, &files()).len(), 2);
    }

    #[test]
    fn a_test_is_found_by_name_by_module_and_by_file() {
        for name in [
            "a_token_rises",
            "lease_core::machine::tests::a_token_rises",
            "lease-core/src/machine/tests.rs::a_token_rises",
        ] {
            assert!(is_a_test(name, &files()), "{name}");
        }
        for name in [
            "a_token",
            "wire::a_token_rises",
            "machine/mod.rs::a_token_rises",
            "not_a_test",
        ] {
            assert!(!is_a_test(name, &files()), "{name}");
        }
    }
}
