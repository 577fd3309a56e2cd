//! Inputs that have brought other parsers down: by depth, by announced sizes, by re-reading.

use super::*;
use crate::limits::{REPLY_DEPTH_MAX, REPLY_ELEMENTS_MAX};

#[test]
fn two_hundred_thousand_nested_arrays_are_refused_at_the_second() {
    let stream = b"*1\r\n".repeat(200_000);
    let (requests, error) = read_requests(open(), &[&stream]);
    assert!(requests.is_empty());
    assert_eq!(error, Some(ProtocolError::ExpectedBulk { got: b'*' }));

    let (replies, error) = read_replies(ReplyDecoder::new(), &[&stream]);
    assert!(replies.is_empty());
    assert_eq!(error, Some(ReplyDecodeError::TooDeep { max: REPLY_DEPTH_MAX }));
}

#[test]
fn two_hundred_thousand_empty_requests_are_passed_over_in_one_go() {
    let mut decoder = open();
    decoder.feed(&b"*0\r\n\r\n".repeat(200_000));
    decoder.feed(b"PING\r\n");
    assert_eq!(decoder.next_request().unwrap().unwrap().command(), b"PING");
}

#[test]
fn announced_sizes_take_no_memory() {
    let limits = RequestLimits::for_values(usize::MAX);
    let mut decoder = RequestDecoder::new(limits, Access::Authenticated);
    decoder.feed(b"*65536\r\n$16777216\r\nab");
    assert!(decoder.next_request().unwrap().is_none());
    assert!(decoder.capacity_bytes() < 1_000);
    assert_eq!(decoder.span_bytes(), 0);
    let room = decoder.space().limit();
    assert!(room <= crate::limits::READ_BYTES);

    let mut decoder = ReplyDecoder::new();
    decoder.feed(format!("*{REPLY_ELEMENTS_MAX}\r\n").as_bytes());
    assert!(decoder.next_reply().unwrap().is_none());
    decoder.feed(b"+a\r\n");
    assert!(decoder.next_reply().is_ok());
    let mut decoder = ReplyDecoder::new();
    decoder.feed(b"$60000000\r\nab");
    assert!(decoder.next_reply().unwrap().is_none());
    assert!(decoder.capacity_bytes() < 1_000);
}

#[test]
fn an_endless_line_is_refused_at_its_limit_and_forgotten() {
    for first in ["*", "x", "*1\r\n$"] {
        let mut decoder = open();
        decoder.feed(first.as_bytes());
        let mut fed = 0_usize;
        let error = loop {
            decoder.feed(&[b'1'; 4_096]);
            fed += 4_096;
            match decoder.next_request() {
                Ok(request) => assert!(request.is_none()),
                Err(error) => break error,
            }
            assert!(fed < 8 * 1_024 * 1_024);
        };
        assert!(error.to_string().contains("too big"), "{error}");
        assert!(fed <= 65_536 + 4_096);
        assert_eq!(decoder.capacity_bytes(), 0);
        assert!(decoder.work < 2 * fed, "{} for {fed} bytes", decoder.work);
    }
}

#[test]
fn twenty_thousand_arguments_in_pieces_of_64_bytes_are_read_once() {
    let mut stream = BytesMut::new();
    encode_request(&vec!["argument"; 20_000], &mut stream);
    for piece in [1, 64] {
        let mut decoder = open();
        let mut feeds = 0_usize;
        let mut read = None;
        for bytes in stream.chunks(piece) {
            decoder.feed(bytes);
            feeds += 1;
            read = decoder.next_request().unwrap();
        }
        assert_eq!(read.unwrap().len(), 20_000);
        // Two steps an argument and two a feed, and each header looked at once.
        let bound = 2 * 20_001 + 2 * feeds + 4 * 20_001;
        assert!(decoder.work <= bound, "{} above {bound}", decoder.work);
    }
}

#[test]
fn a_long_inline_line_is_looked_at_once_on_a_trickle() {
    let stream = format!("{}\n", "a ".repeat(30_000));
    let mut decoder = open();
    let mut read = None;
    for byte in stream.as_bytes().chunks(1) {
        decoder.feed(byte);
        read = decoder.next_request().unwrap();
    }
    assert_eq!(read.unwrap().len(), 30_000);
    assert!(decoder.work <= 3 * stream.len());
}

#[test]
fn long_replies_are_looked_at_once_on_a_trickle() {
    let array = Reply::Array(vec![Reply::word("value"); 20_000]);
    let line = Reply::Simple(Line::from("v".repeat(60_000)));
    for reply in [array, line] {
        let mut stream = BytesMut::new();
        reply.encode(Protocol::Resp3, &mut stream);
        let mut decoder = ReplyDecoder::new();
        let mut read = None;
        for byte in stream.chunks(1) {
            decoder.feed(byte);
            read = decoder.next_reply().unwrap();
        }
        assert_eq!(read, Some(reply));
        assert!(decoder.work <= 4 * stream.len());
    }
}

#[test]
fn the_bounds_of_a_reply_begin_anew_with_the_next_one() {
    let reply = Reply::Array(vec![Reply::Nil; REPLY_ELEMENTS_MAX / 2]);
    let mut stream = BytesMut::new();
    reply.encode(Protocol::Resp3, &mut stream);
    let mut decoder = ReplyDecoder::with_reply_bytes_max(stream.len());
    for _ in 0..5 {
        decoder.feed(&stream);
        assert_eq!(decoder.next_reply(), Ok(Some(reply.clone())));
    }
    assert!(decoder.is_idle());
}
