//! The protections, each on top of those before it.

/// One rung of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rung {
    PlainLock,
    OwnDelete,
    LongerTtl,
    Watchdog,
    Redlock,
    PublishedSql,
    CheckedToken,
    UniqueKey,
    Receipts,
    Outbox,
}

/// A program that a rung runs on, beside what is in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Redis,
    Postgres,
}

impl Rung {
    pub(crate) const ALL: [Self; 10] = [
        Self::PlainLock,
        Self::OwnDelete,
        Self::LongerTtl,
        Self::Watchdog,
        Self::Redlock,
        Self::PublishedSql,
        Self::CheckedToken,
        Self::UniqueKey,
        Self::Receipts,
        Self::Outbox,
    ];

    pub(crate) const fn number(self) -> u8 {
        self as u8 + 1
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::PlainLock => "plain Redis lock",
            Self::OwnDelete => "compare-and-delete release",
            Self::LongerTtl => "longer TTL, 3 s to 30 s",
            Self::Watchdog => "watchdog extends the TTL",
            Self::Redlock => "Redlock over three masters",
            Self::PublishedSql => "published SQL transaction",
            Self::CheckedToken => "lease token, ledger checks it",
            Self::UniqueKey => "+ unique event key",
            Self::Receipts => "+ idempotent receipts",
            Self::Outbox => "+ outbox, idempotency key",
        }
    }

    /// What it is, in a sentence or two.
    pub(crate) const fn is(self) -> &'static str {
        match self {
            Self::PlainLock => {
                "SET NX PX, and DEL when the work is done. The worker looks under the lock whether the reward was paid, then \
                 inserts it into a table that no lock service can speak to."
            }
            Self::OwnDelete => {
                "The same, and the lock is deleted and extended by scripts that look first whose it is."
            }
            Self::LongerTtl => "The same, with ten times the time to live.",
            Self::Watchdog => {
                "As rung 2, and a task of the worker extends the lock after each third of its time to live."
            }
            Self::Redlock => "As rung 2, on a majority of three Redis masters, by the crate rslock.",
            Self::PublishedSql => {
                "A lease with a fencing token, and the transaction that is usually published for it: UPDATE the claim row \
                 WHERE fence_token < the new one, then INSERT .. ON CONFLICT DO NOTHING. On PostgreSQL."
            }
            Self::CheckedToken => {
                "The lease's token goes with each claim, and the ledger refuses what is below the highest that it has seen for the \
                 lease. No key is unique, and every try counts as a new one."
            }
            Self::UniqueKey => {
                "A player is granted an event once. Whoever asks again is told that the key is taken, as by an INSERT that fails."
            }
            Self::Receipts => {
                "Whoever asks again for the same thing, with authority, gets the first receipt, byte for byte."
            }
            Self::Outbox => {
                "Claim and intent to call the outside commit together; a publisher calls, with one idempotency key for each \
                 reward or payment attempt, and asks for the status where an answer is missing."
            }
        }
    }

    pub(crate) const fn needs(self) -> Option<Program> {
        match self {
            Self::PlainLock | Self::OwnDelete | Self::LongerTtl | Self::Watchdog | Self::Redlock => {
                Some(Program::Redis)
            }
            Self::PublishedSql => Some(Program::Postgres),
            Self::CheckedToken | Self::UniqueKey | Self::Receipts | Self::Outbox => None,
        }
    }
}

impl Program {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Postgres => "PostgreSQL",
        }
    }

    pub(crate) const fn how_to_get(self) -> &'static str {
        match self {
            Self::Redis => "on Debian: apt-get install redis-server",
            Self::Postgres => "on Debian: apt-get install postgresql",
        }
    }
}
