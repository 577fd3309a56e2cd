use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::lease_commands::{name, owner, token};
use super::*;
use crate::types::{Metadata, SharedBytes, Timestamp};

/// Numbers that a reply can hold.
fn number() -> impl Strategy<Value = u64> {
    0..=i64::MAX as u64
}

fn reason() -> impl Strategy<Value = LossReason> {
    prop_oneof![
        Just(LossReason::Expired),
        Just(LossReason::Released),
        vec(any::<u8>(), 0..20).prop_map(|reason| LossReason::Forced {
            reason: SharedBytes::from(reason)
        }),
        Just(LossReason::Superseded),
        Just(LossReason::Overridden),
        Just(LossReason::Orphaned),
        Just(LossReason::Cancelled),
        Just(LossReason::Unknown),
    ]
}

fn acquire() -> impl Strategy<Value = AcquireReply> {
    prop_oneof![
        (token(), of(number()), number()).prop_map(|(token, remaining_ms, waited_ms)| {
            AcquireReply::Granted {
                token,
                remaining_ms,
                waited_ms,
            }
        }),
        (token(), of(number()), owner(), number(), number()).prop_map(
            |(token, remaining_ms, owner, held_for_ms, waiters)| AcquireReply::Held {
                token,
                remaining_ms,
                owner,
                held_for_ms,
                waiters
            }
        ),
        (of(token()), reason()).prop_map(|(token, reason)| AcquireReply::Ended { token, reason }),
    ]
}

fn renew() -> impl Strategy<Value = RenewReply> {
    prop_oneof![
        of(number()).prop_map(|remaining_ms| RenewReply::Renewed { remaining_ms }),
        reason().prop_map(|reason| RenewReply::Lost { reason }),
    ]
}

fn release() -> impl Strategy<Value = ReleaseReply> {
    prop_oneof![
        Just(ReleaseReply::Released),
        reason().prop_map(|reason| ReleaseReply::Lost { reason })
    ]
}

fn cancel() -> impl Strategy<Value = CancelReply> {
    prop_oneof![
        Just(CancelReply::Cancelled),
        token().prop_map(|token| CancelReply::Released { token }),
        Just(CancelReply::NotFound),
    ]
}

fn force() -> impl Strategy<Value = ForceReply> {
    prop_oneof![
        token().prop_map(|token| ForceReply::Released { token }),
        Just(ForceReply::NotHeld)
    ]
}

fn get() -> impl Strategy<Value = GetReply> {
    let metadata = vec(any::<u8>(), 0..50).prop_map(|bytes| Metadata::new(bytes).unwrap());
    let view = (owner(), token(), of(number()), number(), number(), of(metadata)).prop_map(
        |(owner, token, remaining_ms, held_for_ms, waiters, metadata)| LeaseView {
            owner,
            token,
            remaining_ms,
            held_for_ms,
            waiters,
            metadata,
        },
    );
    of(view).prop_map(|lease| GetReply { lease })
}

fn list() -> impl Strategy<Value = ListReply> {
    let entry = (name(), owner(), token(), of(number()), number()).prop_map(
        |(name, owner, token, remaining_ms, waiters)| ListEntry {
            name,
            owner,
            token,
            remaining_ms,
            waiters,
        },
    );
    let cursor = vec(any::<u8>(), 0..20).prop_map(ListCursor::new);
    (of(cursor), vec(entry, 0..6)).prop_map(|(next, leases)| ListReply { next, leases })
}

fn leader() -> impl Strategy<Value = LeaderReply> {
    (number(), of(number()), number()).prop_map(|(node, leader, term)| LeaderReply { node, leader, term })
}

fn history() -> impl Strategy<Value = HistoryReply> {
    let event = prop_oneof![
        Just(HistoryEvent::Granted),
        Just(HistoryEvent::Ended),
        Just(HistoryEvent::Unknown)
    ];
    let entry =
        (event, token(), owner(), number(), of(reason())).prop_map(|(event, token, owner, at, reason)| {
            HistoryEntry {
                event,
                token,
                owner,
                at: Timestamp::from_millis(at),
                reason,
            }
        });
    vec(entry, 0..6).prop_map(|events| HistoryReply { events })
}

#[test]
fn answers_have_the_forms_of_the_protocol() {
    let token = crate::types::FenceToken::new(7).unwrap();
    let owner = crate::types::OwnerId::new("a").unwrap();
    let table: Vec<(Reply, &str)> = vec![
        (
            AcquireReply::Granted {
                token,
                remaining_ms: Some(5_000),
                waited_ms: 0,
            }
            .to_reply(),
            "*4\r\n$7\r\ngranted\r\n:7\r\n:5000\r\n:0\r\n",
        ),
        (
            AcquireReply::Held {
                token,
                remaining_ms: None,
                owner,
                held_for_ms: 12,
                waiters: 3,
            }
            .to_reply(),
            "*6\r\n$4\r\nheld\r\n:7\r\n:-1\r\n$1\r\na\r\n:12\r\n:3\r\n",
        ),
        (
            AcquireReply::Ended {
                token: None,
                reason: LossReason::Cancelled,
            }
            .to_reply(),
            "*3\r\n$5\r\nended\r\n$-1\r\n$9\r\ncancelled\r\n",
        ),
        (
            RenewReply::Lost {
                reason: LossReason::Forced { reason: "why".into() },
            }
            .to_reply(),
            "*2\r\n$4\r\nlost\r\n$10\r\nforced:why\r\n",
        ),
        (ReleaseReply::Released.to_reply(), "*1\r\n$8\r\nreleased\r\n"),
        (
            CancelReply::Released { token }.to_reply(),
            "*2\r\n$8\r\nreleased\r\n:7\r\n",
        ),
        (CancelReply::NotFound.to_reply(), "$-1\r\n"),
        (ForceReply::NotHeld.to_reply(), "$-1\r\n"),
        (TokenReply { token: Some(token) }.to_reply(), ":7\r\n"),
        (TokenReply { token: None }.to_reply(), "$-1\r\n"),
        (GetReply { lease: None }.to_reply(), "$-1\r\n"),
        (
            ListReply {
                next: None,
                leases: vec![],
            }
            .to_reply(),
            "*1\r\n$1\r\n0\r\n",
        ),
    ];
    for (reply, text) in table {
        let mut out = BytesMut::new();
        reply.encode(Protocol::Resp2, &mut out);
        assert_eq!(out, text.as_bytes());
    }
}

#[test]
fn a_newer_server_may_say_more() {
    let reply = Reply::Array(vec![
        Reply::word("lost"),
        Reply::word("abducted"),
        Reply::Integer(1),
        Reply::Nil,
    ]);
    assert_eq!(
        RenewReply::from_reply(reply),
        Ok(RenewReply::Lost {
            reason: LossReason::Unknown
        })
    );
    assert_eq!(HistoryEvent::parse(b"frozen"), HistoryEvent::Unknown);
}

#[test]
fn a_refusal_says_whether_the_request_may_have_applied() {
    let refused = |word| AcquireReply::from_reply(Reply::error(word, "text")).unwrap_err();
    let down = refused(ErrorWord::ClusterDown);
    assert!(down.is_retryable() && !down.may_have_applied());
    assert_eq!(down.to_string(), "LEASE.ACQUIRE failed: CLUSTERDOWN text");
    let unknown = refused(ErrorWord::Unknown);
    assert!(unknown.is_retryable() && unknown.may_have_applied());
    let odd = AcquireReply::from_reply(Reply::OK).unwrap_err();
    assert!(!odd.is_retryable() && odd.may_have_applied());
}

#[test]
fn answers_of_another_form_are_refused() {
    let token = |value| {
        Reply::Array(vec![
            Reply::word("granted"),
            Reply::Integer(value),
            Reply::Integer(5),
            Reply::Integer(0),
        ])
    };
    for reply in [
        token(0),
        token(-1),
        Reply::Array(vec![
            Reply::word("granted"),
            Reply::Nil,
            Reply::Integer(5),
            Reply::Integer(0),
        ]),
        Reply::Array(vec![
            Reply::word("granted"),
            Reply::Integer(1),
            Reply::Integer(-2),
            Reply::Integer(0),
        ]),
        Reply::Array(vec![Reply::word("granted"), Reply::Integer(1)]),
        Reply::Array(vec![Reply::word("given"), Reply::Integer(1)]),
        Reply::Array(vec![]),
        Reply::Nil,
    ] {
        let verb = LeaseVerb::Acquire;
        assert_eq!(
            AcquireReply::from_reply(reply),
            Err(AnswerError::Unexpected { verb })
        );
    }
    let one = RenewManyReply {
        answers: vec![RenewReply::Renewed { remaining_ms: None }],
    };
    assert!(RenewManyReply::from_reply(2, one.to_reply()).is_err());
    assert_eq!(RenewManyReply::from_reply(1, one.to_reply()), Ok(one));
}

#[test]
fn losses_read_well() {
    assert_eq!(
        LossReason::parse(b"forced:host down").to_string(),
        "forced: host down"
    );
    assert_eq!(LossReason::parse(b"forced").to_string(), "forced");
    assert_eq!(LossReason::parse(b"forced:"), LossReason::parse(b"forced"));
    assert_eq!(LossReason::parse(b"Expired"), LossReason::Unknown);
}

proptest! {
    #[test]
    fn every_answer_comes_back_from_the_wire(
        acquire in acquire(),
        renewals in vec(renew(), 0..5),
        release in release(),
        (cancel, force, token) in (cancel(), force(), of(token())),
        get in get(),
        list in list(),
        history in history(),
        leader in leader(),
    ) {
        let many = RenewManyReply { answers: renewals.clone() };
        let token = TokenReply { token };
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let wire = |reply: Reply| over_the_wire(&reply, protocol);
            prop_assert_eq!(&AcquireReply::from_reply(wire(acquire.to_reply())), &Ok(acquire.clone()));
            for renew in &renewals {
                prop_assert_eq!(&RenewReply::from_reply(wire(renew.to_reply())), &Ok(renew.clone()));
            }
            let asked = renewals.len();
            prop_assert_eq!(&RenewManyReply::from_reply(asked, wire(many.to_reply())), &Ok(many.clone()));
            prop_assert_eq!(&ReleaseReply::from_reply(wire(release.to_reply())), &Ok(release.clone()));
            prop_assert_eq!(CancelReply::from_reply(wire(cancel.to_reply())), Ok(cancel));
            prop_assert_eq!(ForceReply::from_reply(wire(force.to_reply())), Ok(force));
            prop_assert_eq!(TokenReply::from_reply(wire(token.to_reply())), Ok(token));
            prop_assert_eq!(&GetReply::from_reply(wire(get.to_reply())), &Ok(get.clone()));
            prop_assert_eq!(&ListReply::from_reply(wire(list.to_reply())), &Ok(list.clone()));
            prop_assert_eq!(&HistoryReply::from_reply(wire(history.to_reply())), &Ok(history.clone()));
            prop_assert_eq!(LeaderReply::from_reply(wire(leader.to_reply())), Ok(leader));
        }
    }
}
