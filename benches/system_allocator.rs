//! The machine's memory and times under the system's allocator; `ratios` measures them under the server's (mimalloc).
//!
//! An embedder's choice: mimalloc asks for huge pages, and a million leases miss the page table less.
#![expect(clippy::print_stdout, reason = "the figures are what this program is for")]

use benches::options::{Asked, Options};
use benches::population::{BATCH, LEASES};
use benches::{Error, host, machine_times};

fn main() -> Result<(), Error> {
    let Asked::Run(options) = Options::read(std::env::args().skip(1))? else {
        return Ok(());
    };
    println!("{}\n", host::describe());
    let each = machine_times::bytes_of_one_lease()?;
    println!("{each:.0} bytes a live lease: what the process grew by.\n");
    let times = machine_times::measure(options.effort)?;
    println!(
        "{LEASES} live leases, entries of {BATCH} commands\n\n{}",
        times.table
    );
    Ok(())
}
