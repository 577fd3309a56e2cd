//! What a follower's callers are told when the leader's answers do not come.
#![expect(
    clippy::disallowed_methods,
    reason = "callers run beside the proposer, on tokio's paused clock"
)]

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use lease_core::machine::{
    Command, LeaseKey, LeaseMachine, Outcome, Set, SetCondition, SetExpiry, Submission,
};
use lease_core::{Database, LeaseName, OwnerId, Timestamp, Ttl};

use super::*;
use crate::events::Events;
use crate::forward::{Barrier, Outcomes};
use crate::orphans::IfUndelivered;
use crate::raft::node::{NodeConfig, RaftNode, Storage};
use crate::replica::{LeaseApplier, Replica};
use crate::runtime::{AsyncRuntime, Instant as _, Tokio};

type Instant = <Tokio as AsyncRuntime>::Instant;

const OWN: u64 = 1;

/// What becomes of one submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    Nothing,
    TheRequest,
    TheAnswer,
    /// Applied, and then the leader stands still.
    TheLeader,
}

/// The machine of the other nodes, and what they do with the next submissions; with the ones after those, nothing is lost.
#[derive(Debug)]
struct Others {
    machine: Mutex<LeaseMachine>,
    losses: Mutex<VecDeque<Lost>>,
    seen: Mutex<Vec<(u64, Submission)>>,
}

impl Others {
    fn losing(losses: impl IntoIterator<Item = Lost>) -> Arc<Self> {
        let mut machine = LeaseMachine::new();
        let open = [Command::RaiseTokenFloor { floor: 0 }];
        machine.apply(Timestamp::ZERO, &open).unwrap();
        Arc::new(Self {
            machine: Mutex::new(machine),
            losses: Mutex::new(losses.into_iter().collect()),
            seen: Mutex::default(),
        })
    }

    fn apply(&self, leader: u64, commands: &[EncodedCommand]) -> Vec<Outcome> {
        let submissions = codec::split(&codec::join(commands).unwrap()).unwrap();
        let mut machine = lock(&self.machine);
        let now = machine.now();
        let applied = machine.apply_entry(now, &submissions).unwrap();
        let seen = submissions.into_iter().map(|submission| (leader, submission));
        lock(&self.seen).extend(seen);
        applied.outcomes
    }

    fn holder(&self, name: &str) -> Option<OwnerId> {
        lock(&self.machine).get(&key(name)).map(|lease| lease.owner)
    }

    fn last_token(&self) -> u64 {
        lock(&self.machine).stats().last_token
    }

    fn settled_below(&self) -> Vec<u64> {
        let seen = lock(&self.seen);
        let numbers = seen.iter().filter_map(|(_, submission)| submission.once);
        numbers.map(|once| once.settled_below).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Forward for Others {
    fn submit(
        &self,
        leader: u64,
        commands: Vec<EncodedCommand>,
    ) -> Pin<Box<dyn Future<Output = Outcomes> + Send + '_>> {
        Box::pin(async move {
            let lost = lock(&self.losses).pop_front().unwrap_or(Lost::Nothing);
            if lost == Lost::TheRequest {
                return commands.iter().map(|_| Err(StoreError::Unknown)).collect();
            }
            let outcomes = self.apply(leader, &commands);
            match lost {
                Lost::TheAnswer => commands.iter().map(|_| Err(StoreError::Unknown)).collect(),
                Lost::TheLeader => pending().await,
                Lost::Nothing | Lost::TheRequest => outcomes.into_iter().map(Ok).collect(),
            }
        })
    }

    fn barrier(
        &self,
        _leader: u64,
    ) -> Pin<Box<dyn Future<Output = Result<Barrier, StoreError>> + Send + '_>> {
        Box::pin(std::future::ready(Err(StoreError::Unknown)))
    }
}

/// A follower of node 2.
struct Follower {
    proposer: ProposerHandle<Instant>,
    role: watch::Sender<Role<Instant>>,
    orphans: Arc<Orphans>,
    others: Arc<Others>,
}

impl Follower {
    async fn of(others: Arc<Others>) -> Self {
        let orphans = Arc::new(Orphans::default());
        let waiters = Arc::new(Waiters::new(OWN, 1, Arc::clone(&orphans)));
        let (applier, _schedule) = LeaseApplier::new(
            Replica::default(),
            Arc::clone(&waiters),
            Arc::new(Events::default()),
        );
        let node = RaftNode::start(NodeConfig::alone(OWN, Storage::Memory), applier)
            .await
            .unwrap();
        let (role, told) = watch::channel(Role::Following { leader: Some(2) });
        let proposer = Proposer::<Tokio> {
            node,
            role: told,
            forward: Arc::clone(&others) as Arc<dyn Forward>,
            orphans: Arc::clone(&orphans),
            waiters,
            life: Life {
                node: OWN,
                incarnation: 1,
            },
            metrics: Arc::new(Metrics::default()),
        };
        let (proposer, run) = proposer.with_mailbox();
        tokio::spawn(run);
        Self {
            proposer,
            role,
            orphans,
            others,
        }
    }

    async fn set_if_absent(&self, name: &str, value: &str) -> Result<Outcome, StoreError> {
        let set = Command::Set(Set {
            key: key(name),
            value: OwnerId::redis_value(value).unwrap(),
            expiry: SetExpiry::In(Ttl::from_millis(60_000).unwrap()),
            condition: SetCondition::IfAbsent,
        });
        let request = Request::new(&set, IfUndelivered::Release(key(name))).unwrap();
        self.proposer.propose::<Tokio>(request).await
    }

    async fn until_nobody_holds(&self, name: &str) {
        while self.others.holder(name).is_some() || self.orphans.any() {
            Tokio::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn key(name: &str) -> LeaseKey {
    LeaseKey::new(Database::ZERO, LeaseName::new(name).unwrap())
}

fn is_stored(outcome: &Result<Outcome, StoreError>) -> bool {
    matches!(outcome, Ok(Outcome::Stored { .. }))
}

#[tokio::test(start_paused = true)]
async fn a_set_whose_request_and_answers_are_lost_is_sent_again_and_applied_once() {
    let others = Others::losing([Lost::TheRequest, Lost::TheAnswer, Lost::TheAnswer]);
    let follower = Follower::of(Arc::clone(&others)).await;
    assert!(is_stored(&follower.set_if_absent("L", "a").await));
    assert_eq!(
        (others.last_token(), others.holder("L").unwrap().as_bytes()),
        (1, &b"a"[..])
    );
    let held = follower.set_if_absent("L", "a").await;
    assert!(
        matches!(held, Ok(Outcome::NotStored { .. })),
        "another one is another one"
    );
    assert_eq!(
        others.settled_below(),
        [1, 1, 1, 2],
        "what has its answer is done with"
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_forwarded_to_a_leader_that_stands_still_goes_to_its_successor_at_once() {
    let others = Others::losing([Lost::TheLeader]);
    let follower = Follower::of(Arc::clone(&others)).await;
    let asked_at = Tokio::now();
    let set = follower.set_if_absent("L", "a");
    let elected = async {
        Tokio::sleep(Duration::from_millis(700)).await;
        follower.role.send_replace(Role::Following { leader: Some(3) });
    };
    let (outcome, ()) = futures_util::join!(set, elected);
    assert!(is_stored(&outcome), "{outcome:?}");
    assert!(
        asked_at.elapsed() < Duration::from_millis(800),
        "{:?}",
        asked_at.elapsed()
    );
    let leaders: Vec<u64> = lock(&others.seen).iter().map(|(leader, _)| *leader).collect();
    assert_eq!(leaders, [2, 3]);
    assert_eq!(others.last_token(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_grant_whose_caller_was_told_that_nobody_knows_is_released() {
    let others = Others::losing([Lost::TheAnswer].into_iter().chain([Lost::TheRequest; 100]));
    let follower = Follower::of(Arc::clone(&others)).await;
    let asked_at = Tokio::now();
    let outcome = follower.set_if_absent("L", "a").await;
    assert!(matches!(outcome, Err(StoreError::Unknown)), "{outcome:?}");
    assert!(
        asked_at.elapsed() <= ANSWER_WITHIN_AT_MOST,
        "{:?}",
        asked_at.elapsed()
    );
    assert!(others.holder("L").is_some());
    follower.until_nobody_holds("L").await;
    assert!(is_stored(&follower.set_if_absent("L", "b").await));
}

#[tokio::test(start_paused = true)]
async fn a_grant_whose_caller_left_while_nobody_knew_is_released() {
    let others = Others::losing([Lost::TheAnswer, Lost::TheLeader]);
    let follower = Follower::of(Arc::clone(&others)).await;
    let left = Tokio::timeout(Duration::from_millis(300), follower.set_if_absent("L", "a")).await;
    assert!(left.is_err() && others.holder("L").is_some());
    follower.role.send_replace(Role::Following { leader: Some(3) });
    follower.until_nobody_holds("L").await;
}

#[tokio::test(start_paused = true)]
async fn commands_that_are_sent_again_keep_their_order() {
    let others = Others::losing([Lost::TheRequest, Lost::TheAnswer]);
    let follower = Follower::of(Arc::clone(&others)).await;
    let delete = Request::new(&Command::Delete { key: key("L") }, IfUndelivered::Keep).unwrap();
    let (set, deleted, set_again) = futures_util::join!(
        follower.set_if_absent("L", "a"),
        follower.proposer.propose::<Tokio>(delete),
        follower.set_if_absent("L", "b"),
    );
    assert!(is_stored(&set) && is_stored(&set_again));
    assert!(matches!(deleted, Ok(Outcome::Released { .. })), "{deleted:?}");
    assert_eq!(others.holder("L").unwrap().as_bytes(), b"b");
}

#[tokio::test(start_paused = true)]
async fn more_bytes_than_there_is_room_for_wait_at_their_callers_and_are_surely_not_applied() {
    let others = Others::losing([Lost::TheLeader]);
    let follower = Follower::of(Arc::clone(&others)).await;
    let large = || {
        let value = OwnerId::redis_value(vec![b'v'; 16 * 1_024 * 1_024 - 64]).unwrap();
        let set = Command::Set(Set {
            key: key("L"),
            value,
            expiry: SetExpiry::Never,
            condition: SetCondition::Always,
        });
        Request::new(&set, IfUndelivered::Keep).unwrap()
    };
    let calls = (0..6).map(|_| follower.proposer.propose::<Tokio>(large()));
    let outcomes = futures_util::future::join_all(calls).await;
    let never_sent =
        |outcome: &&Result<Outcome, StoreError>| matches!(outcome, Err(StoreError::Unavailable { .. }));
    assert!(outcomes.iter().filter(never_sent).count() >= 2, "{outcomes:?}");
    assert!(
        matches!(outcomes.first(), Some(Err(StoreError::Unknown))),
        "{outcomes:?}"
    );
}

/// Two seconds, and what the paused clock rounds up.
const ANSWER_WITHIN_AT_MOST: Duration = Duration::from_millis(2_010);
