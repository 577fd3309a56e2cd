use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::limits::{ERROR_TEXT_BYTES_MAX, REPLY_DEPTH_MAX, REPLY_ELEMENTS_MAX};

#[test]
fn each_reply_has_its_spelling_in_both_protocols() {
    let pair = (Reply::word("proto"), Reply::Integer(3));
    let table: Vec<(Reply, &str, &str)> = vec![
        (Reply::OK, "+OK\r\n", "+OK\r\n"),
        (
            Reply::error(ErrorWord::Limit, "full"),
            "-LIMIT full\r\n",
            "-LIMIT full\r\n",
        ),
        (Reply::Integer(-2), ":-2\r\n", ":-2\r\n"),
        (
            Reply::count(u64::MAX),
            ":9223372036854775807\r\n",
            ":9223372036854775807\r\n",
        ),
        (Reply::bulk("a\r\nb"), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"),
        (Reply::word(""), "$0\r\n\r\n", "$0\r\n\r\n"),
        (Reply::Nil, "$-1\r\n", "_\r\n"),
        (Reply::NilArray, "*-1\r\n", "_\r\n"),
        (
            Reply::Array(vec![Reply::Nil, Reply::OK]),
            "*2\r\n$-1\r\n+OK\r\n",
            "*2\r\n_\r\n+OK\r\n",
        ),
        (Reply::Array(vec![]), "*0\r\n", "*0\r\n"),
        (
            Reply::Map(vec![pair]),
            "*2\r\n$5\r\nproto\r\n:3\r\n",
            "%1\r\n$5\r\nproto\r\n:3\r\n",
        ),
        (Reply::Set(vec![Reply::OK]), "*1\r\n+OK\r\n", "~1\r\n+OK\r\n"),
        (Reply::Push(vec![Reply::OK]), "*1\r\n+OK\r\n", ">1\r\n+OK\r\n"),
        (Reply::Verbatim("hi".into()), "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"),
        (Reply::Double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n"),
        (Reply::Double(3.0), "$1\r\n3\r\n", ",3\r\n"),
        (Reply::Double(f64::INFINITY), "$3\r\ninf\r\n", ",inf\r\n"),
        (Reply::Double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n"),
        (Reply::Double(f64::NAN), "$3\r\nnan\r\n", ",nan\r\n"),
        (Reply::Double(1e300), "$5\r\n1e300\r\n", ",1e300\r\n"),
        (Reply::Boolean(true), ":1\r\n", "#t\r\n"),
        (Reply::Boolean(false), ":0\r\n", "#f\r\n"),
    ];
    for (reply, resp2, resp3) in table {
        for (protocol, spelled) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
            let mut out = BytesMut::new();
            reply.encode(protocol, &mut out);
            assert_eq!(out, spelled.as_bytes(), "{reply:?} in {protocol}");
        }
    }
}

#[test]
fn an_error_text_is_one_line_of_bounded_length() {
    let error = ErrorReply::new(ErrorWord::Err, "a\r\n+OK\r\n");
    assert_eq!(error.as_bytes(), b"ERR a  +OK  ");
    assert_eq!(error.message(), b"a  +OK  ");
    let long = ErrorReply::new(ErrorWord::Err, "ß".repeat(ERROR_TEXT_BYTES_MAX));
    assert!(long.as_bytes().len() <= ERROR_TEXT_BYTES_MAX);
    assert!(std::str::from_utf8(long.as_bytes()).is_ok());
    let alone = ErrorReply::from_line(Line::from_static("UNKNOWN"));
    assert_eq!(
        (alone.word(), alone.message()),
        (Some(ErrorWord::Unknown), &b""[..])
    );
    assert!(alone.may_have_applied() && alone.is_retryable());
}

#[test]
fn an_unknown_error_word_is_not_retried_and_may_have_applied() {
    let error = ErrorReply::from_line(Line::from_static("NEWWORD later"));
    assert_eq!(error.word(), None);
    assert!(error.may_have_applied() && !error.is_retryable());
}

#[test]
fn the_protocol_is_known_by_its_number() {
    assert_eq!(Protocol::from_number(3), Some(Protocol::Resp3));
    assert_eq!(Protocol::from_number(2), Some(Protocol::default()));
    assert_eq!(Protocol::from_number(4), None);
}

#[test]
fn a_reply_that_is_too_deep_becomes_an_error_that_a_client_can_read() {
    let nested = |levels| (0..levels).fold(Reply::OK, |inner, _| Reply::Array(vec![inner]));
    let most = nested(REPLY_DEPTH_MAX);
    assert_eq!(over_the_wire(&most, Protocol::Resp3), most);

    let mut inner = over_the_wire(&nested(5_000), Protocol::Resp2);
    while let Reply::Array(mut items) = inner {
        inner = items.remove(0);
    }
    assert!(matches!(inner, Reply::Error(error) if error.message().ends_with(b"nested too deeply")));
}

#[test]
fn broken_replies_have_typed_errors() {
    use ReplyDecodeError as E;
    let table: Vec<(String, E)> = vec![
        ("?\r\n".into(), E::UnknownKind { got: b'?' }),
        ("|1\r\n".into(), E::UnknownKind { got: b'|' }),
        (":x\r\n".into(), E::InvalidValue { kind: b':' }),
        (":+1\r\n".into(), E::InvalidValue { kind: b':' }),
        ("$-2\r\n".into(), E::InvalidValue { kind: b'$' }),
        ("=-1\r\n".into(), E::InvalidValue { kind: b'=' }),
        ("*-2\r\n".into(), E::InvalidValue { kind: b'*' }),
        ("%-1\r\n".into(), E::InvalidValue { kind: b'%' }),
        ("_x\r\n".into(), E::InvalidValue { kind: b'_' }),
        ("#y\r\n".into(), E::InvalidValue { kind: b'#' }),
        (",1.x\r\n".into(), E::InvalidValue { kind: b',' }),
        ("=2\r\nhi\r\n".into(), E::InvalidValue { kind: b'=' }),
        ("$2\r\nabc\r\n".into(), E::NotTerminated),
        ("+a\rb\r\n".into(), E::NotTerminated),
        (format!("+{}", "a".repeat(70_000)), E::LineTooLong { max: 65_536 }),
        ("$101\r\n".into(), E::TooLong { max: 100 }),
        (
            format!("*9\r\n{}", "$20\r\n01234567890123456789\r\n".repeat(9)),
            E::TooLong { max: 100 },
        ),
        (
            "*65537\r\n".into(),
            E::TooManyElements {
                max: REPLY_ELEMENTS_MAX,
            },
        ),
        (
            "%40000\r\n".into(),
            E::TooManyElements {
                max: REPLY_ELEMENTS_MAX,
            },
        ),
        (
            "*40000\r\n*40000\r\n".into(),
            E::TooManyElements {
                max: REPLY_ELEMENTS_MAX,
            },
        ),
    ];
    for (stream, error) in table {
        let decoder = ReplyDecoder::with_reply_bytes_max(100);
        let (replies, found) = read_replies(decoder, &[stream.as_bytes()]);
        assert!(replies.is_empty());
        assert_eq!(found, Some(error), "{stream:.40?}");
        assert!(error.may_have_applied() && !error.is_retryable());
    }
}

#[test]
fn a_blob_error_and_lines_with_odd_bytes_are_read() {
    let stream = b"!9\r\nERR a\r\nbc\r\n+a\nb\r\n:0\r\n";
    let (replies, error) = read_replies(ReplyDecoder::new(), &[stream]);
    assert_eq!(error, None);
    assert_eq!(replies[0], Reply::error(ErrorWord::Err, "a  bc"));
    assert_eq!(replies[1], Reply::Simple(Line::from_static("a b")));
    assert_eq!(replies[2], Reply::Integer(0));
}

fn reply() -> impl Strategy<Value = Reply> {
    let bytes = || vec(any::<u8>(), 0..40).prop_map(Bytes::from);
    let leaf = prop_oneof![
        bytes().prop_map(|text| Reply::Simple(Line::new(text))),
        bytes().prop_map(|text| Reply::Error(ErrorReply::from_line(Line::new(text)))),
        any::<i64>().prop_map(Reply::Integer),
        bytes().prop_map(Reply::Bulk),
        Just(Reply::Nil),
        Just(Reply::NilArray),
        bytes().prop_map(Reply::Verbatim),
        (-1e300_f64..1e300).prop_map(Reply::Double),
        (-10_i32..10).prop_map(|value| Reply::Double(f64::from(value))),
        any::<bool>().prop_map(Reply::Boolean),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Reply::Array),
            vec(inner.clone(), 0..6).prop_map(Reply::Set),
            vec(inner.clone(), 0..6).prop_map(Reply::Push),
            vec((inner.clone(), inner), 0..4).prop_map(Reply::Map),
        ]
    })
}

/// What a client of `protocol` sees of a reply.
fn seen(reply: Reply, protocol: Protocol) -> Reply {
    let all = |items: Vec<Reply>| -> Vec<_> { items.into_iter().map(|item| seen(item, protocol)).collect() };
    if protocol == Protocol::Resp3 {
        return match reply {
            Reply::NilArray => Reply::Nil,
            Reply::Array(items) => Reply::Array(all(items)),
            Reply::Set(items) => Reply::Set(all(items)),
            Reply::Push(items) => Reply::Push(all(items)),
            Reply::Map(pairs) => Reply::Map(
                pairs
                    .into_iter()
                    .map(|(key, value)| (seen(key, protocol), seen(value, protocol)))
                    .collect(),
            ),
            other => other,
        };
    }
    match reply {
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => Reply::Array(all(items)),
        Reply::Map(pairs) => Reply::Array(all(pairs
            .into_iter()
            .flat_map(|(key, value)| [key, value])
            .collect())),
        Reply::Verbatim(text) => Reply::Bulk(text),
        Reply::Boolean(value) => Reply::Integer(value.into()),
        Reply::Double(value) => {
            let mut out = BytesMut::new();
            Reply::Double(value).encode(Protocol::Resp3, &mut out);
            Reply::bulk(&out[1..out.len() - 2])
        }
        other => other,
    }
}

proptest! {
    #[test]
    fn every_reply_comes_back_as_its_protocol_can_say_it(
        replies in vec(reply(), 1..6),
        cuts in vec(1_usize..50, 0..8),
    ) {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let mut out = BytesMut::new();
            for reply in &replies {
                reply.encode(protocol, &mut out);
            }
            let (read, error) = read_replies(ReplyDecoder::new(), &cut(&out, &cuts));
            prop_assert_eq!(error, None);
            let expected: Vec<_> = replies.iter().cloned().map(|reply| seen(reply, protocol)).collect();
            prop_assert_eq!(read, expected);
        }
    }

    #[test]
    fn no_bytes_whatever_panic_the_reply_decoder_and_cuts_do_not_matter(
        stream in vec(
            prop_oneof![
                Just("*2\r\n"), Just("%1\r\n"), Just(">1\r\n"), Just("$3\r\n"), Just("$-1\r\n"), Just("abc"),
                Just("\r\n"), Just("\r"), Just("+"), Just("-ERR"), Just(":7"), Just("_"), Just("#t"), Just(",1"),
                Just("=4\r\n"), Just("txt:"), Just("!1\r\n"), Just("|"), Just("*1\r\n"), Just("$70000\r\n"),
            ],
            0..40,
        ).prop_map(|words| words.concat().into_bytes()),
        junk in vec(any::<u8>(), 0..200),
        cuts in vec(1_usize..9, 0..5),
    ) {
        for stream in [stream, junk] {
            let decoder = || ReplyDecoder::with_reply_bytes_max(1_000);
            let whole = read_replies(decoder(), &[&stream]);
            prop_assert_eq!(&read_replies(decoder(), &cut(&stream, &cuts)), &whole);
            let bytes: Vec<_> = stream.chunks(1).collect();
            prop_assert_eq!(&read_replies(decoder(), &bytes), &whole);
        }
    }
}
