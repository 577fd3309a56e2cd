//! The service as its callers meet it: many at once, with and without the token, and while it stops.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Barrier;

use crate::program::{Serving, read_answer, run};
use crate::{EVENT, body, claim, database, done};

const TOKEN: &str = "a-token-of-some-length";

/// L01, L07: one event, 64 callers at once: one is granted it, all get the same bytes.
fn of_sixty_four_callers_one_is_granted_and_all_get_the_same_bytes(store: &str) {
    const CALLERS: usize = 64;
    let serving = Serving::start(store);
    let together = Barrier::new(CALLERS);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (serving, together) = (&serving, &together);
                scope.spawn(move || {
                    let body = body(102).replace("message-102", &format!("message-{caller}"));
                    together.wait();
                    serving.post("/v1/claims", &body)
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let count = |wanted: u16| answers.iter().filter(|(status, _)| *status == wanted).count();
    assert_eq!((count(201), count(200)), (1, CALLERS - 1), "{answers:?}");
    assert!(
        answers.iter().all(|(_, body)| *body == answers[0].1),
        "{answers:?}"
    );
    assert_eq!(serving.stop(), Some(0));
    done(&run(store, &["audit"]), "1 claims of 1 players");
}

#[test]
fn l01_l07_on_sled_of_sixty_four_callers_one_is_granted_and_all_get_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    of_sixty_four_callers_one_is_granted_and_all_get_the_same_bytes(&format!(
        "sled:{}",
        dir.path().display()
    ));
}

#[tokio::test]
async fn l01_l07_on_postgresql_of_sixty_four_callers_one_is_granted_and_all_get_the_same_bytes() {
    of_sixty_four_callers_one_is_granted_and_all_get_the_same_bytes(&database().await);
}

#[test]
fn whoever_does_not_show_the_token_is_told_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let serving = Serving::start_with("memory:", &["--token-file", file.to_str().unwrap()]);
    let ask = |path: &str, headers: &str| serving.ask("GET", path, headers, "").unwrap();
    for headers in [
        String::new(),
        format!("authorization: Bearer {TOKEN}x\r\n"),
        format!("authorization: Basic {TOKEN}\r\n"),
        "authorization: Bearer \r\n".to_owned(),
    ] {
        for path in ["/v1/claims", "/v1/audit", "/v1/export", "/v1/outbox"] {
            let (status, told) = ask(path, &headers);
            assert!(
                status == 401 && told.contains("bearer token"),
                "{path} {headers}: {told}"
            );
        }
        let unheard = serving.ask("POST", "/v1/claims", &headers, &body(102)).unwrap();
        assert_eq!(unheard.0, 401, "{unheard:?}");
    }
    let shown = format!("authorization: Bearer {TOKEN}\r\n");
    let (status, report) = ask("/v1/audit", &shown);
    assert!(status == 200 && report.contains(r#""claims":"0""#), "{report}");
    assert_eq!(ask("/healthz", "").0, 200, "probes show none");
    assert_eq!(serving.stop(), Some(0));
}

#[test]
fn a_service_that_others_can_reach_wants_a_token_of_some_length() {
    let open = run("memory:", &["serve", "--listen", "0.0.0.0:0"]);
    assert!(open.code == Some(1) && open.stderr.contains("token"), "{open:#?}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    fs::write(&file, "short").unwrap();
    let short = run("memory:", &["serve", "--token-file", file.to_str().unwrap()]);
    assert!(
        short.code == Some(1) && short.stderr.contains("16 bytes"),
        "{short:#?}"
    );
}

/// A claim whose body is still on its way when the service is told to stop is granted, answered, and kept.
fn a_request_under_way_is_answered_before_the_service_ends(store: &str) {
    let serving = Serving::start(store);
    let mut busy = serving.connect();
    let body = body(102);
    let head = format!(
        "POST /v1/claims HTTP/1.1\r\nhost: ledger\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    busy.write_all(head.as_bytes()).unwrap();
    let mut go_on = [0; 25];
    busy.read_exact(&mut go_on).unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    serving.tell_to_stop();
    // It takes no more connections: then it has heard.
    while TcpStream::connect(&serving.address).is_ok() {}
    busy.write_all(body.as_bytes()).unwrap();
    let (status, receipt) = read_answer(&mut busy).unwrap();
    assert_eq!(status, 201, "{receipt}");
    assert_eq!(serving.wait(), Some(0));
    done(&run(store, &["get", "42", EVENT]), EVENT);
}

#[test]
fn on_sled_a_request_under_way_is_answered_before_the_service_ends() {
    let dir = tempfile::tempdir().unwrap();
    a_request_under_way_is_answered_before_the_service_ends(&format!("sled:{}", dir.path().display()));
}

#[tokio::test]
async fn on_postgresql_a_request_under_way_is_answered_before_the_service_ends() {
    a_request_under_way_is_answered_before_the_service_ends(&database().await);
}

/// An audit that finds what must not be says so, by words and by its exit code.
fn an_audit_that_finds_violations_exits_with_four(store: &str) {
    done(&claim(store, "102", EVENT, "500"), "applied: ");
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = dir.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let right = file(
        "right",
        &format!(r#"{{"reward_event_id": "{EVENT}", "amount": "500"}}"#),
    );
    done(&run(store, &["audit", "--expected", &right]), "no violation");
    let wrong = file(
        "wrong",
        &format!(r#"{{"reward_event_id": "{EVENT}", "amount": "400"}}"#),
    );
    let told = run(store, &["audit", "--expected", &wrong]);
    assert!(
        told.code == Some(4) && told.stdout.contains("1 violation"),
        "{told:#?}"
    );
    assert!(told.stderr.contains(EVENT), "it is named: {told:#?}");
    let told = run(store, &["audit", "--expected", &wrong, "--json"]);
    assert!(
        told.code == Some(4) && told.stdout.contains(r#""clean":false"#),
        "{told:#?}"
    );
    let foreign = file(
        "foreign",
        r#"{"idempotency_key": "grant/7/season-2026-week-34:player-7:rank-1"}"#,
    );
    let told = run(store, &["audit", "--outside", &foreign]);
    assert_eq!(told.code, Some(4), "{told:#?}");
    let unreadable = file("unreadable", "{\n");
    let told = run(store, &["audit", "--expected", &unreadable]);
    assert!(
        told.code == Some(1) && told.stderr.contains("line 1"),
        "{told:#?}"
    );
}

#[test]
fn on_sled_an_audit_that_finds_violations_exits_with_four() {
    let dir = tempfile::tempdir().unwrap();
    an_audit_that_finds_violations_exits_with_four(&format!("sled:{}", dir.path().display()));
}

#[tokio::test]
async fn on_postgresql_an_audit_that_finds_violations_exits_with_four() {
    an_audit_that_finds_violations_exits_with_four(&database().await);
}
