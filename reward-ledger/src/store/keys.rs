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
//!
//! Numbers are 8 bytes, big-endian; players with the sign bit turned, so that they sort as numbers.

use lease_core::{FenceToken, LeaseName};

use crate::event_id::RewardEventId;
use crate::types::{AttemptId, ClaimId, PlayerId, UnixMillis};

pub(crate) const HEAD: &[u8] = b"mhead";
#[cfg(any(test, feature = "sled"))]
pub(crate) const FORMAT: &[u8] = b"mformat";
pub(crate) const CLAIMS: &[u8] = b"c";
pub(crate) const LEDGER: &[u8] = b"l";
pub(crate) const OUTBOX: &[u8] = b"o";
pub(crate) const ATTEMPTS: &[u8] = b"a";
pub(crate) const REFUSALS: &[u8] = b"r";
const FENCES: &[u8] = b"f";

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
