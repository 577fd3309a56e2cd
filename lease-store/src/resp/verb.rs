//! The commands that are served, beside `LEASE.*`: their names, and how many arguments each takes.

use lease_core::wire::{ErrorWord, LeaseVerb, Reply, Request};

/// Bytes of a name or an argument that an error text repeats, as Redis does.
const SHOWN_BYTES_MAX: usize = 128;

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Lease(LeaseVerb),
    Auth,
    Client,
    Command,
    Del,
    Echo,
    Exists,
    Expire,
    Get,
    Hello,
    Info,
    Persist,
    Pexpire,
    Ping,
    Pttl,
    Quit,
    Reset,
    Select,
    Set,
    Ttl,
    Unlink,
}

/// How many arguments a command takes, its name not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arity {
    min: usize,
    max: usize,
}

const ANY: usize = usize::MAX;

/// The commands by name; `LEASE.*` has a table of its own.
const TABLE: [(&str, Verb, Arity); 20] = [
    ("auth", Verb::Auth, Arity { min: 1, max: ANY }),
    ("client", Verb::Client, Arity { min: 1, max: ANY }),
    ("command", Verb::Command, Arity { min: 0, max: ANY }),
    ("del", Verb::Del, Arity { min: 1, max: ANY }),
    ("echo", Verb::Echo, Arity { min: 1, max: 1 }),
    ("exists", Verb::Exists, Arity { min: 1, max: ANY }),
    ("expire", Verb::Expire, Arity { min: 2, max: ANY }),
    ("get", Verb::Get, Arity { min: 1, max: 1 }),
    ("hello", Verb::Hello, Arity { min: 0, max: ANY }),
    ("info", Verb::Info, Arity { min: 0, max: ANY }),
    ("persist", Verb::Persist, Arity { min: 1, max: 1 }),
    ("pexpire", Verb::Pexpire, Arity { min: 2, max: ANY }),
    ("ping", Verb::Ping, Arity { min: 0, max: 1 }),
    ("pttl", Verb::Pttl, Arity { min: 1, max: 1 }),
    ("quit", Verb::Quit, Arity { min: 0, max: ANY }),
    ("reset", Verb::Reset, Arity { min: 0, max: 0 }),
    ("select", Verb::Select, Arity { min: 1, max: 1 }),
    ("set", Verb::Set, Arity { min: 2, max: ANY }),
    ("ttl", Verb::Ttl, Arity { min: 1, max: 1 }),
    ("unlink", Verb::Unlink, Arity { min: 1, max: ANY }),
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
        let found = TABLE
            .iter()
            .find(|(known, _, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        let Some((known, verb, arity)) = found else {
            return Err(unknown_command(request));
        };
        let arguments = request.len().saturating_sub(1);
        if (arity.min..=arity.max).contains(&arguments) {
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

/// How many commands are served.
pub(super) const fn count() -> usize {
    TABLE.len() + LeaseVerb::ALL.len()
}

/// The error for a command that takes another number of arguments.
pub(super) fn wrong_arity(name: &str) -> Reply {
    Reply::error(
        ErrorWord::Err,
        format_args!("wrong number of arguments for '{name}' command"),
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
