//! What the tests start: built once for each run by cargo itself, so that it is never an old one.
//!
//! Cargo hands a test the path of a binary of its own package only, and the server's is another one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde::Deserialize;

/// A file, or why it could not be built: known once for all tests of a run.
type Built = OnceLock<Result<PathBuf, String>>;

/// The server binary `lease-store`, of the profile of this test.
#[must_use]
pub fn server_binary() -> &'static Path {
    static BUILT: Built = OnceLock::new();
    let arguments = ["--package", "lease-store", "--bin", "lease-store"];
    file(&BUILT, &arguments, |message| message.executable)
}

/// The library of `tests/faults`, to be loaded before libc.
#[must_use]
pub fn fault_library() -> &'static Path {
    static BUILT: Built = OnceLock::new();
    file(&BUILT, &["--package", "faults"], |message| {
        let ours = message.target.is_some_and(|target| target.name == "faults");
        message.filenames.into_iter().find(|_| ours)
    })
}

fn file(
    built: &'static Built,
    arguments: &[&str],
    pick: impl Fn(Message) -> Option<PathBuf>,
) -> &'static Path {
    match built.get_or_init(|| build(arguments, pick)) {
        Ok(path) => path,
        Err(why) => panic!("harness: cargo build {arguments:?}: {why}"),
    }
}

/// A line of `cargo build --message-format json`, as far as it matters.
#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    target: Option<Target>,
    executable: Option<PathBuf>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

/// Builds, with the target directory, flags and features that cargo itself is told by the environment, and gives the
/// file that `pick` finds in the messages.
fn build(arguments: &[&str], pick: impl Fn(Message) -> Option<PathBuf>) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args([
            "build",
            "--quiet",
            "--locked",
            "--message-format",
            "json-render-diagnostics",
        ])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null());
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let built = command.output().map_err(|error| error.to_string())?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&built.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    let mut artifacts = messages.filter(|message: &Message| message.reason == "compiler-artifact");
    artifacts
        .find_map(pick)
        .ok_or_else(|| "it names no file".to_owned())
}
