use crate::wire::{ErrorReply, ErrorWord};

/// A command on keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyVerb {
    /// `DEL key [key ..]`
    Del,
    /// `DELEX key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]`
    Delex,
    /// `DELIFEQ key value`
    Delifeq,
    /// `DIGEST key`
    Digest,
    /// `EXISTS key [key ..]`
    Exists,
    /// `EXPIRE key seconds [NX | XX | GT | LT]`
    Expire,
    /// `EXPIREAT key unix-seconds [NX | XX | GT | LT]`
    Expireat,
    /// `EXPIRETIME key`
    Expiretime,
    /// `GET key`
    Get,
    /// `GETDEL key`
    Getdel,
    /// `GETRANGE key start end`
    Getrange,
    /// `MGET key [key ..]`
    Mget,
    /// `MSET key value [key value ..]`
    Mset,
    /// `MSETNX key value [key value ..]`
    Msetnx,
    /// `PERSIST key`
    Persist,
    /// `PEXPIRE key milliseconds [NX | XX | GT | LT]`
    Pexpire,
    /// `PEXPIREAT key unix-milliseconds [NX | XX | GT | LT]`
    Pexpireat,
    /// `PEXPIRETIME key`
    Pexpiretime,
    /// `PSETEX key milliseconds value`
    Psetex,
    /// `PTTL key`
    Pttl,
    /// `PUBLISH channel message`
    Publish,
    /// `SET key value ..`
    Set,
    /// `SETEX key seconds value`
    Setex,
    /// `SETNX key value`
    Setnx,
    /// `STRLEN key`
    Strlen,
    /// `TTL key`
    Ttl,
    /// `TYPE key`
    Type,
    /// `UNLINK key [key ..]`
    Unlink,
    /// `LEASE.TOKEN key value`
    LeaseToken,
}

/// How many arguments a command takes, its name not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arity {
    /// At least.
    pub min: usize,
    /// At most.
    pub max: usize,
}

impl Arity {
    /// Exactly so many.
    #[must_use]
    pub const fn exactly(count: usize) -> Self {
        Self {
            min: count,
            max: count,
        }
    }

    /// So many or more.
    #[must_use]
    pub const fn at_least(min: usize) -> Self {
        Self { min, max: usize::MAX }
    }

    /// Whether it takes so many.
    #[must_use]
    pub const fn takes(self, count: usize) -> bool {
        self.min <= count && count <= self.max
    }
}

/// What is known of one command.
struct Entry(KeyVerb, &'static str, Arity);

const TABLE: [Entry; 29] = [
    Entry(KeyVerb::Del, "del", Arity::at_least(1)),
    Entry(KeyVerb::Delex, "delex", Arity::at_least(1)),
    Entry(KeyVerb::Delifeq, "delifeq", Arity::exactly(2)),
    Entry(KeyVerb::Digest, "digest", Arity::exactly(1)),
    Entry(KeyVerb::Exists, "exists", Arity::at_least(1)),
    Entry(KeyVerb::Expire, "expire", Arity::at_least(2)),
    Entry(KeyVerb::Expireat, "expireat", Arity::at_least(2)),
    Entry(KeyVerb::Expiretime, "expiretime", Arity::exactly(1)),
    Entry(KeyVerb::Get, "get", Arity::exactly(1)),
    Entry(KeyVerb::Getdel, "getdel", Arity::exactly(1)),
    Entry(KeyVerb::Getrange, "getrange", Arity::exactly(3)),
    Entry(KeyVerb::Mget, "mget", Arity::at_least(1)),
    Entry(KeyVerb::Mset, "mset", Arity::at_least(2)),
    Entry(KeyVerb::Msetnx, "msetnx", Arity::at_least(2)),
    Entry(KeyVerb::Persist, "persist", Arity::exactly(1)),
    Entry(KeyVerb::Pexpire, "pexpire", Arity::at_least(2)),
    Entry(KeyVerb::Pexpireat, "pexpireat", Arity::at_least(2)),
    Entry(KeyVerb::Pexpiretime, "pexpiretime", Arity::exactly(1)),
    Entry(KeyVerb::Psetex, "psetex", Arity::exactly(3)),
    Entry(KeyVerb::Pttl, "pttl", Arity::exactly(1)),
    Entry(KeyVerb::Publish, "publish", Arity::exactly(2)),
    Entry(KeyVerb::Set, "set", Arity::at_least(2)),
    Entry(KeyVerb::Setex, "setex", Arity::exactly(3)),
    Entry(KeyVerb::Setnx, "setnx", Arity::exactly(2)),
    Entry(KeyVerb::Strlen, "strlen", Arity::exactly(1)),
    Entry(KeyVerb::Ttl, "ttl", Arity::exactly(1)),
    Entry(KeyVerb::Type, "type", Arity::exactly(1)),
    Entry(KeyVerb::Unlink, "unlink", Arity::at_least(1)),
    Entry(KeyVerb::LeaseToken, "lease.token", Arity::exactly(2)),
];

impl KeyVerb {
    /// How many commands there are.
    pub const COUNT: usize = TABLE.len();

    /// The command of a name in letters of either case.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        let found = TABLE
            .iter()
            .find(|Entry(_, known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        found.map(|Entry(verb, ..)| *verb)
    }

    /// Its name in small letters.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().map_or("", |Entry(_, name, _)| name)
    }

    /// How many arguments it takes.
    #[must_use]
    pub fn arity(self) -> Arity {
        self.entry().map_or(Arity::exactly(0), |Entry(.., arity)| *arity)
    }

    /// Whether it only reads.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        matches!(
            self,
            Self::Digest
                | Self::Exists
                | Self::Expiretime
                | Self::Get
                | Self::Getrange
                | Self::Mget
                | Self::Pexpiretime
                | Self::Pttl
                | Self::Strlen
                | Self::Ttl
                | Self::Type
                | Self::LeaseToken
        )
    }

    fn entry(self) -> Option<&'static Entry> {
        TABLE.iter().find(|Entry(verb, ..)| *verb == self)
    }
}

/// The error for a command that takes another number of arguments.
#[must_use]
pub fn wrong_arity(name: &str) -> ErrorReply {
    ErrorReply::new(
        ErrorWord::Err,
        format_args!("wrong number of arguments for '{name}' command"),
    )
}
