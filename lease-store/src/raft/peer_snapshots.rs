//! Takes snapshots from peers: one at a time from each, few in all, and nothing of a broken one stays.
//!
//! ```text
//! begin ─► room under a passing name ─► chunks ─► end: sum, every block, what it covers ─► Raft installs it
//! ```
//! A leader that is over is told so at the beginning, before it sends all. Raft renames the file when it installs it,
//! in its own order with the log.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use openraft::Snapshot;
use openraft::async_runtime::watch::WatchReceiver as _;
use tokio::sync::oneshot;

use super::applier::Applier;
use super::node::RaftNode;
use super::peer_rpc::{Nonsense, SnapshotAnswer, SnapshotBegin, SnapshotChunk, SnapshotEnd};
use super::peer_service::nonsense;
use super::snapshot::{Incoming, IncomingError};
use super::types::{SnapshotMeta, Vote};
use crate::peers::{Kind, Refusal};
use crate::runtime::Rt;

/// Snapshots that arrive at once. There is one leader; another one or two may not know yet that they are over.
const SESSIONS_MAX: usize = 4;
/// How long the next piece may take to come, before what has arrived is thrown away.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// The snapshots that arrive at one node.
pub(super) struct PeerSnapshots<R: Rt, A: Applier> {
    node: RaftNode<R, A>,
    sessions: Arc<Mutex<Sessions<R>>>,
}

/// By sender.
type Sessions<R> = BTreeMap<u64, Session<R>>;

struct Session<R: Rt> {
    id: u64,
    vote: Vote,
    meta: SnapshotMeta,
    incoming: Incoming,
    touched: R::Instant,
}

impl<R: Rt, A: Applier> PeerSnapshots<R, A> {
    pub(super) fn new(node: &RaftNode<R, A>) -> Self {
        Self {
            node: node.clone(),
            sessions: Arc::default(),
        }
    }

    /// A snapshot is announced.
    pub(super) async fn begin(&self, from: u64, begin: SnapshotBegin) -> Result<SnapshotAnswer, Refusal> {
        let sense = |error| nonsense(from, Kind::SnapshotBegin, &error);
        let vote = begin.vote.of_leader(from).map_err(sense)?;
        let meta = begin.covers.meta().map_err(|error| sense(error.into()))?;
        let known = self.node.core().metrics().borrow_watched().vote;
        if vote < known {
            let vote = (&known).into();
            return Ok(SnapshotAnswer::Over { vote });
        }
        // A leader's snapshot cannot hold what a later one has written; Raft would take this node down over it.
        if meta
            .last_log_id
            .is_none_or(|last| last.leader_id > vote.leader_id)
        {
            return Err(sense(Nonsense::Vote));
        }
        let room = {
            let mut sessions = self.lock();
            let before = sessions.remove(&from);
            let room = sessions.len() < SESSIONS_MAX;
            drop(sessions);
            drop(before);
            room
        };
        if !room {
            return Ok(failed("too many snapshots arrive at once"));
        }
        let (snapshots, pass) = (Arc::clone(self.node.snapshots()), self.node.enter_gate());
        let (covers, bytes, id) = (meta.clone(), begin.bytes, begin.session);
        let opened = R::run_blocking(move || {
            let mark = format!("from-{from}-{id:016x}");
            let opened = snapshots.receive(&covers, &mark, bytes);
            drop(pass);
            opened
        });
        let incoming = match opened.await {
            Ok(Ok(incoming)) => incoming,
            Ok(Err(error)) => return Ok(told(from, &error)),
            Err(error) => return Ok(failed(&error.to_string())),
        };
        tracing::info!(peer = from, bytes, "a snapshot arrives");
        let session = Session {
            id,
            vote,
            meta,
            incoming,
            touched: R::now(),
        };
        self.put(from, session);
        self.expire(from, id);
        Ok(SnapshotAnswer::GoOn)
    }

    /// The next piece is there.
    pub(super) async fn chunk(&self, from: u64, chunk: SnapshotChunk) -> SnapshotAnswer {
        let Some(mut session) = self.take(from, chunk.session) else {
            return failed("it was not announced, or was given up");
        };
        let SnapshotChunk { offset, bytes, .. } = chunk;
        let pass = self.node.enter_gate();
        // A call that is given up meanwhile leaves no session: the sender begins again.
        let written = R::run_blocking(move || {
            let written = session.incoming.write(offset, &bytes);
            drop(pass);
            written.map(|()| session)
        });
        match written.await {
            Ok(Ok(mut session)) => {
                session.touched = R::now();
                self.put(from, session);
                SnapshotAnswer::GoOn
            }
            Ok(Err(error)) => told(from, &error),
            Err(error) => failed(&error.to_string()),
        }
    }

    /// Checks and installs it, in a task of its own: a caller that is gone must not leave Raft with half a file.
    pub(super) async fn end(&self, from: u64, end: SnapshotEnd) -> Result<SnapshotAnswer, Refusal> {
        let Some(session) = self.take(from, end.session) else {
            return Ok(failed("it was not announced, or was given up"));
        };
        let (tell, told) = oneshot::channel();
        let node = self.node.clone();
        drop(R::spawn_on(node.node(), async move {
            // A sender that is gone needs no answer.
            let _ = tell.send(install(&node, from, session, end.checksum).await);
        }));
        told.await.unwrap_or(Err(Refusal::Stopped))
    }

    /// Throws a session away that nobody goes on with.
    fn expire(&self, from: u64, id: u64) {
        let sessions: Weak<Mutex<Sessions<R>>> = Arc::downgrade(&self.sessions);
        drop(R::spawn_on(self.node.node(), async move {
            // A session is away while a piece of it is written.
            let mut away = 0;
            while away < 2 {
                R::sleep(IDLE_MAX).await;
                let Some(sessions) = sessions.upgrade() else {
                    return;
                };
                let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
                match sessions.get(&from) {
                    Some(session) if session.id != id => return,
                    Some(session) if session.touched + IDLE_MAX > R::now() => away = 0,
                    Some(_) => {
                        tracing::warn!(peer = from, "a snapshot from a peer was not sent to its end");
                        sessions.remove(&from);
                        return;
                    }
                    None => away += 1,
                }
            }
        }));
    }

    fn take(&self, from: u64, id: u64) -> Option<Session<R>> {
        let mut sessions = self.lock();
        if sessions.get(&from)?.id != id {
            return None;
        }
        sessions.remove(&from)
    }

    /// Puts a session back, unless its sender has begun another.
    fn put(&self, from: u64, session: Session<R>) {
        let mut sessions = self.lock();
        let stale = match sessions.entry(from) {
            Entry::Occupied(_) => Some(session),
            Entry::Vacant(free) => {
                free.insert(session);
                None
            }
        };
        drop(sessions);
        drop(stale);
    }

    fn lock(&self) -> MutexGuard<'_, Sessions<R>> {
        // No code under this lock can panic half-way through a change.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn install<R: Rt, A: Applier>(
    node: &RaftNode<R, A>,
    from: u64,
    session: Session<R>,
    checksum: u32,
) -> Result<SnapshotAnswer, Refusal> {
    let Session {
        vote, meta, incoming, ..
    } = session;
    let pass = node.enter_gate();
    let checked = R::run_blocking(move || {
        let checked = incoming.finish(checksum);
        drop(pass);
        checked
    });
    let received = match checked.await {
        Ok(Ok(received)) => received,
        Ok(Err(error)) => return Ok(told(from, &error)),
        Err(error) => return Ok(failed(&error.to_string())),
    };
    let last = meta.last_log_id;
    let committed = node
        .core()
        .with_raft_state(|state| state.local_committed().copied());
    let committed = committed.await.map_err(|_| Refusal::Stopped)?;
    // Raft would take this node down over it: two histories of one cluster id.
    if last > committed && last.map(|id| id.index) <= committed.map(|id| id.index) {
        tracing::error!(
            peer = from,
            ?last,
            ?committed,
            "a snapshot contradicts what is committed here"
        );
        return Ok(failed("it contradicts what is committed here"));
    }
    let snapshot = Snapshot {
        meta,
        snapshot: received.data(),
    };
    let installed = node.core().install_full_snapshot(vote, snapshot).await;
    let pass = node.enter_gate();
    // What Raft had no use for is removed; off the runtime, since a file may be large.
    let cleared = R::run_blocking(move || {
        drop(received);
        drop(pass);
    });
    let _: io::Result<()> = cleared.await;
    let answer = installed.map_err(|_| Refusal::Stopped)?;
    tracing::info!(
        peer = from,
        index = last.map(|id| id.index),
        "a snapshot from a peer is in force"
    );
    Ok(SnapshotAnswer::Over {
        vote: (&answer.vote).into(),
    })
}

fn told(from: u64, error: &IncomingError) -> SnapshotAnswer {
    tracing::error!(
        peer = from,
        error = error as &dyn std::error::Error,
        "a snapshot from a peer is not taken over"
    );
    failed(&error.to_string())
}

fn failed(reason: &str) -> SnapshotAnswer {
    SnapshotAnswer::Failed {
        reason: reason.to_owned(),
    }
}
