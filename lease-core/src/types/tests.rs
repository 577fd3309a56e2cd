use super::*;
use crate::limits::{FENCE_TOKEN_MAX, ISSUED_TOKEN_MAX, NAME_BYTES_MAX, VALUE_BYTES_MAX};

#[test]
fn names_have_one_to_the_limit_of_bytes() {
    assert_eq!(
        LeaseName::new("").unwrap_err().to_string(),
        "lease name must have 1 to 1024 bytes, this one has 0"
    );
    assert!(LeaseName::new(vec![0xff; NAME_BYTES_MAX]).is_ok());
    assert!(LeaseName::new(vec![b'a'; NAME_BYTES_MAX + 1]).is_err());
}

#[test]
fn redis_keys_may_be_empty_and_long() {
    assert!(LeaseName::redis_key("").is_ok());
    assert!(LeaseName::redis_key(vec![0; VALUE_BYTES_MAX]).is_ok());
    assert!(OwnerId::redis_value(vec![0; VALUE_BYTES_MAX + 1]).is_err());
}

#[test]
fn tokens_start_at_one_and_the_store_stops_below_two_to_the_53() {
    assert!(FenceToken::new(0).is_err());
    assert!(FenceToken::new(FENCE_TOKEN_MAX).is_ok());
    assert!(FenceToken::new(FENCE_TOKEN_MAX + 1).is_err());
    assert_eq!(FenceToken::next(None), Some(FenceToken::new(1).unwrap()));
    assert_eq!(
        FenceToken::next(Some(FenceToken::new(ISSUED_TOKEN_MAX).unwrap())),
        None
    );
    assert_eq!("17".parse::<FenceToken>().unwrap().get(), 17);
    assert!("-1".parse::<FenceToken>().is_err());
}

#[test]
fn deadlines_saturate_below_never() {
    let late = Timestamp::from_millis(u64::MAX - 5);
    assert!(late.after(Ttl::from_millis(i64::MAX as u64).unwrap()) < Timestamp::NEVER);
    assert_eq!(Timestamp::ZERO.millis_since(late), 0);
}

#[test]
fn bytes_print_readably_and_never_break_a_line() {
    assert_eq!(LeaseName::new("lock:straße").unwrap().to_string(), "lock:straße");
    assert_eq!(LeaseName::new(b"a\r\n\xff").unwrap().to_string(), "a\\r\\n\\xff");
}

#[test]
fn databases_are_numbered_below_the_limit() {
    assert!(Database::new(63).is_ok());
    assert!(Database::new(64).is_err());
}
