//! A server for tests: real sockets in front of [`MachineStore`], which a test can silence, cut off, or take down.

use std::sync::Arc;

use bytes::BytesMut;
use lease_core::wire::{
    Access, ErrorWord, LeaderReply, LeaseCommand, LeaseVerb, Protocol, Reply, Request, RequestDecoder,
    RequestLimits,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::machine_store::MachineStore;
use crate::tasks;

/// How the server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Up,
    /// It takes bytes in and answers nothing, as behind a network that drops all packets.
    Silent,
    /// It refuses all that needs a right.
    Revoked,
    /// It knows no leader, or is cut off from the others.
    NoLeader,
    /// It closes each connection at once.
    Down,
}

pub(super) struct FakeServer {
    pub(super) store: Arc<MachineStore>,
    pub(super) address: String,
    mode: watch::Sender<Mode>,
    connections: watch::Sender<usize>,
    claim: watch::Sender<Option<LeaderReply>>,
    asked: watch::Sender<usize>,
}

impl FakeServer {
    pub(super) async fn start(password: Option<&'static str>) -> Self {
        Self::of(MachineStore::start(), password).await
    }

    /// Another node of the same cluster.
    pub(super) async fn beside(other: &Self) -> Self {
        Self::of(Arc::clone(&other.store), None).await
    }

    async fn of(store: Arc<MachineStore>, password: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (mode, connections) = (watch::Sender::new(Mode::Up), watch::Sender::new(0));
        let (claim, asked) = (watch::Sender::new(None), watch::Sender::new(0));
        let serving = Serving {
            store: Arc::clone(&store),
            mode: mode.subscribe(),
            connections: connections.clone(),
            claim: claim.subscribe(),
            asked: asked.clone(),
            password,
        };
        tasks::spawn(tracing::Span::none(), async move {
            // Ends with the test's runtime.
            while let Ok((stream, _)) = listener.accept().await {
                tasks::spawn(tracing::Span::none(), serving.clone().serve(stream));
            }
        });
        Self {
            store,
            address,
            mode,
            connections,
            claim,
            asked,
        }
    }

    /// From now on it says this of the cluster.
    pub(super) fn claim(&self, node: u64, leader: Option<u64>, term: u64) {
        self.claim.send_replace(Some(LeaderReply { node, leader, term }));
    }

    /// Leases and waits that it was asked for, here and not at the others.
    pub(super) fn acquires(&self) -> usize {
        *self.asked.borrow()
    }

    pub(super) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Waits until the number of connections is as wanted.
    pub(super) async fn connections(&self, wanted: impl Fn(usize) -> bool) {
        let _ = self
            .connections
            .subscribe()
            .wait_for(|count| wanted(*count))
            .await;
    }
}

#[derive(Clone)]
struct Serving {
    store: Arc<MachineStore>,
    mode: watch::Receiver<Mode>,
    connections: watch::Sender<usize>,
    claim: watch::Receiver<Option<LeaderReply>>,
    asked: watch::Sender<usize>,
    password: Option<&'static str>,
}

impl Serving {
    async fn serve(self, stream: TcpStream) {
        self.connections.send_modify(|count| *count += 1);
        let mut mode = self.mode.clone();
        tokio::select! {
            biased;
            _ = mode.wait_for(|mode| *mode == Mode::Down) => {}
            () = self.answer_all(stream) => {}
        }
        self.connections.send_modify(|count| *count -= 1);
    }

    async fn answer_all(&self, mut stream: TcpStream) {
        let mut decoder = RequestDecoder::new(RequestLimits::default(), Access::Authenticated);
        let mut authenticated = self.password.is_none();
        loop {
            while let Some(request) = decoder.next_request().unwrap() {
                let mut mode = self.mode.clone();
                let answering = async {
                    let _ = mode.wait_for(|mode| *mode != Mode::Silent).await;
                    self.answer(&request, &mut authenticated).await
                };
                let reply = tokio::select! {
                    reply = answering => reply,
                    // As the real one: a caller that hangs up gives its wait up.
                    closed = closed(&mut stream, &mut decoder) => { assert!(closed); return }
                };
                let _ = self.mode.clone().wait_for(|mode| *mode != Mode::Silent).await;
                let mut out = BytesMut::new();
                reply.encode(Protocol::Resp2, &mut out);
                if stream.write_all(&out).await.is_err() {
                    return;
                }
            }
            match stream.read_buf(&mut decoder.space()).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    async fn answer(&self, request: &Request, authenticated: &mut bool) -> Reply {
        let command = request.command().to_ascii_uppercase();
        if command == b"AUTH" {
            *authenticated = request.arg(request.len() - 1) == self.password.map(str::as_bytes);
            return if *authenticated {
                Reply::OK
            } else {
                Reply::error(ErrorWord::WrongPass, "invalid password")
            };
        }
        if !*authenticated {
            return Reply::error(ErrorWord::NoAuth, "Authentication required.");
        }
        match LeaseVerb::parse(&command) {
            Some(_) if *self.mode.borrow() == Mode::Revoked => Reply::error(ErrorWord::NoPerm, "revoked"),
            Some(_) if *self.mode.borrow() == Mode::NoLeader => {
                Reply::error(ErrorWord::ClusterDown, "no leader is known")
            }
            Some(verb) => match LeaseCommand::parse(verb, request) {
                Ok(LeaseCommand::Leader) => self.hint(),
                Ok(command) => {
                    self.asked
                        .send_modify(|count| *count += usize::from(verb == LeaseVerb::Acquire));
                    self.store.execute(command).await
                }
                Err(error) => error.to_reply(),
            },
            None => Reply::OK,
        }
    }

    fn hint(&self) -> Reply {
        let claim = *self.claim.borrow();
        claim.map_or_else(
            || Reply::error(ErrorWord::Err, "unknown command 'LEASE.LEADER'"),
            |claim| claim.to_reply(),
        )
    }
}

/// Reads on until the peer hangs up.
async fn closed(stream: &mut TcpStream, decoder: &mut RequestDecoder) -> bool {
    while !matches!(stream.read_buf(&mut decoder.space()).await, Ok(0) | Err(_)) {}
    true
}
