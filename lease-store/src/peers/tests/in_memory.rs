//! The network in memory: what its links do to messages.

use super::*;
use crate::peers::memory::{Link, MemoryNet, Passage};
use crate::peers::transport::NotSent;

fn net() -> (MemoryNet<Tokio>, Arc<Echo>) {
    let net = MemoryNet::new();
    let echo = Arc::new(Echo::default());
    net.attach(2, Arc::clone(&echo));
    (net, echo)
}

#[tokio::test(start_paused = true)]
async fn calls_pass_and_refusals_come_back() {
    let (net, _) = net();
    let peers = net.transport(1);
    assert_eq!(request(&peers, "who", LONG).await.unwrap(), "1");
    let refused = request(&peers, "refuse", LONG).await.unwrap_err();
    assert!(
        matches!(
            refused,
            PeerError::Refused {
                refusal: Refusal::NotReady,
                ..
            }
        ),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_there_is_refused_at_once_and_one_behind_a_cut_costs_the_time() {
    let (net, echo) = net();
    let peers = net.transport(1);
    let began = Tokio::now();
    net.cut(1, 2);
    let cut = request(&peers, "hello", LONG).await.unwrap_err();
    assert!(
        matches!(cut, PeerError::NoAnswer { .. }) && cut.may_have_applied(),
        "{cut}"
    );
    assert_eq!(began.elapsed(), LONG);
    assert_eq!(echo.served.load(Ordering::Acquire), 0);
    net.mend(1, 2);
    net.detach(2);
    let gone = request(&peers, "hello", LONG).await.unwrap_err();
    assert!(
        matches!(
            gone,
            PeerError::NotSent {
                reason: NotSent::Unreachable { .. },
                ..
            }
        ),
        "{gone}"
    );
    assert_eq!(began.elapsed(), LONG);
}

#[tokio::test(start_paused = true)]
async fn a_cut_of_the_way_back_loses_the_answer_and_not_the_call() {
    let (net, echo) = net();
    net.cut(2, 1);
    assert_eq!(net.link(2, 1).passage, Passage::Cut);
    assert_eq!(net.link(1, 2).passage, Passage::Open);
    let lost = request(&net.transport(1), "hello", LONG).await.unwrap_err();
    assert!(lost.may_have_applied());
    assert_eq!(echo.served.load(Ordering::Acquire), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cut_loses_what_is_under_way() {
    let (net, echo) = net();
    let second = Duration::from_secs(1);
    net.set_link(
        1,
        2,
        Link {
            delay_min: second,
            delay_max: second,
            ..Link::default()
        },
    );
    let cutting = async {
        Tokio::sleep(second / 2).await;
        net.cut(1, 2);
    };
    let peers = net.transport(1);
    let (lost, ()) = tokio::join!(request(&peers, "hello", LONG), cutting);
    assert!(lost.is_err());
    assert_eq!(echo.served.load(Ordering::Acquire), 0);
}

#[tokio::test(start_paused = true)]
async fn delays_lie_within_their_bounds_and_losses_about_their_share() {
    let (net, _) = net();
    let (min, max) = (Duration::from_millis(3), Duration::from_millis(9));
    let lost_per_mille = 200;
    net.set_every_link(Link {
        delay_min: min,
        delay_max: max,
        lost_per_mille,
        ..Link::default()
    });
    let peers = net.transport(1);
    let mut lost = 0;
    for _ in 0..1_000 {
        let began = Tokio::now();
        match request(&peers, "hello", Duration::from_secs(1)).await {
            Ok(_) => {
                let took = began.elapsed();
                // The clock of tests goes by milliseconds.
                assert!(
                    took >= 2 * min && took <= 2 * max + Duration::from_millis(2),
                    "{took:?}"
                );
            }
            Err(_) => lost += 1,
        }
    }
    // Of two ways each: 36 of a hundred calls.
    assert!((250..500).contains(&lost), "{lost}");
}
