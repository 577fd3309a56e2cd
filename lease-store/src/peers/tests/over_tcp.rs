//! Calls and answers over real sockets.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::peers::frame::{Frame, FrameReader, FrameWriter};
use crate::peers::handshake::{self, HandshakeRefusal};
use crate::peers::transport::NotSent;

#[tokio::test]
async fn a_call_is_answered_and_its_caller_known() {
    let pair = Pair::start().await;
    assert_eq!(pair.ask("hello").await.unwrap(), "hello");
    assert_eq!(pair.ask("who").await.unwrap(), "1");
    let refused = pair.ask("refuse").await.unwrap_err();
    let refusal = Refusal::NotReady;
    assert!(
        matches!(&refused, PeerError::Refused { refusal: found, .. } if *found == refusal),
        "{refused}"
    );
}

#[tokio::test]
async fn bodies_up_to_the_bound_of_their_lane_travel_and_longer_ones_do_not_leave() {
    let pair = Pair::start().await;
    for length in [0, 1, 16 * 1_024, 16 * 1_024 + 1, 5_000_000] {
        let body = Bytes::from(vec![7; length]);
        let answer = pair
            .peers
            .call(2, Lane::Request, Kind::Request, body.clone(), LONG)
            .await;
        assert_eq!(answer.unwrap(), body);
    }
    let max = Lane::Heartbeat.call_bytes_max();
    let long = Bytes::from(vec![7; max + 1]);
    let refused = pair
        .peers
        .call(2, Lane::Heartbeat, Kind::Vote, long, LONG)
        .await
        .unwrap_err();
    let reason = NotSent::TooLong { bytes: max + 1, max };
    assert!(
        matches!(&refused, PeerError::NotSent { reason: found, .. } if *found == reason),
        "{refused}"
    );
    assert!(!refused.is_retryable());
}

#[tokio::test]
async fn a_slow_call_holds_up_no_other_of_its_lane() {
    let pair = Pair::start().await;
    let slow = pair.ask("wait");
    let others = async {
        eventually("the slow one is served", || {
            pair.echo.served.load(Ordering::Acquire) == 1
        })
        .await;
        for _ in 0..100 {
            assert_eq!(pair.ask("quick").await.unwrap(), "quick");
        }
        pair.echo.go_on.notify_one();
    };
    let (slow, ()) = tokio::join!(slow, others);
    assert_eq!(slow.unwrap(), "wait");
}

#[tokio::test]
async fn many_calls_at_once_each_get_their_own_answer() {
    let pair = Pair::start().await;
    let calls = (0..200_u32).map(|number| {
        let body = Bytes::from(number.to_string());
        pair.peers.call(2, Lane::Request, Kind::Request, body, LONG)
    });
    let answers = futures_util::future::join_all(calls).await;
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap(), number.to_string());
    }
}

#[tokio::test]
async fn a_lane_that_is_full_fails_calls_at_once_and_says_that_they_did_not_leave() {
    let pair = Pair::start().await;
    // Nobody runs between two calls that are only polled once: all of them wait in the mailbox.
    let mut calls: Vec<_> = (0..300).map(|_| Box::pin(pair.ask("x"))).collect();
    let full = calls.iter_mut().filter_map(futures_util::FutureExt::now_or_never);
    let full: Vec<PeerError> = full.map(Result::unwrap_err).collect();
    assert!(!full.is_empty());
    for error in full {
        assert!(
            matches!(
                error,
                PeerError::NotSent {
                    reason: NotSent::QueueFull,
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_kind_is_served_on_its_own_lane_only() {
    let pair = Pair::start().await;
    let body = Bytes::from_static(b"x");
    for (lane, kind) in [
        (Lane::Heartbeat, Kind::Request),
        (Lane::Formation, Kind::Vote),
        (Lane::Append, Kind::SnapshotBegin),
    ] {
        let refused = pair
            .peers
            .call(2, lane, kind, body.clone(), LONG)
            .await
            .unwrap_err();
        let unserved = matches!(
            refused,
            PeerError::Refused {
                refusal: Refusal::Unserved,
                ..
            }
        );
        assert!(unserved && !refused.may_have_applied(), "{refused}");
    }
    assert_eq!(pair.echo.served.load(Ordering::Acquire), 0);
}

#[tokio::test]
async fn a_node_without_a_cluster_sends_probes_alone_until_it_joins() {
    let caller = PeerIdentity::new(1);
    let pair = Pair::of(caller.clone(), member(2)).await;
    let probe = pair
        .peers
        .call(2, Lane::Formation, Kind::FormationProbe, Bytes::new(), LONG);
    probe.await.unwrap();
    let kept = pair.ask("hello").await.unwrap_err();
    assert!(
        matches!(
            kept,
            PeerError::NotSent {
                reason: NotSent::NoCluster,
                ..
            }
        ),
        "{kept}"
    );
    caller.join(CLUSTER).unwrap();
    // The lane pauses a moment after it has failed.
    wait_for(&pair.peers, "hello", LONG).await;
}

#[tokio::test]
async fn whoever_is_no_peer_is_told_so_by_every_call() {
    let pair = Pair::of(PeerIdentity::in_cluster(1, 0xD2), member(2)).await;
    for _ in 0..2 {
        let refused = pair.ask("hello").await.unwrap_err();
        let PeerError::NotSent {
            reason: NotSent::Handshake { refusal },
            ..
        } = refused
        else {
            panic!("{refused}")
        };
        let (ours, theirs) = (Some(0xD2), Some(CLUSTER));
        assert_eq!(refusal, HandshakeRefusal::OtherCluster { ours, theirs });
    }
    let wrong = TcpPeers::new(member(1), BTreeMap::from([(3, pair.address.to_string())]));
    let call = wrong
        .call(3, Lane::Append, Kind::Append, Bytes::new(), LONG)
        .await
        .unwrap_err();
    let PeerError::NotSent {
        reason: NotSent::Handshake { refusal },
        ..
    } = call
    else {
        panic!("{call}")
    };
    assert_eq!(refusal, HandshakeRefusal::OtherNode { asked: 3, found: 2 });
    assert_eq!(pair.echo.served.load(Ordering::Acquire), 0);
}

#[tokio::test]
async fn a_peer_that_nobody_introduced_is_not_called_and_the_first_address_stays() {
    let pair = Pair::start().await;
    let peers = TcpPeers::new(member(1), BTreeMap::new());
    let unknown = request(&peers, "hello", LONG).await.unwrap_err();
    assert!(
        matches!(
            unknown,
            PeerError::NotSent {
                reason: NotSent::UnknownPeer,
                ..
            }
        ),
        "{unknown}"
    );
    peers.introduce(2, &pair.address.to_string());
    peers.introduce(2, "127.0.0.1:1");
    assert_eq!(request(&peers, "hello", LONG).await.unwrap(), "hello");
}

#[tokio::test]
async fn a_server_that_stops_drops_what_it_serves_and_is_reached_again_when_it_is_back() {
    let Pair {
        address,
        echo,
        peers,
        stop,
        serves,
    } = Pair::start().await;
    let stopping = async {
        eventually("it is served", || echo.served.load(Ordering::Acquire) == 1).await;
        drop(stop);
        serves.await.unwrap();
        assert_eq!(
            echo.dropped.load(Ordering::Acquire),
            1,
            "no call outlives the server"
        );
    };
    let (broken, ()) = tokio::join!(request(&peers, "for ever", LONG), stopping);
    let broken = broken.unwrap_err();
    assert!(
        matches!(broken, PeerError::Broken { to: 2 }) && broken.may_have_applied(),
        "{broken}"
    );

    let gone = request(&peers, "hello", LONG).await.unwrap_err();
    assert!(!gone.may_have_applied(), "{gone}");
    let server = TcpServer::bind(address, member(2)).await.unwrap();
    let (_stop, stopped) = watch::channel(());
    drop(Tokio::spawn_on(2, server.run(Arc::new(Echo::default()), stopped)));
    wait_for(&peers, "hello", LONG).await;
}

#[tokio::test]
async fn a_transport_that_stops_fails_what_waits_and_what_comes() {
    let pair = Pair::start().await;
    let stopping = async {
        eventually("it is served", || pair.echo.served.load(Ordering::Acquire) == 1).await;
        pair.peers.stop();
    };
    let (waiting, ()) = tokio::join!(pair.ask("for ever"), stopping);
    let broken = waiting.unwrap_err();
    assert!(matches!(broken, PeerError::Broken { .. }), "{broken}");
    let late = pair.ask("hello").await.unwrap_err();
    assert!(
        matches!(
            late,
            PeerError::NotSent {
                reason: NotSent::Stopped,
                ..
            }
        ),
        "{late}"
    );
    eventually("the server has dropped the call", || {
        pair.echo.dropped.load(Ordering::Acquire) == 1
    })
    .await;
}

/// A connection that has introduced itself as node 1 on this lane.
async fn connected(pair: &Pair, lane: Lane) -> TcpStream {
    let mut stream = TcpStream::connect(pair.address).await.unwrap();
    handshake::call(&mut stream, &member(1), 2, lane).await.unwrap();
    stream
}

/// Waits until the other end has closed, whatever it has said before.
async fn closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    // A reset is a close too: not all that was sent had been read.
    let end = Tokio::timeout(LONG, stream.read_to_end(&mut rest)).await;
    assert!(end.is_ok(), "the connection is still open");
}

#[tokio::test]
async fn hostile_bytes_end_their_connection_and_no_other() {
    let pair = Pair::start().await;
    assert_eq!(pair.ask("hello").await.unwrap(), "hello");
    let mut stranger = TcpStream::connect(pair.address).await.unwrap();
    stranger
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    closed(stranger).await;

    // On a lane of its own, so that it takes nobody's place.
    let mut garbage = connected(&pair, Lane::Append).await;
    garbage.write_all(&[0xFF; 64]).await.unwrap();
    closed(garbage).await;

    let mut long = connected(&pair, Lane::Heartbeat).await;
    let bytes = u32::try_from(Lane::Heartbeat.call_bytes_max() + 100).unwrap();
    long.write_all(&bytes.to_le_bytes()).await.unwrap();
    long.write_all(&[0; 4]).await.unwrap();
    closed(long).await;

    let mut cut = connected(&pair, Lane::Snapshot).await;
    cut.write_all(&[20, 0, 0, 0, 1]).await.unwrap();
    cut.shutdown().await.unwrap();
    closed(cut).await;
    assert_eq!(pair.ask("hello").await.unwrap(), "hello");
}

#[tokio::test]
async fn a_caller_that_floods_is_read_only_as_fast_as_it_is_served() {
    let pair = Pair::start().await;
    let mut stream = connected(&pair, Lane::Request).await;
    let (read, write) = stream.split();
    let mut calls = FrameWriter::new(write);
    for id in 0..200 {
        let body = Bytes::from_static(b"for ever");
        let frame = Frame {
            id,
            tag: Kind::Request.code(),
            body,
        };
        calls.put(&frame).await.unwrap();
    }
    calls.flush().await.unwrap();
    eventually("as many as are served at once", || {
        pair.echo.served.load(Ordering::Acquire) == 64
    })
    .await;
    // None of the rest is taken while none of these has ended.
    let mut answers = FrameReader::new(read, 1_000);
    let none = Tokio::timeout(Duration::from_millis(50), answers.next()).await;
    assert!(none.is_err());
    assert_eq!(pair.echo.served.load(Ordering::Acquire), 64);
    // Its next connection takes the place of this one, and nothing of this one stays.
    let _newer = connected(&pair, Lane::Request).await;
    eventually("all are dropped with their connection", || {
        pair.echo.dropped.load(Ordering::Acquire) == 64
    })
    .await;
}

#[tokio::test]
async fn a_newer_connection_of_a_lane_takes_the_place_of_the_older() {
    let pair = Pair::start().await;
    let older = connected(&pair, Lane::Append).await;
    let _newer = connected(&pair, Lane::Append).await;
    closed(older).await;
}
