//! Every fixed bound of the ledger, with its unit and its reason.
//!
//! A mailbox depth stays with its actor, a default with its config field.

/// Longest resource name, in bytes: what `LEASE.*` takes as a lease name.
pub const RESOURCE_BYTES_MAX: usize = 1_024;
/// Longest reward event id, in bytes: room for every part of the typed form, small enough to index anywhere.
pub const EVENT_ID_BYTES_MAX: usize = 256;
/// Longest scope, achievement or kind of a typed event id, in bytes.
pub const EVENT_PART_BYTES_MAX: usize = 64;
/// Longest item name, in bytes.
pub const ITEM_BYTES_MAX: usize = 128;
/// Longest attempt id, in bytes: message ids of the usual brokers and a UUID as text (36) fit.
pub const ATTEMPT_ID_BYTES_MAX: usize = 128;
/// Longest order id, in bytes.
pub const ORDER_ID_BYTES_MAX: usize = 128;
/// Longest reason that an operator may give, and longest note that is kept of an outside server's words, in bytes.
pub const REASON_BYTES_MAX: usize = 256;

/// Requests that one group commits behind one barrier at the most. Past this a larger group no longer pays for the
/// latency of its first member.
pub const GROUP_REQUESTS_MAX: usize = 512;
/// Forgotten answers of refused attempts that one transaction clears at the most, in rows. Above
/// [`GROUP_REQUESTS_MAX`], so that clearing always keeps up with arrival.
pub const PRUNE_ROWS_MAX: usize = 1_024;
/// Rows that one step of an audit reads at the most, each joined with up to three others: claims wait for no more than
/// one step, some milliseconds.
pub const PAGE_ROWS_MAX: usize = 64;
/// As [`PAGE_ROWS_MAX`] where rows are asked from a server: the few round trips of a step, and the planning of its
/// statements, would cost more than 64 rows do. No claim waits for such a step; other reads do, some ten milliseconds. With
/// up to six others of [`RECORD_BYTES_MAX`] beside each row it holds 14 MiB at the very most, and twice that for a moment.
pub const DATABASE_PAGE_ROWS_MAX: usize = 512;
/// Violations that one audit report lists at the most; it counts the rest. A broken ledger must not fill memory.
pub const VIOLATIONS_KEPT_MAX: usize = 1_000;
/// Declared amounts that one set of expectations holds at the most.
pub const EXPECTATIONS_MAX: usize = 1_000_000;
/// Shares that publishers divide the players into. It is part of what is stored, so it never changes: enough for as many
/// publishers as one database feeds, few enough to hold a lease for each.
pub const PARTITIONS: u16 = 16;
/// Outbox rows that one publisher takes at once at the most: they are in memory together.
pub const LEASED_ROWS_MAX: usize = 1_024;
/// Rows of one player that a publisher takes at once at the most: they are delivered one after another within one lease.
pub const LEASED_ROWS_OF_PLAYER_MAX: usize = 16;
/// Claims of one batch at the most: one transaction must not hold up others for long.
pub const BATCH_CLAIMS_MAX: usize = 256;
/// Payment attempts of one order at the most. Only failed ones make room for another, so a loop must end somewhere.
pub const PAYMENT_ATTEMPTS_MAX: usize = 100;
/// Rows that one answer to a query holds at the most.
pub const QUERY_ROWS_MAX: usize = 500;
/// Rows that the memory store holds at the most, about ten a claim: some gigabytes.
pub const MEMORY_ROWS_MAX: usize = 20_000_000;

/// Bytes of one encoded record at the most: an attempt's answer with the longest resource, event and item, with
/// room to spare. Whatever is longer is corrupt, and is not read further.
pub const RECORD_BYTES_MAX: usize = 4_096;

const _: () = assert!(
    // scope, achievement, kind; `player-` and 20 digits; `v` and 10 digits; four colons
    3 * EVENT_PART_BYTES_MAX + 27 + 11 + 4 <= EVENT_ID_BYTES_MAX,
    "the longest typed event id must fit"
);
const _: () = assert!(
    RESOURCE_BYTES_MAX + EVENT_ID_BYTES_MAX + ITEM_BYTES_MAX + ATTEMPT_ID_BYTES_MAX + 128 <= RECORD_BYTES_MAX,
    "the longest receipt must fit"
);
const _: () = assert!(ATTEMPT_ID_BYTES_MAX <= 255, "keys write its length in one byte");
const _: () = assert!(PRUNE_ROWS_MAX > GROUP_REQUESTS_MAX);
