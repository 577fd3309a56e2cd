//! The bytes of each stored row, as they were when its version was made. What is on a disk must read back for ever: a
//! changed file here means a new version of the record, never a new file for the old one. `UPDATE=1` records a new one.

use std::fs;
use std::path::PathBuf;

use lease_core::{Fence, FenceToken, LeaseName};

use super::codec::{self, CodecError, Record};
use super::keys;
use super::outbox_records::{DoubtRow, OutboxRow, ReversalRow, StateRow, SubjectRow};
use super::payment_records::{FindingRow, FoundByRow, PaymentRow, PaymentStatusRow};
use super::records::{AnswerRow, AttemptRow, FenceRow, HeadRow, LedgerRow, ReceiptShown, ResetRow};
use crate::event_id::RewardEventId;
use crate::limits::RECORD_BYTES_MAX;
use crate::types::{AttemptId, Claim, ClaimId, PlayerId, Receipt, UnixMillis};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[track_caller]
fn matches_golden(name: &str, bytes: &[u8]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{name}.hex"));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, hex(bytes) + "\n").unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        hex(bytes),
        golden.trim_end(),
        "{name} is no longer what is on the disks"
    );
}

#[track_caller]
fn record<R: Record + PartialEq + std::fmt::Debug>(name: &str, record: &R) {
    let bytes = codec::encode(record).unwrap();
    matches_golden(name, &bytes);
    assert_eq!(codec::decode::<R>(&bytes).unwrap(), *record);
}

fn attempt(answer: AnswerRow) -> AttemptRow {
    AttemptRow {
        resource: Some(b"lock:reward:player-42\xff".to_vec()),
        player: -42,
        event: "week-34:player-42:rank-3".to_owned(),
        item: "gold".to_owned(),
        amount: 500,
        at_ms: 1_790_000_000_000,
        answer,
    }
}

fn outbox(subject: SubjectRow, state: StateRow) -> OutboxRow {
    OutboxRow {
        player: i64::MIN,
        event: "week-34:player-42:rank-3".to_owned(),
        subject,
        state,
        epoch: 3,
        tries: 2,
        first_sent_ms: Some(1_790_000_000_000),
        doubt: DoubtRow::Unknown,
        note: "no answer".to_owned(),
    }
}

#[test]
fn every_row_of_the_outbox_is_stored_as_it_was() {
    record(
        "outbox-pending-v2",
        &OutboxRow {
            first_sent_ms: None,
            doubt: DoubtRow::NotDone,
            ..outbox(SubjectRow::Grant, StateRow::Pending { due_ms: 7 })
        },
    );
    record(
        "outbox-leased-v2",
        &outbox(
            SubjectRow::Reversal { claim_id: 300 },
            StateRow::Leased {
                owner: "publisher-1".to_owned(),
                since_ms: 8,
                until_ms: 9,
            },
        ),
    );
    for (name, state) in [
        ("outbox-delivered-v2", StateRow::Delivered { at_ms: 10 }),
        ("outbox-dead-v2", StateRow::Dead { at_ms: 10 }),
        ("outbox-discarded-v2", StateRow::Discarded { at_ms: 10 }),
    ] {
        record(name, &outbox(SubjectRow::Grant, state));
    }
    record(
        "reversal-v1",
        &ReversalRow {
            id: 301,
            player: -42,
            event: "week-34:player-42:rank-3".to_owned(),
            at_ms: 1_790_000_000_000,
            reason: "a chargeback".to_owned(),
        },
    );
}

#[test]
fn every_payment_attempt_is_stored_as_it_was() {
    let finding = |by| FindingRow {
        at_ms: 11,
        by,
        note: "gw-77".to_owned(),
    };
    let person = FoundByRow::Person {
        reason: "the statement lists it".to_owned(),
    };
    for (name, status) in [
        ("payment-ready-v1", PaymentStatusRow::Ready),
        (
            "payment-unknown-v1",
            PaymentStatusRow::Unknown(finding(FoundByRow::Worker { token: 101 })),
        ),
        (
            "payment-approved-v1",
            PaymentStatusRow::Approved(finding(person.clone())),
        ),
        ("payment-failed-v1", PaymentStatusRow::Failed(finding(person))),
    ] {
        record(
            name,
            &PaymentRow {
                order: "order-1".to_owned(),
                resource: b"lock:order-1".to_vec(),
                token: 101,
                currency: "EUR-cent".to_owned(),
                amount: 1_999,
                started_at_ms: 10,
                status,
            },
        );
    }
}

#[test]
fn every_record_is_stored_as_it_was() {
    record(
        "head-v2",
        &HeadRow {
            last_claim: 300,
            commits: 70_000,
            outbox_open: 250,
            outbox_dead: 251,
        },
    );
    record(
        "fence-v1",
        &FenceRow {
            token: u64::from(u32::MAX) + 1,
            last_reset: None,
        },
    );
    record(
        "fence-reset-v1",
        &FenceRow {
            token: 0,
            last_reset: Some(ResetRow {
                from: 900,
                at_ms: 1_790_000_000_000,
                reason: "the issuer lost its counter".to_owned(),
            }),
        },
    );
    record(
        "ledger-v1",
        &LedgerRow {
            event: "week-34:player-42:rank-3".to_owned(),
            item: "gold".to_owned(),
            amount: i64::MAX,
        },
    );
    record("attempt-accepted-v1", &attempt(AnswerRow::Accepted));
    record(
        "attempt-stale-v1",
        &attempt(AnswerRow::Stale {
            seen: 102,
            receipt: ReceiptShown::Yes,
        }),
    );
    record(
        "attempt-stale-without-receipt-v1",
        &AttemptRow {
            resource: None,
            ..attempt(AnswerRow::Stale {
                seen: 102,
                receipt: ReceiptShown::No,
            })
        },
    );
    record(
        "attempt-conflict-v1",
        &attempt(AnswerRow::EventConflict { fields: 24 }),
    );
}

#[test]
fn receipts_and_keys_are_stored_as_they_were() {
    let fence = Fence::new(
        LeaseName::new("lock:reward").unwrap(),
        FenceToken::new(101).unwrap(),
    );
    let event = RewardEventId::parse("week-34:player--42:rank-3").unwrap();
    let claim = Claim::builder(fence.clone(), -42, event.clone(), 500)
        .item("gold")
        .attempt("try-1")
        .build()
        .unwrap();
    let receipt = Receipt::issue(&claim, ClaimId::new(7), UnixMillis::new(1_790_000_000_000));
    matches_golden("receipt-v1", receipt.as_bytes());

    let unfenced = Claim::unfenced_builder(1, RewardEventId::parse("e").unwrap(), 1)
        .attempt("t")
        .build()
        .unwrap();
    let receipt = Receipt::issue(&unfenced, ClaimId::new(8), UnixMillis::new(0));
    matches_golden("receipt-unfenced-v1", receipt.as_bytes());

    let (player, attempt) = (PlayerId::new(-42), AttemptId::new("try-1").unwrap());
    let keys = [
        keys::HEAD.to_vec(),
        keys::FORMAT.to_vec(),
        keys::fence(&fence.resource),
        keys::claim(player, &event),
        keys::ledger(player, ClaimId::new(7)),
        keys::outbox(ClaimId::new(7)),
        keys::attempt(&attempt, Some(fence.token)),
        keys::attempt(&attempt, None),
        keys::refusal(UnixMillis::new(5), &attempt, Some(fence.token)),
    ];
    matches_golden("keys-v1", &keys.join(&b"\n"[..]));
}

#[test]
fn keys_read_back_and_sort_as_their_numbers() {
    let event = RewardEventId::parse("e").unwrap();
    let players = [i64::MIN, -1, 0, 1, i64::MAX].map(PlayerId::new);
    let sorted: Vec<_> = players
        .iter()
        .map(|&player| keys::claim(player, &event))
        .collect();
    assert!(sorted.is_sorted());
    for (player, key) in players.into_iter().zip(sorted) {
        assert_eq!(keys::read_claim(&key), Some((player, event.clone())));
        let ledger = keys::ledger(player, ClaimId::new(9));
        assert_eq!(keys::read_ledger(&ledger), Some((player, ClaimId::new(9))));
    }
    assert_eq!(
        keys::read_outbox(&keys::outbox(ClaimId::new(9))),
        Some(ClaimId::new(9))
    );
    let attempt = AttemptId::new("try").unwrap();
    for token in [None, Some(FenceToken::new(5).unwrap())] {
        assert_eq!(
            keys::read_attempt(&keys::attempt(&attempt, token)),
            Some((attempt.clone(), token))
        );
        let at = UnixMillis::new(3);
        assert_eq!(
            keys::read_refusal(&keys::refusal(at, &attempt, token)),
            Some((at, attempt.clone(), token))
        );
    }
    for bad in [
        &b""[..],
        b"c",
        b"c1234567",
        b"l12345678",
        b"o123",
        b"a",
        b"a\x09try",
        b"r12345678t",
    ] {
        assert_eq!(keys::read_claim(bad), None);
        assert_eq!(keys::read_ledger(bad), None);
        assert_eq!(keys::read_outbox(bad), None);
        assert_eq!(keys::read_attempt(bad), None);
        assert_eq!(keys::read_refusal(bad), None);
    }
}

#[test]
fn no_attempt_id_begins_another_ones_rows() {
    let short = keys::attempts_of(&AttemptId::new("try").unwrap());
    let long = keys::attempt(&AttemptId::new("try-1").unwrap(), None);
    assert!(!long.starts_with(&short));
}

#[test]
fn bytes_that_are_not_the_records_are_refused() {
    let good = codec::encode(&HeadRow {
        last_claim: 1,
        commits: 2,
        outbox_open: 3,
        outbox_dead: 4,
    })
    .unwrap();
    assert!(matches!(codec::decode::<HeadRow>(b""), Err(CodecError::Empty)));
    let newer = [&[9], &good[1..]].concat();
    assert!(matches!(
        codec::decode::<HeadRow>(&newer),
        Err(CodecError::Version { found: 9 })
    ));
    let longer = [&good[..], b"x"].concat();
    assert!(matches!(
        codec::decode::<HeadRow>(&longer),
        Err(CodecError::Trailing { bytes: 1 })
    ));
    assert!(matches!(
        codec::decode::<HeadRow>(&good[..2]),
        Err(CodecError::Decode(_))
    ));
    // A text that claims to be longer than any record: refused before memory is taken for it.
    let mut huge = vec![1, 0xfd];
    huge.extend_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(
        codec::decode::<LedgerRow>(&huge),
        Err(CodecError::Decode(_))
    ));
    let bloated = LedgerRow {
        event: "e".repeat(RECORD_BYTES_MAX),
        item: String::new(),
        amount: 1,
    };
    let bytes = codec::encode(&bloated).unwrap();
    assert!(matches!(
        codec::decode::<LedgerRow>(&bytes),
        Err(CodecError::Decode(_))
    ));
}
