//! The commands that are served, beside `LEASE.*`: their names, and how many arguments each takes.

use lease_core::redis::{self, Arity, KeyVerb};
use lease_core::wire::{ErrorWord, LeaseVerb, Reply, Request};

/// Bytes of a name or an argument that an error text repeats, as Redis does.
const SHOWN_BYTES_MAX: usize = 128;

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Lease(LeaseVerb),
    Key(KeyVerb),
    Auth,
    Client,
    Command,
    Echo,
    Hello,
    Info,
    Ping,
    Quit,
    Reset,
    Select,
}

/// The commands by name; `LEASE.*` has a table of its own.
const TABLE: [(&str, Verb, Arity); 10] = [
    ("auth", Verb::Auth, Arity::at_least(1)),
    ("client", Verb::Client, Arity::at_least(1)),
    ("command", Verb::Command, Arity::at_least(0)),
    ("echo", Verb::Echo, Arity::exactly(1)),
    ("hello", Verb::Hello, Arity::at_least(0)),
    ("info", Verb::Info, Arity::at_least(0)),
    ("ping", Verb::Ping, Arity { min: 0, max: 1 }),
    ("quit", Verb::Quit, Arity::at_least(0)),
    ("reset", Verb::Reset, Arity::exactly(0)),
    ("select", Verb::Select, Arity::exactly(1)),
];

impl Verb {
    /// The command that a request names, with a number of arguments that it takes.
    ///
    /// # Errors
    /// The reply that says what is wrong. `LEASE.*` counts its arguments where it reads them.
    pub(super) fn of(request: &Request) -> Result<Self, Reply> {
        let name = request.command();
        if let Some(lease) = LeaseVerb::parse(name) {
            return Ok(Self::Lease(lease));
        }
        if let Some(key) = KeyVerb::parse(name) {
            return Ok(Self::Key(key));
        }
        let found = TABLE
            .iter()
            .find(|(known, _, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        let Some((known, verb, arity)) = found else {
            return Err(unknown_command(request));
        };
        let arguments = request.len().saturating_sub(1);
        if arity.takes(arguments) {
            Ok(*verb)
        } else {
            Err(wrong_arity(known))
        }
    }

    /// Whether it may be sent before the password was shown.
    pub(super) const fn needs_no_password(self) -> bool {
        matches!(self, Self::Auth | Self::Hello | Self::Quit | Self::Reset)
    }
}

/// `LEASE.TOKEN`, which is among both.
const LEASE_KEY_VERBS: usize = 1;

/// How many commands are served.
pub(super) const fn count() -> usize {
    TABLE.len() + LeaseVerb::ALL.len() + KeyVerb::COUNT - LEASE_KEY_VERBS
}

/// The error for a command that takes another number of arguments.
pub(super) fn wrong_arity(name: &str) -> Reply {
    Reply::Error(redis::wrong_arity(name))
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
