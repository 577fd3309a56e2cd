use lease_core::Timestamp;
use lease_core::limits::ENTRY_BYTES_MAX;

use super::super::error::{Loss, ProposeError, ReadError, Refusal};
use super::super::failure::NodeFailure;
use super::super::leadership::Role;
use super::super::types::LeadershipId;
use super::counter::{NODE, PANICS, REFUSED, add, adds, in_memory, lead};
use crate::runtime::{Rt as _, Tokio};

#[tokio::test]
async fn a_proposal_answers_what_applying_it_answered() {
    let (node, counter) = in_memory().await;
    let leading = lead(&node).await;
    assert_eq!(leading.id.node, NODE);
    assert_eq!(add(&node, &leading, 100, 5).await.unwrap(), 5);
    assert_eq!(add(&node, &leading, 101, 6).await.unwrap(), 11);
    assert_eq!(counter.count().at, 101);
    node.read_barrier().await.unwrap();
    node.shutdown().await.unwrap();
}

#[tokio::test]
async fn concurrent_proposals_each_get_their_own_answer_and_none_is_lost() {
    let (node, counter) = in_memory().await;
    let leading = lead(&node).await;
    let callers: Vec<_> = (0..64)
        .map(|_| {
            let node = node.clone();
            Tokio::spawn_on(NODE, async move {
                let mut sums = Vec::new();
                for at in 0..50 {
                    sums.push(add(&node, &leading, at, 1).await.unwrap());
                }
                sums
            })
        })
        .collect();
    let mut sums = Vec::new();
    for caller in callers {
        let of_one = caller.await.unwrap();
        assert!(of_one.is_sorted(), "a caller saw the sum fall");
        sums.extend(of_one);
    }
    sums.sort_unstable();
    assert_eq!(sums, (1..=3_200).collect::<Vec<u64>>());
    assert_eq!(counter.count().entries, 3_200);
}

#[tokio::test]
async fn proposals_of_one_task_are_applied_in_order() {
    let (node, _) = in_memory().await;
    let leading = lead(&node).await;
    let mut pending = Vec::new();
    for number in 1..=20 {
        pending.push(
            node.propose(Timestamp::from_millis(number), adds(number), leading.id)
                .await
                .unwrap(),
        );
    }
    let mut sum = 0;
    let mut index = 0;
    for (number, pending) in (1..=20_u64).zip(pending) {
        let applied = pending.await.unwrap();
        sum += number;
        assert_eq!(applied.outcome, sum);
        assert!(applied.index > index);
        index = applied.index;
    }
}

#[tokio::test]
async fn a_proposal_of_another_leadership_is_refused_and_never_applied() {
    let (node, counter) = in_memory().await;
    let leading = lead(&node).await;
    for stale in [
        LeadershipId {
            term: leading.id.term - 1,
            node: NODE,
        },
        LeadershipId {
            term: leading.id.term + 1,
            node: NODE,
        },
        LeadershipId {
            term: leading.id.term,
            node: NODE + 1,
        },
    ] {
        let error = node
            .propose(Timestamp::ZERO, adds(1), stale)
            .await
            .unwrap()
            .await
            .unwrap_err();
        assert!(matches!(
            error,
            ProposeError::NotApplied {
                reason: Refusal::LeadershipOver { leader: Some(NODE) }
            }
        ));
        assert!(error.is_retryable() && !error.may_have_applied());
    }
    assert_eq!(add(&node, &leading, 1, 2).await.unwrap(), 2);
    assert_eq!(counter.count().entries, 1);
}

#[tokio::test]
async fn a_proposal_longer_than_an_entry_is_refused() {
    let (node, _) = in_memory().await;
    let leading = lead(&node).await;
    let body = vec![0; ENTRY_BYTES_MAX + 1].into();
    let error = node.propose(Timestamp::ZERO, body, leading.id).await.unwrap_err();
    assert!(matches!(
        error,
        ProposeError::NotApplied {
            reason: Refusal::TooLong { .. }
        }
    ));
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn the_first_leadership_of_a_new_store_has_no_anchor() {
    let (node, _) = in_memory().await;
    assert_eq!(lead(&node).await.anchor, None);
    let mut watch = node.leadership();
    assert!(matches!(watch.changed().await, Some(Role::Leading(_))));
    node.shutdown().await.unwrap();
    assert_eq!(watch.changed().await, None);
}

#[tokio::test]
async fn after_a_shutdown_everything_is_refused_and_nothing_hangs() {
    let (node, _) = in_memory().await;
    let leading = lead(&node).await;
    node.shutdown().await.unwrap();
    let error = node
        .propose(Timestamp::ZERO, adds(1), leading.id)
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        ProposeError::NotApplied {
            reason: Refusal::Stopped
        }
    ));
    assert_eq!(node.read_barrier().await, Err(ReadError::Stopped));
    node.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_entry_that_this_build_cannot_apply_stops_the_node_with_its_reason() {
    let (node, _) = in_memory().await;
    let leading = lead(&node).await;
    let error = add(&node, &leading, 1, REFUSED).await.unwrap_err();
    assert!(matches!(
        error,
        ProposeError::Unknown {
            reason: Loss::Stopped
        }
    ));
    assert!(error.may_have_applied());
    assert!(matches!(node.failed().await, NodeFailure::Apply { index: 2, .. }));
    assert!(node.shutdown().await.is_err());
}

#[tokio::test]
async fn a_panic_while_applying_stops_the_node() {
    let (node, _) = in_memory().await;
    let leading = lead(&node).await;
    add(&node, &leading, 1, PANICS).await.unwrap_err();
    assert!(matches!(
        node.failed().await,
        NodeFailure::ApplyPanicked { index: 2 }
    ));
    assert!(add(&node, &leading, 1, 1).await.is_err());
}

#[tokio::test]
async fn a_malformed_body_stops_the_node_and_does_not_panic() {
    let (node, _) = in_memory().await;
    let leading = lead(&node).await;
    let pending = node
        .propose(Timestamp::ZERO, bytes::Bytes::from_static(b"odd"), leading.id)
        .await
        .unwrap();
    assert!(pending.await.is_err());
    assert!(matches!(node.failed().await, NodeFailure::Apply { .. }));
}
