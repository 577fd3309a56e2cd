//! The bodies of log entries.

use proptest::prelude::*;

use super::properties::cases;
use super::steps::command;
use super::words::*;
use crate::limits::{BATCH_COMMANDS_MAX, ENTRY_BYTES_MAX};
use crate::machine::codec::{BODY_FORMAT, CodecError, EncodedCommand, join, split};
use crate::machine::{Command, Once, Submission};
use crate::types::SharedBytes;

fn body(commands: &[Command]) -> Vec<u8> {
    let encoded: Vec<EncodedCommand> = commands
        .iter()
        .map(|command| EncodedCommand::new(command).unwrap())
        .collect();
    let body = join(&encoded).unwrap();
    let lens: usize = encoded.iter().map(EncodedCommand::body_len).sum();
    assert_eq!(body.len(), 1 + lens);
    body.to_vec()
}

/// A body of one command that is made of these bytes.
fn body_of_bytes(command: &[u8]) -> Vec<u8> {
    let mut body = vec![BODY_FORMAT];
    body.extend(u32::try_from(command.len()).unwrap().to_le_bytes());
    body.extend(command);
    body
}

/// The commands of a body, none of which has a number.
fn read(bytes: &[u8]) -> Result<Vec<Command>, CodecError> {
    let plain = |submission: Submission| {
        assert_eq!(submission.once, None);
        submission.command
    };
    Ok(split(bytes)?.into_iter().map(plain).collect())
}

fn malformed(bytes: &[u8]) -> bool {
    matches!(split(bytes), Err(CodecError::Malformed { .. }))
}

#[test]
fn an_entry_without_commands_is_one_byte() {
    assert_eq!(body(&[]), [BODY_FORMAT]);
    assert_eq!(split(&[BODY_FORMAT]), Ok(Vec::new()));
}

#[test]
fn the_largest_batch_fits_and_one_more_is_refused() {
    let most = vec![Command::Tick; BATCH_COMMANDS_MAX];
    assert_eq!(split(&body(&most)).unwrap().len(), BATCH_COMMANDS_MAX);
    let more = vec![EncodedCommand::tick(); BATCH_COMMANDS_MAX + 1];
    assert!(matches!(join(&more), Err(CodecError::TooLarge { .. })));
    let mut bytes = body(&most);
    bytes.extend([1, 0, 0, 0, 0]);
    assert!(matches!(split(&bytes), Err(CodecError::TooLarge { .. })));
}

#[test]
fn commands_that_do_not_fit_one_entry_together_are_not_joined() {
    let reason = SharedBytes::from(vec![0; ENTRY_BYTES_MAX / 2]);
    let command = Command::Force {
        key: key("L"),
        reason,
    };
    let half = EncodedCommand::new(&command).unwrap();
    join(std::slice::from_ref(&half)).unwrap();
    assert!(matches!(
        join(&[half.clone(), half]),
        Err(CodecError::TooLarge { .. })
    ));
}

#[test]
fn a_command_comes_back_with_its_number_and_never_has_two() {
    let once = Once {
        node: 3,
        incarnation: 70_000,
        number: u64::MAX,
        settled_below: 9,
    };
    let numbered = EncodedCommand::tick().numbered(&once).unwrap();
    let read = split(&join(&[EncodedCommand::tick(), numbered.clone()]).unwrap()).unwrap();
    let second = Submission {
        once: Some(once),
        command: Command::Tick,
    };
    assert_eq!(read, [Submission::from(Command::Tick), second]);
    assert_eq!(
        EncodedCommand::from_bytes(numbered.as_bytes().clone()),
        Ok(numbered.clone())
    );
    assert!(numbered.numbered(&once).is_err());
    let mut twice = numbered.as_bytes().to_vec();
    twice.pop();
    twice.extend_from_slice(numbered.as_bytes());
    assert!(malformed(&body_of_bytes(&twice)), "a number within a number");
    let cut = numbered.as_bytes().slice(..numbered.as_bytes().len() - 1);
    assert!(malformed(&body_of_bytes(&cut)), "a number without a command");
}

#[test]
fn a_command_that_is_larger_than_any_entry_is_refused_where_it_is_made() {
    let reason = SharedBytes::from(vec![0; ENTRY_BYTES_MAX]);
    let command = Command::Force {
        key: key("L"),
        reason,
    };
    assert!(matches!(
        EncodedCommand::new(&command),
        Err(CodecError::TooLarge { .. })
    ));
}

#[test]
fn bodies_that_make_no_sense_are_refused() {
    assert!(malformed(&[]));
    let unknown = CodecError::UnknownFormat {
        found: 9,
        known: BODY_FORMAT,
    };
    assert_eq!(split(&[9, 1, 2, 3]), Err(unknown));
    assert!(malformed(&[BODY_FORMAT, 1, 0]), "a length that is cut off");
    assert!(
        malformed(&[BODY_FORMAT, 0xff, 0xff, 0xff, 0xff]),
        "a length that lies"
    );
    assert!(malformed(&body_of_bytes(&[])), "no command at all");
    assert!(malformed(&body_of_bytes(&[200])), "a tag of no command");
    assert!(malformed(&body_of_bytes(&[0, 0])), "bytes left over");
}

#[test]
fn values_that_break_their_types_are_refused() {
    let tag_of_renew_many = 3;
    let tag_of_renew = 2;
    let endless = [tag_of_renew_many, 253, 255, 255, 255, 255, 255, 255, 255, 127];
    assert!(malformed(&body_of_bytes(&endless)), "a count that lies");
    let name_is_cut = [tag_of_renew, 0, 253, 255, 255, 255, 255, 0, 0, 0, 0];
    assert!(malformed(&body_of_bytes(&name_is_cut)));
    let fine = [tag_of_renew, 0, 1, b'L', 7, 0];
    assert!(split(&body_of_bytes(&fine)).is_ok());
    let token_zero = [tag_of_renew, 0, 1, b'L', 0, 0];
    assert!(malformed(&body_of_bytes(&token_zero)));
    let ttl_zero = [tag_of_renew, 0, 1, b'L', 7, 1, 0];
    assert!(malformed(&body_of_bytes(&ttl_zero)));
    let database_64 = [tag_of_renew, 64, 1, b'L', 7, 0];
    assert!(malformed(&body_of_bytes(&database_64)));
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn bodies_go_round(commands in prop::collection::vec(command(), 0..20)) {
        prop_assert_eq!(read(&body(&commands)), Ok(commands));
    }

    #[test]
    fn a_body_that_is_cut_off_gives_no_command_that_was_not_in_it(
        commands in prop::collection::vec(command(), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let bytes = body(&commands);
        let cut = cut.index(bytes.len());
        if let Ok(read) = read(&bytes[..cut]) {
            // Cut between two commands: the length of an entry is for whoever stores it to keep.
            prop_assert_eq!(&commands[..read.len()], &read);
            prop_assert_eq!(body(&read).len(), cut);
        }
    }

    #[test]
    fn damaged_bodies_are_refused_or_read_as_commands(
        commands in prop::collection::vec(command(), 1..6),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = body(&commands);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        // A damaged byte may make a number of a command; then it is another body than the one made here.
        if let Ok(submissions) = split(&bytes)
            && submissions.iter().all(|submission| submission.once.is_none())
        {
            let commands: Vec<Command> = submissions.into_iter().map(|submission| submission.command).collect();
            prop_assert_eq!(read(&body(&commands)), Ok(commands));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = split(&bytes);
        let mut body = vec![BODY_FORMAT];
        body.extend(&bytes);
        let _ = split(&body);
        let _ = split(&body_of_bytes(&bytes));
    }
}
