//! The request decoder under bytes that are almost right: some thousand times, and for a minute under CI=true.
//!
//! `LEASE_FUZZ_SECONDS` sets another time. Whatever is read must be the same in one piece and in any pieces.

use lease_core::wire::{Access, RequestDecoder, RequestLimits, encode_request};
use tests::effort::Effort;
use tests::random::Random;

/// Broken requests in the usual run.
const CASES: u64 = 20_000;

const VALUE_BYTES_MAX: usize = 4_096;

/// Requests as clients send them, which are then bent.
const CORPUS: [&[u8]; 12] = [
    b"*3\r\n$3\r\nGET\r\n$1\r\na\r\n$0\r\n\r\n",
    b"*1\r\n$4\r\nPING\r\n",
    b"PING\r\n",
    b"HELLO 3 AUTH default secret SETNAME me\r\n",
    b"SET \"a b\" '\\x41' NX PX 5000\n",
    b"*0\r\n*-1\r\n\r\n\r\nPING\r\n",
    b"*1000000000\r\n",
    b"*1\r\n$536870912\r\nab",
    b"*2\r\n$-1\r\n$1\r\nx\r\n",
    b"*1\r\n*1\r\n*1\r\n",
    b"*5\r\n$3\r\nSET\r\n$4\r\nlock\r\n$2\r\nme\r\n$2\r\nNX\r\n$4\r\nKEEP\r\n",
    b"*1\r\n$10\r\n\0\r\n\xff\xfe\r\n\r\n$\r\n",
];

fn bent(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=random.below(4) {
        if random.percent(20) {
            let args: Vec<Vec<u8>> = (0..=random.below(40))
                .map(|at| vec![b'x'; usize::try_from(at).unwrap()])
                .collect();
            let mut out = bytes::BytesMut::new();
            encode_request(&args, &mut out);
            bytes.extend_from_slice(&out);
        } else {
            bytes.extend_from_slice(random.choose::<&[u8]>(&CORPUS));
        }
    }
    for _ in 0..random.below(6) {
        let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
        let byte = *random.choose(b"\r\n*$-0123456789\"'\\ \0\xffPx");
        match random.below(4) {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            2 if bytes.len() > 1 => drop(bytes.remove(at)),
            _ => {
                let copied: Vec<u8> = bytes[at..].iter().take(9).copied().collect();
                bytes.splice(at..at, copied);
            }
        }
    }
    bytes
}

/// What is read of `bytes` in pieces of at most `piece` bytes: requests, and the error that ends them.
fn read(
    bytes: &[u8],
    access: Access,
    mut piece: impl FnMut() -> usize,
) -> (Vec<Vec<Vec<u8>>>, Option<String>) {
    let mut decoder = RequestDecoder::new(RequestLimits::for_values(VALUE_BYTES_MAX), access);
    let (mut requests, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let (now, later) = rest.split_at(piece().clamp(1, rest.len()));
        rest = later;
        {
            let mut space = decoder.space();
            bytes::BufMut::put_slice(&mut space, now);
        }
        loop {
            match decoder.next_request() {
                Ok(Some(request)) => requests.push(request.args().map(<[u8]>::to_vec).collect()),
                Ok(None) => break,
                Err(error) => return (requests, Some(error.to_string())),
            }
        }
    }
    (requests, None)
}

#[test]
fn whatever_is_read_is_the_same_in_one_piece_and_in_any_pieces() {
    let mut effort = Effort::of(CASES);
    let seed = Random::seed(7);
    let mut random = Random::new(seed);
    let (mut whole_requests, mut refused) = (0_usize, 0_u64);
    while effort.goes_on() {
        let rounds = effort.begun();
        let bytes = bent(&mut random);
        let access = *random.choose(&[Access::Authenticated, Access::Unauthenticated]);
        let whole = read(&bytes, access, || usize::MAX);
        let single = read(&bytes, access, || 1);
        let pieces = read(&bytes, access, || usize::try_from(random.below(12)).unwrap());
        assert!(
            whole == single && whole == pieces,
            "LEASE_TEST_SEED={seed}, round {rounds}: {}",
            bytes.escape_ascii()
        );
        whole_requests += whole.0.len();
        refused += u64::from(whole.1.is_some());
    }
    let rounds = effort.begun();
    // A run that met only one side of it proves nothing.
    assert!(
        whole_requests as u64 > rounds / 4 && refused > rounds / 100,
        "{rounds} rounds, {whole_requests} requests, {refused} refused"
    );
}
