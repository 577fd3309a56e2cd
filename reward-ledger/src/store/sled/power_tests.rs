//! Power cuts: of what was written after a barrier, any part may be on the disk, and any part not.
//!
//! The files are copied right after a barrier, and again right before the next one. A cut in between leaves the first copy
//! with any of the pages that differ in the second, and any of the two lengths. Whatever is left, all that was
//! acknowledged by then must be found, and of the group that was cut off all or nothing.
#![expect(clippy::disallowed_methods, reason = "tests run on a runtime of their own")]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lease_core::{Fence, FenceToken, LeaseName};

use super::tests::{event, numbers};
use super::{SledConfig, SledStore, Stage};
use crate::ledger::Ledger;
use crate::types::{Claim, Receipt};

/// What a disk writes in one go.
const PAGE_BYTES: usize = 4_096;
const GROUPS: u64 = 32;
const GROUPS_PER_CUT: u64 = 3;
const CUTS: u32 = 3;
const SEED: u64 = 11_030;

/// The files of the database, by name.
type Image = BTreeMap<String, Vec<u8>>;

fn image_of(dir: &Path) -> Image {
    fs::read_dir(dir)
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

fn put(image: &Image, dir: &Path) {
    fs::create_dir_all(dir.join("blobs")).unwrap();
    for (name, bytes) in image {
        fs::write(dir.join(name), bytes).unwrap();
    }
}

/// `synced` with some of the pages of `written`, as chosen.
fn cut(synced: &Image, written: &Image, mut choose: impl FnMut() -> bool) -> Image {
    let mut left = synced.clone();
    for (name, new) in written {
        let old = left.entry(name.clone()).or_default();
        if choose() {
            old.resize(new.len(), 0);
        }
        for (old, new) in old.chunks_mut(PAGE_BYTES).zip(new.chunks(PAGE_BYTES)) {
            if old != new && choose() {
                let len = old.len().min(new.len());
                old[..len].copy_from_slice(&new[..len]);
            }
        }
    }
    left
}

#[derive(Debug, Default)]
struct Images {
    /// After the last barrier.
    synced: Image,
    /// After the barrier before that, and right before the last one. The claims of one round may come in several groups,
    /// each with its barrier, so the two are kept as a pair.
    before: Image,
    written: Image,
}

/// Many claims of few players: new events and raised fences, long texts, so that the log moves on quickly and its
/// segments are freed and written over.
async fn group(ledger: &Ledger, number: u64) -> Vec<Receipt> {
    let tasks: Vec<_> = (0..60_u64)
        .map(|player| {
            let fence = Fence::new(
                LeaseName::new(format!("{player}{}", "l".repeat(900))).unwrap(),
                FenceToken::new(number + 1).unwrap(),
            );
            let claim = Claim::builder(fence, player.cast_signed(), event(&format!("e-{number}")), 500)
                .item("i".repeat(128))
                .build()
                .unwrap();
            let ledger = ledger.clone();
            tokio::spawn(async move { ledger.claim(claim).await.unwrap() })
        })
        .collect();
    let mut receipts = Vec::new();
    for task in tasks {
        receipts.extend(task.await.unwrap().receipt().cloned());
    }
    receipts
}

/// Opens what a cut left and looks for all that was acknowledged; the number of those that were not, and are missing.
async fn verify(image: &Image, acknowledged: &[Receipt], cut_off: &[Receipt], context: &str) -> usize {
    let dir = tempfile::tempdir().unwrap();
    put(image, &dir.path().join("sled"));
    let store = SledStore::open(dir.path()).unwrap_or_else(|error| panic!("{context}: {error:?}"));
    let ledger = Ledger::open(store);
    for receipt in acknowledged {
        let found = ledger.get(receipt.player(), receipt.event()).await;
        let found = found.unwrap_or_else(|error| panic!("{context}: {error:?}"));
        assert_eq!(found.as_ref(), Some(receipt), "{context}");
    }
    let mut missing = 0;
    for receipt in cut_off {
        let found = ledger.get(receipt.player(), receipt.event()).await.unwrap();
        missing += usize::from(found.is_none());
    }
    let report = ledger.audit().await.unwrap();
    assert!(report.is_clean(), "{context}: {:#?}", report.violations);
    ledger.close().await.unwrap();
    missing
}

/// Copies the files on both sides of a barrier.
fn copying(database: PathBuf, images: Arc<Mutex<Images>>) -> impl Fn(Stage) -> io::Result<()> + Send + Sync {
    move |stage| {
        let mut images = images.lock().unwrap();
        match stage {
            Stage::Syncing => {
                images.before = images.synced.clone();
                images.written = image_of(&database);
            }
            Stage::Answering => images.synced = image_of(&database),
            Stage::Idle | Stage::Deciding | Stage::Applying | Stage::Flushing | Stage::Closing => {}
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_power_cut_loses_nothing_acknowledged_and_tears_no_group() {
    let dir = tempfile::tempdir().unwrap();
    let images = Arc::new(Mutex::new(Images::default()));
    let config = SledConfig::builder(dir.path())
        .on_stage(copying(dir.path().join("sled"), Arc::clone(&images)))
        .build()
        .unwrap();
    let ledger = Ledger::open(SledStore::open_with(config).unwrap());
    let mut random = numbers(SEED);
    let mut receipts = group(&ledger, 0).await;
    let mut missing = 0;
    for number in 1..GROUPS {
        let last = group(&ledger, number).await;
        let (before, written) = {
            let images = images.lock().unwrap();
            (images.before.clone(), images.written.clone())
        };
        let cuts = if number % GROUPS_PER_CUT == 0 { CUTS } else { 0 };
        for odds in 0..cuts {
            let left = cut(&before, &written, || {
                random() % u64::from(CUTS + 1) <= u64::from(odds)
            });
            let context = format!("seed {SEED}, group {number}, cut {odds}");
            missing += verify(&left, &receipts, &last, &context).await;
        }
        receipts.extend(last);
    }
    // The negative control: an answer that had not waited for its barrier would have been a lie.
    assert!(missing > 0, "the cuts were real");
}
