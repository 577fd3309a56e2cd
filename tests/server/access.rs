//! Who may ask: the password, what little may be sent before it, and the refusal to be open by mistake.

use std::path::PathBuf;

use tests::resp::encoded;
use tests::{Launch, Node};

struct Guarded {
    node: Node,
    _directory: tempfile::TempDir,
}

fn guarded() -> Guarded {
    let (directory, file) = password_file();
    let node = Launch::in_memory()
        .args(["--password-file".as_ref(), file.as_os_str()])
        .start();
    Guarded {
        node,
        _directory: directory,
    }
}

fn password_file() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    std::fs::write(&file, "s3cret\n").unwrap();
    (directory, file)
}

const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.";
const NOAUTH: &str = "-NOAUTH Authentication required.";

#[test]
fn nothing_is_done_or_told_before_the_password() {
    let guarded = guarded();
    let mut client = guarded.node.client();
    for command in [
        "PING",
        "GET a",
        "SET a b",
        "INFO",
        "SELECT 1",
        "CLIENT ID",
        "COMMAND",
        "LEASE.ACQUIRE a b 1000",
        "LEASE.ACQUIRE",
        "LEASE.LIST",
        "LEASE.HISTORY a",
    ] {
        assert_eq!(client.say(command), NOAUTH, "{command}");
    }
    assert!(client.say("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    assert_eq!(client.say("AUTH wrong"), WRONG);
    assert_eq!(client.say("AUTH default s3cre"), WRONG);
    assert_eq!(client.say("AUTH somebody s3cret"), WRONG);
    assert_eq!(client.say("HELLO 3 AUTH default wrong"), WRONG);
    assert_eq!(client.say("PING"), NOAUTH);
    assert_eq!(client.say("AUTH s3cret"), "+OK");
    assert_eq!(client.say("GET a"), "nil", "nothing was done meanwhile");
    assert_eq!(client.say("RESET"), "+RESET");
    assert_eq!(client.say("PING"), NOAUTH, "a reset forgets the password");
    assert_eq!(client.say("QUIT"), "+OK");
    client.expect_end();
    assert_eq!(guarded.node.client().say("AUTH default s3cret"), "+OK");
    assert!(
        guarded
            .node
            .client()
            .say("HELLO 3 AUTH default s3cret SETNAME me")
            .contains("\"proto\": :3")
    );
    guarded.node.stop();
}

#[test]
fn a_pipeline_that_begins_with_the_password_is_served() {
    let guarded = guarded();
    let mut client = guarded.node.client();
    client.send_raw(b"GET a\r\nAUTH s3cret\r\nSET a b NX\r\nGET a\r\n");
    let answers: Vec<_> = (0..4).map(|_| client.hear()).collect();
    assert_eq!(answers, [NOAUTH, "+OK", "+OK", "\"b\""]);
}

#[test]
fn little_may_be_sent_before_the_password() {
    let guarded = guarded();
    let mut many = guarded.node.client();
    many.send_raw(&encoded(&["x"; 11]));
    assert_eq!(
        many.hear(),
        "-ERR Protocol error: unauthenticated multibulk length"
    );
    many.expect_end();
    let mut long = guarded.node.client();
    long.send_raw(b"*2\r\n$4\r\nAUTH\r\n$16385\r\n");
    assert_eq!(long.hear(), "-ERR Protocol error: unauthenticated bulk length");
    long.expect_end();
    let mut client = guarded.node.client();
    assert_eq!(
        client.call_args(&["x"; 10]),
        client.call_args(&["x"; 10]),
        "ten are taken"
    );
    assert_eq!(client.say("AUTH s3cret"), "+OK");
    assert_eq!(
        client.call_args(&["EXISTS"; 12]),
        lease_core::wire::Reply::Integer(0)
    );
    assert_eq!(client.say("PING"), "+PONG");
}

#[test]
fn without_a_password_auth_is_a_mistake_of_the_caller() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    assert!(
        client
            .say("AUTH secret")
            .starts_with("-ERR AUTH <password> called without any password configured")
    );
    assert_eq!(client.say("AUTH default anything"), "+OK");
    assert_eq!(client.say("PING"), "+PONG");
}

#[test]
fn an_address_off_loopback_needs_a_password_or_a_word() {
    let open = Launch::in_memory().listen("0.0.0.0:0").run_to_end();
    open.expect_failure(&["0.0.0.0", "--password-file", "--insecure"]);
    let (_directory, file) = password_file();
    let guarded = Launch::in_memory()
        .listen("0.0.0.0:0")
        .args(["--password-file".as_ref(), file.as_os_str()])
        .start();
    guarded.stop();
    Launch::in_memory()
        .listen("0.0.0.0:0")
        .args(["--insecure"])
        .start()
        .stop();
}

#[test]
fn the_admin_address_stays_on_loopback_unless_a_word_is_said() {
    let (_directory, file) = password_file();
    let password = ["--password-file".as_ref(), file.as_os_str()];
    let open = Launch::in_memory().admin("0.0.0.0:0").args(password).run_to_end();
    open.expect_failure(&["0.0.0.0", "admin address", "--insecure"]);
    Launch::in_memory()
        .admin("0.0.0.0:0")
        .args(["--insecure"])
        .start()
        .stop();
}

#[test]
fn the_password_is_in_no_log() {
    let (_directory, file) = password_file();
    let node = Launch::in_memory()
        .args(["--password-file".as_ref(), file.as_os_str()])
        .env("LEASE_STORE_LOG", "trace")
        .start();
    let mut client = node.client();
    assert_eq!(client.say("AUTH s3cret"), "+OK");
    assert_eq!(client.say("AUTH s3cretwrong"), WRONG);
    node.signal(rustix::process::Signal::TERM);
    let exit = node.wait();
    exit.expect_clean();
    assert!(exit.stderr.contains("connected"), "the log was on");
    assert!(!exit.stderr.contains("s3cret"), "{}", exit.stderr);
}
