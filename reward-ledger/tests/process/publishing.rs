//! The service publishes to an outside server; people list, retry and discard what it gave up.

use std::fs;

use crate::outside::{Mood, Outside, Vouched};
use crate::program::{Exit, Serving, run};
use crate::{EVENT, body, database, done, refused};

/// Looks at the outbox at the most, each a request: minutes.
const LOOKS_MAX: usize = 100_000;
const KEY: &str = "grant/42/season-2026-week-34:player-42:rank-3";

/// What the program says of the outbox once a row of it is in this state.
fn listed(serving: &Serving, state: &str) -> String {
    let words = format!(r#""state":"{state}""#);
    for _ in 0..LOOKS_MAX {
        let (status, rows) = serving.get("/v1/outbox?state=all");
        assert_eq!(status, 200, "{rows}");
        if rows.contains(&words) {
            return rows;
        }
    }
    panic!("no row is {state}");
}

fn outbox(store: &str, words: &[&str]) -> Exit {
    run(store, &[&["outbox"], words].concat())
}

/// A dead letter: listed, tried again by hand, refused again, given up by hand with a reason, delivered after all.
fn dead_letters_are_listed_retried_and_discarded(store: &str) {
    let outside = Outside::start(Mood::Refuses);
    let url = format!("http://{}/items", outside.address);
    let target = ["--target", url.as_str()];
    let serving = Serving::start_with(store, &target);
    assert_eq!(serving.post("/v1/claims", &body(102)).0, 201);
    assert!(outside.refused() >= 1);
    listed(&serving, "dead");
    assert_eq!(serving.stop(), Some(0));

    done(&outbox(store, &["list"]), "1 grant/42/");
    done(&outbox(store, &["list", "--json"]), r#""state":"dead""#);
    refused(&outbox(store, &["retry", "9"]), "no such row");
    done(&outbox(store, &["retry", "1"]), "pending");
    refused(&outbox(store, &["retry", "1"]), "pending");
    let none = outbox(store, &["list"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:#?}");
    refused(
        &outbox(store, &["discard", "1", "--reason", "too early"]),
        "pending",
    );

    let serving = Serving::start_with(store, &target);
    listed(&serving, "dead");
    assert_eq!(serving.stop(), Some(0));
    let unexplained = outbox(store, &["discard", "1"]);
    assert_eq!(unexplained.code, Some(2), "{unexplained:#?}");
    done(
        &outbox(store, &["discard", "1", "--reason", "given by hand"]),
        "given by hand",
    );
    done(&run(store, &["get", "42", EVENT]), "discarded");
    done(&outbox(store, &["retry", "1"]), "pending");

    outside.be(Mood::Well);
    let serving = Serving::start_with(store, &target);
    assert_eq!(outside.done(1), [(KEY.to_owned(), (1, "102".to_owned()))].into());
    listed(&serving, "delivered");
    assert_eq!(serving.stop(), Some(0));
    refused(&outbox(store, &["retry", "1"]), "delivered");
    done(&run(store, &["audit"]), "no violation");
}

#[test]
fn on_sled_dead_letters_are_listed_retried_and_discarded() {
    let dir = tempfile::tempdir().unwrap();
    dead_letters_are_listed_retried_and_discarded(&format!("sled:{}", dir.path().display()));
}

#[tokio::test]
async fn on_postgresql_dead_letters_are_listed_retried_and_discarded() {
    dead_letters_are_listed_retried_and_discarded(&database().await);
}

#[test]
fn a_target_over_tls_is_believed_by_the_authority_that_was_named() {
    let vouched = Vouched::of("127.0.0.1");
    let outside = Outside::start_with_tls(&vouched);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ca.pem");
    fs::write(&file, &vouched.authority).unwrap();
    let url = format!("https://{}/items", outside.address);
    let authority = file.to_str().unwrap();
    let serving = Serving::start_with("memory:", &["--target", &url, "--target-ca", authority]);
    assert_eq!(serving.post("/v1/claims", &body(102)).0, 201);
    assert_eq!(outside.done(1), [(KEY.to_owned(), (1, "102".to_owned()))].into());
    listed(&serving, "delivered");
    assert_eq!(serving.stop(), Some(0));
}

/// A certificate of a foreign authority, and one for another name: nothing is sent, and that is known.
#[test]
fn a_target_that_is_not_the_one_that_was_meant_is_told_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ca.pem");
    let elsewhere = Vouched::of("items.example");
    for (vouched, believed) in [
        (&Vouched::of("127.0.0.1"), &elsewhere.authority),
        (&elsewhere, &elsewhere.authority),
    ] {
        let outside = Outside::start_with_tls(vouched);
        fs::write(&file, believed).unwrap();
        let url = format!("https://{}/items", outside.address);
        let words = [
            "--target",
            &url,
            "--target-tries",
            "1",
            "--target-ca",
            file.to_str().unwrap(),
        ];
        let serving = Serving::start_with("memory:", &words);
        assert_eq!(serving.post("/v1/claims", &body(102)).0, 201);
        let rows = listed(&serving, "dead");
        assert!(
            rows.contains("certificate") && rows.contains(r#""outcome":"not-done""#),
            "{rows}"
        );
        assert_eq!(serving.stop(), Some(0));
    }
}

#[test]
fn authorities_of_a_target_that_cannot_be_read_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ca.pem");
    let file = file.to_str().unwrap();
    let words = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--target",
        "https://127.0.0.1:1/",
        "--target-ca",
        file,
    ];
    let missing = run("memory:", &words);
    assert!(
        missing.code == Some(1) && missing.stderr.contains("ca.pem"),
        "{missing:#?}"
    );
    fs::write(file, "nothing").unwrap();
    let empty = run("memory:", &words);
    assert!(
        empty.code == Some(1) && empty.stderr.contains("PEM"),
        "{empty:#?}"
    );
}
