//! All keys of a database, and what clients ask about the server.

use std::collections::BTreeSet;

use lease_core::wire::Reply;
use tests::Launch;

#[test]
fn keys_are_counted_and_listed_by_database() {
    let node = Launch::in_memory().args(["--databases", "64"]).start();
    let mut client = node.client();
    for key in 0..2_500 {
        client.send(&format!("SET key:{key} v"));
    }
    for _ in 0..2_500 {
        assert_eq!(client.hear(), "+OK");
    }
    client.call("SELECT 63");
    client.call("SET other v");
    assert_eq!(client.say("DBSIZE"), ":1");
    assert_eq!(client.say("KEYS *"), "[\"other\"]");
    client.call("SELECT 0");
    assert_eq!(client.say("DBSIZE"), ":2500");
    let (mut seen, mut cursor) = (BTreeSet::new(), "0".to_owned());
    loop {
        let Reply::Array(page) = client.call(&format!("SCAN {cursor} COUNT 100 MATCH key:*")) else {
            panic!("a page")
        };
        let [Reply::Bulk(next), Reply::Array(keys)] = &page[..] else {
            panic!("a cursor and keys: {page:?}")
        };
        seen.extend(keys.iter().map(|key| format!("{key:?}")));
        cursor = String::from_utf8(next.to_vec()).unwrap();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 2_500);
    assert_eq!(client.say("KEYS key:249?"), client.say("KEYS key:249[0-9]"));
    assert_eq!(client.say("SCAN x"), "-ERR invalid cursor");
    assert_eq!(
        client.say("SCAN 0 TYPE list COUNT 9999"),
        client.say("SCAN 0 MATCH none COUNT 9999")
    );
}

#[test]
fn a_flush_is_refused_unless_it_was_allowed() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    client.call("SET a b");
    for flush in ["FLUSHDB", "FLUSHALL", "flushall async"] {
        let refused = client.say(flush);
        assert!(
            refused.starts_with("-NOPERM ") && refused.contains("--allow-flush"),
            "{refused}"
        );
    }
    assert_eq!(client.say("EXISTS a"), ":1");
    let node = Launch::in_memory().args(["--allow-flush"]).start();
    let mut client = node.client();
    for database in ["0", "7"] {
        client.call(&format!("SELECT {database}"));
        client.call("MSET a 1 b 2 c 3");
    }
    assert_eq!(client.say("FLUSHDB SYNC"), "+OK");
    assert_eq!(client.say("DBSIZE"), ":0");
    client.call("SELECT 0");
    assert_eq!(client.say("DBSIZE"), ":3");
    assert_eq!(client.say("FLUSHALL"), "+OK");
    assert_eq!(client.say("DBSIZE"), ":0");
    assert_eq!(client.say("FLUSHALL NOW"), "-ERR syntax error");
}

#[test]
fn what_clients_ask_on_their_way_is_answered() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    assert!(client.say("INFO server").contains("redis_version:8.4.0"));
    assert_eq!(client.say("CONFIG GET databases"), "[\"databases\", \"16\"]");
    assert_eq!(client.say("CONFIG GET s*e nonsense"), "[\"save\", \"\"]");
    assert!(
        client
            .say("CONFIG SET a b")
            .starts_with("-ERR unknown subcommand 'SET'")
    );
    for cluster in ["CLUSTER SLOTS", "CLUSTER NODES", "cluster info"] {
        assert_eq!(
            client.say(cluster),
            "-ERR This instance has cluster support disabled"
        );
    }
    assert_eq!(client.say("FUNCTION FLUSH"), "+OK");
    assert_eq!(client.say("WAIT 1 100"), ":0");
    assert_eq!(client.say("CLIENT TRACKING ON OPTIN"), "+OK");
    assert!(
        client
            .say("CLIENT MAINT_NOTIFICATIONS ON")
            .starts_with("-ERR unknown subcommand")
    );
    assert!(
        client
            .say("SENTINEL MASTERS")
            .starts_with("-ERR unknown command 'SENTINEL', with args beginning with: 'MASTERS' ")
    );
    let Reply::Array(time) = client.call("TIME") else {
        panic!("a pair")
    };
    assert_eq!(time.len(), 2);
    let Reply::Map(greeting) = client.call("HELLO 3") else {
        panic!("a map")
    };
    assert!(
        greeting.contains(&(Reply::bulk("version"), Reply::bulk("8.4.0"))),
        "{greeting:?}"
    );
}
