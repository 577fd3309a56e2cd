//! Memory of one live lease under the server's allocator (mimalloc); `ratios` measures it under the system's.
#![expect(clippy::print_stdout, reason = "the figure is what this program is for")]

use benches::Error;
use benches::options::{Asked, Options};
use benches::population::{LEASES, Population};
use benches::{host, progress};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Error> {
    if Options::read(std::env::args().skip(1))? == Asked::NotABenchmark {
        return Ok(());
    }
    progress::say("memory of 1,000,000 leases");
    let before = host::resident_bytes();
    let population = Population::of(LEASES)?;
    let grown = host::resident_bytes()
        .saturating_sub(before)
        .saturating_sub(population.own_bytes());
    let leases = population.machine().stats().leases;
    println!(
        "{} bytes a live lease ({leases} leases, name and owner of 24 bytes, mimalloc)",
        grown / leases
    );
    Ok(())
}
