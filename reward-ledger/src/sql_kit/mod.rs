//! The SQL kit (`sql/`), on real servers: what it promises, asked by two sessions that know nothing of this crate.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod mariadb;
mod postgres;

use crate::event_id::RewardEventId;

/// Ids at both sides of each rule, and what the library says of them; SQL must say the same.
fn event_ids() -> Vec<(&'static str, bool)> {
    let ids = [
        "season-2026-week-34:player-42:rank-3",
        "5f0c4a7e-8a44-4c0e-9a53-0d8f5c9b2a11",
        "reward:5F0C4A7E-8A44-4C0E-9A53-0D8F5C9B2A11:x",
        "11111111-1111-1111-1111-111111111111",
        "grant-5f0c4a7e-8a44-4c0e-9a53-0d8f5c9b2a11",
        "5f0c4a7e-8a44-4c0e-9a53-0d8",
        "x:0123456789abcdef",
        "zz0123456789ABCDEFzz",
        "0123456789abcde",
        "0123456789012345",
        "abcdefabcdefabcdefa",
        "aaaaaaaaaaaaaaaaaaa1zz",
        "12345678901234567890123",
        "congratulationstoeveryone",
        "tok:Zq8wPz0LmNv4RtYx7KbC",
        "Zq8wPz0LmNv4RtYx7Kb",
        "week34_player42_rank3_gold1",
        "order-1881-refund",
    ];
    let random = |id: &&'static str| (*id, RewardEventId::parse(id).is_err());
    ids.iter().map(random).collect()
}
