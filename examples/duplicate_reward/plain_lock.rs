//! Act one: a lock that expires, used as carefully as it can be.
//!
//! Both workers take it with `SET NX PX` and look under the lock whether the reward was paid. A makes sure, right before
//! it pays, that the lock is still its own, and each deletes the lock only if it is. The table is not told who holds the lock: there is nothing to tell it.

use std::sync::Arc;
use std::time::Duration;

use lease_core::machine::{LeaseKey, Set, SetCondition, SetExpiry};
use lease_core::wire::ReleaseReply;
use lease_core::{Database, LeaseName, OwnerId, Ttl};
use lease_store::{LeaseStore, StoreConfig, Stored};
use tokio::sync::oneshot;

use crate::accounts::Accounts;
use crate::expired::Expired;
use crate::pause::{Pausable, spawn_pausable};
use crate::timeline::{Paint, Place, Step, Timeline};
use crate::{Failure, LateWrite, Outcome, Scene};

/// How often a worker asks again for a lock that it did not get, in parts of the ttl.
const ASK_AGAIN_PART: u32 = 50;

/// Plays the act, prints it, and counts.
pub(crate) async fn play(scene: &Scene, paint: Paint) -> Result<Outcome, Failure> {
    let store = LeaseStore::start(StoreConfig::in_memory()).await?;
    let stage = Stage {
        scene: scene.clone(),
        lock: Lock::new(store.clone(), scene)?,
        accounts: Arc::default(),
        timeline: Arc::new(Timeline::start()),
    };
    let (paused, a_is_paused) = oneshot::channel();
    let of_a = stage.clone();
    let a = spawn_pausable(paused, move |thread| worker_a(&of_a, thread));
    a_is_paused.await?;
    let at_b_grant = worker_b(&stage).await?;
    let late_write = a.await??;
    let expired = Expired::find(&store, &stage.lock.key.name)?;
    stage.timeline.add_at(
        at_b_grant.saturating_sub(expired.before_next_grant),
        expired.step(),
    );
    println!("{}", stage.timeline.draw(paint));
    store.shutdown().await?;
    Ok(Outcome {
        counted: stage.accounts.counted(),
        late_write,
    })
}

#[derive(Debug, Clone)]
struct Stage {
    scene: Scene,
    lock: Lock,
    accounts: Arc<Accounts>,
    timeline: Arc<Timeline>,
}

/// Worker A takes the lock, looks, stops, and pays.
fn worker_a(stage: &Stage, thread: &mut Pausable) -> Result<LateWrite, Failure> {
    let owner = OwnerId::new("worker-a")?;
    thread.run(async {
        let taken = stage.lock.take(&owner).await?;
        stage.timeline.add(stage.asked_for_lock(Place::WorkerA, &taken));
        stage.look(Place::WorkerA);
        let holder = stage
            .lock
            .holder()
            .await?
            .map_or_else(|| "nil".to_owned(), |holder| holder.to_string());
        stage
            .timeline
            .add(Step::new(Place::WorkerA, "GET lock").answered(Place::Store, holder));
        Ok(())
    })?;
    stage
        .timeline
        .add(Step::new(Place::WorkerA, "stops, with the lock in its hand").quiet());
    thread.stop_for(stage.scene.pause);
    stage
        .timeline
        .add(Step::new(Place::WorkerA, "goes on, as if no time had passed").quiet());
    let paid_before = stage.count();
    let step = stage.pay(Place::WorkerA);
    stage
        .timeline
        .add(if paid_before > 0 { step.wrong() } else { step });
    thread.run(stage.give_back(Place::WorkerA, &owner))?;
    Ok(LateWrite::Taken)
}

/// Worker B asks until it has the lock, looks, and pays. When it got the lock is returned.
async fn worker_b(stage: &Stage) -> Result<Duration, Failure> {
    let owner = OwnerId::new("worker-b")?;
    let mut taken = stage.lock.take(&owner).await?;
    stage.timeline.add(stage.asked_for_lock(Place::WorkerB, &taken));
    while let Stored::No { .. } = taken {
        tokio::time::sleep(stage.scene.ttl / ASK_AGAIN_PART).await;
        taken = stage.lock.take(&owner).await?;
    }
    let at = stage.timeline.now();
    stage.timeline.add(stage.asked_for_lock(Place::WorkerB, &taken));
    if stage.look(Place::WorkerB) == 0 {
        stage.timeline.add(stage.pay(Place::WorkerB));
    }
    stage.give_back(Place::WorkerB, &owner).await?;
    Ok(at)
}

impl Stage {
    fn asked_for_lock(&self, worker: Place, taken: &Stored) -> Step {
        let asks = format!("SET lock NX PX {}", self.scene.ttl.as_millis());
        let answer = match taken {
            Stored::Yes { .. } => "OK".to_owned(),
            Stored::No {
                current: Some(holder),
            } => format!("nil: {holder} has it"),
            Stored::No { current: None } => "nil".to_owned(),
        };
        Step::new(worker, asks).answered(Place::Store, answer)
    }

    fn count(&self) -> usize {
        self.accounts.count(self.scene.player, &self.scene.event)
    }

    fn look(&self, worker: Place) -> usize {
        let count = self.count();
        let answer = format!("{count} payments yet");
        self.timeline
            .add(Step::new(worker, "was it paid?").answered(Place::Ledger, answer));
        count
    }

    fn pay(&self, worker: Place) -> Step {
        let Scene {
            player,
            event,
            amount,
            ..
        } = &self.scene;
        let row = self.accounts.insert(*player, event, *amount);
        let pays = format!("pays {amount} gold");
        Step::new(worker, pays).answered(Place::Ledger, format!("payment {row}: {amount} gold"))
    }

    async fn give_back(&self, worker: Place, owner: &OwnerId) -> Result<(), Failure> {
        let answer = if self.lock.give_back(owner).await? {
            "deleted"
        } else {
            "not its own"
        };
        let step = Step::new(worker, "deletes the lock").answered(Place::Store, answer);
        self.timeline.add(step);
        Ok(())
    }
}

/// A lock as Redis users know it.
#[derive(Debug, Clone)]
struct Lock {
    store: LeaseStore,
    key: LeaseKey,
    ttl: Ttl,
}

impl Lock {
    fn new(store: LeaseStore, scene: &Scene) -> Result<Self, Failure> {
        let key = LeaseKey::new(Database::ZERO, LeaseName::new(scene.lock)?);
        Ok(Self {
            store,
            key,
            ttl: Ttl::from_duration(scene.ttl)?,
        })
    }

    /// `SET lock owner NX PX ttl`
    async fn take(&self, owner: &OwnerId) -> Result<Stored, Failure> {
        let set = Set {
            key: self.key.clone(),
            value: owner.clone(),
            expiry: SetExpiry::In(self.ttl),
            condition: SetCondition::IfAbsent,
        };
        Ok(self.store.set(set).await?)
    }

    /// `GET lock`
    async fn holder(&self) -> Result<Option<OwnerId>, Failure> {
        Ok(self.store.value(&self.key).await?)
    }

    /// Deletes the lock if it is still `owner`'s, as the usual script does; whether it was.
    async fn give_back(&self, owner: &OwnerId) -> Result<bool, Failure> {
        let LeaseKey { database, name } = self.key.clone();
        let held = self.store.token(database, name.clone(), owner).await?;
        let Some(token) = held.token else {
            return Ok(false);
        };
        let released = self.store.release(database, name, token).await?;
        Ok(released == ReleaseReply::Released)
    }
}
