//! S7: the database commits, and only the answer is lost: the process is killed right after the commit. And the other points
//! where a worker's process can be killed within its transaction.
//!
//! The process is this test binary, asked to run [`child`] alone. Its ledger stops at a named point of its transaction, says so,
//! and is killed there.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;

use reward_ledger::testing::Protection;

use crate::books::{applied, broken, granted_twice, hold_exactly, replayed};
use crate::desk::{Home, Opening, Place, Point};
use crate::stage::{GOLD, PLAYER, claim, fence, gold, rank_3};

const HOME: &str = "SCENARIO_CHILD_HOME";
/// Where the child stops: the name of a point.
const STOP_AT: &str = "SCENARIO_CHILD_STOP_AT";
/// What the child says when it has come there.
const THERE: &str = "@there";

/// Not a test of its own: what the child runs. Without its environment it does nothing.
#[test]
fn child() {
    let (Ok(home), Ok(stop_at)) = (std::env::var(HOME), std::env::var(STOP_AT)) else {
        return;
    };
    let opening = Opening::usual().at_points(move |point| {
        if format!("{point:?}") == stop_at {
            let mut out = std::io::stdout().lock();
            out.write_all(format!("\n{THERE}\n").as_bytes())
                .and_then(|()| out.flush())?;
            // Until it is killed.
            loop {
                std::thread::park();
            }
        }
        Ok(())
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let ledger = Home::at(&home).open(opening).await;
        let told = claim(&ledger, gold(fence(101), rank_3()).attempt("message-7")).await;
        panic!("the answer was not lost: {told:?}");
    });
}

/// A process claims the reward in a new ledger, and is killed where that stands at `point`.
pub(crate) async fn claimed_and_killed_at(point: Point, place: Place) -> Arc<Home> {
    let home = Home::new(place).await;
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lost_answer::child", "--nocapture", "--test-threads=1"])
        .env(HOME, home.address())
        .env(STOP_AT, format!("{point:?}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let there = lines.map_while(Result::ok).any(|line| line == THERE);
    child.kill().unwrap();
    let ended = child.wait().unwrap();
    assert!(there, "{place:?}: the child never came to {point:?}: {ended}");
    home
}

#[tokio::test]
async fn s07_after_a_kill_between_commit_and_answer_the_retry_gets_the_first_receipt() {
    for place in Place::DURABLE {
        let home = claimed_and_killed_at(Point::Durable, place).await;
        let ledger = home.open(Opening::usual()).await;
        let first = ledger.get(PLAYER, &rank_3()).await.unwrap();
        // The same message, and another one that asks for the same.
        let again = replayed(claim(&ledger, gold(fence(101), rank_3()).attempt("message-7")).await);
        assert_eq!(again.as_bytes(), first.as_bytes());
        let other = replayed(claim(&ledger, gold(fence(101), rank_3()).attempt("message-8")).await);
        assert_eq!(other.as_bytes(), first.as_bytes());
        assert_eq!(first.attempt().as_str(), "message-7");
        hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
        ledger.close().await;
    }
}

/// The same, with the lease lost meanwhile: whoever takes over gets the first receipt under its own token.
#[tokio::test]
async fn s07_whoever_takes_over_from_the_killed_process_gets_its_receipt() {
    for place in Place::DURABLE {
        let home = claimed_and_killed_at(Point::Durable, place).await;
        let ledger = home.open(Opening::usual()).await;
        let told = replayed(claim(&ledger, gold(fence(102), rank_3()).attempt("message-7")).await);
        assert_eq!(told.token(), Some(fence(101).token), "it says who was granted it");
        hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
        ledger.close().await;
    }
}

/// Killed before the commit, nothing was granted: the same retry is then the first grant. The point of the kill is what
/// makes the scenario.
#[tokio::test]
async fn s07_after_a_kill_before_the_commit_the_retry_is_the_first_grant() {
    for place in Place::DURABLE {
        for point in [Point::Undecided, Point::Decided] {
            let home = claimed_and_killed_at(point, place).await;
            let ledger = home.open(Opening::usual()).await;
            assert_eq!(ledger.get(PLAYER, &rank_3()).await, None, "{place:?}, {point:?}");
            applied(claim(&ledger, gold(fence(101), rank_3()).attempt("message-7")).await);
            hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
            ledger.close().await;
        }
    }
}

/// Wherever the worker is killed, a retry is granted it or gets the first receipt; nothing is torn, and it is granted once.
/// A kill while the commit is under way is the one whose outcome nobody can foresee.
#[tokio::test]
async fn s07_wherever_the_worker_is_killed_the_retry_ends_in_one_whole_grant() {
    for place in Place::DURABLE {
        for point in Point::ALL {
            let home = claimed_and_killed_at(point, place).await;
            let ledger = home.open(Opening::usual()).await;
            let told = claim(&ledger, gold(fence(101), rank_3()).attempt("message-7")).await;
            assert!(told.is_accepted(), "{place:?}, {point:?}: {told:?}");
            hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
            ledger.close().await;
        }
    }
}

/// Control: a service that has forgotten its try asks anew, and no key is unique.
#[tokio::test]
async fn s07_without_the_unique_key_the_retry_pays_twice() {
    for place in Place::DURABLE {
        let home = claimed_and_killed_at(Point::Durable, place).await;
        let ledger = home.open(Opening::usual().without(Protection::UniqueEvent)).await;
        applied(claim(&ledger, gold(fence(101), rank_3()).attempt("message-7 again")).await);
        assert!(granted_twice(&broken(&ledger).await));
        ledger.close().await;
    }
}
