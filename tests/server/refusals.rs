//! What Redis's own protocol tests send, and more of the kind: refused in Redis's words, or taken as Redis takes it.
//!
//! Left out, since this server differs by intent: an argument that is longer than its length says, a zero byte in an
//! inline request, and more arguments or longer values than are taken here.

use std::net::SocketAddr;

use lease_core::wire::Reply;
use tests::show::show;
use tests::{Client, Launch};

use crate::differential::Redis;

/// Bytes of a line that is one byte too long. No more is sent: what a server leaves unread would reset the connection, and
/// the reset may overtake the answer.
const TOO_LONG: usize = 64 * 1_024 + 1;

const SENT: [&[u8]; 42] = [
    b"*3000000000\r\n",
    b"*2147483648\r\n",
    b"*99999999999999999999\r\n",
    b"*x\r\n",
    b"*1x\r\n",
    b"*\r\n",
    b"* 1\r\n",
    b"*+1\r\n",
    b"*-10\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b"\r\n",
    b"\n",
    b"\r\n\r\n\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-10\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-1\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$2000000000\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1 \r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$99999999999999999999\r\n",
    b"*1\r\nfoo\r\n",
    b"*1\r\n*1\r\n",
    b"*1\r\n:1\r\n",
    b"*1\r\n\r\n",
    b"*1\r\n\n\r\n",
    b"*4\r\n$4\r\nping\r\n$1\r\nx\r\n$1\r\ny\r\n$1\r\nz\r\n",
    b"*2\r\n$4\r\nNOPE\r\n$1\r\nx\r\n",
    b"*1\r\n$0\r\n\r\n",
    b"set \"\"\"test-key\"\"\" test-value\r\n",
    b"set 'a'b c\r\n",
    b"set \"a\r\n",
    b"set 'a\r\n",
    b"get \"\\x41\\x\\q\\n\"\r\n",
    b"get 'it\\'s'\r\n",
    b"  PING   \r\n",
    b"echo \"\"\r\n",
    b"nope a b c\r\n",
    b"set k \"v\" 'w' x\"y\"\r\n",
    b"config nope\r\n",
    b"client nope\r\n",
];

/// All that a server answers to these bytes and to the `PING` after them, until it has answered that or ends the
/// connection.
fn answers(address: SocketAddr, bytes: &[u8]) -> Vec<String> {
    let mut client = Client::connect(address);
    let mut said = Vec::new();
    // A server that has refused the first bytes may be gone before the last.
    if client.try_send_raw(bytes).is_err()
        || client
            .try_send_raw(b"*2\r\n$4\r\nPING\r\n$4\r\nlast\r\n")
            .is_err()
    {
        said.push("gone".to_owned());
    }
    while let Ok(reply) = client.try_receive() {
        said.push(show(&reply));
        if reply == Reply::bulk("last") {
            break;
        }
    }
    said
}

#[test]
fn what_is_broken_is_refused_in_the_words_of_redis_and_what_is_odd_is_taken_as_there() {
    let Some(redis) = Redis::start() else { return };
    let node = Launch::in_memory().start();
    for bytes in SENT {
        assert_eq!(
            answers(node.resp(), bytes),
            answers(redis.address, bytes),
            "{}, here and in Redis",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn a_line_without_an_end_is_refused_in_the_words_of_redis() {
    let Some(redis) = Redis::start() else { return };
    let node = Launch::in_memory().start();
    for (start, of_line) in [(&b"*"[..], 1), (b"*1\r\n$", 1), (b"A", 1), (b"", 0)] {
        let bytes = [start, &vec![b'1'; TOO_LONG - of_line]].concat();
        let [ours, theirs] = [node.resp(), redis.address].map(|address| {
            let mut client = Client::connect(address);
            client.send_raw(&bytes);
            let said = client.hear();
            client.expect_end();
            said
        });
        assert_eq!(ours, theirs, "{}", start.escape_ascii());
    }
}
