//! What a node is told by a settings file, and what holds when it is told twice.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tests::Launch;

const ANYWHERE: &str = "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n";

fn file(directory: &TempDir, text: &str) -> PathBuf {
    let path = directory.path().join("lease-store.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// How many databases a node has: the number above the last that can be selected.
fn databases(launch: Launch) -> usize {
    let node = launch.start();
    let mut client = node.client();
    let count = (0..64)
        .take_while(|number| client.say(&format!("SELECT {number}")) == "+OK")
        .count();
    node.stop();
    count
}

#[test]
fn an_option_holds_before_the_environment_then_the_file_then_the_default() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, &format!("memory = true\ndatabases = 3\n{ANYWHERE}"));
    let launch = || Launch::from_file(&path);
    assert_eq!(databases(launch()), 3);
    assert_eq!(databases(launch().env("LEASE_STORE_DATABASES", "4")), 4);
    let told = launch()
        .env("LEASE_STORE_DATABASES", "4")
        .args(["--databases", "5"]);
    assert_eq!(databases(told), 5);
    let path = file(&directory, &format!("memory = true\n{ANYWHERE}"));
    assert_eq!(
        databases(Launch::in_memory().env("LEASE_STORE_CONFIG", &path)),
        16
    );
}

#[test]
fn a_directory_on_the_command_line_beats_memory_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, &format!("memory = true\n{ANYWHERE}"));
    let data = directory.path().join("data");
    let node = Launch::from_file(&path)
        .args([Path::new("--data-dir"), &data])
        .start();
    assert!(!node.stderr().text().contains("forgets"));
    node.stop();
    assert!(data.is_dir());
}

#[test]
fn a_settings_file_that_cannot_be_used_is_named_with_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |text: &str, words: &[&str]| {
        let path = file(&directory, text);
        let exit = Launch::from_file(&path).run_to_end();
        exit.expect_failure(words);
        assert_eq!(exit.stdout, "");
    };
    refused(
        "memory = true\nlistn = \"x\"\n",
        &["lease-store.toml:2: unknown key \"listn\"", "\"listen\""],
    );
    refused(
        "workers = true\n",
        &["lease-store.toml:1: workers must be a whole number"],
    );
    refused("workers = 0\n", &["--workers must be 1 to 256, not 0"]);
    refused(
        "memory = true\ndata-dir = \"x\"\n",
        &["--memory and --data-dir cannot be given together"],
    );
    let absent = directory.path().join("absent.toml");
    Launch::from_file(&absent)
        .run_to_end()
        .expect_failure(&["cannot read the settings file", absent.to_str().unwrap()]);
}
