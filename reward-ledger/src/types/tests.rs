use lease_core::{Fence, FenceToken, LeaseName};
use proptest::prelude::*;

use super::*;
use crate::event_id::RewardEventId;

fn fence() -> Fence {
    Fence::new(
        LeaseName::new("lock:reward").unwrap(),
        FenceToken::new(101).unwrap(),
    )
}

fn event(text: &str) -> RewardEventId {
    RewardEventId::parse(text).unwrap()
}

#[test]
fn an_amount_is_above_zero() {
    for bad in [0, -1, i64::MIN] {
        assert!(Amount::new(bad).is_err());
        let refused = Claim::builder(fence(), 1, event("e"), bad).build();
        assert!(matches!(
            refused,
            Err(InvalidClaim::Field(InvalidField::NotPositive { .. }))
        ));
    }
    assert_eq!(Amount::new(i64::MAX).unwrap().get(), i64::MAX);
    let checked = Amount::new(5).unwrap();
    assert_eq!(
        Claim::builder(fence(), 1, event("e"), checked)
            .build()
            .unwrap()
            .amount(),
        checked
    );
}

#[test]
fn texts_are_bounded_and_free_of_control_characters() {
    let build = |item: &str, attempt: &str| {
        Claim::builder(fence(), 1, event("e"), 1)
            .item(item)
            .attempt(attempt)
            .build()
    };
    assert!(build("", "a").is_ok());
    assert!(build(&"i".repeat(128), &"a".repeat(128)).is_ok());
    for (item, attempt) in [
        ("go\0ld", "a"),
        ("gold", ""),
        ("gold", "a\nb"),
        (&*"i".repeat(129), "a"),
        ("gold", &*"a".repeat(129)),
    ] {
        assert!(
            matches!(build(item, attempt), Err(InvalidClaim::Field(_))),
            "{item:?} {attempt:?}"
        );
    }
}

#[test]
fn a_resource_is_a_lease_name_not_any_redis_key() {
    for key in [String::new(), "x".repeat(1_025)] {
        let fence = Fence::new(LeaseName::redis_key(&key).unwrap(), FenceToken::new(1).unwrap());
        assert!(matches!(
            Claim::builder(fence, 1, event("e"), 1).build(),
            Err(InvalidClaim::Field(InvalidField::Length { .. }))
        ));
    }
}

#[test]
fn a_typed_event_id_must_name_the_claims_player() {
    let build = |player: i64, id: &str| Claim::builder(fence(), player, event(id), 1).build();
    assert!(build(42, "s:player-42:rank-3").is_ok());
    assert_eq!(
        build(43, "s:player-42:rank-3"),
        Err(InvalidClaim::OtherPlayer {
            named: PlayerId::new(42),
            claimed: PlayerId::new(43)
        })
    );
    assert!(build(43, "order-42").is_ok(), "an id of one's own names nobody");
}

#[test]
fn a_claim_without_an_attempt_id_gets_one_of_its_own_that_its_clones_keep() {
    let builder = Claim::builder(fence(), 1, event("e"), 1);
    let claim = builder.clone().build().unwrap();
    assert_eq!(claim.clone().attempt(), claim.attempt());
    let other = builder.build().unwrap();
    assert_ne!(
        other.attempt(),
        claim.attempt(),
        "another build is another attempt"
    );
    assert_eq!(claim.attempt().as_str().len(), 32);
}

#[test]
fn a_receipt_that_is_not_one_is_refused() {
    let claim = Claim::builder(fence(), 1, event("e"), 1)
        .attempt("a")
        .build()
        .unwrap();
    let good = Receipt::issue(&claim, ClaimId::new(1), UnixMillis::new(2));
    let bytes = good.as_bytes();
    assert_eq!(Receipt::from_bytes(bytes).unwrap(), good);

    for cut in 0..bytes.len() {
        assert!(Receipt::from_bytes(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    let longer = [bytes, b"x"].concat();
    assert_eq!(
        Receipt::from_bytes(longer),
        Err(InvalidReceipt::Trailing { bytes: 1 })
    );
    let mut newer = bytes.to_vec();
    newer[0] = 2;
    assert_eq!(
        Receipt::from_bytes(newer),
        Err(InvalidReceipt::Version { found: 2 })
    );
    assert!(matches!(
        Receipt::from_bytes(vec![1; 5_000]),
        Err(InvalidReceipt::Long { .. })
    ));
    let mut unfenced_with_resource = bytes.to_vec();
    unfenced_with_resource[33..41].fill(0);
    assert_eq!(
        Receipt::from_bytes(unfenced_with_resource),
        Err(InvalidReceipt::Fence)
    );
}

proptest! {
    #[test]
    fn any_receipt_reads_back_as_itself_and_any_bytes_are_judged(
        resource in prop::collection::vec(any::<u8>(), 1..64),
        token in 1..=i64::MAX.cast_unsigned(),
        player in any::<i64>(),
        amount in 1..=i64::MAX,
        item in "[ -~]{0,40}",
        attempt in "\\PC{1,20}",
        claim_id in any::<u64>(),
        garbage in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let fence = Fence::new(LeaseName::new(&resource).unwrap(), FenceToken::new(token).unwrap());
        let claim = Claim::builder(fence, player, event("order-7"), amount).item(&item).attempt(&attempt).build().unwrap();
        let receipt = Receipt::issue(&claim, ClaimId::new(claim_id), UnixMillis::new(9));
        let read = Receipt::from_bytes(receipt.as_bytes()).unwrap();
        prop_assert_eq!(read.as_bytes(), receipt.as_bytes());
        prop_assert_eq!(read.token(), claim.token());
        prop_assert_eq!(read.player(), claim.player());
        prop_assert_eq!(read.item(), claim.item());
        prop_assert_eq!(read.attempt(), claim.attempt());
        prop_assert_eq!(read.amount(), claim.amount());
        if let Ok(read) = Receipt::from_bytes(&garbage) {
            prop_assert_eq!(read.as_bytes(), &garbage[..]);
        }
    }
}
