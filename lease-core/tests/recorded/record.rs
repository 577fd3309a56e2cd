//! Files that are compared with what the code says now, or written anew.

use std::path::PathBuf;

/// The path of a recorded file.
pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// What is recorded, with line ends as they are everywhere.
#[expect(
    clippy::disallowed_methods,
    reason = "a recorded file is what this test is about"
)]
pub(crate) fn read(name: &str) -> Option<String> {
    let bytes = std::fs::read(path(name)).ok()?;
    Some(String::from_utf8(bytes).unwrap().replace("\r\n", "\n"))
}

/// Whether the files shall be written anew.
#[expect(clippy::disallowed_methods, reason = "asked for by whoever runs the test")]
fn is_update() -> bool {
    std::env::var("UPDATE").is_ok_and(|value| value == "1")
}

/// Compares `now` with the recorded file, or records it.
#[expect(
    clippy::disallowed_methods,
    reason = "a recorded file is what this test is about"
)]
#[track_caller]
pub(crate) fn compare(name: &str, now: &str, on_difference: &str) {
    if is_update() {
        std::fs::write(path(name), now).unwrap();
        return;
    }
    let recorded = read(name).unwrap_or_default();
    if recorded == now {
        return;
    }
    let lines = recorded.lines().zip(now.lines());
    let same = lines.take_while(|(recorded, now)| recorded == now).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(the end)").to_owned();
    panic!(
        "tests/data/{name} differs in line {}:\n  recorded: {}\n  now:      {}\n{on_difference}",
        same.saturating_add(1),
        line(&recorded),
        line(now),
    );
}
