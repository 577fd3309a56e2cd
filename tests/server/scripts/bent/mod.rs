//! The scripts of the corpus, bent at random: some thousand, and for a minute under CI=true (`LEASE_FUZZ_SECONDS` sets
//! another time).
//!
//! Each is refused or read. What is read ends within its bounds, and the same way on two machines, of which one has the
//! program as bytes; a preview changes nothing and says what running does; and where Redis is there, it answers and
//! leaves what it does in Redis.

mod machine;
mod words;

use lease_core::machine::{Outcome, Preview};
use lease_core::script::{LoadError, Program, ScriptReply};
use lease_core::wire::{ErrorReply, Reply};
use tests::Client;
use tests::effort::Effort;
use tests::random::Random;
use tests::resp::encoded;

use self::machine::{Call, Key, Machine};
use self::words::Bender;
use super::{agree, corpus};
use crate::differential::Redis;

/// Scripts in the usual run.
const CASES: u64 = 3_000;
/// A key that ends sooner may end in between.
const SOON_MS: i64 = 60_000;

/// What was met: a run that met only one side of it proves nothing.
#[derive(Debug, Default)]
struct Met {
    /// No Lua, or none that is served.
    refused: u64,
    /// Read, and run to an answer.
    answered: u64,
    /// Read, and stopped at a bound.
    bounded: u64,
    /// Compared with Redis.
    compared: u64,
    /// Answered by a look alone.
    looked: u64,
    /// Other than in Redis, but by what it does with a time that passes.
    timely: u64,
}

#[test]
fn a_bent_script_is_refused_or_ends_alike_everywhere_and_as_in_redis() {
    let redis = Redis::start();
    let mut theirs = redis.as_ref().map(|redis| Client::connect(redis.address));
    let seed = Random::seed(45);
    let mut random = Random::new(seed);
    let bender = Bender::of(corpus::scripts());
    let mut effort = Effort::of(CASES);
    let mut met = Met::default();
    while effort.goes_on() {
        let text = bender.bend(&mut random);
        let (state, call) = (machine::state(&mut random), Call::random(&mut random));
        let case = format!(
            "LEASE_TEST_SEED={seed}, case {}\n{state:?}\n{call:?}\n{text}",
            effort.begun()
        );
        let program = match Program::parse(text.as_bytes()) {
            Ok(program) => program,
            Err(error) => {
                met.refused += 1;
                if let (LoadError::Syntax { .. }, Some(theirs)) = (&error, &mut theirs) {
                    let said = asked(theirs, &state, &call, &text).0;
                    let refused = matches!(&said, Reply::Error(error) if error.as_bytes().starts_with(b"ERR Error compiling script"));
                    assert!(refused, "{case}\nours:   {error}\nRedis:  {said:?}");
                }
                continue;
            }
        };
        let (reply, keys) = run_twice(program, &state, &call, &case, &mut met);
        let Some(reply) = reply else { continue };
        let ends_soon = |key: &Key| (0..SOON_MS).contains(&key.remaining_ms);
        // What it does with its value is known only when it runs: a table as a text, a function as a value.
        let is_served =
            !matches!(&reply, Reply::Error(error) if show_error(error).contains("not served here"));
        let is_compared = is_served && !keys.iter().any(ends_soon) && words::is_borne_by_redis(&text);
        if let Some(theirs) = theirs.as_mut().filter(|_| is_compared) {
            let (their_reply, their_keys) = asked(theirs, &state, &call, &text);
            met.compared += 1;
            let is_same = same(&reply, &their_reply) && keys.iter().zip(&their_keys).all(Key::is_as_in_redis);
            // A time that passes is another number a moment later, and a script may do anything with it.
            if !is_same && text.to_ascii_lowercase().contains("ttl") {
                met.timely += 1;
            } else {
                assert!(
                    is_same,
                    "{case}\nours:   {reply:?} {keys:?}\nRedis:  {their_reply:?} {their_keys:?}"
                );
            }
        }
    }
    let cases = effort.begun();
    let enough = |count: u64, share: u64| count * share > cases;
    assert!(
        enough(met.refused, 20) && enough(met.answered, 5) && enough(met.looked, 50) && met.bounded > 0,
        "{cases} cases: {met:?}"
    );
    assert!(
        theirs.is_none() || (enough(met.compared, 8) && met.timely * 4 < met.compared),
        "{cases} cases: {met:?}"
    );
}

/// The answer, if it has one, and the keys after it; checks what must hold on any machine.
#[track_caller]
fn run_twice(
    program: Program,
    state: &[(&'static str, &'static str, bool)],
    call: &Call,
    case: &str,
    met: &mut Met,
) -> (Option<Reply>, Vec<Key>) {
    let bytes = program.to_bytes();
    let read = Program::from_bytes(&bytes).unwrap_or_else(|error| panic!("{error}: {case}"));
    assert_eq!(read.to_bytes(), bytes, "{case}");
    let (mut one, mut other) = (Machine::with(state), Machine::with(state));
    let before = one.keys();
    let preview = one.preview(&program, call);
    assert_eq!(one.keys(), before, "a preview changes nothing: {case}");
    let (outcome, effects) = one.run(program, call);
    let (again, effects_again) = other.run(read, call);
    assert_eq!((&outcome, &effects), (&again, &effects_again), "{case}");
    let keys = one.keys();
    assert_eq!(keys, other.keys(), "{case}");
    one.check(case);
    let reply = match outcome {
        Outcome::Replied(reply) => reply,
        other => panic!("{other:?}: {case}"),
    };
    match &preview {
        Preview::Replied(said) => {
            assert_eq!(said, &reply, "{case}");
            assert_eq!((&keys, effects.len()), (&before, 0), "{case}");
            met.looked += 1;
        }
        Preview::Changes => {}
        other => panic!("{other:?}: {case}"),
    }
    let is_bound =
        matches!(&reply, ScriptReply::Error(text) if text.as_slice().starts_with(b"LIMIT the script"));
    if is_bound {
        assert_eq!((&keys, effects.len()), (&before, 0), "nothing is kept: {case}");
        met.bounded += 1;
        return (None, keys);
    }
    met.answered += 1;
    (Some(Reply::from(reply)), keys)
}

/// What Redis answers, and its keys after it: their values and times.
fn asked(
    client: &mut Client,
    state: &[(&'static str, &'static str, bool)],
    call: &Call,
    text: &str,
) -> (Reply, Vec<(Reply, Reply)>) {
    let mut requests = vec![vec!["FLUSHALL".to_owned()]];
    for (key, value, ends) in state {
        let mut set = vec!["SET".to_owned(), (*key).to_owned(), (*value).to_owned()];
        if *ends {
            set.extend(["PX".to_owned(), machine::TTL_MS.to_string()]);
        }
        requests.push(set);
    }
    requests.push(call.request(text));
    for key in machine::KEYS {
        requests.extend(["GET", "PTTL"].map(|command| vec![command.to_owned(), key.to_owned()]));
    }
    let bytes: Vec<u8> = requests
        .iter()
        .flat_map(|request| encoded(request).to_vec())
        .collect();
    client.send_raw(&bytes);
    let mut receive = || {
        let reply = client.try_receive();
        reply.unwrap_or_else(|gone| panic!("Redis does not answer ({gone:?}): {call:?}\n{text}"))
    };
    for _ in 0..=state.len() {
        receive();
    }
    let reply = receive();
    let keys = machine::KEYS.map(|_| (receive(), receive()));
    (reply, keys.into())
}

fn show_error(error: &ErrorReply) -> String {
    String::from_utf8_lossy(error.as_bytes()).into_owned()
}

/// The same, but for a time that has passed, what errors say of scripts and lines, and a number that is none, whose sign
/// differs.
fn same(ours: &Reply, theirs: &Reply) -> bool {
    let shows_nan = matches!(ours, Reply::Bulk(text) if text.windows(3).any(|window| window == b"nan"));
    shows_nan || agree(&machine::plain(ours), &machine::plain(theirs))
}
