//! The commands that a script may call.

use crate::redis::{Arity, KeyVerb};

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// One of Redis's commands on keys.
    Key(KeyVerb),
    /// `SELECT database`: for the rest of the script.
    Select,
}

/// Each command with its number in the log: numbers are never reused or moved. What names a time of the wall clock
/// (`EXPIREAT`, `EXPIRETIME`, ..) is not among them: replicas know none.
const NUMBERS: [(Verb, u8); 26] = [
    (Verb::Key(KeyVerb::Get), 1),
    (Verb::Key(KeyVerb::Set), 2),
    (Verb::Key(KeyVerb::Del), 3),
    (Verb::Key(KeyVerb::Unlink), 4),
    (Verb::Key(KeyVerb::Exists), 5),
    (Verb::Key(KeyVerb::Ttl), 6),
    (Verb::Key(KeyVerb::Pttl), 7),
    (Verb::Key(KeyVerb::Expire), 8),
    (Verb::Key(KeyVerb::Pexpire), 9),
    (Verb::Key(KeyVerb::Persist), 10),
    (Verb::Key(KeyVerb::Mget), 11),
    (Verb::Key(KeyVerb::Mset), 12),
    (Verb::Key(KeyVerb::Msetnx), 13),
    (Verb::Key(KeyVerb::Getrange), 14),
    (Verb::Key(KeyVerb::Strlen), 15),
    (Verb::Key(KeyVerb::Setnx), 16),
    (Verb::Key(KeyVerb::Setex), 17),
    (Verb::Key(KeyVerb::Psetex), 18),
    (Verb::Key(KeyVerb::Getdel), 19),
    (Verb::Key(KeyVerb::Delex), 20),
    (Verb::Key(KeyVerb::Delifeq), 21),
    (Verb::Key(KeyVerb::Digest), 22),
    (Verb::Key(KeyVerb::Type), 23),
    (Verb::Key(KeyVerb::LeaseToken), 24),
    (Verb::Key(KeyVerb::Publish), 25),
    (Verb::Select, 26),
];

impl Verb {
    /// All commands.
    pub fn all() -> impl Iterator<Item = Self> {
        NUMBERS.into_iter().map(|(verb, _)| verb)
    }

    /// The command of that name, in letters of either case.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::all().find(|verb| name.eq_ignore_ascii_case(verb.name().as_bytes()))
    }

    /// The name in small letters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Key(verb) => verb.name(),
            Self::Select => "select",
        }
    }

    pub(super) fn number(self) -> u8 {
        let found = NUMBERS.iter().find(|(verb, _)| *verb == self);
        // A program is made of served commands alone, and no command has this number.
        found.map_or(0, |(_, number)| *number)
    }

    pub(super) fn numbered(number: u8) -> Option<Self> {
        let found = NUMBERS.iter().find(|(_, known)| *known == number);
        found.map(|(verb, _)| *verb)
    }

    /// Whether it takes so many arguments, its name not counted.
    #[must_use]
    pub fn takes(self, arguments: usize) -> bool {
        match self {
            Self::Key(verb) => verb.arity().takes(arguments),
            Self::Select => Arity::exactly(1).takes(arguments),
        }
    }

    /// Whether a read-only script may not call it.
    #[must_use]
    pub const fn writes(self) -> bool {
        match self {
            Self::Key(verb) => !verb.only_reads(),
            Self::Select => false,
        }
    }
}
