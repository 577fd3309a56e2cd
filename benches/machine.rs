//! One entry on the lease machine with a million live leases: acquire, contended acquire, renew, release, a view.

use std::time::Duration;

use benches::Error;
use benches::population::{BATCH, Entry, LEASES, Population, Ttls};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn entries(criterion: &mut Criterion) {
    let mut population = Population::of(LEASES, Ttls::Mixed).unwrap_or_else(refused);
    let mut group = criterion.benchmark_group("machine_1m");
    group
        .throughput(Throughput::Elements(BATCH as u64))
        .sample_size(30);
    group.bench_function("acquire", |bencher| {
        bencher.iter_custom(|iterations| {
            let mut entry = || {
                population.release()?;
                population.acquire()
            };
            total(iterations, &mut entry)
        });
    });
    group.bench_function("release", |bencher| {
        bencher.iter_custom(|iterations| {
            let mut entry = || {
                let entry = population.release();
                population.acquire()?;
                entry
            };
            total(iterations, &mut entry)
        });
    });
    group.bench_function("renew", |bencher| {
        bencher.iter_custom(|iterations| total(iterations, &mut || population.renew()));
    });
    group.bench_function("acquire_of_a_held_lease", |bencher| {
        bencher.iter_custom(|iterations| total(iterations, &mut || population.contend()));
    });
    group.bench_function("renew_right_after_a_view", |bencher| {
        bencher.iter_custom(|iterations| {
            // Each renewal meets a chunk that the view shares, and copies it.
            let mut entry = || {
                let view = population.machine().view();
                let entry = population.renew();
                drop(view);
                entry
            };
            total(iterations, &mut entry)
        });
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("view", |bencher| {
        bencher.iter_with_large_drop(|| population.machine().view())
    });
    group.finish();
}

/// The time that so many entries took to apply.
fn total(iterations: u64, entry: &mut impl FnMut() -> Result<Entry, Error>) -> Duration {
    (0..iterations)
        .map(|_| entry().unwrap_or_else(refused).apply)
        .sum()
}

/// A bench has nobody to hand an error to.
fn refused<T>(error: Error) -> T {
    panic!("the machine refused: {error}")
}

criterion_group!(benches, entries);
criterion_main!(benches);
