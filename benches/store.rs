//! The embedded store: one caller in memory, and many at once in memory and on disk.

use std::path::Path;
use std::time::Duration;

use benches::Error;
use benches::embedded::{Embedded, Flavour};
use benches::scratch::Scratch;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Callers at once.
const CALLERS: u32 = 256;
/// Time of one sample of many callers.
const SAMPLE: Duration = Duration::from_millis(200);

fn one_caller(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("embedded_in_memory");
    for flavour in Flavour::BOTH {
        let embedded = Embedded::in_memory(flavour).unwrap_or_else(refused);
        group.bench_function(BenchmarkId::new("acquire", flavour.name()), |bencher| {
            bencher.iter_custom(|rounds| embedded.rounds(rounds).unwrap_or_else(refused).0);
        });
        group.bench_function(BenchmarkId::new("release", flavour.name()), |bencher| {
            bencher.iter_custom(|rounds| embedded.rounds(rounds).unwrap_or_else(refused).1);
        });
        embedded.stop().unwrap_or_else(refused);
    }
    group.finish();
}

fn many_callers(criterion: &mut Criterion) {
    let scratch = Scratch::below(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap_or_else(refused);
    let mut group = criterion.benchmark_group("embedded_256_callers");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    for flavour in Flavour::BOTH {
        let in_memory = Embedded::in_memory(flavour).unwrap_or_else(refused);
        let on_disk = Embedded::in_directory(flavour, &scratch.child(flavour.name())).unwrap_or_else(refused);
        for (place, embedded) in [("in_memory", in_memory), ("on_disk", on_disk)] {
            group.bench_function(BenchmarkId::new(place, flavour.name()), |bencher| {
                bencher.iter_custom(|commands| {
                    let rate = embedded.rate(CALLERS, SAMPLE).unwrap_or_else(refused);
                    time_of(commands, rate)
                });
            });
            embedded.stop().unwrap_or_else(refused);
        }
    }
    group.finish();
}

/// How long so many commands take at this rate: a sample runs for a time, not for a number of commands.
#[expect(clippy::cast_precision_loss, reason = "iterations stay far below 2^53")]
fn time_of(commands: u64, rate: f64) -> Duration {
    Duration::from_secs_f64(commands as f64 / rate)
}

/// A bench has nobody to hand an error to.
fn refused<T>(error: Error) -> T {
    panic!("the store refused: {error}")
}

criterion_group!(benches, one_caller, many_callers);
criterion_main!(benches);
