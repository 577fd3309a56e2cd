//! Scripts of the shapes that lock libraries send, to this server and to Redis: the same answers, the same keys after.
//!
//! Where Redis is not installed the comparison says so and checks nothing, but not under CI=true.

mod bent;
mod corpus;
mod crowded;

use lease_core::wire::Reply;
use tests::random::Random;
use tests::resp::encoded;
use tests::{Client, Launch};

use crate::admin::metrics;
use crate::differential::Redis;

/// How often each shape is compared, in another state and with other arguments each time.
const ROUNDS: usize = 60;
/// Programs that are put together at random, and compared.
const PROGRAMS: usize = 1_500;
/// How far two answers about a remaining time may be apart: both servers were asked one after the other.
const TOLERANCE_MS: i64 = 20_000;

/// This server and Redis, side by side.
struct Both {
    ours: Client,
    theirs: Client,
    random: Random,
}

/// Whether the two may differ so: by a little, where a time is left.
fn agree(ours: &Reply, theirs: &Reply) -> bool {
    match (ours, theirs) {
        (Reply::Integer(ours), Reply::Integer(theirs)) => {
            let apart = ours.abs_diff(*theirs);
            ours == theirs
                || (*ours > TOLERANCE_MS && apart <= TOLERANCE_MS.unsigned_abs())
                || (*ours > 600 && *theirs > 600 && apart <= TOLERANCE_MS.unsigned_abs() / 1_000)
        }
        (Reply::Array(ours), Reply::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| agree(ours, theirs))
        }
        _ => is_alike(ours, theirs),
    }
}

impl Both {
    #[track_caller]
    fn same(&mut self, request: &[&str]) -> Reply {
        let (ours, theirs) = (self.ours.call_args(request), self.theirs.call_args(request));
        assert!(
            agree(&ours, &theirs),
            "{request:?}\nours:   {ours:?}\nRedis:  {theirs:?}"
        );
        ours
    }

    fn state(&mut self) {
        self.ours.call("DEL a b c");
        self.theirs.call("DEL a b c");
        for key in ["a", "b", "c"] {
            let value = *self
                .random
                .choose(&["token-1", "token-2", "", "token-1 and more"]);
            match self.random.below(4) {
                0 => {}
                1 => drop(self.same(&["SET", key, value])),
                _ => drop(self.same(&["SET", key, value, "PX", "5000000"])),
            }
        }
    }

    fn compare_keys(&mut self, text: &str) {
        for key in ["a", "b", "c"] {
            for command in ["GET", "PTTL"] {
                let request = [command, key];
                let (ours, theirs) = (self.ours.call_args(&request), self.theirs.call_args(&request));
                assert!(
                    agree(&ours, &theirs),
                    "{key} after {text}\nours:   {ours:?}\nRedis:  {theirs:?}"
                );
            }
        }
    }
}

fn both(seed: u64) -> Option<(Both, tests::Node, Redis)> {
    let redis = Redis::start()?;
    let node = Launch::in_memory().start();
    let both = Both {
        ours: node.client(),
        theirs: Client::connect(redis.address),
        random: Random::new(Random::seed(seed)),
    };
    Some((both, node, redis))
}

#[test]
fn scripts_of_all_shapes_answer_and_leave_what_they_do_in_redis() {
    let Some((mut both, _node, _redis)) = both(41) else {
        return;
    };
    for script in corpus::scripts() {
        let text = script.text.as_str();
        for round in 0..ROUNDS {
            both.state();
            let count = 1 + usize::try_from(both.random.below(3)).unwrap();
            let keys = &["a", "b", "c"][..count];
            let token = *both.random.choose(&["token-1", "token-2", "token-1", ""]);
            let time = *both.random.choose(&["3000000", "7000000", "0", "-1", "x", ""]);
            let flag = *both.random.choose(&["0", "1", "99"]);
            let number = keys.len().to_string();
            let name = match round % 3 {
                0 => "EVAL",
                _ => "EVALSHA",
            };
            let digest = match both.same(&["SCRIPT", "LOAD", text]) {
                Reply::Bulk(digest) => String::from_utf8(digest.to_vec()).unwrap(),
                other => panic!("{other:?}"),
            };
            let script = if name == "EVAL" { text } else { digest.as_str() };
            let mut request = vec![name, script, &number];
            request.extend(keys);
            request.extend([token, time, "other", flag]);
            both.same(&request);
            both.compare_keys(text);
        }
    }
}

/// An expression that is alike in both: no name of a variable stands in an error, and none shows a table's address.
fn expression(random: &mut Random, depth: u64) -> String {
    let inner = |random: &mut Random| expression(random, depth.saturating_sub(1));
    if depth == 0 || random.percent(25) {
        return (*random.choose(&[
            "nil",
            "true",
            "false",
            "0",
            "1",
            "-2",
            "3.5",
            "1e15",
            "'10'",
            "'abc'",
            "''",
            "' 7 '",
            "KEYS",
            "ARGV",
            "KEYS[1]",
            "ARGV[2]",
            "ARGV[9]",
            "#KEYS",
            "{1, 2, nil, 4}",
            "{'x', ok = 1}",
        ]))
        .to_owned();
    }
    let (a, b) = (inner(random), inner(random));
    match random.below(12) {
        0..=3 => {
            let operator = *random.choose(&[
                "+", "-", "*", "/", "%", "..", "==", "~=", "<", "<=", ">", ">=", "and", "or",
            ]);
            format!("({a} {operator} {b})")
        }
        4 => format!("(not {a})"),
        5 => format!("{{{a}, {b}, n = {a}}}"),
        6 => {
            let function = *random.choose(&["tonumber", "type", "redis.status_reply", "redis.error_reply"]);
            format!("{function}({a})")
        }
        7 => format!("string.sub({a}, {b})"),
        8 => format!("redis.pcall('set', 'a', {a})"),
        9 => format!("redis.pcall('get', {a})"),
        10 => format!("math.floor({a})"),
        _ => format!("table.concat({{{a}, {b}}}, '-')"),
    }
}

/// An error says the same but for the names of variables, which are not kept here.
fn is_alike(ours: &Reply, theirs: &Reply) -> bool {
    match (ours, theirs) {
        (Reply::Error(ours), Reply::Error(theirs)) => {
            let plain = |text: &[u8]| {
                let text = String::from_utf8_lossy(text).into_owned();
                let known = text.contains("attempt to") || text.contains("bad argument");
                (
                    text.split(' ').take(2).collect::<Vec<_>>().join(" "),
                    if known { String::new() } else { text },
                )
            };
            plain(ours.as_bytes()) == plain(theirs.as_bytes())
        }
        _ => ours == theirs,
    }
}

#[test]
fn programs_put_together_at_random_answer_what_they_answer_in_redis() {
    let Some((mut both, _node, _redis)) = both(42) else {
        return;
    };
    for _ in 0..PROGRAMS {
        let (a, b) = (expression(&mut both.random, 3), expression(&mut both.random, 3));
        let text = match both.random.below(4) {
            0 => format!("local x = {a}\nreturn {{x, {b}}}"),
            1 => format!("if {a} then return {b} else return {a} end"),
            2 => format!("local t = {{}} for i = 1, 3 do t[#t + 1] = {a} end return {{#t, {b}}}"),
            _ => format!("return {a}"),
        };
        let request = ["EVAL", &text, "2", "a", "b", "token-1", "10"];
        let (ours, theirs) = (both.ours.call_args(&request), both.theirs.call_args(&request));
        let shows_nan = matches!(&ours, Reply::Bulk(text) if text.windows(3).any(|window| window == b"nan"));
        assert!(
            shows_nan || is_alike(&ours, &theirs),
            "{text}\nours:   {ours:?}\nRedis:  {theirs:?}"
        );
    }
}

#[test]
fn refusals_of_the_commands_themselves_are_redis_own() {
    let Some((mut both, _node, _redis)) = both(43) else {
        return;
    };
    for request in [
        &["EVAL"][..],
        &["EVAL", "return 1"],
        &["EVAL", "return 1", "x"],
        &["EVAL", "return 1", "-1"],
        &["EVAL", "return 1", "2", "a"],
        &["EVALSHA", "abc", "0"],
        &["EVALSHA", "ffffffffffffffffffffffffffffffffffffffff", "0"],
        &["EVAL_RO", "return redis.call('set', 'a', 'b')", "0"],
        &["EVAL_RO", "return redis.call('get', 'a')", "0"],
        &["SCRIPT"],
        &["SCRIPT", "LOAD"],
        &["SCRIPT", "NOPE"],
        &["SCRIPT", "LOAD", "return 7"],
        &[
            "SCRIPT",
            "EXISTS",
            "0e8ea7a1ed2d7ff6a1cb2e1a0ba44dc8dee0ac6b",
            "abc",
        ],
        &["SCRIPT", "FLUSH", "NOW"],
        &["SCRIPT", "FLUSH", "ASYNC"],
        &["SCRIPT", "EXISTS", "abc"],
    ] {
        both.same(request);
    }
}

#[test]
fn a_script_that_writes_nothing_costs_no_entry() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let release =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
    client.call_args(&["SET", "a", "mine", "PX", "600000"]);
    client.call_args(&["EVAL", release, "1", "a", "others"]);
    let entries = || metrics(&node)["lease_entries_proposed_total"];
    let before = entries();
    for _ in 0..50 {
        assert_eq!(
            client.call_args(&["EVAL", release, "1", "a", "others"]),
            Reply::Integer(0)
        );
    }
    // A tick a second is the leader's own.
    let more = entries() - before;
    assert!(more < 25.0, "{more} entries");
    assert_eq!(
        client.call_args(&["EVAL", release, "1", "a", "mine"]),
        Reply::Integer(1)
    );
}

#[test]
fn a_lease_that_a_script_extends_keeps_its_token() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let take = "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])";
    assert_eq!(
        client.call_args(&["EVAL", take, "1", "a", "mine", "60000"]),
        Reply::OK
    );
    let first = client.call("LEASE.TOKEN a mine");
    assert_eq!(
        client.call_args(&["EVAL", take, "1", "a", "mine", "60000"]),
        Reply::OK
    );
    assert_eq!(client.call("LEASE.TOKEN a mine"), first);
    let inside = "return redis.call('LEASE.TOKEN', KEYS[1], ARGV[1])";
    assert_eq!(client.call_args(&["EVAL", inside, "1", "a", "mine"]), first);
}

#[test]
fn scripts_are_answered_in_the_order_in_which_they_were_sent() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let swap = "local before = redis.call('get', KEYS[1]) redis.call('set', KEYS[1], ARGV[1]) return before";
    for round in 0..100 {
        let value = round.to_string();
        client.send_raw(&encoded(&["EVAL", swap, "1", "a", &value]));
    }
    for round in 0..100_i64 {
        let before = if round == 0 {
            Reply::Nil
        } else {
            Reply::bulk((round - 1).to_string())
        };
        assert_eq!(client.receive(), before);
    }
}

#[test]
fn what_is_not_served_is_named_with_its_line_when_it_is_loaded() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let said = client.call_args(&[
        "SCRIPT",
        "LOAD",
        "local t = {}\nreturn redis.call('HSET', 'a', 'b', 'c')",
    ]);
    let Reply::Error(error) = said else {
        panic!("{said:?}")
    };
    assert_eq!(
        error.to_string(),
        "ERR unsupported script: redis.call of 'HSET' at line 2 (docs/protocol.md lists what scripts may hold)"
    );
}
