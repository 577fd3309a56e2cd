//! The commands that are served, beside `LEASE.*` and those on keys: their names, and how many arguments each takes.

use lease_core::machine::ScriptAccess;
use lease_core::redis::{self, Arity, KeyVerb};
use lease_core::wire::{ErrorWord, LeaseVerb, Reply, Request};

use super::scripts::Naming;

/// Bytes of a name or an argument that an error text repeats, as Redis does.
const SHOWN_BYTES_MAX: usize = 128;

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Lease(LeaseVerb),
    Key(KeyVerb),
    Ask(Question),
    Dbsize,
    Discard,
    Eval(Naming, ScriptAccess),
    Exec,
    Flushall,
    Flushdb,
    Keys,
    Multi,
    Psubscribe,
    Punsubscribe,
    Quit,
    Reset,
    Scan,
    Script,
    Subscribe,
    Unsubscribe,
    Watch,
}

/// What the connection answers by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Auth,
    Client,
    Cluster,
    Command,
    Config,
    Echo,
    Function,
    Hello,
    Info,
    Ping,
    Pubsub,
    Select,
    Time,
    Unwatch,
    Wait,
}

/// The commands by name; `LEASE.*` and those on keys have tables of their own.
const TABLE: [(&str, Verb, Arity); 35] = [
    ("auth", Verb::Ask(Question::Auth), Arity::at_least(1)),
    ("client", Verb::Ask(Question::Client), Arity::at_least(1)),
    ("cluster", Verb::Ask(Question::Cluster), Arity::at_least(1)),
    ("command", Verb::Ask(Question::Command), Arity::at_least(0)),
    ("config", Verb::Ask(Question::Config), Arity::at_least(1)),
    ("dbsize", Verb::Dbsize, Arity::exactly(0)),
    ("discard", Verb::Discard, Arity::exactly(0)),
    ("echo", Verb::Ask(Question::Echo), Arity::exactly(1)),
    (
        "eval",
        Verb::Eval(Naming::Text, ScriptAccess::ReadWrite),
        Arity::at_least(2),
    ),
    (
        "eval_ro",
        Verb::Eval(Naming::Text, ScriptAccess::ReadOnly),
        Arity::at_least(2),
    ),
    (
        "evalsha",
        Verb::Eval(Naming::Digest, ScriptAccess::ReadWrite),
        Arity::at_least(2),
    ),
    (
        "evalsha_ro",
        Verb::Eval(Naming::Digest, ScriptAccess::ReadOnly),
        Arity::at_least(2),
    ),
    ("exec", Verb::Exec, Arity::exactly(0)),
    ("flushall", Verb::Flushall, Arity::at_least(0)),
    ("flushdb", Verb::Flushdb, Arity::at_least(0)),
    ("function", Verb::Ask(Question::Function), Arity::at_least(1)),
    ("hello", Verb::Ask(Question::Hello), Arity::at_least(0)),
    ("info", Verb::Ask(Question::Info), Arity::at_least(0)),
    ("keys", Verb::Keys, Arity::exactly(1)),
    ("multi", Verb::Multi, Arity::exactly(0)),
    ("ping", Verb::Ask(Question::Ping), Arity { min: 0, max: 1 }),
    ("psubscribe", Verb::Psubscribe, Arity::at_least(1)),
    ("pubsub", Verb::Ask(Question::Pubsub), Arity::at_least(1)),
    ("punsubscribe", Verb::Punsubscribe, Arity::at_least(0)),
    ("quit", Verb::Quit, Arity::at_least(0)),
    ("reset", Verb::Reset, Arity::exactly(0)),
    ("scan", Verb::Scan, Arity::at_least(1)),
    ("script", Verb::Script, Arity::at_least(1)),
    ("select", Verb::Ask(Question::Select), Arity::exactly(1)),
    ("subscribe", Verb::Subscribe, Arity::at_least(1)),
    ("time", Verb::Ask(Question::Time), Arity::exactly(0)),
    ("unsubscribe", Verb::Unsubscribe, Arity::at_least(0)),
    ("unwatch", Verb::Ask(Question::Unwatch), Arity::exactly(0)),
    ("wait", Verb::Ask(Question::Wait), Arity::exactly(2)),
    ("watch", Verb::Watch, Arity::at_least(1)),
];

/// What a transaction does with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InTransaction {
    /// It is done at `EXEC`.
    Queued(Part),
    /// It concerns the transaction itself, or ends the connection.
    AtOnce,
    /// It cannot be part of one.
    Refused,
}

/// What may be part of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Key(KeyVerb),
    Ask(Question),
}

impl Verb {
    /// The command that a request names, with a number of arguments that it takes.
    ///
    /// # Errors
    /// The reply that says what is wrong. `LEASE.*` counts its arguments where it reads them.
    pub(super) fn of(request: &Request) -> Result<Self, Reply> {
        let name = request.command();
        let arguments = request.len().saturating_sub(1);
        if let Some(lease) = LeaseVerb::parse(name) {
            return Ok(Self::Lease(lease));
        }
        if let Some(key) = KeyVerb::parse(name) {
            return if key.arity().takes(arguments) {
                Ok(Self::Key(key))
            } else {
                Err(wrong_arity(key.name()))
            };
        }
        let found = TABLE
            .iter()
            .find(|(known, _, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        let Some((known, verb, arity)) = found else {
            return Err(unknown_command(request));
        };
        if arity.takes(arguments) {
            Ok(*verb)
        } else {
            Err(wrong_arity(known))
        }
    }

    /// Whether it may be sent before the password was shown.
    pub(super) const fn needs_no_password(self) -> bool {
        matches!(
            self,
            Self::Ask(Question::Auth | Question::Hello) | Self::Quit | Self::Reset
        )
    }

    /// Whether a RESP2 connection may send it while it is subscribed: there, answers and messages look alike.
    pub(super) const fn goes_with_subscriptions(self) -> bool {
        matches!(
            self,
            Self::Subscribe
                | Self::Unsubscribe
                | Self::Psubscribe
                | Self::Punsubscribe
                | Self::Ask(Question::Ping)
                | Self::Quit
                | Self::Reset
        )
    }

    /// What a transaction does with it.
    pub(super) const fn in_transaction(self) -> InTransaction {
        match self {
            Self::Key(verb) => InTransaction::Queued(Part::Key(verb)),
            Self::Lease(LeaseVerb::Token) => InTransaction::Queued(Part::Key(KeyVerb::LeaseToken)),
            Self::Ask(Question::Auth | Question::Hello | Question::Pubsub) => InTransaction::Refused,
            Self::Ask(question) => InTransaction::Queued(Part::Ask(question)),
            Self::Discard | Self::Exec | Self::Multi | Self::Quit | Self::Reset | Self::Watch => {
                InTransaction::AtOnce
            }
            Self::Lease(_)
            | Self::Dbsize
            | Self::Eval(..)
            | Self::Flushall
            | Self::Flushdb
            | Self::Keys
            | Self::Psubscribe
            | Self::Punsubscribe
            | Self::Scan
            | Self::Script
            | Self::Subscribe
            | Self::Unsubscribe => InTransaction::Refused,
        }
    }
}

/// `LEASE.TOKEN`, which stands in two tables.
const COUNTED_TWICE: usize = 1;

/// How many commands are served.
pub(super) const fn count() -> usize {
    TABLE.len() + LeaseVerb::ALL.len() + KeyVerb::COUNT - COUNTED_TWICE
}

/// The error for a command that takes another number of arguments.
pub(super) fn wrong_arity(name: &str) -> Reply {
    Reply::Error(redis::wrong_arity(name))
}

/// The error for a word that stands behind a command and means nothing to it.
pub(super) fn unknown_subcommand(command: &str, subcommand: &[u8]) -> Reply {
    let shown = String::from_utf8_lossy(subcommand.get(..SHOWN_BYTES_MAX).unwrap_or(subcommand));
    let command = command.to_ascii_uppercase();
    Reply::error(
        ErrorWord::Err,
        format_args!("unknown subcommand '{shown}'. Try {command} HELP."),
    )
}

/// The text is matched by several clients.
fn unknown_command(request: &Request) -> Reply {
    let shown =
        |bytes: &[u8]| String::from_utf8_lossy(bytes.get(..SHOWN_BYTES_MAX).unwrap_or(bytes)).into_owned();
    let mut arguments = String::new();
    for argument in request.args().skip(1) {
        if arguments.len() >= SHOWN_BYTES_MAX {
            break;
        }
        arguments.push_str(&format!("'{}' ", shown(argument)));
    }
    let name = shown(request.command());
    Reply::error(
        ErrorWord::Err,
        format_args!("unknown command '{name}', with args beginning with: {arguments}"),
    )
}
