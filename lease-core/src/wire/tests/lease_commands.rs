use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::*;
use crate::limits::{FENCE_TOKEN_MAX, LIST_COUNT_MAX, NAME_BYTES_MAX, RENEW_MANY_MAX, TTL_MS_MAX};
use crate::types::{FenceToken, LeaseName, Metadata, OwnerId, RequestId, SharedBytes, Ttl};

pub(super) fn name() -> impl Strategy<Value = LeaseName> {
    vec(any::<u8>(), 1..40).prop_map(|bytes| LeaseName::new(bytes).unwrap())
}

pub(super) fn owner() -> impl Strategy<Value = OwnerId> {
    vec(any::<u8>(), 1..40).prop_map(|bytes| OwnerId::new(bytes).unwrap())
}

pub(super) fn token() -> impl Strategy<Value = FenceToken> {
    (1..=FENCE_TOKEN_MAX).prop_map(|value| FenceToken::new(value).unwrap())
}

fn ttl() -> impl Strategy<Value = Ttl> {
    prop_oneof![1..10_000_u64, 1..=TTL_MS_MAX].prop_map(|millis| Ttl::from_millis(millis).unwrap())
}

fn request_id() -> impl Strategy<Value = RequestId> {
    vec(any::<u8>(), 1..65).prop_map(|bytes| RequestId::new(bytes).unwrap())
}

fn bytes(most: usize) -> impl Strategy<Value = SharedBytes> {
    vec(any::<u8>(), 0..=most).prop_map(SharedBytes::from)
}

fn acquire() -> impl Strategy<Value = LeaseCommand> {
    let metadata = bytes(100).prop_map(|bytes| Metadata::new(bytes).unwrap());
    let wait_ms = prop_oneof![Just(0), 0..=TTL_MS_MAX];
    (name(), owner(), ttl(), wait_ms, of(request_id()), of(metadata)).prop_map(
        |(name, owner, ttl, wait_ms, request, metadata)| {
            LeaseCommand::Acquire(AcquireCommand {
                name,
                owner,
                ttl,
                wait_ms,
                request,
                metadata,
            })
        },
    )
}

fn list() -> impl Strategy<Value = LeaseCommand> {
    let cursor = bytes(20).prop_map(ListCursor::new);
    (bytes(20), of(cursor), of(1..=LIST_COUNT_MAX)).prop_map(|(prefix, cursor, count)| {
        LeaseCommand::List(ListCommand {
            prefix,
            cursor,
            count,
        })
    })
}

fn command() -> impl Strategy<Value = LeaseCommand> {
    prop_oneof![
        4 => acquire(),
        1 => (name(), token(), of(ttl()))
            .prop_map(|(name, token, ttl)| LeaseCommand::Renew(RenewCommand { name, token, ttl })),
        1 => vec((name(), token()), 1..20)
            .prop_map(|leases| LeaseCommand::RenewMany(RenewManyCommand { leases })),
        1 => (name(), token()).prop_map(|(name, token)| LeaseCommand::Release { name, token }),
        1 => (name(), owner(), request_id())
            .prop_map(|(name, owner, request)| LeaseCommand::Cancel { name, owner, request }),
        1 => name().prop_map(|name| LeaseCommand::Get { name }),
        2 => list(),
        1 => (name(), owner()).prop_map(|(name, owner)| LeaseCommand::Token { name, owner }),
        1 => (name(), bytes(30)).prop_map(|(name, reason)| LeaseCommand::Force { name, reason }),
        1 => (name(), of(1..=1_000_u64)).prop_map(|(name, count)| LeaseCommand::History { name, count }),
        1 => Just(LeaseCommand::Leader),
    ]
}

fn parse(args: &[&[u8]]) -> Result<LeaseCommand, CommandError> {
    let verb = LeaseVerb::parse(args[0]).unwrap();
    LeaseCommand::parse(verb, &request_of(args))
}

fn words(line: &str) -> Vec<&[u8]> {
    line.split(' ').map(str::as_bytes).collect()
}

#[test]
fn options_come_in_any_order_and_case() {
    let expected = LeaseCommand::Acquire(AcquireCommand {
        name: LeaseName::new("n").unwrap(),
        owner: OwnerId::new("o").unwrap(),
        ttl: Ttl::from_millis(5_000).unwrap(),
        wait_ms: 10,
        request: Some(RequestId::new("WAIT").unwrap()),
        metadata: Some(Metadata::new("").unwrap()),
    });
    for line in [
        "LEASE.ACQUIRE n o 5000 WAIT 10 REQ WAIT META ",
        "lease.acquire n o 5000 meta  req WAIT wait 10",
        "Lease.Acquire n o 5000 Req WAIT Meta  Wait 10",
    ] {
        assert_eq!(parse(&words(line)), Ok(expected.clone()), "{line}");
    }
    let LeaseCommand::List(list) = parse(&words("LEASE.LIST CURSOR 0")).unwrap() else {
        panic!("a listing");
    };
    assert_eq!(list.cursor, None);
}

/// Holds that `line` is refused with exactly this text.
fn assert_refused(line: &str, text: &str) {
    let error = parse(&words(line)).unwrap_err();
    let mut out = BytesMut::new();
    error.to_reply().encode(Protocol::Resp2, &mut out);
    assert_eq!(out, format!("-{text}\r\n").as_bytes(), "{line:.60}");
    assert!(!error.may_have_applied() && !error.is_retryable());
}

#[test]
fn a_request_with_too_few_or_too_many_arguments_is_told_the_right_ones() {
    for (line, verb) in [
        ("LEASE.ACQUIRE", LeaseVerb::Acquire),
        ("LEASE.ACQUIRE n o", LeaseVerb::Acquire),
        ("lease.renew n 1 5 6", LeaseVerb::Renew),
        ("LEASE.MRENEW", LeaseVerb::RenewMany),
        ("LEASE.MRENEW n 1 m", LeaseVerb::RenewMany),
        ("LEASE.RELEASE n", LeaseVerb::Release),
        ("LEASE.RELEASE n 1 2", LeaseVerb::Release),
        ("LEASE.CANCEL n o", LeaseVerb::Cancel),
        ("LEASE.GET n m", LeaseVerb::Get),
        ("LEASE.TOKEN n", LeaseVerb::Token),
        ("LEASE.FORCE n r s", LeaseVerb::Force),
        ("LEASE.HISTORY", LeaseVerb::History),
        ("LEASE.LEADER now", LeaseVerb::Leader),
    ] {
        let name = verb.name().to_lowercase();
        let text = format!("ERR wrong number of arguments for '{name}' command; use {verb}");
        assert_refused(line, &text);
    }
    assert_eq!(
        LeaseVerb::Acquire.to_string(),
        "LEASE.ACQUIRE name owner ttl-ms [WAIT ms] [REQ id] [META bytes]"
    );
    assert_eq!(LeaseVerb::Leader.to_string(), "LEASE.LEADER");
}

#[test]
fn an_option_that_is_unknown_doubled_or_without_value_is_a_syntax_error() {
    let acquire = LeaseVerb::Acquire;
    for (line, text) in [
        (
            "LEASE.ACQUIRE n o 5 NX",
            format!("'NX' is no option here; use {acquire}"),
        ),
        (
            "LEASE.ACQUIRE n o 5 WAIT 1 wait 2",
            format!("WAIT is given twice; use {acquire}"),
        ),
        (
            "LEASE.ACQUIRE n o 5 REQ a REQ a",
            format!("REQ is given twice; use {acquire}"),
        ),
        (
            "LEASE.ACQUIRE n o 5 META a META b",
            format!("META is given twice; use {acquire}"),
        ),
        (
            "LEASE.ACQUIRE n o 5 REQ",
            format!("REQ needs a value; use {acquire}"),
        ),
        (
            "LEASE.CANCEL n o ID x",
            format!("'ID' is no option here; use {}", LeaseVerb::Cancel),
        ),
        (
            "LEASE.LIST COUNT 1 COUNT 1",
            format!("COUNT is given twice; use {}", LeaseVerb::List),
        ),
        (
            "LEASE.LIST p",
            format!("'p' is no option here; use {}", LeaseVerb::List),
        ),
        (
            "LEASE.HISTORY n 5",
            format!("'5' is no option here; use {}", LeaseVerb::History),
        ),
    ] {
        assert_refused(line, &format!("ERR syntax error: {text}"));
    }
}

#[test]
fn a_time_to_live_or_a_token_is_a_plain_number_in_its_range() {
    let ttl = "BADTTL ttl must be a decimal number of milliseconds, 1 to 9223372036854775807";
    for bad in ["0", "-5", "+5", "05", "5s", "5.0", "", "9223372036854775808"] {
        assert_refused(&format!("LEASE.ACQUIRE n o {bad}"), ttl);
        assert_refused(&format!("LEASE.RENEW n 1 {bad}"), ttl);
    }
    let token = "ERR token must be a decimal number, 1 to 9223372036854775807";
    for bad in [
        "0",
        "-1",
        "01",
        "t",
        "",
        "9223372036854775808",
        "18446744073709551617",
    ] {
        assert_refused(&format!("LEASE.RENEW n {bad}"), token);
        assert_refused(&format!("LEASE.RELEASE n {bad}"), token);
        assert_refused(&format!("LEASE.MRENEW n 1 n {bad}"), token);
    }
}

#[test]
fn every_other_value_out_of_its_range_is_told_its_range() {
    let long = "n".repeat(NAME_BYTES_MAX + 1);
    let count = "ERR COUNT must be a decimal number, 1 to 1000";
    for (line, text) in [
        (
            "LEASE.GET ",
            "BADNAME lease name must have 1 to 1024 bytes, this one has 0",
        ),
        (
            &format!("LEASE.GET {long}"),
            "BADNAME lease name must have 1 to 1024 bytes, this one has 1025",
        ),
        (
            "LEASE.TOKEN n ",
            "BADNAME owner must have 1 to 1024 bytes, this one has 0",
        ),
        (
            &format!("LEASE.LIST PREFIX {long}"),
            "BADNAME prefix must have 0 to 1024 bytes, this one has 1025",
        ),
        (
            "LEASE.ACQUIRE n o 5 WAIT -1",
            "ERR WAIT in milliseconds must be a decimal number, 0 to 9223372036854775807",
        ),
        (
            "LEASE.ACQUIRE n o 5 REQ ",
            "ERR request id must have 1 to 64 bytes, this one has 0",
        ),
        (
            &format!("LEASE.ACQUIRE n o 5 META {}", "m".repeat(4_097)),
            "ERR metadata must have 0 to 4096 bytes, this one has 4097",
        ),
        (
            &format!("LEASE.FORCE n {}", "r".repeat(257)),
            "ERR reason must have 0 to 256 bytes, this one has 257",
        ),
        (
            "LEASE.LIST CURSOR 1",
            "ERR CURSOR must be 0, or what the last LEASE.LIST answered",
        ),
        ("LEASE.LIST COUNT 0", count),
        ("LEASE.HISTORY n COUNT 1001", count),
    ] {
        assert_refused(line, text);
    }
}

#[test]
fn a_renewal_of_many_is_bounded() {
    let mut args = vec![&b"LEASE.MRENEW"[..]];
    for _ in 0..RENEW_MANY_MAX {
        args.extend([&b"n"[..], b"1"]);
    }
    assert!(parse(&args).is_ok());
    args.extend([&b"n"[..], b"1"]);
    let error = parse(&args).unwrap_err();
    assert_eq!(
        error.to_string(),
        "one LEASE.MRENEW takes at most 1024 names; send several"
    );
}

#[test]
fn a_long_or_binary_option_is_shown_in_part_and_on_one_line() {
    let option = [b"\r\n-OK ".as_slice(), &[b'x'; 10_000]].concat();
    let error = parse(&[b"LEASE.GET", b"n"])
        .and_then(|_| parse(&[b"LEASE.LIST", &option, b"1"]))
        .unwrap_err();
    let mut out = BytesMut::new();
    error.to_reply().encode(Protocol::Resp2, &mut out);
    assert!(out.len() < 300);
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
}

#[test]
fn only_lease_commands_are_lease_commands() {
    for verb in LeaseVerb::ALL {
        assert_eq!(LeaseVerb::parse(verb.name().as_bytes()), Some(verb));
        assert_eq!(
            LeaseVerb::parse(verb.name().to_lowercase().as_bytes()),
            Some(verb)
        );
    }
    for other in [
        "",
        "GET",
        "LEASE",
        "LEASE.",
        "LEASE.ACQUIRED",
        "XLEASE.GET",
        "EXPIRETIME",
    ] {
        assert_eq!(LeaseVerb::parse(other.as_bytes()), None);
    }
}

proptest! {
    #[test]
    fn every_command_comes_back_from_the_wire(command in command()) {
        let mut out = BytesMut::new();
        command.encode(&mut out);
        let (requests, error) = read_requests(open(), &[&out]);
        prop_assert_eq!(error, None);
        prop_assert_eq!(requests.len(), 1);
        let verb = LeaseVerb::parse(requests[0].command());
        prop_assert_eq!(verb, Some(command.verb()));
        prop_assert_eq!(LeaseCommand::parse(command.verb(), &requests[0]), Ok(command));
    }

    #[test]
    fn no_arguments_whatever_panic_the_parser(
        verb in proptest::sample::select(LeaseVerb::ALL.to_vec()),
        args in vec(
            prop_oneof![
                "(WAIT|REQ|META|PREFIX|CURSOR|COUNT|n|0|1|5000|:x|-1)".prop_map(String::into_bytes),
                vec(any::<u8>(), 0..4),
            ],
            0..9,
        ),
    ) {
        let mut all = vec![verb.name().as_bytes().to_vec()];
        all.extend(args);
        let request = request_of(&all);
        if let Ok(command) = LeaseCommand::parse(verb, &request) {
            prop_assert_eq!(command.verb(), verb);
            let again = request_of(&command.to_arguments());
            prop_assert_eq!(LeaseCommand::parse(verb, &again), Ok(command));
        }
    }
}
