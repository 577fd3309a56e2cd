//! The machine of these tests: it adds numbers up, and remembers when and how often.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lease_core::Timestamp;

use super::super::applier::{Applier, CannotApply, SnapshotView};
use super::super::data_dir::DataDir;
use super::super::error::ProposeError;
use super::super::leadership::{Leading, Role};
use super::super::node::{NodeConfig, RaftNode, Storage};
use crate::runtime::{Rt, Tokio};

pub(super) const NODE: u64 = 7;

/// What the machine holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::raft) struct Count {
    pub(in crate::raft) sum: u64,
    pub(in crate::raft) entries: u64,
    pub(in crate::raft) at: u64,
    /// Makes snapshots and bodies as large as a test wants them.
    pub(in crate::raft) ballast: Vec<u8>,
}

/// The machine; a clone shares the count, so that a test can look at it.
#[derive(Debug, Clone, Default)]
pub(in crate::raft) struct Counter {
    shared: Arc<Mutex<Count>>,
}

impl Counter {
    pub(super) fn count(&self) -> Count {
        self.shared.lock().unwrap().clone()
    }
}

/// A number that this build of the machine does not know.
pub(super) const REFUSED: u64 = u64::MAX;
/// A number that the machine panics over.
pub(super) const PANICS: u64 = u64::MAX - 1;

/// The body that adds `number`.
pub(super) fn adds(number: u64) -> Bytes {
    Bytes::copy_from_slice(&number.to_le_bytes())
}

impl Applier for Counter {
    type Outcome = u64;
    type View = Count;
    type State = Count;

    fn apply(&mut self, at: Timestamp, body: &Bytes) -> Result<u64, CannotApply> {
        let Some((number, ballast)) = body.split_first_chunk::<8>() else {
            return Err(CannotApply::Malformed {
                reason: "short".to_owned(),
            });
        };
        let number = u64::from_le_bytes(*number);
        if number == REFUSED {
            return Err(CannotApply::UnsupportedVersion {
                needed: 13,
                supported: 1,
            });
        }
        assert_ne!(number, PANICS, "on purpose");
        let mut count = self.shared.lock().unwrap();
        count.sum += number;
        count.entries += 1;
        count.at = count.at.max(at.as_millis());
        if !ballast.is_empty() {
            count.ballast = ballast.to_vec();
        }
        Ok(count.sum)
    }

    fn view(&self) -> Count {
        self.count()
    }

    fn decode(from: &mut dyn Read) -> io::Result<Count> {
        let mut number = || {
            let mut bytes = [0; 8];
            from.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
        };
        let (sum, entries, at) = (number()?, number()?, number()?);
        let mut ballast = Vec::new();
        from.read_to_end(&mut ballast)?;
        Ok(Count {
            sum,
            entries,
            at,
            ballast,
        })
    }

    fn replace(&mut self, state: Count) -> Count {
        std::mem::replace(&mut self.shared.lock().unwrap(), state)
    }
}

impl SnapshotView for Count {
    fn encode(&self, out: &mut dyn Write) -> io::Result<()> {
        for number in [self.sum, self.entries, self.at] {
            out.write_all(&number.to_le_bytes())?;
        }
        out.write_all(&self.ballast)
    }
}

pub(super) type Node = RaftNode<Tokio, Counter>;
pub(super) type Lead = Leading<<Tokio as openraft::AsyncRuntime>::Instant>;

pub(super) async fn in_memory() -> (Node, Counter) {
    start(NodeConfig::alone(NODE, Storage::Memory)).await
}

pub(super) async fn in_dir(dir: &Path) -> (Node, Counter) {
    let dir = DataDir::open(dir, NODE).unwrap();
    start(NodeConfig::alone(NODE, Storage::Directory(dir))).await
}

pub(super) async fn start(config: NodeConfig) -> (Node, Counter) {
    let counter = Counter::default();
    let node = Node::start(config, counter.clone()).await.unwrap();
    (node, counter)
}

/// Waits until the node leads.
pub(super) async fn lead(node: &Node) -> Lead {
    let mut leadership = node.leadership();
    loop {
        if let Role::Leading(leading) = leadership.changed().await.expect("Raft runs") {
            return leading;
        }
    }
}

/// Proposes to add `number` at `at` and waits for the sum.
pub(super) async fn add(node: &Node, leading: &Lead, at: u64, number: u64) -> Result<u64, ProposeError> {
    let at = Timestamp::from_millis(at);
    let applied = node.propose(at, adds(number), leading.id).await?.await?;
    Ok(applied.outcome)
}

/// Waits until `holds`, which must become true.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Tokio::now() + std::time::Duration::from_secs(20);
    while !holds() {
        assert!(Tokio::now() < deadline, "waited in vain: {what}");
        tokio::task::yield_now().await;
    }
}
