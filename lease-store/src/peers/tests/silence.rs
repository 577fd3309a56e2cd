//! Peers that are slow, or gone without a word.

use std::sync::atomic::AtomicUsize;

use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::peers::handshake::{self, Room};
use crate::peers::transport::NotSent;

/// Takes connections as node 2 and then says nothing; counts them.
async fn mute() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let taken = Arc::clone(&count);
    drop(Tokio::spawn_on(2, async move {
        let mut open = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            handshake::answer(&mut stream, &member(2), Room::There)
                .await
                .unwrap();
            taken.fetch_add(1, Ordering::AcqRel);
            open.push(stream);
        }
    }));
    (address, count)
}

fn peers_at(address: SocketAddr) -> TcpPeers {
    TcpPeers::new(member(1), BTreeMap::from([(2, address.to_string())]))
}

#[tokio::test]
async fn a_peer_that_says_nothing_costs_each_call_its_own_time_and_then_its_connection() {
    let (address, connections) = mute().await;
    let peers = peers_at(address);
    let within = Duration::from_millis(75);
    let began = Tokio::now();
    while connections.load(Ordering::Acquire) < 2 {
        let error = request(&peers, "hello", within).await.unwrap_err();
        // While the lane pauses between two connections, calls fail at once.
        let known = matches!(
            error,
            PeerError::NoAnswer { .. } | PeerError::NotSent { .. } | PeerError::Broken { .. }
        );
        assert!(known, "{error}");
        assert!(began.elapsed() < LONG, "the silent connection is kept for ever");
        if !error.may_have_applied() {
            tokio::task::yield_now().await;
        }
    }
    // Not at the first call that is late: a slow disk is no reason to connect anew.
    assert!(began.elapsed() >= Duration::from_millis(500));
}

#[tokio::test]
async fn a_peer_that_is_late_keeps_its_connection_and_its_late_answer_is_nobodys() {
    let pair = Pair::start().await;
    let late = request(&pair.peers, "wait", Duration::from_millis(20))
        .await
        .unwrap_err();
    assert!(
        matches!(late, PeerError::NoAnswer { .. }) && late.may_have_applied(),
        "{late}"
    );
    pair.echo.go_on.notify_one();
    for _ in 0..10 {
        assert_eq!(pair.ask("next").await.unwrap(), "next");
    }
    assert_eq!(pair.echo.served.load(Ordering::Acquire), 11);
}

#[tokio::test]
async fn one_that_accepts_and_never_introduces_itself_is_given_up_and_nothing_was_sent() {
    // The system accepts for it; nobody reads.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peers = peers_at(listener.local_addr().unwrap());
    let short = request(&peers, "hello", Duration::from_millis(50))
        .await
        .unwrap_err();
    assert!(
        matches!(
            short,
            PeerError::NotSent {
                reason: NotSent::NoTime,
                ..
            }
        ),
        "{short}"
    );
    let patient = request(&peers, "hello", LONG).await.unwrap_err();
    assert!(
        matches!(
            patient,
            PeerError::NotSent {
                reason: NotSent::Unreachable { .. },
                ..
            }
        ),
        "{patient}"
    );
}

#[tokio::test]
async fn a_caller_that_never_introduces_itself_is_hung_up_on() {
    use tokio::io::AsyncReadExt as _;
    let pair = Pair::start().await;
    let mut stream = TcpStream::connect(pair.address).await.unwrap();
    let mut told = Vec::new();
    Tokio::timeout(LONG, stream.read_to_end(&mut told))
        .await
        .unwrap()
        .unwrap();
    assert!(told.is_empty());
}

/// Forwards bytes both ways until it is told to swallow them: a cable that somebody pulls. What connects later passes.
struct Cable {
    address: SocketAddr,
    pulled: watch::Sender<u64>,
}

impl Cable {
    async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (pulled, pull) = watch::channel(0);
        drop(Tokio::spawn_on(0, async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                let mut pull = pull.clone();
                pull.mark_unchanged();
                drop(Tokio::spawn_on(0, async move {
                    let mut far = TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        biased;
                        _ = pull.changed() => {
                            // Both ends stay open, and nothing passes any more.
                            pending::<()>().await;
                        }
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    }
                }));
            }
        }));
        Self { address, pulled }
    }
}

#[tokio::test]
async fn a_connection_that_is_dead_without_a_word_is_replaced_and_the_next_calls_pass() {
    let pair = Pair::start().await;
    let cable = Cable::to(pair.address).await;
    let peers = peers_at(cable.address);
    assert_eq!(request(&peers, "hello", LONG).await.unwrap(), "hello");
    cable.pulled.send_modify(|times| *times += 1);
    let failed = wait_for(&peers, "hello", Duration::from_millis(100)).await;
    assert!(failed > 0);
}
