//! The settings file: TOML, whose keys are the options without their dashes in front, and a section for the cluster.
//!
//! A key that is not known is refused with its line and the nearest one that is: a setting that is silently not there
//! would be found out too late.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use lease_store::{ClusterConfig, ClusterConfigError};
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::settings::Settings;

/// The section of a node of a cluster.
const CLUSTER: &str = "cluster";

/// All keys: the section, none for the ones that stand first in the file, and the name.
const KEYS: [(Option<&str>, &str); 15] = [
    (None, "data-dir"),
    (None, "memory"),
    (None, "listen"),
    (None, "admin"),
    (None, "password-file"),
    (None, "insecure"),
    (None, "token-floor"),
    (None, "max-connections"),
    (None, "max-value"),
    (None, "databases"),
    (None, "allow-flush"),
    (None, "workers"),
    (Some(CLUSTER), "node-id"),
    (Some(CLUSTER), "peer-listen"),
    (Some(CLUSTER), "members"),
];

/// A settings file that cannot be used.
#[derive(Debug, Error)]
pub(crate) enum ConfigFileError {
    #[error("cannot read the settings file {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        path: PathBuf,
        line: usize,
        problem: Problem,
    },
}

/// What is wrong in one line.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum Problem {
    #[error("not TOML: {0}")]
    Syntax(String),
    #[error("unknown key {key:?}; the nearest one is {nearest}")]
    UnknownKey { key: String, nearest: Key },
    #[error("{key} must be {wanted}, not {found}")]
    Value {
        key: String,
        wanted: &'static str,
        found: String,
    },
    #[error(transparent)]
    Cluster(#[from] ClusterConfigError),
}

/// A key as a message names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    section: Option<&'static str>,
    name: &'static str,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)?;
        match self.section {
            Some(section) => write!(f, " in [{section}]"),
            None => Ok(()),
        }
    }
}

/// A problem and the offset of the byte where it stands.
#[derive(Debug, PartialEq, Eq)]
struct Located {
    offset: usize,
    problem: Problem,
}

/// What a settings file says.
///
/// # Errors
/// It cannot be read, or a line of it cannot be used.
pub(crate) fn read(path: &Path) -> Result<Settings, ConfigFileError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigFileError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|Located { offset, problem }| ConfigFileError::Line {
        path: path.to_owned(),
        line: line_of(&text, offset),
        problem,
    })
}

fn parse(text: &str) -> Result<Settings, Located> {
    let table = DeTable::parse(text).map_err(|error| Located {
        offset: error.span().map_or(0, |span| span.start),
        problem: Problem::Syntax(error.message().to_owned()),
    })?;
    let mut settings = Settings::default();
    take_all(table.get_ref(), None, &mut settings)?;
    Ok(settings)
}

fn take_all(table: &DeTable<'_>, section: Option<&str>, settings: &mut Settings) -> Result<(), Located> {
    for (key, value) in table {
        let name: &str = key.get_ref();
        let entry = Entry { key: name, value };
        match (section, name, value.get_ref()) {
            (None, CLUSTER, DeValue::Table(cluster)) => take_all(cluster, Some(CLUSTER), settings)?,
            (None, CLUSTER, _) => {
                return Err(
                    entry.must_be("a section: [cluster] with \"node-id\", \"peer-listen\" and \"members\"")
                );
            }
            _ if KEYS.contains(&(section, name)) => entry.take(settings)?,
            _ => {
                return Err(Located {
                    offset: key.span().start,
                    problem: Problem::UnknownKey {
                        key: name.to_owned(),
                        nearest: nearest(section, name),
                    },
                });
            }
        }
    }
    Ok(())
}

/// One key that is known, and its value.
struct Entry<'a> {
    key: &'a str,
    value: &'a Spanned<DeValue<'a>>,
}

impl Entry<'_> {
    fn take(&self, settings: &mut Settings) -> Result<(), Located> {
        match self.key {
            "data-dir" => settings.data_dir = Some(self.parsed("a path")?),
            "memory" => settings.memory = Some(self.switch()?),
            "listen" => settings.listen = Some(self.address()?),
            "admin" => settings.admin = Some(self.address()?),
            "password-file" => settings.password_file = Some(self.parsed("a path")?),
            "insecure" => settings.insecure = Some(self.switch()?),
            "allow-flush" => settings.allow_flush = Some(self.switch()?),
            "token-floor" => settings.token_floor = Some(self.number()?),
            "max-connections" => settings.max_connections = Some(self.number()?),
            "max-value" => settings.max_value = Some(self.number()?),
            "databases" => settings.databases = Some(self.number()?),
            "workers" => settings.workers = Some(self.number()?),
            "node-id" => settings.node_id = Some(self.number()?),
            "peer-listen" => settings.peer_listen = Some(self.address()?),
            "members" => settings.cluster = Some(self.members()?),
            other => unreachable!("{other} is in KEYS and has no place"),
        }
        Ok(())
    }

    fn parsed<T: FromStr>(&self, wanted: &'static str) -> Result<T, Located> {
        let text = self.value.get_ref().as_str();
        text.and_then(|text| text.parse().ok())
            .ok_or_else(|| self.must_be(wanted))
    }

    fn address(&self) -> Result<SocketAddr, Located> {
        self.parsed("an address in quotes, as \"127.0.0.1:7420\"")
    }

    fn switch(&self) -> Result<bool, Located> {
        let value = self.value.get_ref().as_bool();
        value.ok_or_else(|| self.must_be("true or false"))
    }

    fn number<T: TryFrom<i128>>(&self) -> Result<T, Located> {
        let number = self.value.get_ref().as_integer();
        number
            .and_then(|number| i128::from_str_radix(number.as_str(), number.radix()).ok())
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| self.must_be("a whole number in its range"))
    }

    /// The nodes by their ids, with where their peers reach them.
    fn members(&self) -> Result<ClusterConfig, Located> {
        const WANTED: &str = "a table of addresses by node ids, as { 1 = \"host:port\", 2 = \"host:port\" }";
        let table = self.value.get_ref().as_table();
        let mut members = Vec::new();
        for (id, address) in table.ok_or_else(|| self.must_be(WANTED))? {
            let member = Entry {
                key: self.key,
                value: address,
            };
            let id = id.get_ref().parse().map_err(|_| member.must_be(WANTED))?;
            let address = address.get_ref().as_str().ok_or_else(|| member.must_be(WANTED))?;
            members.push((id, address.to_owned()));
        }
        // Where to listen is another key's to say.
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        ClusterConfig::new(members, anywhere).map_err(|error| self.located(error.into()))
    }

    fn must_be(&self, wanted: &'static str) -> Located {
        self.located(Problem::Value {
            key: self.key.to_owned(),
            wanted,
            found: shown(self.value.get_ref()),
        })
    }

    fn located(&self, problem: Problem) -> Located {
        Located {
            offset: self.value.span().start,
            problem,
        }
    }
}

/// A value as a message shows it.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => format!("a {}", value.type_str()),
    }
}

/// The key that is meant, most likely. One of another section is meant when it has the same name.
fn nearest(section: Option<&str>, name: &str) -> Key {
    let asked: String = name.to_lowercase().replace('_', "-");
    let far = |(of, known): &(Option<&str>, &str)| (distance(&asked, known), *of != section);
    let nearest = KEYS.iter().min_by_key(|key| far(key)).copied();
    let (section, name) = nearest.unwrap_or_default();
    Key { section, name }
}

/// Letters to change, add or leave out to make one word of the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut next = vec![index.saturating_add(1)];
        let pairs = row.iter().zip(row.iter().skip(1)).zip(&other);
        for ((before, above), second) in pairs {
            let changed = before.saturating_add(usize::from(letter != *second));
            let added = next.last().map_or(changed, |left| left.saturating_add(1));
            next.push(changed.min(added).min(above.saturating_add(1)));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.bytes().take(offset);
    before.filter(|byte| *byte == b'\n').count().saturating_add(1)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// The document whose example is what people copy.
    const OPERATING: &str = include_str!("../../../../docs/operating.md");

    fn refused(text: &str) -> (usize, String) {
        let Located { offset, problem } = parse(text).unwrap_err();
        (line_of(text, offset), problem.to_string())
    }

    #[test]
    fn the_example_of_the_operating_guide_sets_every_key_and_makes_a_server() {
        let example = OPERATING
            .split("```toml\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next());
        let settings = parse(example.unwrap()).unwrap();
        let said = example.unwrap();
        for (_, name) in KEYS {
            assert!(
                said.contains(&format!("{name} = ")),
                "{name} is not in the example"
            );
        }
        settings.resolve().unwrap();
    }

    #[test]
    fn every_option_has_a_key_and_every_key_an_option() {
        let mut keys: Vec<&str> = KEYS.iter().map(|(_, name)| *name).collect();
        keys.iter_mut()
            .filter(|name| **name == "members")
            .for_each(|name| *name = "cluster");
        keys.sort_unstable();
        let command = crate::Cli::command();
        // Hidden ones are not for users.
        let shown = command.get_arguments().filter(|option| !option.is_hide_set());
        let options = shown.filter_map(clap::Arg::get_long);
        let mut options: Vec<&str> = options
            .filter(|name| !["config", "help", "version"].contains(name))
            .collect();
        options.sort_unstable();
        assert_eq!(keys, options);
        for option in options {
            assert!(
                OPERATING.contains(&format!("| `--{option}")),
                "--{option} is not in docs/operating.md"
            );
        }
    }

    #[test]
    fn a_key_that_is_not_known_is_named_with_its_line_and_the_nearest_one() {
        assert_eq!(
            refused("memory = true\n\nlisten_on = \"127.0.0.1:1\"\n"),
            (
                3,
                r#"unknown key "listen_on"; the nearest one is "listen""#.to_owned()
            )
        );
        assert_eq!(
            refused("data_dir = \"x\"").1,
            r#"unknown key "data_dir"; the nearest one is "data-dir""#
        );
        assert_eq!(
            refused("node-id = 1").1,
            r#"unknown key "node-id"; the nearest one is "node-id" in [cluster]"#
        );
        assert_eq!(
            refused("[cluster]\nnodeid = 1\n"),
            (
                2,
                r#"unknown key "nodeid"; the nearest one is "node-id" in [cluster]"#.to_owned()
            )
        );
        assert_eq!(
            refused("[cluster]\nworkers = 1\n").1,
            r#"unknown key "workers"; the nearest one is "workers""#
        );
    }

    #[test]
    fn a_value_of_another_kind_is_named_with_its_line() {
        for (text, line, said) in [
            (
                "\nlisten = 7420",
                2,
                "listen must be an address in quotes, as \"127.0.0.1:7420\", not 7420",
            ),
            ("memory = \"yes\"", 1, "memory must be true or false, not \"yes\""),
            (
                "workers = -1",
                1,
                "workers must be a whole number in its range, not -1",
            ),
            (
                "databases = 256",
                1,
                "databases must be a whole number in its range, not 256",
            ),
            ("cluster = \"1=a:1\"", 1, "cluster must be a section"),
            (
                "[cluster]\nmembers = [\"a:1\"]",
                2,
                "members must be a table of addresses by node ids",
            ),
            (
                "[cluster.members]\n1 = \"a:1\"\nx = \"b:1\"",
                3,
                "members must be a table of addresses",
            ),
            (
                "[cluster.members]\n1 = \"a:1\"",
                1,
                "a cluster has at least two nodes",
            ),
            (
                "listen = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"",
                2,
                "not TOML: duplicate key",
            ),
            ("workers = 1\nlisten =", 2, "not TOML:"),
        ] {
            let (at, message) = refused(text);
            assert!(message.starts_with(said), "{text}: {message}");
            assert_eq!(at, line, "{text}: {message}");
        }
    }
}
