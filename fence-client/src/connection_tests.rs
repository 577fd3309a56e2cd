use bytes::Bytes;
use lease_core::LeaseName;
use lease_core::wire::LeaseCommand;
use tokio::io::DuplexStream;

use super::*;

const PATIENCE: Duration = Duration::from_secs(2);

fn get() -> Request {
    Request::new(
        LeaseCommand::Get {
            name: LeaseName::new("l").unwrap(),
        },
        PATIENCE,
    )
}

/// A connection whose peer is the test; `room` bytes fit between them.
fn connect(room: usize) -> (Connection, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(room);
    (Connection::open(ours, ReplyDecoder::new(), Clock::SYSTEM), theirs)
}

async fn ask(connection: &Connection) -> Result<Answered, CallError> {
    connection.call(get(), timer_now() + PATIENCE).await
}

#[tokio::test(start_paused = true)]
async fn answers_go_to_their_requests_in_order() {
    let (connection, mut peer) = connect(4_096);
    let asked = async { tokio::join!(ask(&connection), ask(&connection)) };
    let answering = async {
        let mut seen = BytesMut::new();
        while seen.windows(9).filter(|part| *part == b"LEASE.GET").count() < 2 {
            peer.read_buf(&mut seen).await.unwrap();
        }
        peer.write_all(b"$1\r\na\r\n$1\r\nb\r\n").await.unwrap();
    };
    let ((one, two), ()) = tokio::join!(asked, answering);
    assert_eq!(one.unwrap().reply, Reply::Bulk(Bytes::from_static(b"a")));
    assert_eq!(two.unwrap().reply, Reply::Bulk(Bytes::from_static(b"b")));
}

#[tokio::test(start_paused = true)]
async fn an_overdue_answer_ends_the_connection_for_all() {
    let (connection, _peer) = connect(4_096);
    let late = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        ask(&connection).await
    };
    let (first, second) = tokio::join!(ask(&connection), late);
    assert!(matches!(first, Err(CallError::NoAnswer { .. })));
    assert!(second.unwrap_err().may_have_applied());
    assert!(connection.is_closed());
    assert!(matches!(ask(&connection).await, Err(CallError::NotSent { .. })));
}

#[tokio::test(start_paused = true)]
async fn what_was_not_written_when_the_peer_is_gone_was_not_sent() {
    // The first request fills the pipe, the second does not get a byte through.
    let (connection, peer) = connect(10);
    let closing = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(peer);
    };
    let (first, second, ()) = tokio::join!(ask(&connection), ask(&connection), closing);
    assert!(first.unwrap_err().may_have_applied());
    let second = second.unwrap_err();
    assert!(!second.may_have_applied() && second.is_retryable(), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_nothing_or_of_no_protocol_ends_the_connection() {
    for said in [b"+OK\r\n+OK\r\n".as_slice(), b"HTTP/1.1 200 OK\r\n".as_slice()] {
        let (connection, mut peer) = connect(4_096);
        let _ = tokio::join!(ask(&connection), peer.write_all(said));
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(connection.is_closed(), "{}", said.escape_ascii());
    }
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_request_is_not_sent() {
    let (connection, mut peer) = connect(4_096);
    let withdrawn = Request::prepared(lease_core::wire::LeaseVerb::Get, PATIENCE, || None);
    let error = connection
        .call(withdrawn, timer_now() + PATIENCE)
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::Withdrawn) && !error.may_have_applied());
    drop(connection);
    let mut sent = Vec::new();
    peer.read_to_end(&mut sent).await.unwrap();
    assert!(sent.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_socket_closes_with_its_last_handle() {
    let (connection, mut peer) = connect(4_096);
    let kept = connection.clone();
    drop(connection);
    assert!(
        tokio::time::timeout(Duration::from_secs(1), peer.read_u8())
            .await
            .is_err()
    );
    drop(kept);
    assert!(peer.read_u8().await.is_err());
}
