//! What the documents ask a reader to run is there, and what they must show is shown.

use std::collections::BTreeSet;

use crate::finding::{Finding, expect_none};
use crate::workspace::{METADATA, TEXT_FILES, must_read, root};

/// What a line of a document asks the reader to run, as far as this repository must have it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Package(String),
    Target { kind: &'static str, name: String },
    Script(String),
    Make(String),
}

fn asked(line: &str) -> Vec<Asked> {
    let plain = line.replace(['`', '(', ')', ',', ';', '"'], " ");
    let words: Vec<&str> = plain.split_whitespace().collect();
    let is_cargo = words.contains(&"cargo");
    let with_next = words.iter().zip(words.iter().skip(1));
    let flags = with_next.filter_map(|(word, next)| {
        let name = next.trim_end_matches('.').to_owned();
        let is_name = name.starts_with(|first: char| first.is_ascii_lowercase());
        match *word {
            _ if !is_name => None,
            "-p" | "--package" if is_cargo => Some(Asked::Package(name)),
            "--example" if is_cargo => Some(Asked::Target {
                kind: "example",
                name,
            }),
            "--bin" if is_cargo => Some(Asked::Target { kind: "bin", name }),
            "--bench" if is_cargo => Some(Asked::Target { kind: "bench", name }),
            "--test" if is_cargo => Some(Asked::Target { kind: "test", name }),
            "make" if line.contains(&format!("make {name}`")) || line.trim_start().starts_with("make ") => {
                Some(Asked::Make(name))
            }
            _ => None,
        }
    });
    let scripts = words.iter().filter_map(|word| {
        let path = word.strip_prefix("./").unwrap_or(word).trim_end_matches('.');
        path.starts_with("scripts/")
            .then(|| Asked::Script(path.to_owned()))
    });
    flags.chain(scripts).collect()
}

fn exists(asked: &Asked) -> bool {
    match asked {
        Asked::Package(name) => METADATA.packages.iter().any(|package| package.name == *name),
        Asked::Target { kind, name } => METADATA.targets(kind).any(|(_, target)| target.name == *name),
        Asked::Script(path) => root().join(path).exists(),
        Asked::Make(name) => must_read("Makefile")
            .lines()
            .any(|line| line.starts_with(&format!("{name}:"))),
    }
}

/// The words of a bash array `NAME=(..)` in `script`.
fn array<'a>(script: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!("\n{name}=(");
    let body = script
        .split_once(&start)
        .and_then(|(_, rest)| rest.split_once(')'));
    body.map(|(body, _)| {
        body.split_whitespace()
            .map(|word| word.trim_matches('"'))
            .collect()
    })
    .unwrap_or_default()
}

#[test]
fn the_readme_leads_a_newcomer_in() {
    let text = must_read("README.md");
    let commands = [
        "cargo run --release",
        "cargo run --release --example duplicate_reward",
        "./scripts/test",
    ];
    let missing = commands.iter().filter(|command| !text.contains(**command));
    let findings = missing
        .map(|command| Finding::new("README.md", 0, format!("no `{command}`")))
        .collect();
    expect_none(
        findings,
        "These are all the set-up on a fresh machine: the README shows them.",
    );
}

#[test]
fn every_command_of_the_documents_exists() {
    let documents = TEXT_FILES.iter().filter(|file| file.path.ends_with(".md"));
    let findings = documents.flat_map(|file| {
        file.text.lines().enumerate().flat_map(move |(at, line)| {
            let wrong = asked(line).into_iter().filter(|asked| !exists(asked));
            wrong.map(move |asked| Finding::new(&file.path, at + 1, format!("{asked:?}")))
        })
    });
    expect_none(
        findings.collect(),
        "The document asks for something that is not there: correct one of the two.",
    );
}

#[test]
fn every_example_is_run_or_said_to_be_a_server() {
    let script = must_read("scripts/test");
    let listed: BTreeSet<&str> = array(&script, "EXAMPLES")
        .into_iter()
        .chain(array(&script, "SERVERS"))
        .collect();
    let examples = METADATA
        .targets("example")
        .filter(|(package, _)| package.name == "examples");
    let there: BTreeSet<&str> = examples.map(|(_, target)| target.name.as_str()).collect();
    assert_eq!(
        listed, there,
        "left: EXAMPLES and SERVERS of scripts/test; right: the targets of examples/"
    );
}

#[test]
fn the_changelog_has_a_place_for_what_comes_next() {
    let text = must_read("CHANGELOG.md");
    let next = text
        .lines()
        .any(|line| matches!(line.trim(), "## Unreleased" | "## [Unreleased]"));
    assert!(next, "CHANGELOG.md needs a section `## Unreleased` at its top");
}

#[cfg(test)]
mod samples {
    use super::*;

    #[test]
    fn what_a_command_asks_for_is_seen() {
        let wanted =
            asked("Run `cargo run --release --example no_such_example`, or `./scripts/no_such_script`.");
        assert_eq!(
            wanted,
            [
                Asked::Target {
                    kind: "example",
                    name: "no_such_example".to_owned()
                },
                Asked::Script("scripts/no_such_script".to_owned())
            ]
        );
        assert!(!wanted.iter().any(exists));
        assert_eq!(
            asked("cargo bench -p no_such"),
            [Asked::Package("no_such".to_owned())]
        );
        assert_eq!(asked("`make verify` reads"), [Asked::Make("verify".to_owned())]);
        assert_eq!(asked("mkdir -p lease-data; we make sure"), []);
        assert!(
            exists(&Asked::Script("scripts/test".to_owned())) && exists(&Asked::Make("verify".to_owned()))
        );
    }

    #[test]
    fn a_bash_array_is_read() {
        assert_eq!(
            array("x\nEXAMPLES=(\n  a\n  \"b\"\n)\nSERVERS=()\n", "EXAMPLES"),
            ["a", "b"]
        );
        assert!(array("x\nSERVERS=()\n", "SERVERS").is_empty());
    }
}
