//! Every switch of the mutants has a row that says what notices it, and what a row names is there.

use std::collections::BTreeSet;

use crate::finding::{Finding, expect_none};
use crate::named_tests::{between_backticks, cells, is_a_test};
use crate::workspace::{RUST_FILES, RustFile, must_read};

const TABLE: &str = "tests/mutants/rules.md";
const PATCH: &str = "tests/mutants/rules.patch";
/// What stands for a run of seeds.
const SIMULATION: &str = "simulation";

/// The names between `mutant("` and `")` of lines that the patch adds.
fn switches(patch: &str) -> BTreeSet<&str> {
    let added = patch.lines().filter(|line| line.starts_with('+'));
    let calls = added.flat_map(|line| line.split("mutant(\"").skip(1));
    calls
        .filter_map(|rest| rest.split_once('"').map(|(name, _)| name))
        .collect()
}

fn findings(table: &str, patch: &str, files: &[RustFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut without_row = switches(patch);
    for (at, line) in table.lines().enumerate() {
        let Some([rule, mutant, seen_by]) = cells(line).and_then(|cells| <[&str; 3]>::try_from(cells).ok())
        else {
            continue;
        };
        let Some(name) = mutant.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) else {
            continue;
        };
        let mut bad = |what: String| findings.push(Finding::new(TABLE, at + 1, what));
        if !without_row.remove(name) {
            bad(format!("{name} is no switch of the patch, or has two rows"));
        }
        let tests = between_backticks(seen_by);
        if tests.is_empty() && seen_by != SIMULATION {
            bad(format!("nothing is named that holds: {rule}"));
        }
        let made_up = tests.iter().filter(|test| !is_a_test(test, files));
        made_up.for_each(|test| bad(format!("there is no test {test}")));
    }
    let without_row = without_row.into_iter();
    findings.extend(without_row.map(|name| Finding::new(PATCH, 0, format!("{name} has no row"))));
    findings
}

#[test]
fn every_mutant_has_a_row_that_names_what_notices_it() {
    let (table, patch) = (must_read(TABLE), must_read(PATCH));
    assert!(!switches(&patch).is_empty(), "{PATCH} has no switches");
    expect_none(
        findings(&table, &patch, &RUST_FILES),
        "A row is | rule | `mutant` | `a/file.rs::test`, simulation |, and each switch of the patch has one.",
    );
}

#[cfg(test)]
mod samples {
    use super::*;

    fn found(table: &str, patch: &str) -> usize {
        let files = [RustFile::new("a/src/tests.rs", "#[test] fn it_holds() {}")];
        findings(table, patch, &files).len()
    }

    #[test]
    fn rows_and_switches_without_each_other_and_made_up_tests_are_caught() {
        let patch = "+    if mutant(\"off\") {\n     mutant(\"context\")\n";
        assert_eq!(found("| it holds | `off` | `it_holds`, simulation |", patch), 0);
        assert_eq!(found("| it holds | `off` | simulation |", patch), 0);
        assert_eq!(found("| it holds | `off` | `made_up` |", patch), 1);
        assert_eq!(found("| it holds | `off` | a review |", patch), 1);
        assert_eq!(found("| it holds | `on` | simulation |", patch), 2);
        assert_eq!(found("", patch), 1);
    }
}
