//! The bytes of a connection: requests read and parsed, replies written, and the client's half of both.
#![expect(clippy::unwrap_used, reason = "the bytes are this file's own")]

use std::hint::black_box;

use benches::population::{name, owner};
use bytes::BytesMut;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use lease_core::wire::{
    Access, AcquireCommand, AcquireReply, LeaseCommand, LeaseVerb, Protocol, ReplyDecoder, RequestDecoder,
    RequestLimits,
};
use lease_core::{FenceToken, Ttl};

/// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Requests in one read: what a pipelining client sends at once.
const PIPELINED: u64 = 64;

fn acquire(n: u64) -> LeaseCommand {
    LeaseCommand::Acquire(AcquireCommand {
        name: name(n).unwrap(),
        owner: owner(n).unwrap(),
        ttl: Ttl::from_millis(5_000).unwrap(),
        wait_ms: 0,
        request: None,
        metadata: None,
    })
}

fn granted(n: u64) -> AcquireReply {
    AcquireReply::Granted {
        token: FenceToken::new((1 << 40) + n).unwrap(),
        remaining_ms: Some(5_000),
        waited_ms: 0,
    }
}

fn requests(criterion: &mut Criterion) {
    let mut leases = BytesMut::new();
    let mut sets = BytesMut::new();
    for n in 0..PIPELINED {
        acquire(n).encode(&mut leases);
        let (name, owner) = (name(n).unwrap(), owner(n).unwrap());
        let set: [&[u8]; 6] = [b"SET", name.as_bytes(), owner.as_bytes(), b"NX", b"PX", b"5000"];
        lease_core::wire::encode_request(&set, &mut sets);
    }
    let mut group = criterion.benchmark_group("wire_request");
    group.throughput(Throughput::Elements(PIPELINED));
    group.bench_function("decode_set_nx_px", |bencher| {
        bencher.iter_batched_ref(decoder, |decoder| read_all(decoder, &sets), BatchSize::SmallInput);
    });
    group.bench_function("decode_and_parse_lease_acquire", |bencher| {
        let parse = |decoder: &mut RequestDecoder| {
            decoder.feed(&leases);
            while let Some(request) = decoder.next_request().unwrap() {
                let verb = LeaseVerb::parse(request.command()).unwrap();
                black_box(LeaseCommand::parse(verb, &request).unwrap());
            }
        };
        bencher.iter_batched_ref(decoder, parse, BatchSize::SmallInput);
    });
    group.bench_function("decode_in_pieces_of_7_bytes", |bencher| {
        let drip = |decoder: &mut RequestDecoder| leases.chunks(7).for_each(|piece| read_all(decoder, piece));
        bencher.iter_batched_ref(decoder, drip, BatchSize::SmallInput);
    });
    group.bench_function("encode_lease_acquire", |bencher| {
        let commands: Vec<LeaseCommand> = (0..PIPELINED).map(acquire).collect();
        let encode = |out: &mut BytesMut| commands.iter().for_each(|command| command.encode(out));
        bencher.iter_batched_ref(
            || BytesMut::with_capacity(16 * 1_024),
            encode,
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn replies(criterion: &mut Criterion) {
    let answers: Vec<AcquireReply> = (0..PIPELINED).map(granted).collect();
    let mut bytes = BytesMut::new();
    for answer in &answers {
        answer.to_reply().encode(Protocol::Resp2, &mut bytes);
    }
    let mut group = criterion.benchmark_group("wire_reply");
    group.throughput(Throughput::Elements(PIPELINED));
    group.bench_function("encode_granted", |bencher| {
        let encode = |out: &mut BytesMut| {
            for answer in &answers {
                answer.to_reply().encode(Protocol::Resp2, out);
            }
        };
        bencher.iter_batched_ref(
            || BytesMut::with_capacity(16 * 1_024),
            encode,
            BatchSize::SmallInput,
        );
    });
    group.bench_function("decode_granted", |bencher| {
        let decode = |decoder: &mut ReplyDecoder| {
            decoder.feed(&bytes);
            while let Some(reply) = decoder.next_reply().unwrap() {
                black_box(AcquireReply::from_reply(reply).unwrap());
            }
        };
        bencher.iter_batched_ref(ReplyDecoder::new, decode, BatchSize::SmallInput);
    });
    group.finish();
}

fn decoder() -> RequestDecoder {
    RequestDecoder::new(RequestLimits::default(), Access::Authenticated)
}

fn read_all(decoder: &mut RequestDecoder, bytes: &[u8]) {
    decoder.feed(bytes);
    while let Some(request) = decoder.next_request().unwrap() {
        black_box(request);
    }
}

criterion_group!(benches, requests, replies);
criterion_main!(benches);
