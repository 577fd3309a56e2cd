//! Power cuts: of what was written after a barrier, any part may be on the disk, and any part not.
//!
//! The files are copied right after a barrier, and again right before the next one. A cut in between leaves the first copy
//! with any of the pages that differ in the second, and any of the two lengths. Whatever is left, all that was
//! acknowledged by then must be found, and of the group that was cut off all or nothing.
//!
//! A group is one batch of claims, and segments are small, so that each group fills several of them and sled writes over
//! old ones all the time.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lease_core::{Fence, FenceToken, LeaseName};

use super::tests::{event, numbers};
use super::{SledConfig, SledStore, Stage};
use crate::core::{BatchOutcome, Protection, Protections};
use crate::ledger::Ledger;
use crate::types::{Claim, Receipt};

/// What a disk writes in one go.
const PAGE_BYTES: usize = 4_096;
/// With room for the pages of these rows.
const SEGMENT_BYTES: usize = 128 * 1_024;
const GROUPS: u64 = 12;
const CLAIMS_A_GROUP: i64 = 128;
/// The first groups only grow the log; cuts begin when it is written over.
const FIRST_CUT: u64 = 4;

/// What a cut leaves of the pages that were written since the last barrier.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// Of four about so many, and the new length as likely.
    SomeOfFour(u64),
    /// All but the first of each segment: those that say how far the log was stable.
    NoHeaders,
    /// All that lie within the old length, and that length: a file system that had not noted the new one yet.
    OldLength,
}

const CUTS: [Cut; 5] = [
    Cut::SomeOfFour(1),
    Cut::SomeOfFour(2),
    Cut::SomeOfFour(3),
    Cut::NoHeaders,
    Cut::OldLength,
];

impl Cut {
    fn leaves_length(self, random: &mut impl FnMut() -> u64) -> bool {
        match self {
            Self::SomeOfFour(odds) => random() % 4 < odds,
            Self::NoHeaders => true,
            Self::OldLength => false,
        }
    }

    fn leaves_page(self, at: usize, random: &mut impl FnMut() -> u64) -> bool {
        match self {
            Self::SomeOfFour(odds) => random() % 4 < odds,
            Self::NoHeaders => !at.is_multiple_of(SEGMENT_BYTES),
            Self::OldLength => true,
        }
    }

    /// What is there after it.
    fn left(self, synced: &Image, written: &Image, random: &mut impl FnMut() -> u64) -> Image {
        let mut left = synced.clone();
        for (name, new) in written {
            let old = left.entry(name.clone()).or_default();
            if self.leaves_length(random) {
                old.resize(new.len(), 0);
            }
            let pages = old.chunks_mut(PAGE_BYTES).zip(new.chunks(PAGE_BYTES));
            for (page, (old, new)) in pages.enumerate() {
                if old != new && self.leaves_page(page * PAGE_BYTES, random) {
                    let len = old.len().min(new.len());
                    old[..len].copy_from_slice(&new[..len]);
                }
            }
        }
        left
    }
}

/// The files of the database, by name.
type Image = BTreeMap<String, Vec<u8>>;

/// All files at one moment: sled's threads may still shorten one, so it is read until two readings agree.
fn image_of(dir: &Path) -> Image {
    let mut last = read_all(dir);
    loop {
        let now = read_all(dir);
        if now == last {
            return now;
        }
        last = now;
    }
}

fn read_all(dir: &Path) -> Image {
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

#[derive(Debug, Default)]
struct Images {
    /// After the last barrier.
    synced: Image,
    /// After the barrier before that, and right before the last one.
    before: Image,
    written: Image,
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

fn config(dir: &Path) -> super::SledConfigBuilder {
    SledConfig::builder(dir).segment_bytes(SEGMENT_BYTES)
}

/// New events of the same players, and raised fences.
async fn grant_group(ledger: &Ledger, number: u64) -> Vec<Receipt> {
    let claims = (0..CLAIMS_A_GROUP).map(|player| {
        let fence = Fence::new(
            LeaseName::new(format!("lock-{player}")).unwrap(),
            FenceToken::new(number + 1).unwrap(),
        );
        Claim::builder(fence, player, event(&format!("e-{number}")), 500)
            .item("i".repeat(128))
            .build()
            .unwrap()
    });
    match ledger.claim_all(claims.collect()).await.unwrap() {
        BatchOutcome::Accepted(granted) => granted
            .iter()
            .map(|outcome| outcome.receipt().unwrap().clone())
            .collect(),
        BatchOutcome::Refused(refused) => panic!("{refused:?}"),
    }
}

/// How ledgers fared that a cut had left.
#[derive(Debug, Default)]
struct Fared {
    with_the_group: u64,
    without_it: u64,
    broken: Vec<String>,
}

impl Fared {
    /// Opens what a cut left and looks for all that was acknowledged.
    async fn look(&mut self, image: &Image, acknowledged: &[Receipt], cut_off: &[Receipt], context: &str) {
        match judge(image, acknowledged, cut_off).await {
            Ok(0) => self.with_the_group += 1,
            Ok(missing) if missing == cut_off.len() => self.without_it += 1,
            Ok(missing) => self.broken.push(format!("{context}: {missing} of a group")),
            Err(what) => self.broken.push(format!("{context}: {what}")),
        }
    }
}

/// How many claims of the group that was cut off are missing, or what else is wrong.
async fn judge(image: &Image, acknowledged: &[Receipt], cut_off: &[Receipt]) -> Result<usize, String> {
    let dir = tempfile::tempdir().unwrap();
    put(image, &dir.path().join("sled"));
    let store = SledStore::open_with(config(dir.path()).build().unwrap());
    let ledger = Ledger::open(store.map_err(|error| format!("{error:?}"))?);
    for receipt in acknowledged {
        let found = ledger.get(receipt.player(), receipt.event()).await;
        if found.map_err(|error| format!("{error:?}"))?.as_ref() != Some(receipt) {
            return Err(format!("lost: {receipt:?}"));
        }
    }
    let mut missing = 0;
    for receipt in cut_off {
        let found = ledger.get(receipt.player(), receipt.event()).await;
        missing += usize::from(found.map_err(|error| format!("{error:?}"))?.is_none());
    }
    let report = ledger.audit().await.map_err(|error| format!("{error:?}"))?;
    if !report.is_clean() {
        return Err(format!("{:?}", report.violations));
    }
    ledger.close().await.map_err(|error| format!("{error:?}"))?;
    Ok(missing)
}

/// Cuts the power in every group once it is written and not yet synced, until something is broken.
async fn under_cuts(protections: Protections, seed: u64) -> Fared {
    let dir = tempfile::tempdir().unwrap();
    let images = Arc::new(Mutex::new(Images::default()));
    let config = config(dir.path())
        .protections(protections)
        .on_stage(copying(dir.path().join("sled"), Arc::clone(&images)))
        .build()
        .unwrap();
    let ledger = Ledger::open(SledStore::open_with(config).unwrap());
    let mut random = numbers(seed);
    let mut fared = Fared::default();
    let mut receipts = Vec::new();
    for number in 0..GROUPS {
        let group = grant_group(&ledger, number).await;
        let (before, written) = {
            let images = images.lock().unwrap();
            (images.before.clone(), images.written.clone())
        };
        for cut in CUTS.iter().filter(|_| number >= FIRST_CUT) {
            let left = cut.left(&before, &written, &mut random);
            let context = format!("seed {seed}, group {number}, {cut:?}");
            fared.look(&left, &receipts, &group, &context).await;
            if !fared.broken.is_empty() {
                return fared;
            }
        }
        receipts.extend(group);
    }
    fared
}

#[tokio::test]
async fn a_power_cut_loses_nothing_acknowledged_and_tears_no_group() {
    let fared = under_cuts(Protections::ALL, 11_030).await;
    assert_eq!(fared.broken, Vec::<String>::new());
    // An answer that had not waited for its barrier would have been a lie.
    assert!(fared.without_it > 0, "the cuts were real: {fared:?}");
}

/// The negative control: sled takes what it flushed for durable. Seen to break something in each of 33 runs.
#[tokio::test]
async fn without_the_hold_a_power_cut_loses_what_was_acknowledged() {
    let fared = under_cuts(Protections::all_without(Protection::LogHold), 11_030).await;
    assert!(!fared.broken.is_empty(), "{fared:?}");
}
