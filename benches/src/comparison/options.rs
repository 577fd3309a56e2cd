//! The arguments of the comparison.

use std::path::PathBuf;
use std::time::Duration;

use super::systems::System;
use super::work::Work;
use crate::Error;

/// How many callers at once, each over a connection of its own.
pub const CONNECTIONS: [usize; 3] = [1, 64, 256];

/// How a run was asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is compared.
    pub systems: Vec<System>,
    /// The work that is done.
    pub works: Vec<Work>,
    /// How many callers at once.
    pub connections: Vec<usize>,
    /// Rounds in turns.
    pub rounds: usize,
    /// The time of one turn.
    pub time: Duration,
    /// Where files are made while it runs.
    pub dir: Option<PathBuf>,
    /// Where the report goes.
    pub out: Option<PathBuf>,
    /// A lease-store server that is built already.
    pub server: Option<PathBuf>,
}

/// What to do with the arguments.
#[derive(Debug)]
pub enum Asked {
    /// Measure.
    Run(Options),
    /// Say what can be asked for.
    Help,
    /// Nothing: `cargo test --benches` starts benches too, and a test run measures nothing.
    NotABenchmark,
}

/// What can be asked for.
#[must_use]
pub fn help() -> String {
    let keys = |keys: Vec<&str>| keys.join(", ");
    format!(
        "cargo bench -p benches --bench comparison -- [OPTIONS]\n\n\
         --only NAME          a system or a work, may be repeated; all by default\n\
         \x20                    systems: {}\n\
         \x20                    works:   {}\n\
         --connections N      may be repeated; 1, 64 and 256 by default\n\
         --rounds N           rounds in turns, 5 by default\n\
         --seconds S          the time of one turn, 1 by default\n\
         --dir DIR            where the servers keep their files meanwhile: a folder on a disk\n\
         --out DIR            where comparison.md, comparison.json and comparison.svg go\n\
         --server FILE        a lease-store server that is built already",
        keys(System::ALL.map(System::key).to_vec()),
        keys(Work::ALL.map(Work::key).to_vec()),
    )
}

impl Options {
    /// Reads arguments as `cargo bench -- ARGUMENTS` hands them over.
    ///
    /// # Errors
    /// An argument is not known, or has no good value.
    pub fn read(arguments: impl IntoIterator<Item = String>) -> Result<Asked, Error> {
        let mut options = Self {
            systems: Vec::new(),
            works: Vec::new(),
            connections: Vec::new(),
            rounds: 5,
            time: Duration::from_secs(1),
            dir: None,
            out: None,
            server: None,
        };
        let mut is_bench = false;
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--bench" => is_bench = true,
                "--help" | "-h" => return Ok(Asked::Help),
                _ => {
                    let value = arguments.next();
                    let value = value
                        .ok_or_else(|| format!("{argument} needs a value, or is unknown\n\n{}", help()))?;
                    options.take(&argument, &value)?;
                }
            }
        }
        if !is_bench {
            return Ok(Asked::NotABenchmark);
        }
        all_if_none(&mut options.systems, &System::ALL);
        all_if_none(&mut options.works, &Work::ALL);
        all_if_none(&mut options.connections, &CONNECTIONS);
        Ok(Asked::Run(options))
    }

    fn take(&mut self, argument: &str, value: &str) -> Result<(), Error> {
        match argument {
            "--only" => self.pick(value)?,
            "--connections" => self.connections.push(at_least_one(argument, value)?),
            "--rounds" => self.rounds = at_least_one(argument, value)?,
            "--seconds" => {
                let seconds: f64 = value.parse()?;
                self.time = Duration::try_from_secs_f64(seconds)?;
            }
            "--dir" => self.dir = Some(value.into()),
            "--out" => self.out = Some(value.into()),
            "--server" => self.server = Some(value.into()),
            _ => return Err(format!("unknown argument {argument}\n\n{}", help()).into()),
        }
        Ok(())
    }

    fn pick(&mut self, name: &str) -> Result<(), Error> {
        let system = System::ALL.into_iter().find(|system| system.key() == name);
        let work = Work::ALL.into_iter().find(|work| work.key() == name);
        if system.is_none() && work.is_none() {
            return Err(format!("there is no {name}\n\n{}", help()).into());
        }
        self.systems.extend(system);
        self.works.extend(work);
        Ok(())
    }
}

fn all_if_none<T: Copy>(picked: &mut Vec<T>, all: &[T]) {
    if picked.is_empty() {
        picked.extend_from_slice(all);
    }
}

fn at_least_one(argument: &str, value: &str) -> Result<usize, Error> {
    match value.parse() {
        Ok(0) | Err(_) => Err(format!("{argument} takes a whole number of at least 1").into()),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Asked, Error> {
        Options::read(arguments.iter().map(ToString::to_string))
    }

    #[test]
    fn a_test_run_measures_nothing() {
        assert!(matches!(read(&[]), Ok(Asked::NotABenchmark)));
    }

    #[test]
    fn systems_and_works_are_picked_by_name_and_the_rest_is_as_published() {
        let asked = read(&[
            "--bench",
            "--only",
            "etcd",
            "--only",
            "renew",
            "--only",
            "one-node",
            "--seconds",
            "0.5",
        ]);
        let Asked::Run(options) = asked.unwrap() else {
            panic!("it was asked to run");
        };
        assert_eq!(options.systems, [System::Etcd, System::OneNode]);
        assert_eq!(options.works, [Work::Renew]);
        assert_eq!(
            (options.connections.as_slice(), options.rounds),
            (CONNECTIONS.as_slice(), 5)
        );
        assert_eq!(options.time, Duration::from_millis(500));
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_what_can() {
        for wrong in [
            ["--only", "sqlite"],
            ["--rounds", "0"],
            ["--fast", "1"],
            ["--seconds", "-1"],
        ] {
            assert!(read(&["--bench", wrong[0], wrong[1]]).is_err(), "{wrong:?}");
        }
        assert!(read(&["--bench", "--rounds"]).is_err());
    }
}
