//! The `LEASE.*` commands: their answers, and the word that each mistake is answered with.

use lease_core::wire::Reply;
use tests::show::show;
use tests::{Client, Launch};

#[track_caller]
fn granted(client: &mut Client, command: &str) -> i64 {
    match client.call(command) {
        Reply::Array(fields) if fields.len() == 4 && fields[0] == Reply::bulk("granted") => match fields[1] {
            Reply::Integer(token) => token,
            ref other => panic!("{other:?}"),
        },
        other => panic!("{command}: {}", show(&other)),
    }
}

#[test]
fn a_lease_lives_from_its_grant_to_its_release() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let token = granted(&mut client, "LEASE.ACQUIRE a me 60000 META note");
    let Reply::Array(seen) = client.call("LEASE.GET a") else {
        panic!()
    };
    assert_eq!((&seen[0], &seen[1]), (&Reply::bulk("me"), &Reply::Integer(token)));
    assert!(matches!(seen[2], Reply::Integer(1..=60_000)));
    assert_eq!((&seen[4], &seen[5]), (&Reply::Integer(0), &Reply::bulk("note")));
    let renewed = client.say(&format!("LEASE.RENEW a {token} 90000"));
    assert_eq!(renewed, "[\"renewed\", :90000]");
    let other = granted(&mut client, "LEASE.ACQUIRE b me 60000");
    let many = client.say(&format!(
        "LEASE.MRENEW a {token} b {other} b {token} none {token}"
    ));
    let expected =
        "[[\"renewed\", :90000], [\"renewed\", :60000], [\"lost\", \"unknown\"], [\"lost\", \"unknown\"]]";
    assert_eq!(many, expected);
    assert_eq!(
        client.say(&format!("LEASE.RELEASE a {other}")),
        "[\"lost\", \"unknown\"]"
    );
    assert_eq!(client.say(&format!("LEASE.RELEASE a {token}")), "[\"released\"]");
    assert_eq!(
        client.say(&format!("LEASE.RELEASE a {token}")),
        "[\"lost\", \"released\"]"
    );
    assert_eq!(
        client.say(&format!("LEASE.RENEW a {token}")),
        "[\"lost\", \"released\"]"
    );
    assert_eq!(client.say("LEASE.GET a"), "nil");
    assert!(
        granted(&mut client, "LEASE.ACQUIRE a me 60000") > other,
        "tokens rise over a release"
    );
}

#[test]
fn a_request_id_makes_an_acquire_safe_to_repeat() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let token = granted(&mut client, "LEASE.ACQUIRE a me 60000 REQ r1");
    assert_eq!(granted(&mut client, "LEASE.ACQUIRE a me 60000 REQ r1"), token);
    assert_eq!(
        granted(&mut node.client(), "LEASE.ACQUIRE a me 60000 REQ r1"),
        token
    );
    assert!(
        client
            .say("LEASE.ACQUIRE a me 60000 REQ r2")
            .starts_with("[\"held\", "),
        "another request"
    );
    assert!(
        client
            .say("LEASE.ACQUIRE a you 60000 REQ r1")
            .starts_with("[\"held\", "),
        "another owner"
    );
    assert_eq!(client.say(&format!("LEASE.RELEASE a {token}")), "[\"released\"]");
    let ended = format!("[\"ended\", :{token}, \"released\"]");
    assert_eq!(client.say("LEASE.ACQUIRE a me 60000 REQ r1"), ended);
    assert_eq!(
        client.say("LEASE.ACQUIRE a me 60000 REQ r1"),
        ended,
        "never granted again"
    );
    let next = granted(&mut client, "LEASE.ACQUIRE a me 60000 REQ r3");
    assert_eq!(
        client.say("LEASE.CANCEL a me REQ r3"),
        format!("[\"released\", :{next}]")
    );
    assert_eq!(client.say("LEASE.CANCEL a me REQ r9"), "nil");
}

#[test]
fn a_forced_release_tells_its_reason_to_all() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let token = granted(&mut client, "LEASE.ACQUIRE a me 60000 REQ r1");
    assert_eq!(
        client.say("LEASE.FORCE a stuck"),
        format!("[\"released\", :{token}]")
    );
    assert_eq!(client.say("LEASE.FORCE a"), "nil");
    assert_eq!(
        client.say(&format!("LEASE.RENEW a {token}")),
        "[\"lost\", \"forced:stuck\"]"
    );
    let Reply::Array(events) = client.call("LEASE.HISTORY a COUNT 10") else {
        panic!()
    };
    let shown: Vec<String> = events.iter().map(show).collect();
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(
        shown[0].starts_with(&format!("[\"ended\", :{token}, \"me\", :")),
        "{shown:?}"
    );
    assert!(shown[0].ends_with("\"forced:stuck\"]"), "{shown:?}");
    assert!(
        shown[1].starts_with(&format!("[\"granted\", :{token}, \"me\", :")),
        "{shown:?}"
    );
}

#[test]
fn a_listing_shows_every_lease_once_in_pages() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let mut names: Vec<String> = (0..25).map(|number| format!("job:{number}")).collect();
    for name in &names {
        granted(&mut client, &format!("LEASE.ACQUIRE {name} me 60000"));
    }
    granted(&mut client, "LEASE.ACQUIRE other me 60000");
    let (mut cursor, mut listed) = ("0".to_owned(), Vec::new());
    loop {
        let page = client.call(&format!("LEASE.LIST PREFIX job: CURSOR {cursor} COUNT 10"));
        let Reply::Array(page) = page else {
            panic!("{page:?}")
        };
        let mut entries = page.into_iter();
        let Some(Reply::Bulk(next)) = entries.next() else {
            panic!()
        };
        let before = listed.len();
        listed.extend(entries.map(|entry| match entry {
            Reply::Array(fields) => match &fields[0] {
                Reply::Bulk(name) => String::from_utf8(name.to_vec()).unwrap(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }));
        assert!(listed.len() - before <= 10);
        if &*next == b"0" {
            break;
        }
        cursor = String::from_utf8(next.to_vec()).unwrap();
    }
    listed.sort();
    names.sort();
    assert_eq!(listed, names);
}

/// Requests that say nothing that could be done, and how each is answered.
const MISTAKES: [(&str, &str); 40] = [
    (
        "LEASE.ACQUIRE",
        "-ERR wrong number of arguments for 'lease.acquire'",
    ),
    ("LEASE.ACQUIRE a", "-ERR wrong number of arguments"),
    ("LEASE.ACQUIRE a b 0", "-BADTTL "),
    ("LEASE.ACQUIRE a b -1", "-BADTTL "),
    ("LEASE.ACQUIRE a b 1.5", "-BADTTL "),
    ("LEASE.ACQUIRE a b 5s", "-BADTTL "),
    ("LEASE.ACQUIRE a b 9223372036854775808", "-BADTTL "),
    (
        "LEASE.ACQUIRE a b 1000 SOON",
        "-ERR syntax error: 'SOON' is no option",
    ),
    (
        "LEASE.ACQUIRE a b 1000 WAIT",
        "-ERR syntax error: WAIT needs a value",
    ),
    ("LEASE.ACQUIRE a b 1000 WAIT x", "-ERR "),
    (
        "LEASE.ACQUIRE a b 1000 REQ r REQ s",
        "-ERR syntax error: REQ is given twice",
    ),
    ("LEASE.RENEW a", "-ERR wrong number of arguments"),
    ("LEASE.RENEW a 0", "-ERR token must be a decimal number"),
    ("LEASE.RENEW a x", "-ERR token must be"),
    ("LEASE.RENEW a -5", "-ERR token must be"),
    ("LEASE.RENEW a 9223372036854775808", "-ERR token must be"),
    ("LEASE.RENEW a 1 0", "-BADTTL "),
    ("LEASE.RENEW a 1 1000 more", "-ERR wrong number of arguments"),
    ("LEASE.MRENEW", "-ERR wrong number of arguments"),
    ("LEASE.MRENEW a", "-ERR wrong number of arguments"),
    ("LEASE.MRENEW a 1 b", "-ERR wrong number of arguments"),
    ("LEASE.MRENEW a one", "-ERR token must be"),
    ("LEASE.RELEASE a", "-ERR wrong number of arguments"),
    ("LEASE.RELEASE a 1 2", "-ERR wrong number of arguments"),
    ("LEASE.RELEASE a 1e3", "-ERR token must be"),
    ("LEASE.CANCEL a b", "-ERR "),
    ("LEASE.CANCEL a b REQ", "-ERR "),
    ("LEASE.CANCEL a b WAIT r", "-ERR "),
    ("LEASE.GET", "-ERR wrong number of arguments"),
    ("LEASE.GET a b", "-ERR wrong number of arguments"),
    ("LEASE.LIST COUNT 0", "-ERR "),
    ("LEASE.LIST COUNT many", "-ERR "),
    ("LEASE.LIST CURSOR here", "-ERR "),
    ("LEASE.LIST EVERYTHING", "-ERR syntax error"),
    ("LEASE.TOKEN a", "-ERR wrong number of arguments"),
    ("LEASE.FORCE", "-ERR wrong number of arguments"),
    ("LEASE.FORCE a b c", "-ERR wrong number of arguments"),
    ("LEASE.HISTORY a COUNT -1", "-ERR "),
    ("LEASE.HISTORY a COUNT", "-ERR "),
    ("LEASE.EXPLODE a", "-ERR unknown command 'LEASE.EXPLODE'"),
];

#[test]
fn every_mistake_has_its_word_and_the_connection_goes_on() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let long_name = "n".repeat(1_025);
    let (max, long_id) = ("9223372036854775807", "i".repeat(65));
    for (command, answer) in MISTAKES {
        let got = client.say(command);
        assert!(got.starts_with(answer), "{command}: {got}");
    }
    for named in [
        "ACQUIRE {} b 1000",
        "ACQUIRE a {} 1000",
        "RENEW {} 1",
        "MRENEW {} 1",
        "RELEASE {} 1",
        "GET {}",
    ] {
        for name in ["", &long_name] {
            let args: Vec<&str> = named
                .split(' ')
                .map(|word| if word == "{}" { name } else { word })
                .collect();
            let command = format!("LEASE.{}", args[0]);
            let args: Vec<&str> = std::iter::once(command.as_str())
                .chain(args[1..].iter().copied())
                .collect();
            let got = show(&client.call_args(&args));
            assert!(
                got.starts_with("-BADNAME ") && got.contains("1 to 1024 bytes"),
                "{named}: {got}"
            );
        }
    }
    let long = |args: &[&str]| show(&node.client().call_args(args));
    assert!(long(&["LEASE.ACQUIRE", "a", "b", "1000", "REQ", &long_id]).starts_with("-ERR "));
    assert!(long(&["LEASE.ACQUIRE", "a", "b", "1000", "META", &"m".repeat(4_097)]).starts_with("-ERR "));
    assert!(long(&["LEASE.FORCE", "a", &"r".repeat(257)]).starts_with("-ERR "));
    assert_eq!(
        client.say("LEASE.LIST"),
        "[\"0\"]",
        "nothing of all that was done"
    );
    granted(&mut client, &format!("LEASE.ACQUIRE a b {max}"));
    assert_eq!(client.say("PING"), "+PONG");
}
