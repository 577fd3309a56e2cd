//! What both ends make of each other.

use std::fmt::Write as _;

use super::*;

const CLUSTER: u64 = 0xC1;

fn member(node: u64) -> PeerIdentity {
    PeerIdentity::in_cluster(node, CLUSTER)
}

/// What both ends make of a call of `caller` to `to` that reaches `called`.
async fn meet(
    caller: &PeerIdentity,
    to: u64,
    lane: Lane,
    called: &PeerIdentity,
) -> (Result<u16, HandshakeRefusal>, Result<Caller, HandshakeRefusal>) {
    let (mut near, mut far) = tokio::io::duplex(256);
    let refusal = |error| match error {
        HandshakeError::Refused(refusal) => refusal,
        HandshakeError::Io(error) => panic!("{error}"),
    };
    let (call, answer) = tokio::join!(
        call(&mut near, caller, to, lane),
        answer(&mut far, called, Room::There)
    );
    (call.map_err(refusal), answer.map_err(refusal))
}

#[tokio::test]
async fn two_members_agree_on_the_version_and_know_each_other() {
    for lane in Lane::ALL {
        let (call, answer) = meet(&member(1), 2, lane, &member(2)).await;
        assert_eq!(call, Ok(SPOKEN.max));
        let version = SPOKEN.max;
        assert_eq!(
            answer,
            Ok(Caller {
                from: 1,
                lane,
                version
            })
        );
    }
}

#[tokio::test]
async fn the_wrong_node_oneself_and_another_cluster_are_refused_and_both_ends_know_why() {
    let found = HandshakeRefusal::OtherNode { asked: 2, found: 3 };
    assert_eq!(
        meet(&member(1), 2, Lane::Append, &member(3)).await,
        (Err(found), Err(found))
    );
    let twin = HandshakeRefusal::Oneself { node: 1 };
    assert_eq!(
        meet(&member(1), 2, Lane::Append, &member(1)).await,
        (Err(twin), Err(twin))
    );
    let stranger = PeerIdentity::in_cluster(2, 0xD2);
    let (call, answer) = meet(&member(1), 2, Lane::Append, &stranger).await;
    let (ours, theirs) = (Some(CLUSTER), Some(0xD2));
    assert_eq!(call, Err(HandshakeRefusal::OtherCluster { ours, theirs }));
    let (ours, theirs) = (theirs, ours);
    assert_eq!(answer, Err(HandshakeRefusal::OtherCluster { ours, theirs }));
}

#[tokio::test]
async fn without_a_cluster_only_the_lane_of_probes_is_open() {
    let (empty, other) = (PeerIdentity::new(1), PeerIdentity::new(2));
    for lane in Lane::ALL {
        for called in [&other, &member(2)] {
            let (call, answer) = meet(&empty, 2, lane, called).await;
            assert_eq!(call.is_ok(), lane == Lane::Formation, "{lane}");
            assert_eq!(answer.is_ok(), lane == Lane::Formation, "{lane}");
        }
    }
}

#[test]
fn builds_agree_on_the_highest_version_that_both_speak() {
    let spoken = |min, max| Versions { min, max };
    assert_eq!(spoken(1, 3).agree(spoken(2, 5)), Some(3));
    assert_eq!(spoken(2, 5).agree(spoken(1, 3)), Some(3));
    assert_eq!(spoken(1, 1).agree(spoken(1, 1)), Some(1));
    assert_eq!(spoken(1, 2).agree(spoken(3, 4)), None);
    assert_eq!(spoken(3, 4).agree(spoken(1, 2)), None);
}

#[tokio::test]
async fn a_build_with_no_version_in_common_is_refused_and_told_ours() {
    let theirs = Versions { min: 7, max: 9 };
    let hello = Hello {
        spoken: theirs,
        lane: Lane::Append.code(),
        cluster: Some(CLUSTER),
        from: 1,
        to: 2,
    };
    let ours = SPOKEN;
    let refused = hello.judge(&member(2), Room::There);
    assert_eq!(refused, Err(HandshakeRefusal::Version { ours, theirs }));
    let welcome = Welcome {
        verdict: VERSION,
        version: 0,
        spoken: theirs,
        node: 2,
        cluster: Some(CLUSTER),
    };
    let told = welcome.judge(&member(1), &hello, Lane::Append);
    assert_eq!(told, Err(HandshakeRefusal::Version { ours, theirs }));
}

#[test]
fn a_caller_does_not_take_the_called_nodes_word_for_it() {
    let hello = Hello {
        spoken: SPOKEN,
        lane: Lane::Append.code(),
        cluster: Some(CLUSTER),
        from: 1,
        to: 2,
    };
    let accepting = |node, cluster, version| Welcome {
        verdict: ACCEPTED,
        version,
        spoken: SPOKEN,
        node,
        cluster,
    };
    let judge = |welcome: Welcome| welcome.judge(&member(1), &hello, Lane::Append);
    assert_eq!(judge(accepting(2, Some(CLUSTER), 1)), Ok(1));
    assert!(judge(accepting(3, Some(CLUSTER), 1)).is_err());
    assert!(judge(accepting(2, None, 1)).is_err());
    assert!(judge(accepting(2, Some(CLUSTER), 2)).is_err());
}

#[tokio::test]
async fn whoever_speaks_something_else_is_refused_without_an_answer() {
    let (mut near, mut far) = tokio::io::duplex(256);
    near.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let refused = answer(&mut far, &member(2), Room::There).await;
    assert!(
        matches!(refused, Err(HandshakeError::Refused(HandshakeRefusal::NoPeer))),
        "{refused:?}"
    );
    drop(far);
    let mut told = Vec::new();
    near.read_to_end(&mut told).await.unwrap();
    assert!(told.is_empty());
}

#[tokio::test]
async fn fields_of_a_later_build_are_skipped_and_long_ones_refused() {
    let (mut near, mut far) = tokio::io::duplex(4_096);
    let mut fields = Vec::new();
    fields.put_u16_le(1);
    fields.put_u16_le(9);
    fields.put_u8(Lane::Request.code());
    put_cluster(&mut fields, Some(CLUSTER));
    fields.put_u64_le(1);
    fields.put_u64_le(2);
    fields.put_slice(b"what a later build adds");
    near.write_all(&envelope(&fields)).await.unwrap();
    let caller = answer(&mut far, &member(2), Room::There).await.unwrap();
    assert_eq!((caller.from, caller.version), (1, 1));

    near.write_all(&envelope(&vec![0; FIELDS_BYTES_MAX + 1]))
        .await
        .unwrap();
    let refused = answer(&mut far, &member(2), Room::There).await;
    assert!(
        matches!(refused, Err(HandshakeError::Refused(HandshakeRefusal::NoPeer))),
        "{refused:?}"
    );
}

/// The layout is for ever: a build that changes it refuses all others without a word that they understand.
#[test]
fn the_bytes_are_the_recorded_ones() {
    let hex = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
    };
    let spoken = Versions { min: 1, max: 2 };
    let hello = Hello {
        spoken,
        lane: 3,
        cluster: Some(0x0102_0304_0506_0708),
        from: 1,
        to: 2,
    };
    let recorded = include_str!("../golden/hello.hex").trim_end();
    assert_eq!(hex(&hello.encode()), recorded);
    assert_eq!(Hello::decode(&hello.encode()[14..]), Some(hello));
    let welcome = Welcome {
        verdict: OTHER_CLUSTER,
        version: 2,
        spoken,
        node: 2,
        cluster: None,
    };
    let recorded = include_str!("../golden/welcome.hex").trim_end();
    assert_eq!(hex(&welcome.encode()), recorded);
    assert_eq!(Welcome::decode(&welcome.encode()[14..]), Some(welcome));
}
