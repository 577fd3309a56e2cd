//! Act two: the same two workers and the same pause. The lock's token travels with the write, and the ledger looks at it.

use std::sync::Arc;
use std::time::Duration;

use fence_client::{AcquireError, FenceClient, Lease, LeaseName, OwnerId, ShortDurations as _};
use lease_store::{LeaseStore, StoreConfig, TokenFloor};
use reward_ledger::{Claim, ClaimOutcome, Ledger, MemoryStore, Receipt};
use tokio::sync::oneshot;

use crate::expired::Expired;
use crate::pause::{Pausable, spawn_pausable};
use crate::timeline::{Paint, Place, Step, Timeline};
use crate::{Counted, Failure, LateWrite, Outcome, Scene};

/// Tokens start above this, so that they are short to read. By default they start at the milliseconds since 2026.
const TOKEN_FLOOR: TokenFloor = TokenFloor::At(100);

/// Plays the act, prints it, and counts.
pub(crate) async fn play(scene: &Scene, paint: Paint) -> Result<Outcome, Failure> {
    let store = LeaseStore::start(StoreConfig::in_memory().token_floor(TOKEN_FLOOR)).await?;
    let stage = Stage {
        scene: scene.clone(),
        store: store.clone(),
        ledger: Ledger::open(MemoryStore::new()),
        timeline: Arc::new(Timeline::start()),
    };
    let (paused, a_is_paused) = oneshot::channel();
    let of_a = stage.clone();
    let a = spawn_pausable(paused, move |thread| worker_a(&of_a, thread));
    a_is_paused.await?;
    let at_b_grant = worker_b(&stage).await?;
    let late_write = a.await??;
    let expired = Expired::find(&store, &LeaseName::new(scene.lock)?)?;
    stage.timeline.add_at(
        at_b_grant.saturating_sub(expired.before_next_grant),
        expired.step(),
    );
    println!("{}", stage.timeline.draw(paint));
    let audit = stage.ledger.audit().await?;
    if !audit.is_clean() {
        return Err(format!("the ledger's audit found {:?}", audit.violations).into());
    }
    store.shutdown().await?;
    Ok(Outcome {
        counted: Counted {
            payments: audit.claims,
            gold: audit.granted,
        },
        late_write,
    })
}

#[derive(Debug, Clone)]
struct Stage {
    scene: Scene,
    store: LeaseStore,
    ledger: Ledger,
    timeline: Arc<Timeline>,
}

/// Worker A takes the lease, looks, stops, and claims the reward with its token.
fn worker_a(stage: &Stage, thread: &mut Pausable) -> Result<LateWrite, Failure> {
    let lease = thread.run(async {
        let lease = stage
            .client("worker-a")?
            .lease(stage.scene.lock)
            .ttl(stage.scene.ttl)
            .acquire()
            .await?;
        stage.note_grant(Place::WorkerA, &lease);
        stage.look(Place::WorkerA).await?;
        lease.check()?;
        let left = lease.remaining().as_millis();
        let step = Step::new(Place::WorkerA, format!("its lease stands for {left} ms"));
        stage.timeline.add(step);
        Ok(lease)
    })?;
    stage
        .timeline
        .add(Step::new(Place::WorkerA, "stops, with the lease in its hand").quiet());
    thread.stop_for(stage.scene.pause);
    stage
        .timeline
        .add(Step::new(Place::WorkerA, "goes on, as if no time had passed").quiet());
    thread.run(async {
        let outcome = stage.claim(Place::WorkerA, &lease).await?;
        if let Err(lost) = lease.check() {
            let step = Step::new(Place::WorkerA, format!("its lease is lost: {}", lost.reason));
            stage.timeline.add(step.quiet());
        }
        Ok(late_write(&outcome))
    })
}

fn late_write(outcome: &ClaimOutcome) -> LateWrite {
    if outcome.is_accepted() {
        return LateWrite::Taken;
    }
    if let ClaimOutcome::Stale {
        presented,
        seen,
        applied: Some(_),
    } = outcome
    {
        let (presented, seen) = (presented.get(), seen.get());
        return LateWrite::RefusedAndShown { presented, seen };
    }
    LateWrite::Other(format!("{outcome:?}"))
}

/// Worker B waits for the lease, looks, and claims the reward. When it got the lease is returned.
async fn worker_b(stage: &Stage) -> Result<Duration, Failure> {
    let lease = stage
        .client("worker-b")?
        .lease(stage.scene.lock)
        .ttl(stage.scene.ttl);
    if let Err(AcquireError::Held { holder }) = lease.clone().try_acquire().await {
        let answer = format!("{} has it, with token {}", holder.owner, holder.token);
        stage
            .timeline
            .add(Step::new(Place::WorkerB, "asks for the lease").answered(Place::Store, answer));
    }
    let lease = lease.wait(stage.scene.pause + 5.secs()).acquire().await?;
    let at = stage.timeline.now();
    stage.note_grant(Place::WorkerB, &lease);
    if stage.look(Place::WorkerB).await? == 0 && !stage.claim(Place::WorkerB, &lease).await?.is_accepted() {
        return Err("the ledger refused the holder of the lease".into());
    }
    lease.release().await?;
    stage
        .timeline
        .add(Step::new(Place::WorkerB, "releases it").answered(Place::Store, "released"));
    Ok(at)
}

impl Stage {
    fn client(&self, owner: &str) -> Result<FenceClient, Failure> {
        Ok(FenceClient::builder()
            .owner(OwnerId::new(owner)?)
            .embedded(self.store.clone())?)
    }

    fn note_grant(&self, worker: Place, lease: &Lease) {
        let answer = format!("granted: token {}", lease.token());
        self.timeline
            .add(Step::new(worker, "acquires the lease").answered(Place::Store, answer));
    }

    /// How often the reward was paid so far.
    async fn look(&self, worker: Place) -> Result<u64, Failure> {
        let receipt = self.ledger.get(self.scene.player, &self.scene.event).await?;
        let count = u64::from(receipt.is_some());
        let answer = format!("{count} payments yet");
        self.timeline
            .add(Step::new(worker, "was it paid?").answered(Place::Ledger, answer));
        Ok(count)
    }

    async fn claim(&self, worker: Place, lease: &Lease) -> Result<ClaimOutcome, Failure> {
        let Scene {
            player,
            event,
            amount,
            message,
            ..
        } = &self.scene;
        let claim = Claim::builder(lease.fence(), *player, event.clone(), *amount);
        let claim = claim.item("gold").attempt(message).build()?;
        let outcome = self.ledger.claim(claim).await?;
        let step = Step::new(worker, format!("claims {amount} gold, token {}", lease.token()));
        self.timeline.add(match answer(&outcome) {
            Answer::Paid(text) => step.answered(Place::Ledger, text),
            Answer::Refused(text) => step.answered(Place::Ledger, text).right(),
        });
        Ok(outcome)
    }
}

/// What the ledger answered, in words.
enum Answer {
    Paid(String),
    Refused(String),
}

fn answer(outcome: &ClaimOutcome) -> Answer {
    if let Some(receipt) = outcome.receipt() {
        return Answer::Paid(paid(receipt));
    }
    if let ClaimOutcome::Stale {
        presented,
        seen,
        applied,
    } = outcome
    {
        let shown = applied.as_ref().map_or_else(|| "nothing".to_owned(), paid);
        return Answer::Refused(format!(
            "refused: {presented} is stale, {seen} was seen. Shown: {shown}"
        ));
    }
    Answer::Refused(format!("{outcome:?}"))
}

fn paid(receipt: &Receipt) -> String {
    let token = receipt
        .token()
        .map_or_else(String::new, |token| format!(" by token {token}"));
    format!(
        "payment {}: {} {}{token}",
        receipt.claim_id(),
        receipt.amount(),
        receipt.item()
    )
}
