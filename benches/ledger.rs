//! Claims on the ledger's sled store: one caller, and many behind one durability barrier.

use std::path::Path;
use std::time::Duration;

use benches::Error;
use benches::claims::Claims;
use benches::scratch::Scratch;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Time of one sample.
const SAMPLE: Duration = Duration::from_millis(300);

fn claims(criterion: &mut Criterion) {
    let scratch = Scratch::below(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap_or_else(refused);
    let claims = Claims::on_sled(&scratch.child("ledger")).unwrap_or_else(refused);
    let mut group = criterion.benchmark_group("ledger_on_sled");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    for callers in [1, 16, 256] {
        group.bench_function(BenchmarkId::new("claim", callers), |bencher| {
            bencher.iter_custom(|count| {
                let rate = claims.rate(callers, SAMPLE).unwrap_or_else(refused);
                time_of(count, rate)
            });
        });
    }
    group.finish();
    claims.close().unwrap_or_else(refused);
}

/// How long so many claims take at this rate: a sample runs for a time, not for a number of claims.
#[expect(clippy::cast_precision_loss, reason = "iterations stay far below 2^53")]
fn time_of(claims: u64, rate: f64) -> Duration {
    Duration::from_secs_f64(claims as f64 / rate)
}

/// A bench has nobody to hand an error to.
fn refused<T>(error: Error) -> T {
    panic!("the ledger refused: {error}")
}

criterion_group!(benches, claims);
criterion_main!(benches);
