use super::{Asked, Context, KeyVerb, ask, matches, read_pattern};
use crate::limits::{PATTERN_BYTES_MAX, PATTERN_TEXT_BYTES_MAX, VALUE_BYTES_MAX};
use crate::machine::{Command, LeaseMachine, Outcome};
use crate::types::{Database, OwnerId, Timestamp};
use crate::wire::{ErrorWord, Protocol, Reply};

const WALL_MS: i64 = 1_800_000_000_000;

/// A machine that is asked in words.
struct Lab(LeaseMachine);

impl Lab {
    fn new() -> Self {
        let mut machine = LeaseMachine::new();
        let open = Command::RaiseTokenFloor { floor: 0 };
        machine.apply(Timestamp::from_millis(1), &[open]).unwrap();
        Self(machine)
    }

    fn say(&mut self, text: &str) -> String {
        let args: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        let context = Context {
            database: Database::ZERO,
            value_bytes_max: 100,
            wall_ms: Some(WALL_MS),
        };
        let verb = KeyVerb::parse(args[0]).unwrap();
        let reply = match ask(verb, &args, &context) {
            Err(error) => Reply::Error(error),
            Ok(Asked::Change(change)) => {
                let outcome = self.commit(change.command.clone().into());
                change.reply(&outcome).unwrap()
            }
            Ok(Asked::Look(look)) => {
                let Outcome::Looked(seen) = self.commit(look.command().into()) else {
                    panic!("{text}")
                };
                look.reply(&seen, WALL_MS)
            }
        };
        let mut bytes = bytes::BytesMut::new();
        reply.encode(Protocol::Resp2, &mut bytes);
        String::from_utf8(bytes.to_vec())
            .unwrap()
            .replace("\r\n", " ")
            .trim_end()
            .to_owned()
    }

    fn commit(&mut self, command: Command) -> Outcome {
        let now = self.0.now();
        self.0.apply(now, &[command]).unwrap().outcomes.remove(0)
    }
}

#[test]
fn every_kind_of_command_is_answered_as_redis_does() {
    let mut lab = Lab::new();
    let story = [
        ("SET a 1 EX 100", "+OK"),
        ("SET a 2 NX", "$-1"),
        ("SET a 2 NX GET", "$1 1"),
        ("set a 2 xx get keepttl", "$1 1"),
        ("TTL a", ":100"),
        ("PTTL a", ":100000"),
        ("EXPIRETIME a", ":1800000100"),
        ("PEXPIRETIME a", ":1800000100000"),
        ("SETNX a 3", ":0"),
        ("SETNX b 3", ":1"),
        ("SETEX c 10 v", "+OK"),
        ("PSETEX c 0 v", "-ERR invalid expire time in 'psetex' command"),
        ("SETEX c x v", "-ERR value is not an integer or out of range"),
        ("TTL c", ":10"),
        ("TTL b", ":-1"),
        ("TTL z", ":-2"),
        ("EXPIRETIME b", ":-1"),
        ("EXPIRETIME z", ":-2"),
        ("MGET a b z", "*3 $1 2 $1 3 $-1"),
        ("MSETNX d 1 a 1", ":0"),
        ("EXISTS d", ":0"),
        ("MSETNX d 1 e 2", ":1"),
        ("MSET d 3 d 4", "+OK"),
        ("MSET d 3 d", "-ERR wrong number of arguments for 'mset' command"),
        ("GET d", "$1 4"),
        ("GETDEL d", "$1 4"),
        ("GETDEL d", "$-1"),
        ("STRLEN e", ":1"),
        ("TYPE e", "+string"),
        ("TYPE d", "+none"),
        ("DEL a b b z", ":2"),
        ("SET text hello", "+OK"),
        ("GETRANGE text 1 -2", "$3 ell"),
        ("GETRANGE text -100 100", "$5 hello"),
        ("GETRANGE text -1 -5", "$0"),
        ("GETRANGE none 0 1", "$0"),
    ];
    for (command, answer) in story {
        assert_eq!(lab.say(command).replace("$0  ", "$0"), answer, "{command}");
    }
}

#[test]
fn a_key_is_compared_with_a_value_or_its_digest() {
    let mut lab = Lab::new();
    let story = [
        ("SET k v IFEQ v", "$-1"),
        ("SET k v IFNE v", "+OK"),
        ("SET k w IFNE v GET", "$1 v"),
        ("SET k w IFEQ v GET", "$1 v"),
        ("GET k", "$1 w"),
        ("DIGEST none", "$-1"),
        ("DELEX k IFEQ x", ":0"),
        ("DELIFEQ k x", ":0"),
        ("DELEX k IFNE w", ":0"),
        (
            "DELEX k BAD w",
            "-ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE",
        ),
        (
            "DELEX k IFEQ",
            "-ERR wrong number of arguments for 'delex' command",
        ),
        (
            "DELEX k IFDEQ abc",
            "-ERR must be exactly 16 hexadecimal characters",
        ),
        ("DELIFEQ k w", ":1"),
        ("DELEX k IFEQ w", ":0"),
        ("SET k v", "+OK"),
        ("DELEX k IFNE x", ":1"),
        ("DELEX k", ":0"),
        ("SET k v NX IFEQ v", "-ERR syntax error"),
    ];
    for (command, answer) in story {
        assert_eq!(lab.say(command), answer, "{command}");
    }
    lab.say("SET k v");
    let shown = lab.say("DIGEST k");
    let digest = shown.strip_prefix("$16 ").unwrap().to_owned();
    assert_eq!(lab.say("SET k w IFDEQ 0000000000000000"), "$-1");
    assert_eq!(lab.say(&format!("SET k w IFDNE {digest}")), "$-1");
    assert_eq!(
        lab.say(&format!("SET k v IFDEQ {}", digest.to_uppercase())),
        "+OK"
    );
    assert_eq!(lab.say(&format!("DELEX k IFDNE {digest}")), ":0");
    assert_eq!(lab.say(&format!("DELEX k IFDEQ {digest}")), ":1");
}

#[test]
fn a_time_that_is_over_ends_a_key_under_every_condition_as_redis_does() {
    let mut lab = Lab::new();
    let over = [
        "EXPIRE k 0",
        "PEXPIRE k -5",
        "EXPIREAT k 1",
        "PEXPIREAT k 1799999999999",
    ];
    for expire in over {
        for (set, option, ends) in [
            ("SET k v EX 9", "", true),
            ("SET k v", "", true),
            ("SET k v EX 9", " NX", false),
            ("SET k v", " NX", true),
            ("SET k v EX 9", " XX", true),
            ("SET k v", " XX", false),
            ("SET k v EX 9", " GT", false),
            ("SET k v", " GT", false),
            ("SET k v EX 9", " LT", true),
            ("SET k v", " LT", true),
            ("SET k v EX 9", " XX LT", true),
            ("SET k v", " XX LT", false),
        ] {
            lab.say(set);
            let command = format!("{expire}{option}");
            assert_eq!(
                lab.say(&command),
                format!(":{}", u8::from(ends)),
                "{set}; {command}"
            );
            assert_eq!(
                lab.say("EXISTS k"),
                format!(":{}", u8::from(!ends)),
                "{set}; {command}"
            );
        }
    }
    assert_eq!(lab.say("SET k v PXAT 1"), "+OK");
    assert_eq!(lab.say("GET k"), "$-1");
    assert_eq!(lab.say("SET k v PXAT 1800000005000"), "+OK");
    assert_eq!(lab.say("PTTL k"), ":5000");
    assert_eq!(
        lab.say("SET k v EXAT 0"),
        "-ERR invalid expire time in 'set' command"
    );
    assert_eq!(lab.say("PEXPIREAT k 1800000009000"), ":1");
    assert_eq!(lab.say("PTTL k"), ":9000");
}

#[test]
fn patterns_are_read_as_redis_reads_them() {
    for (pattern, text, fits) in [
        ("", "", true),
        ("", "a", false),
        ("*", "", true),
        ("*", "abc", true),
        ("a*c", "abbbc", true),
        ("a*c", "abbbd", false),
        ("a*b*c", "aXbYbZc", true),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("h[ae]llo", "hallo", true),
        ("h[ae]llo", "hillo", false),
        ("h[^e]llo", "hallo", true),
        ("h[^e]llo", "hello", false),
        ("h[a-c]llo", "hbllo", true),
        ("h[c-a]llo", "hbllo", true),
        ("h\\*llo", "h*llo", true),
        ("h\\*llo", "hello", false),
        ("[\\]]", "]", true),
        ("[ab", "b", true),
        ("lease:*", "lease:lock:a", true),
        ("**a", "bba", true),
    ] {
        assert_eq!(
            matches(pattern.as_bytes(), text.as_bytes()),
            fits,
            "{pattern} {text}"
        );
    }
}

#[test]
fn a_hostile_pattern_is_not_slow() {
    let pattern = [b"*a".repeat(200), b"b".to_vec()].concat();
    assert!(!matches(&pattern, &b"a".repeat(PATTERN_TEXT_BYTES_MAX)));
    assert!(!matches(&pattern, &b"a".repeat(VALUE_BYTES_MAX)));
}

#[test]
fn a_long_text_fits_only_patterns_that_are_walked_through_once() {
    let text = b"a".repeat(PATTERN_TEXT_BYTES_MAX + 1);
    let whole = text.as_slice();
    for (pattern, fits) in [
        (b"*".as_slice(), true),
        (b"a*", true),
        (b"[a-b]?a***", true),
        (b"b*", false),
        (b"*a", false),
        (b"a*a*", false),
        (whole, true),
    ] {
        assert_eq!(matches(pattern, whole), fits, "{}", pattern.escape_ascii());
    }
    assert!(matches(b"*a", &text[1..]));
}

#[test]
fn a_pattern_is_bounded() {
    let longest = b"*".repeat(PATTERN_BYTES_MAX);
    assert_eq!(read_pattern(&longest), Ok(longest.as_slice()));
    let refused = read_pattern(&[longest, b"*".to_vec()].concat()).unwrap_err();
    assert_eq!(refused.word(), Some(ErrorWord::Limit));
}

#[test]
fn values_beyond_one_reply_are_refused_before_they_are_copied() {
    let mut lab = Lab::new();
    lab.say("SET a 1");
    let context = Context {
        database: Database::ZERO,
        value_bytes_max: VALUE_BYTES_MAX,
        wall_ms: None,
    };
    let Ok(Asked::Look(look)) = ask(KeyVerb::parse(b"MGET").unwrap(), &[b"MGET", b"a"], &context) else {
        panic!("a read")
    };
    let Outcome::Looked(mut seen) = lab.commit(look.command().into()) else {
        panic!("what is seen")
    };
    let mut holder = seen.remove(0).unwrap();
    holder.owner = OwnerId::redis_value(vec![0; 1_024 * 1_024]).unwrap();
    let reply = |times| look.reply(&vec![Some(holder.clone()); times], 0);
    assert!(matches!(reply(32), Reply::Array(values) if values.len() == 32));
    for times in [33, 65_535] {
        let Reply::Error(refused) = reply(times) else {
            panic!("{times} values")
        };
        assert_eq!(refused.word(), Some(ErrorWord::Limit));
    }
}
