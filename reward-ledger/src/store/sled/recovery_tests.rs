//! What is found when a ledger is opened: everything, or a typed error.
#![expect(clippy::disallowed_methods, reason = "tests run on a runtime of their own")]

use std::fs;

use lease_core::{Fence, FenceToken, LeaseName};

use super::SledStore;
use super::tests::{copy_dir, event, grant, open};
use crate::error::{OpenError, StoreError};
use crate::ledger::Ledger;
use crate::store::keys;
use crate::types::{Claim, Receipt};

/// sled keeps large pages in files of their own, which it neither syncs nor removes safely: none may come to be.
#[tokio::test]
async fn the_largest_rows_stay_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    let tasks: Vec<_> = (0..1_500_i64)
        .map(|number| {
            let name = format!("{number:04}{}", "n".repeat(1_020));
            let fence = Fence::new(LeaseName::new(name).unwrap(), FenceToken::new(1).unwrap());
            let claim = Claim::builder(fence, number, event(&"e".repeat(256)), i64::MAX)
                .item("i".repeat(128))
                .attempt(format!("{number:04}{}", "a".repeat(124)))
                .build()
                .unwrap();
            let ledger = ledger.clone();
            tokio::spawn(async move { ledger.claim(claim).await })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap().unwrap().is_accepted());
    }
    let blobs = fs::read_dir(dir.path().join("sled/blobs")).unwrap().count();
    assert_eq!(blobs, 0);
    ledger.close().await.unwrap();
    let ledger = open(dir.path());
    assert!(ledger.audit().await.unwrap().is_clean());
}

#[tokio::test]
async fn another_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).close().await.unwrap();
    let raw = || {
        ::sled::Config::new()
            .path(dir.path().join("sled"))
            .segment_size(super::config::SEGMENT_BYTES)
            .flush_every_ms(None)
            .open()
    };
    let db = raw().unwrap();
    db.insert(keys::FORMAT, &9_u32.to_be_bytes()).unwrap();
    db.flush().unwrap();
    drop(db);
    let refused = SledStore::open(dir.path()).unwrap_err();
    assert!(
        matches!(
            refused,
            OpenError::Format {
                found: 9,
                known: 2,
                ..
            }
        ),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_old_copy_beside_a_newer_witness_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    grant(&ledger, "a").await;
    ledger.close().await.unwrap();
    let old = tempfile::tempdir().unwrap();
    copy_dir(&dir.path().join("sled"), old.path());

    let ledger = open(dir.path());
    grant(&ledger, "b").await;
    ledger.close().await.unwrap();
    fs::remove_dir_all(dir.path().join("sled")).unwrap();
    copy_dir(old.path(), &dir.path().join("sled"));
    let refused = SledStore::open(dir.path()).unwrap_err();
    assert!(
        matches!(
            refused,
            OpenError::LostCommits {
                found: 1,
                acknowledged: 2,
                ..
            }
        ),
        "{refused:?}"
    );

    fs::remove_file(dir.path().join("witness")).unwrap();
    let accepted = open(dir.path());
    assert!(accepted.get(42, &event("b")).await.unwrap().is_none());
}

/// Wherever a byte of the files changes or they are cut: opening says so, or reading says so, or nothing is missing.
#[tokio::test]
async fn damage_is_noticed_or_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    let mut receipts = Vec::new();
    for number in 0..40 {
        receipts.push(grant(&ledger, &format!("e-{number}")).await);
    }
    // As after a kill: copied while open, so that the log is what recovery reads.
    let whole = tempfile::tempdir().unwrap();
    copy_dir(dir.path(), whole.path());
    ledger.close().await.unwrap();
    let log = fs::read(whole.path().join("sled/db")).unwrap();
    let used = log.iter().rposition(|&byte| byte != 0).unwrap();

    let mut noticed = 0;
    let mut damaged: Vec<Vec<u8>> = (0..40).map(|at| flipped(&log, at * used / 40)).collect();
    damaged.extend((1..8).map(|part| log[..used * part / 8].to_vec()));
    for (case, bytes) in damaged.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        copy_dir(whole.path(), dir.path());
        fs::write(dir.path().join("sled/db"), bytes).unwrap();
        noticed += match SledStore::open(dir.path()) {
            Err(OpenError::Corrupt { .. } | OpenError::LostCommits { .. }) => 1,
            Err(other) => panic!("case {case}: {other:?}"),
            Ok(store) => unreadable(&Ledger::open(store), &receipts, case).await,
        };
    }
    assert!(noticed > 10, "the damage was real: {noticed}");
}

fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 0x10;
    bytes
}

/// 1 if the ledger says that it cannot read a receipt, 0 if it has them all.
async fn unreadable(ledger: &Ledger, receipts: &[Receipt], case: usize) -> u32 {
    for receipt in receipts {
        match ledger.get(42, receipt.event()).await {
            Ok(found) => assert_eq!(found.as_ref(), Some(receipt), "case {case}: silently lost"),
            Err(StoreError::Stopped { .. }) => return 1,
            Err(other) => panic!("case {case}: {other:?}"),
        }
    }
    0
}
