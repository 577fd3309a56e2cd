//! Random entries over few names, owners, requests and callers, so that they meet each other often.

use proptest::prelude::*;
use proptest::sample::select;

use super::words::{key, owner, parked_at, request, ttl};
use crate::limits::ISSUED_TOKEN_MAX;
use crate::machine::{
    Acquire, Command, KeyCommand, LeaseKey, Limits, MachineVersion, ManyCondition, ReleaseCause, Renewal,
    Set, SetCondition, SetExpiry, Sighting, TtlCondition, Wait, Watched, digest,
};
use crate::types::{
    Attachment, Database, FenceToken, Metadata, OwnerId, RequestId, SharedBytes, Timestamp, Ttl,
};

/// An entry: how much later than the one before, and its commands. Tokens in it count backwards from the last one
/// issued, so that a shorter history still means the same by them.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) later_ms: i64,
    pub(super) commands: Vec<Command>,
}

impl Step {
    /// The commands, with tokens as they are after `last` was issued.
    pub(super) fn commands(&self, last: u64) -> Vec<Command> {
        let real = |back: FenceToken| {
            let number = last.saturating_sub(back.get().saturating_sub(1)).max(1);
            FenceToken::new(number).unwrap()
        };
        let mut commands = self.commands.clone();
        for command in &mut commands {
            match command {
                Command::Renew(renewal) => renewal.token = real(renewal.token),
                Command::Release { token, .. } => *token = real(*token),
                Command::RenewMany(renewals) => {
                    for renewal in renewals {
                        renewal.token = real(renewal.token);
                    }
                }
                Command::Transaction { watched, .. } => {
                    for seen in watched.iter_mut().filter_map(|watched| watched.seen.as_mut()) {
                        seen.token = real(seen.token);
                    }
                }
                _ => {}
            }
        }
        commands
    }

    /// The time of this entry, after one at `now`. A stamp may lie behind; so far ahead that time saturates is rare.
    pub(super) fn stamp(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.later_ms)
    }
}

pub(super) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let later = prop_oneof![
        4 => Just(0_i64),
        6 => 1..12_i64,
        2 => 12..100_i64,
        1 => Just(1_999_i64),
        1 => Just(2_000_i64),
        1 => Just(60_001_i64),
        1 => -20..0_i64,
    ];
    let step = (later, prop::collection::vec(command(), 1..4));
    let step = step.prop_map(|(later_ms, commands)| Step { later_ms, commands });
    prop::collection::vec(step, 1..most)
}

/// How a store begins: usually with a floor, rarely near the end of the tokens.
pub(super) fn beginning() -> impl Strategy<Value = Vec<Command>> {
    let floor = |floor| vec![Command::RaiseTokenFloor { floor }];
    prop_oneof![
        12 => Just(floor(0)),
        2 => Just(floor(ISSUED_TOKEN_MAX - 4)),
        1 => Just(Vec::new()),
    ]
}

pub(super) fn any_key() -> impl Strategy<Value = LeaseKey> {
    let other_database = LeaseKey::new(Database::new(3).unwrap(), key("a").name);
    select(vec![key("a"), key("a"), key("lock:b"), other_database])
}

pub(super) fn all_keys() -> [LeaseKey; 3] {
    let other_database = LeaseKey::new(Database::new(3).unwrap(), key("a").name);
    [key("a"), key("lock:b"), other_database]
}

fn any_owner() -> impl Strategy<Value = OwnerId> {
    select(vec![owner("x"), owner("yy"), owner("zzz")])
}

fn any_request() -> impl Strategy<Value = RequestId> {
    select(vec![request("r1"), request("r2")])
}

fn any_ttl() -> impl Strategy<Value = Ttl> {
    select(vec![1, 5, 10, 10, 20, 50, 5_000, i64::MAX as u64]).prop_map(ttl)
}

fn any_token() -> impl Strategy<Value = FenceToken> {
    select(vec![1, 1, 1, 2, 2, 3, 5]).prop_map(|back| FenceToken::new(back).unwrap())
}

fn any_attachment() -> impl Strategy<Value = Attachment> {
    (1..3_u64, 1..3_u64, 0..5_u64)
        .prop_map(|(node, incarnation, number)| parked_at(node, incarnation, number))
}

fn any_wait() -> impl Strategy<Value = Wait> {
    let for_ms = select(vec![0, 1, 5, 10, 30, 100, 5_000, u64::MAX]);
    (for_ms, any_attachment()).prop_map(|(for_ms, attachment)| Wait { for_ms, attachment })
}

fn any_metadata() -> impl Strategy<Value = Metadata> {
    select(vec!["", "host-1"]).prop_map(|text| Metadata::new(text).unwrap())
}

fn acquire() -> impl Strategy<Value = Acquire> {
    (
        any_key(),
        any_owner(),
        any_ttl(),
        prop::option::of(any_wait()),
        prop::option::of(any_request()),
        prop::option::weighted(0.2, any_metadata()),
    )
        .prop_map(|(key, owner, ttl, wait, request, metadata)| Acquire {
            key,
            owner,
            ttl,
            wait,
            request,
            metadata,
        })
}

fn any_renewal() -> impl Strategy<Value = Renewal> {
    (any_key(), any_token(), prop::option::of(any_ttl())).prop_map(|(key, token, ttl)| Renewal {
        key,
        token,
        ttl,
    })
}

fn any_set() -> impl Strategy<Value = Set> {
    let expiry = prop_oneof![
        1 => Just(SetExpiry::Never),
        3 => any_ttl().prop_map(SetExpiry::In),
        1 => Just(SetExpiry::Keep),
        1 => Just(SetExpiry::Over),
    ];
    (any_key(), any_owner(), expiry, any_condition()).prop_map(|(key, value, expiry, condition)| Set {
        key,
        value,
        expiry,
        condition,
    })
}

fn any_condition() -> impl Strategy<Value = SetCondition> {
    let any_digest = || any_owner().prop_map(|owner| digest(owner.as_bytes()));
    prop_oneof![
        Just(SetCondition::Always),
        Just(SetCondition::IfAbsent),
        Just(SetCondition::IfPresent),
        any_owner().prop_map(SetCondition::IfEqual),
        any_owner().prop_map(SetCondition::IfNotEqual),
        any_digest().prop_map(SetCondition::IfDigestEqual),
        any_digest().prop_map(SetCondition::IfDigestNotEqual),
    ]
}

fn key_command() -> impl Strategy<Value = KeyCommand> {
    let keys = || prop::collection::vec(any_key(), 0..4);
    let many = select(vec![ManyCondition::Always, ManyCondition::IfNoneHeld]);
    let pairs = prop::collection::vec((any_key(), any_owner()), 0..4);
    let words = || select(vec!["", "news"]).prop_map(SharedBytes::from);
    prop_oneof![
        3 => any_set().prop_map(KeyCommand::Set),
        2 => (any_key(), prop::option::of(any_ttl()), any_ttl_condition())
            .prop_map(|(key, ttl, condition)| KeyCommand::SetTtl { key, ttl, condition }),
        2 => keys().prop_map(|keys| KeyCommand::Delete { keys }),
        2 => (any_key(), any_condition())
            .prop_map(|(key, condition)| KeyCommand::DeleteIf { key, condition }),
        1 => any_key().prop_map(|key| KeyCommand::Take { key }),
        2 => (pairs, many).prop_map(|(pairs, condition)| KeyCommand::SetMany { pairs, condition }),
        2 => (any_key(), any_ttl_condition())
            .prop_map(|(key, condition)| KeyCommand::ExpireNow { key, condition }),
        1 => keys().prop_map(|keys| KeyCommand::Look { keys }),
        1 => (words(), words())
            .prop_map(|(channel, message)| KeyCommand::Publish { channel, message }),
    ]
}

fn transaction() -> impl Strategy<Value = Command> {
    let sighting = (
        any_token(),
        select(vec![5, 10, 20, u64::MAX]).prop_map(Timestamp::from_millis),
    )
        .prop_map(|(token, deadline)| Sighting { token, deadline });
    let watched = (any_key(), prop::option::of(sighting)).prop_map(|(key, seen)| Watched { key, seen });
    let watched = prop::collection::vec(watched, 0..2);
    (watched, prop::collection::vec(key_command(), 0..5))
        .prop_map(|(watched, commands)| Command::Transaction { watched, commands })
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let few = || select(vec![0_u64, 1, 2, 3, 1_000]);
    (
        few(),
        select(vec![0, 20, 60, 1_000_000]),
        few(),
        few(),
        few(),
        few(),
        select(vec![0, 5, 50, 60_000, u64::MAX]),
    )
        .prop_map(
            |(leases, bytes, waiters, per_name, requests, endings, memory)| Limits {
                leases_max: leases,
                bytes_max: bytes,
                waiters_max: waiters,
                waiters_per_name_max: per_name,
                requests_max: requests,
                request_memory_ms: memory,
                endings_max: endings,
            },
        )
}

/// Any command of the log, each kind often enough.
pub(super) fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        24 => acquire().prop_map(Command::Acquire),
        8 => any_renewal().prop_map(Command::Renew),
        5 => any_set().prop_map(Command::Set),
        5 => key_command().prop_map(Command::Key),
        4 => transaction(),
        6 => releases(),
        6 => redis_overrides(),
        6 => departures(),
        3 => settings(),
        4 => Just(Command::Tick),
    ]
}

fn releases() -> impl Strategy<Value = Command> {
    let cause = select(vec![ReleaseCause::Holder, ReleaseCause::Orphaned]);
    prop_oneof![
        3 => (any_key(), any_token(), cause)
            .prop_map(|(key, token, cause)| Command::Release { key, token, cause }),
        1 => (any_key(), any_owner()).prop_map(|(key, owner)| Command::ReleaseByOwner { key, owner }),
        3 => (any_key(), any_owner(), any_request())
            .prop_map(|(key, owner, request)| Command::Cancel { key, owner, request }),
    ]
}

fn redis_overrides() -> impl Strategy<Value = Command> {
    let reason = select(vec!["", "stuck"]).prop_map(SharedBytes::from);
    prop_oneof![
        3 => (any_key(), prop::option::of(any_ttl()), any_ttl_condition())
            .prop_map(|(key, ttl, condition)| Command::SetTtl { key, ttl, condition }),
        1 => any_key().prop_map(|key| Command::Delete { key }),
        1 => (any_key(), reason).prop_map(|(key, reason)| Command::Force { key, reason }),
        1 => any_key().prop_map(|key| Command::Touch { key }),
        1 => prop::collection::vec(any_renewal(), 0..4).prop_map(Command::RenewMany),
    ]
}

fn any_ttl_condition() -> impl Strategy<Value = TtlCondition> {
    select(vec![
        TtlCondition::Always,
        TtlCondition::IfPersistent,
        TtlCondition::IfExpiring,
        TtlCondition::IfLater,
        TtlCondition::IfEarlier,
        TtlCondition::IfExpiringAndEarlier,
    ])
}

fn departures() -> impl Strategy<Value = Command> {
    prop_oneof![
        4 => any_attachment().prop_map(|attachment| Command::Detach { attachment }),
        1 => (1..3_u64, 0..3_u64)
            .prop_map(|(node, incarnation)| Command::NodeStarted { node, incarnation }),
        1 => (1..3_u64, select(vec![0, 1, 2, u64::MAX]))
            .prop_map(|(node, incarnation)| Command::NodeLost { node, incarnation }),
    ]
}

fn settings() -> impl Strategy<Value = Command> {
    prop_oneof![
        4 => any_limits().prop_map(Command::SetLimits),
        2 => Just(Command::SetLimits(Limits::default())),
        1 => select(vec![0, 7, ISSUED_TOKEN_MAX - 3]).prop_map(|floor| Command::RaiseTokenFloor { floor }),
        1 => (0..2_u16).prop_map(|number| Command::Activate { version: MachineVersion::new(number) }),
    ]
}
