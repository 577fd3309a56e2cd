//! What the matrix must show: every cell that a rung claims to hold is zero, and every other is not, as its negative control.

use std::collections::BTreeSet;
use std::io::Write as _;

use crate::counts::Counts;
use crate::facts::{Fact, fact, why};
use crate::ladder::{Run, climb};
use crate::rung::Rung;
use crate::scenario::Scenario;
use crate::timeline::{Lane, Verdict, What};
use crate::times::Times;
use crate::{json, matrix, page, surprises};

/// Short, since every race waits for what happens and not for a time.
const SHORT: Times = Times { scale: 0.05 };

async fn the_whole_ladder() -> Run {
    let run = climb(&Rung::ALL, &Scenario::ALL, SHORT, |_, _| {}).await.unwrap();
    for (rung, reason) in &run.skipped {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "CI skips nothing, and {rung:?} cannot be run: {reason}"
        );
        // Past the capture of the test harness: a check that is left out must be seen.
        let text = format!("\n!!! SKIPPED: rung {} of the ladder ({reason})\n", rung.number());
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    run
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_rung_holds_what_it_claims_and_fails_where_the_next_is_needed() {
    let run = the_whole_ladder().await;
    assert_eq!(run.cells.len(), run.rungs.len() * Scenario::ALL.len());
    assert_eq!(surprises(&run), Vec::<String>::new());
    assert!(
        run.rungs.contains(&Rung::Outbox),
        "the rungs that need nothing run everywhere"
    );

    everything_that_fails_is_explained(&run);
    late_writes_are_refused_where_a_token_is_checked(&run);
    the_page_stands_alone_and_draws_every_race(&run);
    let told = json::of(&run);
    assert_eq!(told["cells"].as_array().unwrap().len(), run.cells.len());
    assert!(matrix::text(&run).lines().count() > run.rungs.len());
    assert_eq!(matrix::markdown(&run).lines().count(), run.rungs.len() + 2);
}

fn everything_that_fails_is_explained(run: &Run) {
    for cell in run.cells.iter().filter(|cell| !cell.counts.are_zero()) {
        let reason = why(cell.rung, cell.scenario);
        assert!(reason.is_some(), "{:?} in {:?}", cell.rung, cell.scenario);
    }
}

/// Zero by the refusal that the scenario is about, and not by luck.
fn late_writes_are_refused_where_a_token_is_checked(run: &Run) {
    let late = [
        Scenario::S1,
        Scenario::S2,
        Scenario::S3,
        Scenario::S4,
        Scenario::S14,
    ];
    let checked = |rung: &&Rung| **rung >= Rung::CheckedToken;
    for &rung in run.rungs.iter().filter(checked) {
        for scenario in late {
            let marks = &run.cell(rung, scenario).unwrap().marks;
            let refused = marks.iter().any(|mark| {
                let refused = matches!(
                    &mark.what,
                    What::Wrote {
                        verdict: Verdict::Refused,
                        ..
                    }
                );
                refused && mark.lane == Lane::A
            });
            assert!(refused, "A's late write in {scenario:?} at {rung:?}: {marks:?}");
        }
    }
}

fn the_page_stands_alone_and_draws_every_race(run: &Run) {
    let page = page::draw(run);
    assert_eq!(page.matches("<svg").count(), run.cells.len());
    assert!(page.contains("<meta name=\"viewport\""));
    for elsewhere in ["http://", "https://", "<script src", "<link", "@import", "url("] {
        let found = page.replace("http://www.w3.org/2000/svg", "").contains(elsewhere);
        assert!(!found, "{elsewhere} leads out of the page");
    }
}

#[test]
fn each_rung_holds_something_that_the_one_before_does_not() {
    // Rungs 3 to 5 are the exception, and the point: what they buy is none of these.
    let climbing = [
        (Rung::PlainLock, Rung::OwnDelete),
        (Rung::Redlock, Rung::PublishedSql),
        (Rung::PublishedSql, Rung::CheckedToken),
        (Rung::CheckedToken, Rung::UniqueKey),
        (Rung::UniqueKey, Rung::Receipts),
        (Rung::Receipts, Rung::Outbox),
    ];
    for (below, above) in climbing {
        let held = |rung| -> BTreeSet<Scenario> {
            let holds = |scenario: &Scenario| fact(rung, *scenario) == Fact::Holds;
            Scenario::ALL.into_iter().filter(holds).collect()
        };
        assert!(held(above).difference(&held(below)).next().is_some(), "{above:?}");
    }
    assert!(
        Scenario::ALL
            .iter()
            .all(|&scenario| fact(Rung::Outbox, scenario) == Fact::Holds)
    );
}

/// The matrix of the document is of one run; what it shows must still be what is claimed.
#[test]
fn the_document_shows_a_matrix_that_the_facts_allow() {
    let document = include_str!("../../docs/choosing.md");
    for rung in Rung::ALL {
        let start = format!("| {} | {} |", rung.number(), rung.name());
        let row = document.lines().find_map(|line| line.strip_prefix(&start));
        let cells: Vec<&str> = row
            .unwrap()
            .trim_end_matches('|')
            .split('|')
            .map(str::trim)
            .collect();
        assert_eq!(cells.len(), Scenario::ALL.len(), "{rung:?}");
        for (scenario, cell) in Scenario::ALL.into_iter().zip(cells) {
            let claimed = fact(rung, scenario);
            assert!(
                claimed.is_shown_by(counts_of(cell)),
                "{rung:?} in {scenario:?}: {cell}"
            );
        }
    }
}

/// What a cell says, as [`Counts::short`] wrote it.
fn counts_of(cell: &str) -> Counts {
    let mut counts = Counts::default();
    for part in cell.split(' ') {
        match (part.strip_prefix('-'), part.strip_prefix('?')) {
            (Some(lost), _) => counts.lost = lost.parse().unwrap(),
            (_, Some(unanswered)) => counts.unanswered = unanswered.parse().unwrap(),
            (None, None) => counts.duplicates = part.parse().unwrap(),
        }
    }
    assert_eq!(counts.short(), cell);
    counts
}
