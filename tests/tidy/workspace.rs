//! The working tree as the rules see it: its files, its packages, its lock file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::{env, fs};

use serde::Deserialize;

use crate::code::Code;

/// Build output, history and data directories: nobody wrote what is in them.
const NOT_OURS: [&str; 4] = ["target", ".git", "lease-data", "proptest-regressions"];

/// Endings of the files that people read and write.
const TEXT_ENDINGS: [&str; 11] = [
    "rs", "toml", "md", "sh", "yml", "yaml", "sql", "txt", "json", "service", "conf",
];

/// Files without an ending that are text all the same, by name or by folder.
const TEXT_WITHOUT_ENDING: [&str; 4] = ["Makefile", "Dockerfile", "scripts/", ".ci/"];

/// The three products and their core. Only packages that are never published may see two products at once.
pub(crate) const PRODUCTS: [&str; 4] = ["lease-core", "lease-store", "fence-client", "reward-ledger"];

/// A text file: its path from the root, with `/`, and what is in it.
#[derive(Debug)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A Rust file, read and lexed.
#[derive(Debug)]
pub(crate) struct RustFile {
    pub(crate) path: String,
    pub(crate) lines: usize,
    pub(crate) code: Code,
}

impl RustFile {
    /// Lexes `text` as the file at `path`; rules are tried on samples with it.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            lines: text.lines().count(),
            code: Code::read(path, text),
        }
    }

    /// Whether the whole file is tests: by its folder, or by its name (`tests.rs`, `golden_tests.rs`).
    pub(crate) fn is_test_file(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || name == "tests.rs"
            || name.ends_with("_tests.rs")
    }

    /// Whether the file lies in one of `folders` (which end with `/`) or is one of them.
    pub(crate) fn is_in(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| match folder.ends_with('/') {
            true => self.path.starts_with(folder),
            false => self.path == *folder,
        })
    }
}

/// A package, as `cargo metadata` tells it.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) targets: Vec<Target>,
    /// `Some` of nothing: never published.
    pub(crate) publish: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` is a normal one; else `dev` or `build`.
    pub(crate) kind: Option<String>,
    pub(crate) optional: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) workspace_default_members: Vec<String>,
}

impl Package {
    /// Its manifest, from the root of the repository.
    pub(crate) fn manifest(&self) -> String {
        from_root(&self.manifest_path)
    }
}

impl Metadata {
    /// Every target of the workspace whose kind is `kind` (`bin`, `example`, `bench`, ..).
    pub(crate) fn targets<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a Package, &'a Target)> {
        let all = self.packages.iter().flat_map(|package| {
            let targets = package.targets.iter();
            targets.map(move |target| (package, target))
        });
        all.filter(move |(_, target)| target.kind.iter().any(|has| has == kind))
    }
}

/// Every text file of the repository, in order of path.
pub(crate) static TEXT_FILES: LazyLock<Vec<TextFile>> = LazyLock::new(|| {
    let mut files = Vec::new();
    collect(&root(), &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
});

/// Every Rust file of the repository, in order of path.
pub(crate) static RUST_FILES: LazyLock<Vec<RustFile>> = LazyLock::new(|| {
    let rust = TEXT_FILES.iter().filter(|file| file.path.ends_with(".rs"));
    rust.map(|file| RustFile::new(&file.path, &file.text)).collect()
});

/// The packages of the workspace.
pub(crate) static METADATA: LazyLock<Metadata> = LazyLock::new(|| {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let answer = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap_or_else(|error| panic!("cargo does not start: {error}"));
    serde_json::from_slice(&answer.stdout).unwrap_or_else(|error| {
        panic!(
            "cargo metadata: {error}\n{}",
            String::from_utf8_lossy(&answer.stderr)
        )
    })
});

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_owned()
}

/// `path` from the root of the repository, with `/`.
pub(crate) fn from_root(path: &Path) -> String {
    let inside = path.strip_prefix(root()).unwrap_or(path);
    let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// What is in the file at `path` from the root; a missing file fails the rule that asks for it.
#[track_caller]
pub(crate) fn must_read(path: &str) -> String {
    fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{path} must exist and be readable: {error}"))
}

fn collect(folder: &Path, files: &mut Vec<TextFile>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            if !NOT_OURS.iter().any(|name| entry.file_name() == *name) {
                collect(&path, files);
            }
        } else if is_text(&from_root(&path)) {
            // A file that vanishes meanwhile (an editor's, say) is not a file of ours.
            if let Ok(text) = fs::read_to_string(&path) {
                let path = from_root(&path);
                files.push(TextFile { path, text });
            }
        }
    }
}

fn is_text(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => TEXT_ENDINGS.contains(&ending),
        _ => TEXT_WITHOUT_ENDING
            .iter()
            .any(|known| path.starts_with(known) || name == *known),
    }
}

#[test]
fn the_walk_finds_the_rules_themselves_and_no_build_output() {
    let found = |path: &str| TEXT_FILES.iter().any(|file| file.path == path);
    assert!(found("tests/tidy/workspace.rs") && found("Makefile") && found("scripts/test"));
    assert!(found(".ci/run") && found(".github/workflows/ci.yml"));
    assert!(!TEXT_FILES.iter().any(|file| file.path.starts_with("target/")));
}

#[test]
fn a_test_file_is_known_by_its_folder_or_its_name() {
    let is_test = |path| RustFile::new(path, "").is_test_file();
    assert!(is_test("a/src/tests/time.rs") && is_test("a/src/tests.rs") && is_test("a/src/golden_tests.rs"));
    assert!(is_test("tests/cluster/main.rs") && is_test("a/tests/suite.rs"));
    assert!(!is_test("a/src/contests.rs") && !is_test("a/src/testing.rs"));
}
