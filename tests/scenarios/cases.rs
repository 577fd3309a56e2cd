//! Cases that bit users of other systems, where lease and ledger meet. Those of one part alone are tested with it.

use std::time::Duration;

use fence_client::{LossReason, ShortDurations as _};
use lease_core::wire::LeaseVerb;
use proptest::prelude::*;
use reward_ledger::testing::Protection;
use reward_ledger::{Claim, ClaimOutcome, Receipt, RewardEventId};

use crate::books::{applied, hold_exactly, stale};
use crate::desk::{Desk, Place};
use crate::stage::{GOLD, LOCK, PLAYER, Stage, Worker, claim, gold, quest_9, rank_3};

/// C14: the machine sleeps for minutes with the lease in its hand.
#[tokio::test(start_paused = true)]
async fn c14_after_a_suspend_the_first_call_sees_the_loss_and_the_ledger_refuses() {
    let stage = Stage::start().await;
    let (a, b) = (stage.worker("a"), stage.worker("b"));
    let lease = a.client.lease(LOCK).ttl(30.secs()).acquire().await.unwrap();
    a.kit.pause();
    let next = b.acquire().await;
    let first = applied(b.claim(next.fence()).await);
    tokio::time::sleep(Duration::from_secs(90)).await;

    let sent = a.kit.sent(LeaseVerb::RenewMany);
    a.kit.resume();
    assert_eq!(lease.check().unwrap_err().reason, LossReason::DeadlinePassed);
    assert_eq!(
        a.kit.sent(LeaseVerb::RenewMany),
        sent,
        "it was seen before any renewal was tried"
    );
    assert_eq!(stale(a.claim(lease.fence()).await).2, Some(first));
    hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
}

/// C35 (a): work within work shows the same token, so the outer work is not refused after the inner one.
#[tokio::test(start_paused = true)]
async fn c35_inner_and_outer_work_show_one_token_and_are_both_accepted() {
    let stage = Stage::start().await;
    let outer = stage.worker("a").acquire().await;
    let inner = outer.reenter().unwrap();
    assert_eq!(inner.token(), outer.token());
    applied(claim(&stage.ledger, gold(inner.fence(), quest_9())).await);
    inner.release().await.unwrap();
    assert!(outer.is_valid(), "the lease ends with its last handle");
    applied(claim(&stage.ledger, gold(outer.fence(), rank_3())).await);
    hold_exactly(
        &stage.ledger,
        &[(PLAYER, rank_3(), GOLD), (PLAYER, quest_9(), GOLD)],
    )
    .await;
}

/// C35 (b): a handle never shows its successor's token, whatever happened to the lease.
#[tokio::test(start_paused = true)]
async fn c35_a_handle_that_was_lost_shows_its_own_token() {
    let stage = Stage::start().await;
    let (a, b) = (stage.worker("a"), stage.worker("b"));
    let lease = a.acquire().await;
    let token = lease.token();
    a.kit.pause();
    let next = b.acquire().await;
    a.kit.resume();
    assert!(lease.check().is_err());
    assert_eq!((lease.token(), lease.fence().token), (token, token));
    assert!(next.token() > token);
}

/// What one of two writers does next, by a schedule that a test draws.
#[derive(Debug, Clone, Copy)]
enum Turn {
    /// Looks whether it holds the lease. Its write comes at another turn of its own: anything may lie between.
    Look,
    /// Writes its next entry, if it has looked.
    Write,
    /// Sends an entry again that it wrote before.
    Retry,
}

/// A writer of a journal: one entry after another, each a claim of its own.
struct Writer {
    worker: Worker,
    fence: fence_client::Fence,
    looked: bool,
    /// Each of its entries, and what it was told of it first.
    written: Vec<(Claim, ClaimOutcome)>,
}

impl Writer {
    fn next_claim(&self, name: &str) -> Claim {
        let entry = format!("entry-{name}-{}", self.written.len());
        let event = RewardEventId::builder("journal", PLAYER, entry).build().unwrap();
        gold(self.fence.clone(), event).build().unwrap()
    }

    async fn take_turn(&mut self, name: &str, turn: Turn) {
        let ledger = &self.worker.ledger;
        match turn {
            Turn::Look => self.looked = true,
            Turn::Write if self.looked => {
                self.looked = false;
                let claim = self.next_claim(name);
                let told = ledger.claim(claim.clone()).await.unwrap();
                self.written.push((claim, told));
            }
            Turn::Write => {}
            Turn::Retry => {
                let Some((claim, first)) = self.written.last() else {
                    return;
                };
                let again = ledger.claim(claim.clone()).await.unwrap();
                // An entry that was accepted is answered as that very entry, one that was refused as it was.
                match first.receipt() {
                    Some(receipt) => assert_eq!(again, ClaimOutcome::Replayed(receipt.clone())),
                    None => assert_eq!(again, *first),
                }
            }
        }
    }

    fn accepted(&self) -> impl Iterator<Item = &Receipt> {
        self.written.iter().filter_map(|(_, told)| told.receipt())
    }
}

/// A holds the first lease and was paused past it, B holds the second; both write to one journal by the schedule.
async fn two_writers(ledger: Desk, schedule: &[(bool, Turn)]) -> [Writer; 2] {
    let stage = Stage::with(ledger).await;
    let (a, b) = (stage.worker("a"), stage.worker("b"));
    let first = a.acquire().await;
    a.kit.pause();
    let second = b.acquire().await;
    let writer = |worker: &Worker, lease: &fence_client::Lease| Writer {
        worker: worker.clone(),
        fence: lease.fence(),
        looked: false,
        written: Vec::new(),
    };
    let mut writers = [writer(&a, &first), writer(&b, &second)];
    for (second, turn) in schedule {
        let [a, b] = &mut writers;
        let (name, writer) = if *second { ("b", b) } else { ("a", a) };
        writer.take_turn(name, *turn).await;
    }
    writers
}

/// Whether an entry of the older token was accepted after one of the newer: the tokens fell in commit order.
fn tokens_fell(writers: &[Writer; 2]) -> bool {
    let mut journal: Vec<_> = writers.iter().flat_map(Writer::accepted).collect();
    journal.sort_by_key(|receipt| receipt.claim_id());
    !journal.is_sorted_by_key(|receipt| receipt.token())
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// C36: two active writers, in any order, also with anything between a look at the lease and the write.
    #[test]
    fn c36_after_the_first_entry_of_the_newer_token_none_of_the_older_is_accepted(
        schedule in prop::collection::vec(
            (any::<bool>(), prop::sample::select(vec![Turn::Look, Turn::Write, Turn::Write, Turn::Retry])),
            1..60,
        ),
    ) {
        run(async {
            let writers = two_writers(Place::Memory.ledger().await, &schedule).await;
            assert!(!tokens_fell(&writers));
            let journal: Vec<_> = writers.iter().flat_map(Writer::accepted).collect();
            let entries: Vec<_> = journal.iter().map(|receipt| (PLAYER, receipt.event().clone(), GOLD)).collect();
            // No update is lost, and none is there that nobody was told of.
            hold_exactly(&writers[0].worker.ledger, &entries).await;
        });
    }
}

/// Control: without fencing a schedule of four turns lets the older token write after the newer.
#[test]
fn c36_without_fencing_the_older_token_writes_after_the_newer() {
    let schedule = [
        (false, Turn::Look),
        (true, Turn::Look),
        (true, Turn::Write),
        (false, Turn::Write),
    ];
    let without =
        async { two_writers(Place::Memory.ledger_without(Protection::Fencing).await, &schedule).await };
    assert!(tokens_fell(&run(without)));
    let with = async { two_writers(Place::Memory.ledger().await, &schedule).await };
    assert!(!tokens_fell(&run(with)));
}
