//! The program `reward-ledger` as people and scripts run it: a process, on sled and on a PostgreSQL server of the tests'
//! own.
#![expect(
    clippy::unwrap_used,
    clippy::string_slice,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod outage;
mod outside;
mod program;
mod publishing;
mod secrets;
mod service;

use std::io::{Read as _, Write as _};
use std::process::Stdio;

use reward_ledger::testing::server::PostgresServer;

use program::{Exit, Serving, program, run};

const EVENT: &str = "season-2026-week-34:player-42:rank-3";
const LOCK: &str = "lock:reward:player-42";

/// A claim over HTTP under `token`.
fn body(token: u64) -> String {
    format!(
        r#"{{"resource": "{LOCK}", "fence_token": "{token}", "player_id": "42", "amount": "500", "item": "gold",
            "reward_event_id": "{EVENT}", "attempt_id": "message-{token}"}}"#
    )
}

/// The same claim on the command line, for any event.
fn claim(store: &str, token: &str, event: &str, amount: &str) -> Exit {
    let attempt = format!("{event}/{token}");
    let words = [
        "claim",
        "--resource",
        LOCK,
        "--fence-token",
        token,
        "--player",
        "42",
        "--event",
        event,
        "--item",
        "gold",
        "--amount",
        amount,
        "--attempt",
        &attempt,
    ];
    run(store, &words)
}

/// A new database, as `--store` takes it.
async fn database() -> String {
    let server = PostgresServer::shared().await;
    let url = server.database().await;
    let (_, name) = url.rsplit_once("dbname=").unwrap();
    let host = server.socket_dir().to_str().unwrap().replace('/', "%2F");
    format!("postgres://postgres@{host}/{name}")
}

fn sorted(lines: &str) -> Vec<&str> {
    let mut lines: Vec<_> = lines.lines().collect();
    lines.sort_unstable();
    lines
}

fn done(exit: &Exit, words: &str) {
    assert!(
        exit.code == Some(0) && exit.stdout.contains(words),
        "{words:?}: {exit:#?}"
    );
}

fn refused(exit: &Exit, words: &str) {
    assert!(
        exit.code == Some(3) && exit.stdout.contains(words),
        "{words:?}: {exit:#?}"
    );
}

/// Serves, is claimed from twice, is told to stop while a connection is idle, and is gone; what it granted is there.
fn serves_and_stops(store: &str) {
    let serving = Serving::start(store);
    let mut idle = serving.connect();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: ledger\r\n\r\n")
        .unwrap();
    idle.read_exact(&mut [0; 12]).unwrap();
    let (status, first) = serving.post("/v1/claims", &body(102));
    assert_eq!(status, 201, "{first}");
    assert_eq!(serving.post("/v1/claims", &body(102)), (200, first));
    let (status, told) = serving.post("/v1/claims", &body(101));
    assert_eq!(status, 409, "{told}");
    assert_eq!(serving.stop(), Some(0));
    done(&run(store, &["get", "42", EVENT]), EVENT);
    done(&run(store, &["fence", "get", LOCK]), "102");
}

/// Each command that needs no service, and its exit code.
fn every_command_does_its_work(store: &str) {
    done(&claim(store, "102", EVENT, "500"), "applied: ");
    done(&claim(store, "102", EVENT, "500"), "replayed: ");
    refused(&claim(store, "101", EVENT, "500"), "102");
    refused(&claim(store, "102", EVENT, "501"), "conflict: ");
    done(&run(store, &["get", "42", EVENT]), "pending");
    refused(&run(store, &["get", "43", EVENT]), "no such claim");
    done(&run(store, &["fence", "get", LOCK, "--json"]), r#""102""#);
    refused(&run(store, &["fence", "get", "lock:other"]), "no claim");
    done(&run(store, &["outbox", "list", "--all"]), "grant/42/");
    let none = run(store, &["outbox", "list"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:#?}");
    done(&run(store, &["audit"]), "1 claims of 1 players");
    let export = run(store, &["export"]);
    done(&export, EVENT);
    done(
        &run(
            store,
            &["fence", "reset", LOCK, "--reason", "the counter was lost"],
        ),
        "the counter was lost",
    );
    let unheard = run(store, &["claim", "--player", "42"]);
    assert_eq!(unheard.code, Some(2), "{unheard:#?}");
}

#[test]
fn on_sled_it_serves_answers_the_same_again_and_stops_when_told() {
    let dir = tempfile::tempdir().unwrap();
    serves_and_stops(&format!("sled:{}", dir.path().display()));
}

#[tokio::test]
async fn on_postgresql_it_serves_answers_the_same_again_and_stops_when_told() {
    serves_and_stops(&database().await);
}

#[test]
fn on_sled_every_command_does_its_work() {
    let dir = tempfile::tempdir().unwrap();
    every_command_does_its_work(&format!("sled:{}", dir.path().display()));
}

#[tokio::test]
async fn on_postgresql_every_command_does_its_work() {
    every_command_does_its_work(&database().await);
}

#[tokio::test]
async fn on_postgresql_a_ledger_that_is_served_is_used_by_other_processes_too() {
    let store = database().await;
    let serving = Serving::start(&store);
    done(&claim(&store, "102", EVENT, "500"), "applied: ");
    let (status, told) = serving.post("/v1/claims", &body(101));
    assert_eq!(status, 409, "{told}");
    let (status, told) = serving.post("/v1/claims", &body(103));
    assert_eq!(status, 200, "{told}");
    done(&run(&store, &["audit"]), "no violation");
    assert_eq!(serving.stop(), Some(0));
}

#[tokio::test]
async fn a_ledger_moves_from_sled_to_postgresql_through_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (format!("sled:{}", dir.path().display()), database().await);
    for rank in 1..=20 {
        let event = format!("season-2026-week-34:player-42:rank-{rank}");
        done(&claim(&from, "102", &event, "500"), "applied: ");
    }
    let mut export = program(&from, &["export"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = export.stdout.take().unwrap();
    let import = program(&to, &["import"]).stdin(lines).output().unwrap();
    assert!(
        export.wait().unwrap().success() && import.status.success(),
        "{import:?}"
    );

    let (before, after) = (run(&from, &["export"]), run(&to, &["export"]));
    assert_eq!(before.code, Some(0), "{before:#?}");
    assert!(before.stdout.lines().count() > 20, "{before:#?}");
    // The order of a table's rows is the store's own.
    assert_eq!(sorted(&before.stdout), sorted(&after.stdout));
    done(&run(&to, &["audit"]), "no violation");
    // It goes on where the other was.
    done(&claim(&to, "102", EVENT, "500"), "replayed: ");
    refused(
        &claim(&to, "101", "season-2026-week-34:player-42:quest-9", "1"),
        "102",
    );
}

#[test]
fn a_database_that_is_not_there_is_an_error_that_shows_no_password() {
    // Port 1 of loopback: nobody listens there.
    let store = "postgres://ledger:hunter2@127.0.0.1:1/rewards?connect_timeout=2";
    let exit = run(store, &["audit"]);
    assert_eq!(exit.code, Some(1), "{exit:#?}");
    assert!(exit.stderr.contains("could not connect"), "{exit:#?}");
    assert!(!exit.stderr.contains("hunter2"), "{exit:#?}");
}
