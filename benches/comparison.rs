//! The lease store beside Redis and etcd, the same work in one run.
//!
//! `cargo bench -p benches --bench comparison [-- --help]`. The report goes to stdout as Markdown, and with JSON and a
//! chart into a folder; progress goes to stderr. What is not installed is left out, and said so.
#![expect(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use benches::comparison::options::{Asked, Options, help};
use benches::comparison::promises::verdicts;
use benches::comparison::{chart, report, run};
use benches::progress::say;
use benches::{Error, host};

/// As in the server, for the embedded store.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<ExitCode, Error> {
    let options = match Options::read(std::env::args().skip(1))? {
        Asked::Run(options) => options,
        Asked::Help => {
            println!("{}", help());
            return Ok(ExitCode::SUCCESS);
        }
        Asked::NotABenchmark => return Ok(ExitCode::SUCCESS),
    };
    let machine = host::describe();
    let files = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let results = run::run(&options, options.dir.as_deref().unwrap_or(&files))?;
    let text = report::markdown(&results, &options, &machine);
    println!("{text}");
    let out = options.out.clone().unwrap_or_else(|| files.join("comparison"));
    fs::create_dir_all(&out)?;
    fs::write(out.join("comparison.md"), text)?;
    let json = serde_json::to_string_pretty(&report::json(&results, &options, &machine))?;
    fs::write(out.join("comparison.json"), json)?;
    fs::write(out.join("comparison.svg"), chart::svg(&results))?;
    say(format_args!("the report is in {}", out.display()));
    let held = verdicts(&results).iter().all(|verdict| verdict.holds);
    Ok(if held {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
