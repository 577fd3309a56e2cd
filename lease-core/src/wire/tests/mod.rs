//! The wire as a whole: streams in, data out, and back.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm,
    reason = "a test that overflows or meets a new kind of reply shall fail"
)]

mod hostile;
mod lease_commands;
mod lease_replies;
mod replies;
mod requests;

use bytes::BytesMut;

use super::*;

/// All requests of a stream and the error that ended it, whatever the sizes of its pieces.
fn read_requests(mut decoder: RequestDecoder, pieces: &[&[u8]]) -> (Vec<Request>, Option<ProtocolError>) {
    let mut requests = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        loop {
            match decoder.next_request() {
                Ok(Some(request)) => requests.push(request),
                Ok(None) => break,
                Err(error) => return (requests, Some(error)),
            }
        }
    }
    (requests, None)
}

/// All replies of a stream and the error that ended it.
fn read_replies(mut decoder: ReplyDecoder, pieces: &[&[u8]]) -> (Vec<Reply>, Option<ReplyDecodeError>) {
    let mut replies = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        loop {
            match decoder.next_reply() {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break,
                Err(error) => return (replies, Some(error)),
            }
        }
    }
    (replies, None)
}

fn open() -> RequestDecoder {
    RequestDecoder::new(RequestLimits::default(), Access::Authenticated)
}

fn args_of(request: &Request) -> Vec<Vec<u8>> {
    request.args().map(<[u8]>::to_vec).collect()
}

/// The one request that these arguments make on the wire.
fn request_of<A: AsRef<[u8]>>(args: &[A]) -> Request {
    let mut out = BytesMut::new();
    encode_request(args, &mut out);
    let (mut requests, error) = read_requests(open(), &[&out]);
    assert_eq!(error, None);
    assert_eq!(requests.len(), 1);
    requests.remove(0)
}

/// The one reply that comes back from the wire.
fn over_the_wire(reply: &Reply, protocol: Protocol) -> Reply {
    let mut out = BytesMut::new();
    reply.encode(protocol, &mut out);
    let (mut replies, error) = read_replies(ReplyDecoder::new(), &[&out]);
    assert_eq!(error, None);
    assert_eq!(replies.len(), 1);
    replies.remove(0)
}

/// `bytes` cut at the given places, each taken modulo what is left.
fn cut<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    for at in cuts.iter().cycle() {
        if rest.is_empty() || cuts.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((at % rest.len()).max(1));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}
