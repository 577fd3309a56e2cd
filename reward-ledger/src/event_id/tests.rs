use super::{InvalidEventId, RandomLook, RewardEventId};
use crate::types::PlayerId;

#[test]
fn the_builder_writes_the_form_of_the_design() {
    let plain = RewardEventId::builder("season-2026-week-34", 42, "rank-3");
    assert_eq!(
        plain.clone().build().unwrap().as_str(),
        "season-2026-week-34:player-42:rank-3"
    );
    assert_eq!(
        plain.clone().version(1).build().unwrap(),
        plain.clone().build().unwrap(),
        "version 1 is not written"
    );
    assert_eq!(
        plain.clone().kind("gold").version(2).build().unwrap().as_str(),
        "season-2026-week-34:player-42:rank-3:gold:v2"
    );
    assert_eq!(
        plain.version(7).build().unwrap().as_str(),
        "season-2026-week-34:player-42:rank-3:v7"
    );
}

#[test]
fn what_is_built_is_parsed_back_into_its_parts() {
    for (kind, version) in [(None, 1), (Some("gold"), 1), (None, 3), (Some("gold"), 3)] {
        let mut builder = RewardEventId::builder("s1", -7, "q_9.b").version(version);
        if let Some(kind) = kind {
            builder = builder.kind(kind);
        }
        let id = builder.build().unwrap();
        let parsed = RewardEventId::parse(id.as_str()).unwrap();
        assert_eq!(parsed, id);
        let parts = parsed.parts().unwrap();
        assert_eq!(
            (
                parts.scope,
                parts.player,
                parts.achievement,
                parts.kind,
                parts.version
            ),
            ("s1", PlayerId::new(-7), "q_9.b", kind, version)
        );
    }
}

#[test]
fn a_part_must_be_of_the_alphabet_and_not_too_long() {
    for (scope, achievement) in [
        ("", "a"),
        ("a", ""),
        ("a:b", "c"),
        ("Season", "c"),
        ("a", "rank 3"),
        ("a", "räng"),
        (&*"x".repeat(65), "a"),
    ] {
        assert!(
            RewardEventId::builder(scope, 1, achievement).build().is_err(),
            "{scope}/{achievement}"
        );
    }
    let longest = "x".repeat(64);
    let id = RewardEventId::builder(longest.clone(), i64::MIN, longest.clone())
        .kind(longest)
        .version(u32::MAX)
        .build()
        .unwrap();
    assert!(RewardEventId::parse(id.as_str()).is_ok());
}

#[test]
fn a_kind_that_reads_as_a_version_is_refused() {
    let refused = RewardEventId::builder("s", 1, "a").kind("v2").build();
    assert!(matches!(refused, Err(InvalidEventId::KindReadsAsVersion { .. })));
    assert!(RewardEventId::builder("s", 1, "a").kind("vip").build().is_ok());
}

#[test]
fn version_zero_is_refused() {
    let refused = RewardEventId::builder("s", 1, "a").version(0).build();
    assert_eq!(refused, Err(InvalidEventId::VersionZero));
}

#[test]
fn a_second_spelling_of_a_typed_id_is_refused() {
    for second in [
        "s:player-042:rank-3",
        "s:player-+42:rank-3",
        "s:player-42:rank-3:v1",
        "s:player-42:rank-3:v02",
        "s:player-42:rank-3:gold:v0",
        "s:player-42:rank-3:gold:v1",
    ] {
        let refused = RewardEventId::parse(second);
        assert!(
            matches!(refused, Err(InvalidEventId::Spelling { .. })),
            "{second}: {refused:?}"
        );
    }
}

#[test]
fn an_id_of_another_form_is_taken_and_has_no_parts() {
    for own in [
        "order-1881-refund",
        "Quest/7",
        "s:42:rank",
        "s:player-x:rank",
        "a:b",
        "s:player-1",
    ] {
        assert_eq!(RewardEventId::parse(own).unwrap().parts(), None, "{own}");
    }
}

#[test]
fn an_id_is_visible_ascii_of_bounded_length() {
    for bad in ["", "a b", "a\tb", "a\0", "caf\u{e9}", &*"x".repeat(257)] {
        assert!(RewardEventId::parse(bad).is_err(), "{bad:?}");
    }
    assert!(RewardEventId::parse("x".repeat(256)).is_ok());
}

/// The rule of the design, at both sides of each of its edges.
#[test]
fn what_looks_random_is_refused() {
    for (text, look) in [
        ("5f0c4a7e-8a44-4c0e-9a53-0d8f5c9b2a11", RandomLook::Uuid),
        ("reward:5F0C4A7E-8A44-4C0E-9A53-0D8F5C9B2A11:x", RandomLook::Uuid),
        ("11111111-1111-1111-1111-111111111111", RandomLook::Uuid),
        ("grant-5f0c4a7e-8a44-4c0e-9a53-0d8f5c9b2a11", RandomLook::Uuid),
        ("x:0123456789abcdef", RandomLook::Hex),
        ("zz0123456789ABCDEFzz", RandomLook::Hex),
        ("5f0c4a7e8a444c0e9a530d8f5c9b2a11", RandomLook::Hex),
        ("tok:Zq8wPz0LmNv4RtYx7KbC", RandomLook::Base62),
    ] {
        assert_eq!(
            RewardEventId::parse(text),
            Err(InvalidEventId::LooksRandom { look }),
            "{text}"
        );
        assert!(RewardEventId::parse_allowing_random_look(text).is_ok(), "{text}");
    }
}

#[test]
fn what_does_not_look_random_is_taken() {
    for text in [
        "season-2026-week-34:player-9223372036854775807:rank-3",
        "0123456789abcde",             // 15 hex
        "abcdefabcdefabcdefa",         // hex letters only, below 20
        "12345678901234567890123",     // digits only, of any length
        "congratulationstoeveryone",   // letters only, of any length
        "Zq8wPz0LmNv4RtYx7Kb",         // 19 of base 62
        "week34_player42_rank3_gold1", // runs are broken by other characters
        "5f0c4a7e-8a44-4c0e-9a53-0d8", // no whole UUID
    ] {
        assert!(RewardEventId::parse(text).is_ok(), "{text}");
    }
}

#[test]
fn the_builder_refuses_a_random_look_unless_asked_by_name() {
    let builder = RewardEventId::builder("content-5f0c4a7e-8a44-4c0e-9a53-0d8f5c9b2a11", 1, "done");
    assert!(matches!(
        builder.clone().build(),
        Err(InvalidEventId::LooksRandom {
            look: RandomLook::Uuid
        })
    ));
    assert!(builder.allowing_random_look().build().is_ok());
}
