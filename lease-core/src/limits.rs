//! Every fixed bound of the system, with its unit and its reason.
//!
//! Bounds that an operator may move are fields of [`crate::machine::Limits`]; a mailbox depth stays with its actor.

/// Longest lease name that `LEASE.*` takes, in bytes: enough for any path-like key, small enough to index.
pub const NAME_BYTES_MAX: usize = 1_024;
/// Longest owner that `LEASE.*` takes, in bytes.
pub const OWNER_BYTES_MAX: usize = 1_024;
/// Longest request id, in bytes: a UUID as text is 36.
pub const REQUEST_ID_BYTES_MAX: usize = 64;
/// Longest metadata of one lease, in bytes.
pub const METADATA_BYTES_MAX: usize = 4_096;
/// Longest reason that a forced release may give, in bytes.
pub const REASON_BYTES_MAX: usize = 256;
/// Longest Redis key or value that any configuration may allow, in bytes. A server's `--max-value` stays at or below.
pub const VALUE_BYTES_MAX: usize = 16 * 1_024 * 1_024;
/// Default of `--max-value`, in bytes: a Redis face will be used as a cache one day.
pub const VALUE_BYTES_DEFAULT: usize = 1_024 * 1_024;

/// Number of databases that `SELECT` may reach at the most.
pub const DATABASES_MAX: u8 = 64;

/// Highest token that the store issues: exact in a JavaScript number, and fits a signed 64-bit column.
pub const ISSUED_TOKEN_MAX: u64 = (1 << 53) - 1;
/// Highest token that anything here accepts from another issuer: fits a signed 64-bit column.
pub const FENCE_TOKEN_MAX: u64 = i64::MAX as u64;
/// Longest time to live, in milliseconds. Redis clients really ask for such values.
pub const TTL_MS_MAX: u64 = i64::MAX as u64;

/// Commands in one log entry at the most: past this, larger groups no longer pay for their latency.
pub const BATCH_COMMANDS_MAX: usize = 512;
/// Names in one renewal of many at the most.
pub const RENEW_MANY_MAX: usize = 1_024;
/// Keys that one command or transaction names at the most, where it may change any. At about a microsecond each this
/// keeps one entry within some milliseconds.
pub const KEYS_PER_CHANGE_MAX: usize = 4_096;
/// Commands of one transaction at the most.
pub const TRANSACTION_COMMANDS_MAX: usize = 1_024;
/// Bytes of one encoded log entry at the most: one batch, or a single largest command with room to spare.
pub const ENTRY_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// Due waits and leases that one entry ends at the most, in records. At about a microsecond each this keeps one
/// entry near a millisecond; while anything due remains the next tick follows at once.
pub const SWEEP_RECORDS_MAX: usize = 1_024;
/// Forgotten requests and endings that one entry clears at the most, in records. Above [`BATCH_COMMANDS_MAX`], so
/// that clearing always keeps up with arrival.
pub const PRUNE_RECORDS_MAX: usize = 2_048;

/// Bytes of names and operators' words in the memory of why tokens are over, at the most: past this its oldest are
/// dropped, so that `SET` and `DEL` of huge keys cannot fill a store. A million endings of usual names fit.
pub const ENDINGS_BYTES_MAX: usize = 256 * 1_024 * 1_024;

/// Answers to forwarded commands that are remembered for one node at the most. A node has no more under way than its
/// mailbox and one batch hold, a third of this; past it the oldest are forgotten.
pub const FORWARDED_ANSWERS_MAX: usize = 4_096;
/// Bytes of values in those answers at the most, for one node: past it the oldest are forgotten.
pub const FORWARDED_BYTES_MAX: usize = 16 * 1_024 * 1_024;
/// How long such an answer is remembered, in milliseconds of cluster time: several times what a caller waits for it.
pub const FORWARDED_MEMORY_MS: u64 = 10_000;
/// Longest text of a script, in bytes: a lock library's are some hundred, and 60 of the longest known would fit.
pub const SCRIPT_TEXT_BYTES_MAX: usize = 64 * 1_024;
/// Longest program of a script, in bytes: no text makes one that is ten times as long as itself.
pub const PROGRAM_BYTES_MAX: usize = 1_024 * 1_024;
/// Blocks and expressions within one another in a script at the most, each counted alone.
pub const SCRIPT_DEPTH_MAX: usize = 64;
/// Functions of one script at the most.
pub const SCRIPT_FUNCTIONS_MAX: usize = 64;
/// Blocks, expressions and calls that are carried out within one another at the most: some hundred kilobytes of stack.
pub const SCRIPT_NEST_MAX: usize = 160;
/// Steps of one run at the most: a step takes some 30 ns, so one script holds up the machine for a few milliseconds. A lock over a
/// thousand keys takes less.
pub const SCRIPT_STEPS_MAX: usize = 100_000;
/// Steps of all scripts of one log entry at the most, beside [`SCRIPT_STEPS_ALWAYS`] of each: an entry of the greediest
/// scripts holds up the machine as long as some twenty of them would alone.
pub const SCRIPT_STEPS_PER_ENTRY_MAX: usize = 300_000;
/// Steps that a script may take whatever the other scripts of its entry have taken: a lock of one key takes a hundred, one
/// over a dozen keys at most two thousand and some hundred.
pub const SCRIPT_STEPS_ALWAYS: usize = 3_000;
/// Bytes of texts and tables that one run makes at the most. Values that are only read and stored are shared.
pub const SCRIPT_BYTES_MAX: usize = 4 * 1_024 * 1_024;
/// Bytes of one script's reply at the most: the longest value, with room to spare.
pub const SCRIPT_REPLY_BYTES_MAX: usize = 2 * VALUE_BYTES_MAX;
/// Tables within one another in a script's reply at the most: as many as a reply has.
pub const SCRIPT_REPLY_DEPTH_MAX: usize = REPLY_DEPTH_MAX;
/// Scripts that are held at once at the most: past it the one that was used longest ago goes, and its callers load it
/// again, as they do with a Redis that was restarted.
pub const SCRIPTS_HELD_MAX: usize = 1_024;
/// Bytes of the programs of all scripts that are held, at the most.
pub const SCRIPTS_HELD_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// How long a wait whose connection is gone keeps its place for the caller's retry, in milliseconds.
pub const DETACHED_WAIT_MS: u64 = 2_000;

/// Longest inline request, and longest line with a count or a length, in bytes: as Redis.
pub const INLINE_BYTES_MAX: usize = 64 * 1_024;
/// Arguments of one request at the most: every key of a large `MGET`, and a bounded table of spans (8 bytes each).
pub const REQUEST_ARGUMENTS_MAX: usize = 65_536;
/// Arguments of one request before `AUTH` at the most: as Redis, enough for `HELLO 3 AUTH user password SETNAME name`.
pub const UNAUTHENTICATED_ARGUMENTS_MAX: usize = 10;
/// Longest argument before `AUTH`, in bytes: as Redis.
pub const UNAUTHENTICATED_BULK_BYTES_MAX: usize = 16 * 1_024;
/// How much longer than the longest value an argument may be, in bytes: a value that is somewhat too long shall meet
/// a clear refusal, and not a closed connection.
pub const BULK_SLACK_BYTES: usize = 64 * 1_024;
/// One request at the most, in bytes with its framing. Below 2^32, since spans are 32 bits.
pub const REQUEST_BYTES_MAX: usize = 64 * 1_024 * 1_024;
/// One read from a socket, in bytes: some 300 small requests, and all that an idle connection keeps.
pub const READ_BYTES: usize = 16 * 1_024;
/// A connection's read buffer that has grown above this is given back once it is empty, in bytes.
pub const BUFFER_KEEP_BYTES: usize = 64 * 1_024;

/// Longest pattern of `KEYS`, `SCAN`, `PSUBSCRIBE` and `PUBSUB CHANNELS`, in bytes: as the longest name of a lease. What
/// a comparison takes grows with the pattern times the text.
pub const PATTERN_BYTES_MAX: usize = 1_024;
/// Longest key or channel that is compared with every kind of pattern, in bytes: a longer one only with those that have
/// no `*` but at their end, which takes no more than to walk through it.
pub const PATTERN_TEXT_BYTES_MAX: usize = 1_024;

/// Longest error text that is sent, in bytes: room for a cause and a remedy, never for a whole value.
pub const ERROR_TEXT_BYTES_MAX: usize = 1_024;
/// Arrays within arrays of one reply at the most. Ours need two levels; a deeper one would only spend stack.
pub const REPLY_DEPTH_MAX: usize = 8;
/// Elements of one reply at the most, at all levels: the largest listing has 6,000.
pub const REPLY_ELEMENTS_MAX: usize = 65_536;
/// Bytes of values that one command reads at the most, and all reads of one transaction together: two of the longest. A
/// key may be named many times in one request, and each time its value goes into the reply.
pub const REPLY_VALUES_BYTES_MAX: usize = 2 * VALUE_BYTES_MAX;
/// One reply at the most, in bytes with its framing.
pub const REPLY_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// Longest wait that `LEASE.ACQUIRE` takes, in milliseconds: as for a time to live.
pub const WAIT_MS_MAX: u64 = i64::MAX as u64;
/// Leases in one answer of `LEASE.LIST` at the most: one page must not hold up other callers.
pub const LIST_COUNT_MAX: u64 = 1_000;
/// Records that one page of a listing looks at, at the most: a rare prefix must not hold up other callers either.
pub const LIST_RECORDS_MAX: u32 = 10_000;
/// Events in one answer of `LEASE.HISTORY` at the most.
pub const HISTORY_COUNT_MAX: u64 = 1_000;

const _: () = assert!(NAME_BYTES_MAX <= VALUE_BYTES_MAX && OWNER_BYTES_MAX <= VALUE_BYTES_MAX);
const _: () = assert!(VALUE_BYTES_DEFAULT <= VALUE_BYTES_MAX);
const _: () = assert!(
    2 * VALUE_BYTES_MAX < ENTRY_BYTES_MAX,
    "the largest SET must fit one entry"
);
const _: () = assert!(
    FORWARDED_BYTES_MAX + 256 * FORWARDED_ANSWERS_MAX < ENTRY_BYTES_MAX,
    "a session is one item of a snapshot"
);
const _: () = assert!(PROGRAM_BYTES_MAX <= SCRIPTS_HELD_BYTES_MAX && PROGRAM_BYTES_MAX < ENTRY_BYTES_MAX / 2);
const _: () = assert!(
    SCRIPT_REPLY_BYTES_MAX < ENTRY_BYTES_MAX,
    "nodes send each other what scripts answer"
);
const _: () =
    assert!(SCRIPT_STEPS_ALWAYS < SCRIPT_STEPS_MAX && SCRIPT_STEPS_MAX <= SCRIPT_STEPS_PER_ENTRY_MAX);
const _: () = assert!(NAME_BYTES_MAX <= PATTERN_TEXT_BYTES_MAX && NAME_BYTES_MAX <= PATTERN_BYTES_MAX);
const _: () = assert!(ISSUED_TOKEN_MAX < FENCE_TOKEN_MAX);
const _: () = assert!(PRUNE_RECORDS_MAX > BATCH_COMMANDS_MAX);
const _: () =
    assert!(REQUEST_BYTES_MAX < u32::MAX as usize && VALUE_BYTES_MAX + BULK_SLACK_BYTES < REQUEST_BYTES_MAX);
const _: () = assert!(UNAUTHENTICATED_ARGUMENTS_MAX < REQUEST_ARGUMENTS_MAX);
const _: () = assert!(READ_BYTES <= BUFFER_KEEP_BYTES && ERROR_TEXT_BYTES_MAX < INLINE_BYTES_MAX);
const _: () = assert!(VALUE_BYTES_MAX + BULK_SLACK_BYTES < REPLY_BYTES_MAX);
const _: () = assert!(
    REPLY_VALUES_BYTES_MAX + 64 * REPLY_ELEMENTS_MAX < REPLY_BYTES_MAX,
    "a reply of values has room for its framing"
);
