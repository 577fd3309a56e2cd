//! What a start needs, and what it says when that is not there.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use tests::{Launch, artifact};

#[test]
fn a_node_says_in_one_line_where_it_serves() {
    let directory = tempfile::tempdir().unwrap();
    let node = Launch::in_directory(&directory.path().join("data"))
        .args(["--node-id", "7"])
        .start();
    let ready = node.ready();
    let expected = format!("ready resp={} admin=http://{} node=7", ready.resp, ready.admin);
    assert_eq!(ready.line, expected);
    assert_ne!(
        ready.resp.port(),
        0,
        "the port that was taken, not the one that was asked for"
    );
    assert_eq!(node.client().say("PING"), "+PONG");
    assert_eq!(
        node.stdout().text(),
        format!("{expected}\n"),
        "nothing else goes to standard output"
    );
    node.stop();
}

#[test]
fn serve_as_a_word_does_what_is_done_without_one() {
    let binary = artifact::server_binary();
    let help = |arguments: &[&str]| {
        let output = Command::new(binary).args(arguments).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty());
        String::from_utf8(output.stdout).unwrap()
    };
    let short = help(&["--help"]);
    for option in [
        "--data-dir",
        "--memory",
        "--listen",
        "--admin",
        "--node-id",
        "--password-file",
        "--insecure",
        "--config",
    ] {
        assert!(short.contains(option), "{option}: {short}");
        assert!(help(&["serve", "--help"]).contains(option));
    }
    for default in ["./lease-data", "127.0.0.1:7420", "127.0.0.1:7421"] {
        assert!(short.contains(default), "{default}: {short}");
    }
    assert!(help(&["--version"]).starts_with("lease-store "));
}

#[test]
fn a_node_without_a_disk_says_that_it_forgets() {
    let node = Launch::in_memory().start();
    let said = node.stderr().text();
    assert!(said.contains("a restart forgets every lease"), "{said}");
    node.stop();
    let both = Launch::in_memory().args(["--data-dir", "x"]).run_to_end();
    both.expect_failure(&["--memory", "--data-dir"]);
}

#[test]
fn a_second_process_on_the_same_directory_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let first = Launch::in_directory(directory.path()).start();
    let second = Launch::in_directory(directory.path()).run_to_end();
    let process = format!("in use by process {}", first.process_id());
    second.expect_failure(&[directory.path().to_str().unwrap(), &process]);
    assert_eq!(second.stdout, "");
    assert_eq!(first.client().say("SET a b NX"), "+OK", "the first one goes on");
    first.stop();
    Launch::in_directory(directory.path()).start().stop();
}

#[test]
fn an_address_that_is_taken_is_named() {
    let first = Launch::in_memory().start();
    let resp = first.resp().to_string();
    let admin = first.admin().to_string();
    let directory = tempfile::tempdir().unwrap();
    let launch = || Launch::in_directory(directory.path());
    launch()
        .listen(&resp)
        .run_to_end()
        .expect_failure(&[&resp, "is another process there"]);
    launch()
        .admin(&admin)
        .run_to_end()
        .expect_failure(&[&admin, "is another process there"]);
    // Neither failure holds the directory, or harms what is in it.
    launch().start().stop();
    first.stop();
}

#[test]
fn arguments_that_cannot_be_are_refused_with_what_they_may_be() {
    let refused = |arguments: &[&str], words: &[&str]| {
        Launch::in_memory()
            .args(arguments)
            .run_to_end()
            .expect_failure(words);
    };
    refused(&["--max-value", "0"], &["--max-value must be 1 to", "not 0"]);
    refused(&["--max-value", "99999999999"], &["--max-value must be 1 to"]);
    refused(&["--databases", "0"], &["--databases must be 1 to 64, not 0"]);
    refused(&["--databases", "65"], &["--databases must be 1 to 64, not 65"]);
    refused(&["--workers", "0"], &["--workers"]);
    refused(&["--max-connections", "many"], &["--max-connections"]);
    refused(&["--no-such-thing"], &["--no-such-thing"]);
    Launch::in_memory()
        .listen("localhost")
        .run_to_end()
        .expect_failure(&["--listen", "localhost"]);
}

#[test]
fn a_directory_of_another_node_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    Launch::in_directory(directory.path()).start().stop();
    let other = Launch::in_directory(directory.path())
        .args(["--node-id", "2"])
        .run_to_end();
    other.expect_failure(&[
        directory.path().to_str().unwrap(),
        "belongs to node 1, this is node 2",
    ]);
}

#[test]
fn a_directory_that_holds_something_else_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("thesis.tex"), "years of work").unwrap();
    let exit = Launch::in_directory(directory.path()).run_to_end();
    exit.expect_failure(&[
        directory.path().to_str().unwrap(),
        "thesis.tex",
        "no data directory",
    ]);
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_file_in_place_of_the_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        Launch::in_directory(&path)
            .run_to_end()
            .expect_failure(&[file.to_str().unwrap()]);
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let read_only = directory.path().join("read-only");
    std::fs::create_dir(&read_only).unwrap();
    std::fs::set_permissions(&read_only, std::fs::Permissions::from_mode(0o555)).unwrap();
    // The mode does not bind root; a folder of the kernel's in which nobody can make anything does.
    let unwritable = if is_root() {
        "/proc/lease-data".into()
    } else {
        read_only.join("data")
    };
    let exit = Launch::in_directory(&unwritable).run_to_end();
    exit.expect_failure(&[unwritable.to_str().unwrap()]);
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn what_is_missing_from_a_used_directory_is_named_with_what_to_do() {
    for gone in ["identity", "incarnation", "log", "snapshots"] {
        let directory = tempfile::tempdir().unwrap();
        Launch::in_directory(directory.path()).start().stop();
        let path = directory.path().join(gone);
        if path.is_dir() {
            std::fs::remove_dir_all(&path).unwrap();
        } else {
            std::fs::remove_file(&path).unwrap();
        }
        let exit = Launch::in_directory(directory.path()).run_to_end();
        exit.expect_failure(&[path.to_str().unwrap(), "missing", "backup"]);
    }
}

#[test]
fn a_password_file_that_cannot_be_used_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("password");
    let start = || {
        Launch::in_memory()
            .args(["--password-file".as_ref(), path.as_os_str()])
            .run_to_end()
    };
    start().expect_failure(&["cannot read the password file", path.to_str().unwrap()]);
    std::fs::write(&path, "\n").unwrap();
    start().expect_failure(&["must hold one line", path.to_str().unwrap()]);
}
