//! Peers that do nothing: each costs a place for a while, and no more.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::connections::Patience;
use super::{Access, Service};
use crate::ledger::Ledger;
use crate::store::MemoryStore;

/// Long enough that only what is meant to end does.
const LONG: Duration = Duration::from_secs(3_600);
/// Short enough to be waited for.
const SHORT: Duration = Duration::from_millis(50);

const LASTING: Patience = Patience {
    connections_max: 8,
    head_within: LONG,
    read_within: LONG,
    end_within: LONG,
};

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: ledger\r\n\r\n";

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

async fn serve(patience: Patience) -> Running {
    let ledger = Ledger::open(MemoryStore::new());
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut service = Service::bind(ledger, loopback, Access::LoopbackOnly)
        .await
        .unwrap();
    service.patience = patience;
    let address = service.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let (end, ended) = oneshot::channel();
    crate::outbox::spawn(async move {
        service
            .run(async move {
                let _gone = stopped.await;
            })
            .await;
        let _gone = end.send(());
    });
    Running { address, stop, ended }
}

/// A connection that was served once: it has its place.
async fn connected(address: SocketAddr) -> TcpStream {
    let mut peer = TcpStream::connect(address).await.unwrap();
    peer.write_all(HEALTH).await.unwrap();
    assert!(served(&mut peer).await);
    peer
}

/// Whether an answer begins with 200; the whole of it is read.
async fn served(peer: &mut TcpStream) -> bool {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"ok\n") {
        if !matches!(peer.read_buf(&mut bytes).await, Ok(1..)) {
            return false;
        }
    }
    bytes.starts_with(b"HTTP/1.1 200")
}

/// Whether the other side has closed; what it still says is let be.
async fn is_closed(mut peer: TcpStream) -> bool {
    let mut said = Vec::new();
    // Reset or ended: gone either way.
    peer.read_to_end(&mut said).await.is_err() || !said.starts_with(b"HTTP/1.1 200")
}

#[tokio::test]
async fn connections_beyond_the_bound_are_closed_and_a_place_that_is_free_is_given_again() {
    let running = serve(Patience {
        connections_max: 2,
        ..LASTING
    })
    .await;
    let first = connected(running.address).await;
    let second = connected(running.address).await;
    assert!(is_closed(TcpStream::connect(running.address).await.unwrap()).await);
    drop(first);
    // The place is free once the service has seen that its peer is gone.
    loop {
        let mut third = TcpStream::connect(running.address).await.unwrap();
        if third.write_all(HEALTH).await.is_ok() && served(&mut third).await {
            break;
        }
    }
    drop(second);
}

#[tokio::test]
async fn a_peer_that_sends_no_request_or_half_of_one_is_sent_away() {
    let running = serve(Patience {
        head_within: SHORT,
        ..LASTING
    })
    .await;
    let silent = TcpStream::connect(running.address).await.unwrap();
    assert!(is_closed(silent).await);
    let mut slow = TcpStream::connect(running.address).await.unwrap();
    slow.write_all(&HEALTH[..20]).await.unwrap();
    assert!(is_closed(slow).await);
    let idle = connected(running.address).await;
    assert!(is_closed(idle).await, "also between two requests");
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_sent_away() {
    let running = serve(Patience {
        read_within: SHORT,
        ..LASTING
    })
    .await;
    let mut deaf = TcpStream::connect(running.address).await.unwrap();
    // Answers of some 70 KB each, of which nothing is read: the buffers on the way fill, and the writes of the requests
    // stand still until the service has had enough.
    let request = b"GET /openapi.json HTTP/1.1\r\nhost: ledger\r\n\r\n";
    while deaf.write_all(request).await.is_ok() {}
}

#[tokio::test]
async fn a_stop_closes_what_is_idle_and_lets_what_has_begun_end() {
    let running = serve(LASTING).await;
    let idle = connected(running.address).await;
    let mut busy = connected(running.address).await;
    let body = "{}";
    let head = format!(
        "POST /v1/claims HTTP/1.1\r\nhost: ledger\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    busy.write_all(head.as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    busy.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");

    running.stop.send(()).unwrap();
    assert!(is_closed(idle).await);
    busy.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    busy.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    running.ended.await.unwrap();
}

#[tokio::test]
async fn a_stop_waits_for_nobody_who_never_ends_their_request() {
    let running = serve(Patience {
        end_within: SHORT,
        ..LASTING
    })
    .await;
    let mut half = connected(running.address).await;
    half.write_all(&HEALTH[..20]).await.unwrap();
    running.stop.send(()).unwrap();
    running.ended.await.unwrap();
}
