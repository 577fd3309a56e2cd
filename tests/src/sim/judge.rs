//! Everything that is wrong with a run.

use super::belief::overlaps;
use super::note::Noted;
use crate::history::{Promise, check, check_times};

/// What is promised when nothing is wrong: a few steps that may be late, two disks and two ways.
const PROMISE: Promise = Promise {
    commit: 600_000,
    leader_change: 400_000,
};
/// Violations of one run that are told.
const TOLD_MAX: usize = 20;

/// What the run noted itself, and what its history shows.
pub(super) fn judge(noted: &mut Noted) -> Vec<String> {
    let mut wrong = std::mem::take(&mut noted.wrong);
    wrong.extend(check(&noted.records).iter().map(ToString::to_string));
    let (late, judged) = check_times(&noted.records, &noted.outages, PROMISE);
    wrong.extend(late.iter().map(ToString::to_string));
    noted.coverage.add("ends judged", judged.ends);
    noted.coverage.add("times judged", judged.told);
    wrong.extend(overlaps(&noted.beliefs));
    wrong.truncate(TOLD_MAX);
    wrong
}
