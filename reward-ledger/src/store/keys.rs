//! The keys of stored rows. All kinds live in one ordered key space, so that one batch over it is one transaction.
//!
//! | first byte | row | rest of the key |
//! |---|---|---|
//! | `m` | head, format | name |
//! | `f` | fence | resource |
//! | `c` | claim | player, event |
//! | `l` | ledger | player, claim id |
//! | `o` | outbox | claim id |
//! | `a` | attempt | length of the attempt id (1 byte), attempt id, token (0: unfenced) |
//! | `r` | refusal, by age | time, attempt id, token |
//! | `q` | open outbox row, by player | player, claim id |
//! | `h` | player with open outbox rows, by when the first is due | partition (2 bytes), time, player |
//! | `d` | dead outbox row | claim id |
//! | `v` | reversal | claim id of the claim |
//! | `e` | claim, by event | event, a zero byte, claim id |
//! | `t` | claim, by token | length of the resource (2 bytes), resource, token, claim id |
//! | `w` | claim, by time | time, claim id |
//! | `p` | payment attempt | attempt id |
//! | `n` | payment attempt, by order | length of the order id (1 byte), order id, attempt id |
//!
//! Numbers are 8 bytes, big-endian; players with the sign bit turned, so that they sort as numbers.

use lease_core::{FenceToken, LeaseName};

use crate::event_id::RewardEventId;
use crate::types::{AttemptId, Authority, ClaimId, OrderId, Partition, PlayerId, Receipt, UnixMillis};

pub(crate) const HEAD: &[u8] = b"mhead";
#[cfg(any(test, feature = "sled"))]
pub(crate) const FORMAT: &[u8] = b"mformat";
pub(crate) const CLAIMS: &[u8] = b"c";
pub(crate) const LEDGER: &[u8] = b"l";
pub(crate) const OUTBOX: &[u8] = b"o";
pub(crate) const ATTEMPTS: &[u8] = b"a";
pub(crate) const REFUSALS: &[u8] = b"r";
pub(crate) const FENCES: &[u8] = b"f";
pub(crate) const DEAD: &[u8] = b"d";
pub(crate) const PAYMENTS: &[u8] = b"p";
pub(crate) const BY_TIME: &[u8] = b"w";
pub(crate) const OPEN: &[u8] = b"q";
pub(crate) const HEADS: &[u8] = b"h";
const REVERSALS: &[u8] = b"v";
const BY_EVENT: &[u8] = b"e";
const BY_TOKEN: &[u8] = b"t";
const BY_ORDER: &[u8] = b"n";

const SIGN_BIT: u64 = 1 << 63;

pub(crate) fn fence(resource: &LeaseName) -> Vec<u8> {
    [FENCES, resource.as_bytes()].concat()
}

pub(crate) fn claim(player: PlayerId, event: &RewardEventId) -> Vec<u8> {
    [CLAIMS, &player_bytes(player), event.as_str().as_bytes()].concat()
}

pub(crate) fn ledger(player: PlayerId, claim_id: ClaimId) -> Vec<u8> {
    [LEDGER, &player_bytes(player), &claim_id.get().to_be_bytes()].concat()
}

/// What the ledger rows of a player begin with.
pub(crate) fn ledger_of(player: PlayerId) -> Vec<u8> {
    [LEDGER, &player_bytes(player)].concat()
}

pub(crate) fn outbox(claim_id: ClaimId) -> Vec<u8> {
    [OUTBOX, &claim_id.get().to_be_bytes()].concat()
}

/// What all answers to one attempt id begin with.
pub(crate) fn attempts_of(attempt: &AttemptId) -> Vec<u8> {
    let text = attempt.as_str().as_bytes();
    let len = u8::try_from(text.len()).unwrap_or(u8::MAX);
    debug_assert_eq!(
        usize::from(len),
        text.len(),
        "the limits keep attempt ids below 256 bytes"
    );
    [ATTEMPTS, &[len], text].concat()
}

pub(crate) fn attempt(attempt: &AttemptId, token: Option<FenceToken>) -> Vec<u8> {
    let mut key = attempts_of(attempt);
    key.extend_from_slice(&token_bytes(token));
    key
}

pub(crate) fn refusal(at: UnixMillis, attempt: &AttemptId, token: Option<FenceToken>) -> Vec<u8> {
    [
        REFUSALS,
        &at.get().to_be_bytes(),
        attempt.as_str().as_bytes(),
        &token_bytes(token),
    ]
    .concat()
}

/// What the open outbox rows of a player begin with.
pub(crate) fn open_of(player: PlayerId) -> Vec<u8> {
    [OPEN, &player_bytes(player)].concat()
}

pub(crate) fn open(player: PlayerId, id: ClaimId) -> Vec<u8> {
    [OPEN, &player_bytes(player), &id.get().to_be_bytes()].concat()
}

/// What the heads of a partition begin with.
pub(crate) fn heads_of(partition: Partition) -> Vec<u8> {
    [HEADS, &partition.get().to_be_bytes()].concat()
}

pub(crate) fn head(player: PlayerId, due: UnixMillis) -> Vec<u8> {
    [
        HEADS,
        &Partition::of(player).get().to_be_bytes(),
        &due.get().to_be_bytes(),
        &player_bytes(player),
    ]
    .concat()
}

pub(crate) fn dead(id: ClaimId) -> Vec<u8> {
    [DEAD, &id.get().to_be_bytes()].concat()
}

pub(crate) fn reversal(claim_id: ClaimId) -> Vec<u8> {
    [REVERSALS, &claim_id.get().to_be_bytes()].concat()
}

/// What the claims of an event begin with. No event holds a zero byte.
pub(crate) fn by_event(event: &RewardEventId) -> Vec<u8> {
    [BY_EVENT, event.as_str().as_bytes(), &[0]].concat()
}

/// What the claims of a resource, or of one of its tokens, begin with.
pub(crate) fn by_token(resource: &LeaseName, token: Option<FenceToken>) -> Vec<u8> {
    let name = resource.as_bytes();
    let len = u16::try_from(name.len()).unwrap_or(u16::MAX);
    let mut key = [BY_TOKEN, &len.to_be_bytes(), name].concat();
    if let Some(token) = token {
        key.extend_from_slice(&token.get().to_be_bytes());
    }
    key
}

/// The place in [`BY_TIME`] before everything of a time.
pub(crate) fn by_time(at: UnixMillis) -> Vec<u8> {
    [BY_TIME, &at.get().to_be_bytes()].concat()
}

/// The rows by which a claim is found, besides its own: their keys end with its number.
pub(crate) fn indexes(receipt: &Receipt) -> Vec<Vec<u8>> {
    let mut keys = vec![by_event(receipt.event()), by_time(receipt.recorded_at())];
    if let Authority::Fenced(fence) = receipt.authority() {
        keys.push(by_token(&fence.resource, Some(fence.token)));
    }
    for key in &mut keys {
        key.extend_from_slice(&receipt.claim_id().get().to_be_bytes());
    }
    keys
}

pub(crate) fn payment(attempt: &AttemptId) -> Vec<u8> {
    [PAYMENTS, attempt.as_str().as_bytes()].concat()
}

/// What the payment attempts of an order begin with.
pub(crate) fn payments_of(order: &OrderId) -> Vec<u8> {
    let text = order.as_str().as_bytes();
    let len = u8::try_from(text.len()).unwrap_or(u8::MAX);
    [BY_ORDER, &[len], text].concat()
}

pub(crate) fn payment_of(order: &OrderId, attempt: &AttemptId) -> Vec<u8> {
    [payments_of(order).as_slice(), attempt.as_str().as_bytes()].concat()
}

/// The number at the end of a key.
pub(crate) fn read_number(key: &[u8]) -> Option<ClaimId> {
    claim_id_of(key.split_last_chunk::<8>()?.1)
}

/// Time and player of a head's key.
pub(crate) fn read_head(key: &[u8]) -> Option<(UnixMillis, PlayerId)> {
    let (_, rest) = key.strip_prefix(HEADS)?.split_first_chunk::<2>()?;
    let (at, player) = rest.split_first_chunk::<8>()?;
    Some((
        UnixMillis::new(u64::from_be_bytes(*at)),
        player_of(player.try_into().ok()?),
    ))
}

/// Which rows a prefix stands for: every one that a transaction scans, but the answers to one attempt id.
#[cfg(feature = "postgres")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScanOf {
    Claims,
    /// All, or those of a player.
    Ledger(Option<PlayerId>),
    Outbox,
    Attempts,
    Refusals,
    Fences,
    Dead,
    Open(PlayerId),
    /// By the partition's number.
    Heads(u16),
    ByEvent(RewardEventId),
    ByToken(LeaseName, Option<FenceToken>),
    ByTime,
    Payments,
    PaymentsOf(OrderId),
}

/// See [`ScanOf`].
#[cfg(feature = "postgres")]
pub(crate) fn read_scan(prefix: &[u8]) -> Option<ScanOf> {
    let (kind, rest) = prefix.split_first()?;
    let player = || Some(player_of(rest.try_into().ok()?));
    match (kind, rest.is_empty()) {
        (b'c', true) => Some(ScanOf::Claims),
        (b'l', true) => Some(ScanOf::Ledger(None)),
        (b'l', false) => Some(ScanOf::Ledger(Some(player()?))),
        (b'o', true) => Some(ScanOf::Outbox),
        (b'a', true) => Some(ScanOf::Attempts),
        (b'r', true) => Some(ScanOf::Refusals),
        (b'f', true) => Some(ScanOf::Fences),
        (b'd', true) => Some(ScanOf::Dead),
        (b'w', true) => Some(ScanOf::ByTime),
        (b'p', true) => Some(ScanOf::Payments),
        (b'q', false) => Some(ScanOf::Open(player()?)),
        (b'h', false) => Some(ScanOf::Heads(u16::from_be_bytes(rest.try_into().ok()?))),
        (b'e', false) => {
            let event = std::str::from_utf8(rest.strip_suffix(&[0])?).ok()?;
            Some(ScanOf::ByEvent(RewardEventId::stored(event).ok()?))
        }
        (b't', false) => {
            let (len, rest) = rest.split_first_chunk::<2>()?;
            let (name, token) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
            let token = match token {
                [] => None,
                token => Some(FenceToken::new(u64::from_be_bytes(token.try_into().ok()?)).ok()?),
            };
            Some(ScanOf::ByToken(LeaseName::new(name).ok()?, token))
        }
        (b'n', false) => {
            let (&len, text) = rest.split_first()?;
            let text = std::str::from_utf8(text)
                .ok()
                .filter(|text| text.len() == usize::from(len))?;
            Some(ScanOf::PaymentsOf(OrderId::new(text).ok()?))
        }
        _ => None,
    }
}

/// The attempt id of [`attempts_of`].
#[cfg(feature = "postgres")]
pub(crate) fn read_attempts_of(prefix: &[u8]) -> Option<String> {
    let (&len, text) = prefix.strip_prefix(ATTEMPTS)?.split_first()?;
    let text = std::str::from_utf8(text).ok()?;
    (text.len() == usize::from(len)).then(|| text.to_owned())
}

/// The token in a key of [`by_token`].
#[cfg(feature = "postgres")]
pub(crate) fn read_by_token(resource: &LeaseName, key: &[u8]) -> Option<FenceToken> {
    let (token, _) = key
        .strip_prefix(by_token(resource, None).as_slice())?
        .split_first_chunk::<8>()?;
    FenceToken::new(u64::from_be_bytes(*token)).ok()
}

/// The time in a key of [`BY_TIME`], and the claim, if the key goes on to it.
#[cfg(feature = "postgres")]
pub(crate) fn read_by_time(key: &[u8]) -> Option<(UnixMillis, Option<ClaimId>)> {
    let (at, id) = key.strip_prefix(BY_TIME)?.split_first_chunk::<8>()?;
    Some((UnixMillis::new(u64::from_be_bytes(*at)), claim_id_of(id)))
}

/// Resource of a fence's key.
pub(crate) fn read_fence(key: &[u8]) -> Option<LeaseName> {
    LeaseName::new(key.strip_prefix(FENCES)?).ok()
}

/// Attempt of a payment's key.
pub(crate) fn read_payment(key: &[u8]) -> Option<AttemptId> {
    AttemptId::new(std::str::from_utf8(key.strip_prefix(PAYMENTS)?).ok()?).ok()
}

/// The last part of the key of a payment attempt in its order's list.
pub(crate) fn read_payment_of(order: &OrderId, key: &[u8]) -> Option<AttemptId> {
    let text = key.strip_prefix(payments_of(order).as_slice())?;
    AttemptId::new(std::str::from_utf8(text).ok()?).ok()
}

/// Player and event of a claim's key.
pub(crate) fn read_claim(key: &[u8]) -> Option<(PlayerId, RewardEventId)> {
    let (player, event) = key.strip_prefix(CLAIMS)?.split_first_chunk()?;
    let event = RewardEventId::stored(std::str::from_utf8(event).ok()?).ok()?;
    Some((player_of(*player), event))
}

/// Player and claim id of a ledger row's key.
pub(crate) fn read_ledger(key: &[u8]) -> Option<(PlayerId, ClaimId)> {
    let (player, claim_id) = key.strip_prefix(LEDGER)?.split_first_chunk()?;
    Some((player_of(*player), claim_id_of(claim_id)?))
}

/// Claim id of an outbox row's key.
pub(crate) fn read_outbox(key: &[u8]) -> Option<ClaimId> {
    claim_id_of(key.strip_prefix(OUTBOX)?)
}

/// Attempt and token of an attempt row's key.
pub(crate) fn read_attempt(key: &[u8]) -> Option<(AttemptId, Option<FenceToken>)> {
    let (&len, rest) = key.strip_prefix(ATTEMPTS)?.split_first()?;
    let (text, token) = rest.split_at_checked(usize::from(len))?;
    read_attempt_and_token(text, token)
}

/// Time, attempt and token of a refusal's key.
pub(crate) fn read_refusal(key: &[u8]) -> Option<(UnixMillis, AttemptId, Option<FenceToken>)> {
    let (at, rest) = key.strip_prefix(REFUSALS)?.split_first_chunk()?;
    let (text, token) = rest.split_last_chunk::<8>()?;
    let (attempt, token) = read_attempt_and_token(text, token)?;
    Some((UnixMillis::new(u64::from_be_bytes(*at)), attempt, token))
}

fn read_attempt_and_token(text: &[u8], token: &[u8]) -> Option<(AttemptId, Option<FenceToken>)> {
    let attempt = AttemptId::new(std::str::from_utf8(text).ok()?).ok()?;
    let token = match u64::from_be_bytes(token.try_into().ok()?) {
        0 => None,
        number => Some(FenceToken::new(number).ok()?),
    };
    Some((attempt, token))
}

fn player_bytes(player: PlayerId) -> [u8; 8] {
    (player.get().cast_unsigned() ^ SIGN_BIT).to_be_bytes()
}

fn player_of(bytes: [u8; 8]) -> PlayerId {
    PlayerId::new((u64::from_be_bytes(bytes) ^ SIGN_BIT).cast_signed())
}

fn claim_id_of(bytes: &[u8]) -> Option<ClaimId> {
    Some(ClaimId::new(u64::from_be_bytes(bytes.try_into().ok()?)))
}

fn token_bytes(token: Option<FenceToken>) -> [u8; 8] {
    token.map_or(0, FenceToken::get).to_be_bytes()
}
