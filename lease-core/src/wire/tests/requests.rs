use bytes::BufMut as _;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::limits::{BUFFER_KEEP_BYTES, READ_BYTES};

#[test]
fn arrays_and_inline_lines_become_requests_and_empty_ones_are_passed_over() {
    let stream = b"*2\r\n$4\r\nECHO\r\n$5\r\na\r\nb\0\r\n\
        PING\r\n\r\n\n  \r\n*0\r\n*-1\r\n*-7\r\n\
        set k \"v \\x00\" 'n x'\n\
        *1\r\n$0\r\n\r\n\
        \"\"\r\n\
        HELLO 3\r\n";
    let (requests, error) = read_requests(open(), &[stream]);
    assert_eq!(error, None);
    let read: Vec<_> = requests.iter().map(args_of).collect();
    let expected: Vec<Vec<&[u8]>> = vec![
        vec![b"ECHO", b"a\r\nb\0"],
        vec![b"PING"],
        vec![b"set", b"k", b"v \0", b"n x"],
        vec![b""],
        vec![b""],
        vec![b"HELLO", b"3"],
    ];
    assert_eq!(read, expected);
}

#[test]
fn a_request_shows_its_arguments_but_not_in_logs() {
    let request = request_of(&["AUTH", "secret", "3", "4", "5", "6", "7", "8", "9", "10"]);
    assert_eq!(request.command(), b"AUTH");
    assert_eq!(request.len(), 10);
    assert_eq!(request.arg(1), Some(&b"secret"[..]));
    assert_eq!(request.bytes(9).unwrap(), "10");
    assert_eq!(request.arg(10), None);
    assert_eq!(request.bytes(10), None);
    assert!(!format!("{request:?}").contains("secret"));
}

#[test]
fn every_broken_stream_gets_the_text_that_redis_gives() {
    use Access::{Authenticated as Open, Unauthenticated as Tight};
    let long = "1".repeat(70_000);
    let table: Vec<(Access, String, &str)> = vec![
        (Open, "*3000000000\r\n".into(), "invalid multibulk length"),
        (Tight, "*3000000000\r\n".into(), "invalid multibulk length"),
        (Open, "*65537\r\n".into(), "invalid multibulk length"),
        (Open, "*abc\r\n".into(), "invalid multibulk length"),
        (Open, "*\r\n".into(), "invalid multibulk length"),
        (Open, "*+1\r\n".into(), "invalid multibulk length"),
        (Open, "* 1\r\n".into(), "invalid multibulk length"),
        (Open, "*01\r\n".into(), "invalid multibulk length"),
        (Open, "*1\rX".into(), "invalid multibulk length"),
        (
            Open,
            "*99999999999999999999\r\n".into(),
            "invalid multibulk length",
        ),
        (Tight, "*11\r\n".into(), "unauthenticated multibulk length"),
        (Tight, "*100000\r\n".into(), "unauthenticated multibulk length"),
        (Open, format!("*{long}"), "too big mbulk count string"),
        (Open, "*1\r\nfoo\r\n".into(), "expected '$', got 'f'"),
        (Open, "*1\r\n*1\r\n".into(), "expected '$', got '*'"),
        (Open, "*1\r\n\r\n".into(), "expected '$', got ' '"),
        (
            Open,
            "*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n".into(),
            "expected '$', got 'f'",
        ),
        (Open, "*1\r\n\u{1}".into(), "expected '$', got '\\x01'"),
        (Open, "*1\r\n$-10\r\n".into(), "invalid bulk length"),
        (Open, "*1\r\n$-1\r\n".into(), "invalid bulk length"),
        (Open, "*1\r\n$2000000000\r\n".into(), "invalid bulk length"),
        (
            Open,
            "*1\r\n$99999999999999999999\r\n".into(),
            "invalid bulk length",
        ),
        (Open, "*1\r\n$blabla\r\n".into(), "invalid bulk length"),
        (Open, "*1\r\n$\r\n".into(), "invalid bulk length"),
        (Open, "*1\r\n$1\rx".into(), "invalid bulk length"),
        (Tight, "*1\r\n$16385\r\n".into(), "unauthenticated bulk length"),
        (Open, format!("*1\r\n${long}"), "too big bulk count string"),
        (Open, "x".repeat(65_537), "too big inline request"),
        (
            Open,
            "set \"\"\"test-key\"\"\" test-value\r\n".into(),
            "unbalanced quotes in request",
        ),
        (Open, "\0AAAA\n".into(), "zero byte in inline request"),
        (Open, "*1\r\n$3\r\nGETxx".into(), "bulk is not followed by CRLF"),
    ];
    for (access, stream, text) in table {
        let decoder = RequestDecoder::new(RequestLimits::default(), access);
        let (requests, error) = read_requests(decoder, &[stream.as_bytes()]);
        assert!(requests.is_empty());
        let error = error.unwrap_or_else(|| panic!("{stream:.40?} is refused"));
        assert_eq!(
            error.to_string(),
            format!("Protocol error: {text}"),
            "{stream:.40?}"
        );
        let mut out = BytesMut::new();
        error.to_reply().encode(Protocol::Resp2, &mut out);
        assert_eq!(out, format!("-ERR Protocol error: {text}\r\n"));
        assert!(!error.may_have_applied() && !error.is_retryable());
    }
}

#[test]
fn what_lies_just_within_the_limits_is_read() {
    let tight = || RequestDecoder::new(RequestLimits::default(), Access::Unauthenticated);
    let value = "v".repeat(16_384);
    let mut out = BytesMut::new();
    encode_request(&[value.as_str(); 10], &mut out);
    assert_eq!(read_requests(tight(), &[&out]).0.len(), 1);

    out.clear();
    encode_request(&vec!["k"; 65_536], &mut out);
    let (requests, error) = read_requests(open(), &[&out]);
    assert_eq!((requests[0].len(), error), (65_536, None));
    assert_eq!(requests[0].arg(65_535), Some(&b"k"[..]));

    let line = format!("{}\r\n", "x".repeat(65_535));
    assert_eq!(read_requests(open(), &[line.as_bytes()]).0.len(), 1);
}

#[test]
fn the_total_of_a_request_is_limited_before_its_bytes_come() {
    let limits = RequestLimits::default()
        .bulk_bytes_max(1_000)
        .request_bytes_max(2_000)
        .arguments_max(3)
        .inline_bytes_max(10);
    let decoder = || RequestDecoder::new(limits, Access::Authenticated);
    let value = "v".repeat(1_000);
    let stream = format!("*3\r\n$1000\r\n{value}\r\n$1000\r\n");
    assert_eq!(
        read_requests(decoder(), &[stream.as_bytes()]).1,
        Some(ProtocolError::TooBigRequest)
    );
    let table: [(&[u8], ProtocolError); 4] = [
        (b"*4\r\n", ProtocolError::InvalidMultibulkLength),
        (b"*1\r\n$1001\r\n", ProtocolError::InvalidBulkLength),
        (b"01234567890\n", ProtocolError::TooBigInline),
        (b"a b c d\n", ProtocolError::TooManyInlineArguments),
    ];
    for (stream, error) in table {
        assert_eq!(read_requests(decoder(), &[stream]).1, Some(error));
    }
    assert_eq!(read_requests(decoder(), &[b"0123456789\n"]).0.len(), 1);
}

#[test]
fn a_password_opens_the_limits_for_the_next_request() {
    let mut decoder = RequestDecoder::new(RequestLimits::default(), Access::Unauthenticated);
    let mut out = BytesMut::new();
    encode_request(&["AUTH", "secret"], &mut out);
    encode_request(&["k"; 11], &mut out);
    decoder.feed(&out);
    assert_eq!(decoder.next_request().unwrap().unwrap().command(), b"AUTH");
    decoder.set_access(Access::Authenticated);
    assert_eq!(decoder.next_request().unwrap().unwrap().len(), 11);
    assert!(decoder.is_idle());
}

#[test]
fn a_broken_stream_stays_broken_and_keeps_no_memory() {
    let mut decoder = open();
    decoder.feed(b"*1\r\nfoo");
    let error = decoder.next_request().unwrap_err();
    for _ in 0..3 {
        decoder.feed(b"*1\r\n$4\r\nPING\r\n");
        assert_eq!(decoder.next_request().unwrap_err(), error);
        assert!(decoder.capacity_bytes() < 1_000);
        assert!(!decoder.is_idle());
    }
    decoder.space().put_slice(b"PING\r\n");
    assert_eq!(decoder.next_request().unwrap_err(), error);
}

#[test]
fn reads_go_into_the_decoder_and_large_buffers_are_given_back() {
    let mut decoder = open();
    let mut out = BytesMut::new();
    // The buffer doubles to 1 MiB: what the request leaves of it must not stay.
    encode_request(&["SET", "k", &"v".repeat(600_000)], &mut out);
    let mut rest = &out[..];
    while !rest.is_empty() {
        let mut space = decoder.space();
        assert!(space.remaining_mut() >= READ_BYTES / 4);
        let (read, after) = rest.split_at(space.remaining_mut().min(rest.len()));
        space.put_slice(read);
        rest = after;
        if !rest.is_empty() {
            assert!(decoder.next_request().unwrap().is_none());
        }
    }
    let request = decoder.next_request().unwrap().unwrap();
    assert_eq!(request.arg(2).unwrap().len(), 600_000);
    drop(request);
    decoder.space().put_slice(b"PING\r\n");
    assert_eq!(decoder.next_request().unwrap().unwrap().command(), b"PING");
    assert!(decoder.capacity_bytes() <= BUFFER_KEEP_BYTES);
}

fn argument() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..12),
        vec(
            prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'$'), Just(b'*')],
            0..6
        ),
        vec(any::<u8>(), 0..300),
    ]
}

/// One request, or something that is none, with the arguments that it means.
fn chunk() -> impl Strategy<Value = (Vec<u8>, Option<Vec<Vec<u8>>>)> {
    prop_oneof![
        8 => vec(argument(), 1..20).prop_map(|args| {
            let mut out = BytesMut::new();
            encode_request(&args, &mut out);
            (out.to_vec(), Some(args))
        }),
        2 => vec("[a-z*$:]{1,5}", 1..5).prop_filter_map("begins an array", |words| {
            let args: Vec<_> = words.iter().map(|word| word.clone().into_bytes()).collect();
            let line = format!("{}\r\n", words.join("  "));
            (!line.starts_with('*')).then_some((line.into_bytes(), Some(args)))
        }),
        1 => prop_oneof![Just("\r\n"), Just("\n"), Just("*0\r\n"), Just("*-1\r\n"), Just("  \t\r\n")]
            .prop_map(|nothing| (nothing.as_bytes().to_vec(), None)),
    ]
}

/// Bytes that look like the protocol often enough to get deep into it.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        4 => prop_oneof![
            Just("*1\r\n"), Just("*2\r\n"), Just("$1\r\n"), Just("$3\r\n"), Just("\r\n"), Just("\r"), Just("\n"),
            Just("*-1\r\n"), Just("*0\r\n"), Just("$0\r\n"), Just("a"), Just("abc"), Just("\""), Just("'"),
            Just("\\x4"), Just("*"), Just("$"), Just(" "), Just("$70000\r\n"), Just("*70\r\n"),
        ].prop_map(|word| word.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ];
    vec(word, 0..60).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn any_cut_of_any_pipeline_gives_the_same_requests(
        chunks in vec(chunk(), 0..12),
        cuts in vec(1_usize..200, 0..10),
    ) {
        let stream: Vec<u8> = chunks.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let meant: Vec<_> = chunks.into_iter().filter_map(|(_, args)| args).collect();
        let (requests, error) = read_requests(open(), &cut(&stream, &cuts));
        prop_assert_eq!(error, None);
        prop_assert_eq!(requests.iter().map(args_of).collect::<Vec<_>>(), meant);
    }

    #[test]
    fn a_trickle_of_noise_means_what_it_means_in_one_piece(
        stream in noise(),
        tight: bool,
        cuts in vec(1_usize..9, 0..5),
    ) {
        let access = if tight { Access::Unauthenticated } else { Access::Authenticated };
        let limits = RequestLimits::default().inline_bytes_max(40).request_bytes_max(100);
        let decoder = || RequestDecoder::new(limits, access);
        let whole = read_requests(decoder(), &[&stream]);
        prop_assert_eq!(&read_requests(decoder(), &cut(&stream, &cuts)), &whole);
        let bytes: Vec<_> = stream.chunks(1).collect();
        prop_assert_eq!(&read_requests(decoder(), &bytes), &whole);
    }

    #[test]
    fn no_bytes_whatever_panic_or_take_more_memory_than_the_limits_say(
        stream in prop_oneof![vec(any::<u8>(), 0..2_000), noise()],
        piece in 1_usize..64,
    ) {
        let request_max = 200;
        let limits = RequestLimits::default().inline_bytes_max(64).request_bytes_max(request_max);
        let mut decoder = RequestDecoder::new(limits, Access::Authenticated);
        for piece in stream.chunks(piece) {
            decoder.feed(piece);
            while let Ok(Some(request)) = decoder.next_request() {
                prop_assert!(request.len() > 0);
                prop_assert!(request.args().count() == request.len());
            }
            prop_assert!(decoder.capacity_bytes() <= 2 * (request_max + piece.len()) + 64);
            prop_assert!(decoder.span_bytes() <= 8 * request_max);
        }
    }
}
