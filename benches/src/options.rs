//! The arguments of the benches that are programs of their own.

use std::path::PathBuf;

use crate::Error;

/// How a run was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long it may take.
    pub effort: Effort,
    /// Sections to run; all, if there are none.
    pub only: Vec<String>,
    /// Where files are made.
    pub dir: Option<PathBuf>,
}

/// How long a run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Some minutes: the figures that are published.
    Full,
    /// Below a minute: fewer and shorter rounds, the same sizes.
    Quick,
}

/// What to do with the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Measure.
    Run(Options),
    /// Nothing: `cargo test --benches` starts benches too, and a test run measures nothing.
    NotABenchmark,
}

impl Options {
    /// Reads arguments as `cargo bench -- ARGUMENTS` hands them over.
    ///
    /// # Errors
    /// An argument is not known.
    pub fn read(arguments: impl IntoIterator<Item = String>) -> Result<Asked, Error> {
        let mut options = Self {
            effort: Effort::Full,
            only: Vec::new(),
            dir: None,
        };
        let mut is_bench = false;
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                "--bench" => is_bench = true,
                "--quick" => options.effort = Effort::Quick,
                "--only" => options.only.push(value()?),
                "--dir" => options.dir = Some(value()?.into()),
                _ => {
                    return Err(
                        format!("unknown argument {argument}: --quick, --only SECTION, --dir DIR").into(),
                    );
                }
            }
        }
        Ok(if is_bench {
            Asked::Run(options)
        } else {
            Asked::NotABenchmark
        })
    }

    /// Whether `section` is to run.
    #[must_use]
    pub fn wants(&self, section: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == section)
    }
}

impl Effort {
    /// One of two values.
    #[must_use]
    pub fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
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
        assert_eq!(read(&[]).unwrap(), Asked::NotABenchmark);
    }

    #[test]
    fn sections_are_picked_by_name() {
        let Asked::Run(options) = read(&["--bench", "--quick", "--only", "ledger"]).unwrap() else {
            panic!("it was asked to run");
        };
        assert!(options.wants("ledger") && !options.wants("store"));
        assert_eq!(options.effort, Effort::Quick);
    }

    #[test]
    fn an_unknown_argument_is_refused() {
        assert!(read(&["--bench", "--fast"]).is_err());
        assert!(read(&["--bench", "--only"]).is_err());
    }
}
