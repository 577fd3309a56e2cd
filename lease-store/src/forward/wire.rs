//! The bytes of forwarded requests and their answers.
//!
//! A message is a format byte, a kind, and its parts: numbers little-endian, byte strings behind their length as `u32`.
//! Frames are bounded where they are read; nothing here reserves memory by a count that a peer claims.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lease_core::Timestamp;
use lease_core::limits::BATCH_COMMANDS_MAX;
use lease_core::machine::Outcome;
use lease_core::machine::codec::{self, EncodedCommand};
use thiserror::Error;

use super::{Barrier, Outcomes};
use crate::error::StoreError;

/// The format of these messages.
const FORMAT: u8 = 1;

const SUBMIT: u8 = 1;
const BARRIER: u8 = 2;

const APPLIED: u8 = 1;
const UNAVAILABLE: u8 = 2;
const UNKNOWN: u8 = 3;
const TOO_LARGE: u8 = 4;

/// What one node asks of the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    Submit(Vec<EncodedCommand>),
    Barrier,
}

/// Bytes that are no message of this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a forwarded request or answer that this build knows")]
pub(super) struct Malformed;

impl Request {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_u8(FORMAT);
        match self {
            Self::Submit(commands) => {
                out.put_u8(SUBMIT);
                commands
                    .iter()
                    .for_each(|command| put_bytes(&mut out, command.as_bytes()));
            }
            Self::Barrier => out.put_u8(BARRIER),
        }
        out.freeze()
    }

    pub(super) fn decode(mut bytes: Bytes) -> Result<Self, Malformed> {
        match take_head(&mut bytes)? {
            SUBMIT => {
                let mut commands = Vec::new();
                while bytes.has_remaining() {
                    if commands.len() >= BATCH_COMMANDS_MAX {
                        return Err(Malformed);
                    }
                    let command = take_bytes(&mut bytes)?;
                    commands.push(EncodedCommand::from_bytes(command).map_err(|_| Malformed)?);
                }
                Ok(Self::Submit(commands))
            }
            BARRIER if !bytes.has_remaining() => Ok(Self::Barrier),
            _ => Err(Malformed),
        }
    }
}

/// The answer to [`Request::Submit`].
pub(super) fn encode_outcomes(outcomes: &Outcomes) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(FORMAT);
    out.put_u8(SUBMIT);
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => put_outcome(&mut out, outcome),
            Err(error) => put_error(&mut out, error),
        }
    }
    out.freeze()
}

/// Reads the answer to a submission of `asked` commands; another number of outcomes could be anybody's.
pub(super) fn decode_outcomes(mut bytes: Bytes, asked: usize) -> Result<Outcomes, Malformed> {
    if take_head(&mut bytes)? != SUBMIT {
        return Err(Malformed);
    }
    let mut outcomes = Vec::new();
    while bytes.has_remaining() {
        outcomes.push(take_outcome(&mut bytes)?);
    }
    if outcomes.len() == asked {
        Ok(outcomes)
    } else {
        Err(Malformed)
    }
}

/// The answer to [`Request::Barrier`].
pub(super) fn encode_barrier(barrier: &Result<Barrier, StoreError>) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(FORMAT);
    out.put_u8(BARRIER);
    match barrier {
        Ok(Barrier { index, time }) => {
            out.put_u8(APPLIED);
            out.put_u64_le(*index);
            out.put_u64_le(time.as_millis());
        }
        Err(error) => put_error(&mut out, error),
    }
    out.freeze()
}

pub(super) fn decode_barrier(mut bytes: Bytes) -> Result<Result<Barrier, StoreError>, Malformed> {
    if take_head(&mut bytes)? != BARRIER {
        return Err(Malformed);
    }
    match bytes.try_get_u8().map_err(|_| Malformed)? {
        APPLIED => {
            let index = bytes.try_get_u64_le().map_err(|_| Malformed)?;
            let time = bytes.try_get_u64_le().map_err(|_| Malformed)?;
            Ok(Ok(Barrier {
                index,
                time: Timestamp::from_millis(time),
            }))
        }
        error => Ok(Err(take_error(error, &mut bytes)?)),
    }
}

fn put_outcome(out: &mut BytesMut, outcome: &Outcome) {
    match codec::encode_outcome(outcome) {
        Ok(bytes) => {
            out.put_u8(APPLIED);
            put_bytes(out, &bytes);
        }
        // It was applied; only its telling fails.
        Err(_) => out.put_u8(UNKNOWN),
    }
}

fn take_outcome(bytes: &mut Bytes) -> Result<Result<Outcome, StoreError>, Malformed> {
    match bytes.try_get_u8().map_err(|_| Malformed)? {
        APPLIED => {
            let outcome = take_bytes(bytes)?;
            Ok(Ok(codec::decode_outcome(&outcome).map_err(|_| Malformed)?))
        }
        error => Ok(Err(take_error(error, bytes)?)),
    }
}

/// A node that has stopped is one that is not there, but for what was under way.
fn put_error(out: &mut BytesMut, error: &StoreError) {
    match error {
        StoreError::Unavailable { leader } => {
            out.put_u8(UNAVAILABLE);
            out.put_u64_le(leader.unwrap_or(0));
        }
        StoreError::ShutDown => {
            out.put_u8(UNAVAILABLE);
            out.put_u64_le(0);
        }
        StoreError::Unknown | StoreError::Failed(_) => out.put_u8(UNKNOWN),
        StoreError::TooLarge => out.put_u8(TOO_LARGE),
    }
}

fn take_error(kind: u8, bytes: &mut Bytes) -> Result<StoreError, Malformed> {
    match kind {
        UNAVAILABLE => {
            let leader = bytes.try_get_u64_le().map_err(|_| Malformed)?;
            Ok(StoreError::Unavailable {
                leader: (leader != 0).then_some(leader),
            })
        }
        UNKNOWN => Ok(StoreError::Unknown),
        TOO_LARGE => Ok(StoreError::TooLarge),
        _ => Err(Malformed),
    }
}

fn take_head(bytes: &mut Bytes) -> Result<u8, Malformed> {
    match bytes.try_get_u8() {
        Ok(FORMAT) => bytes.try_get_u8().map_err(|_| Malformed),
        Ok(_) | Err(_) => Err(Malformed),
    }
}

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    // Commands and outcomes are bounded far below 2^32 where they are encoded.
    out.put_u32_le(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.put_slice(bytes);
}

fn take_bytes(bytes: &mut Bytes) -> Result<Bytes, Malformed> {
    let length = bytes.try_get_u32_le().map_err(|_| Malformed)? as usize;
    if length > bytes.len() {
        return Err(Malformed);
    }
    Ok(bytes.split_to(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lease_core::FenceToken;
    use lease_core::machine::Command;

    fn tick() -> EncodedCommand {
        EncodedCommand::new(&Command::Tick).unwrap()
    }

    #[test]
    fn requests_and_answers_come_back_from_the_wire() {
        for request in [
            Request::Submit(vec![tick(), tick()]),
            Request::Submit(Vec::new()),
            Request::Barrier,
        ] {
            assert_eq!(Request::decode(request.encode()), Ok(request));
        }
        let granted = Outcome::Granted {
            token: FenceToken::new(7).unwrap(),
            remaining_ms: Some(5),
            waited_ms: 0,
        };
        let outcomes = vec![
            Ok(granted.clone()),
            Err(StoreError::Unknown),
            Err(StoreError::TooLarge),
        ];
        let read = decode_outcomes(encode_outcomes(&outcomes), 3).unwrap();
        assert_eq!(read.first().and_then(|first| first.as_ref().ok()), Some(&granted));
        assert!(matches!(read.get(1), Some(Err(StoreError::Unknown))));
        let barrier = Barrier {
            index: 9,
            time: Timestamp::from_millis(11),
        };
        assert_eq!(
            decode_barrier(encode_barrier(&Ok(barrier))).unwrap().ok(),
            Some(barrier)
        );
        let refused = decode_barrier(encode_barrier(&Err(StoreError::Unavailable { leader: Some(3) })));
        assert!(matches!(
            refused,
            Ok(Err(StoreError::Unavailable { leader: Some(3) }))
        ));
    }

    #[test]
    fn another_number_of_outcomes_is_no_answer() {
        let outcomes = vec![Err(StoreError::Unknown)];
        assert!(decode_outcomes(encode_outcomes(&outcomes), 2).is_err());
    }

    #[test]
    fn every_cut_is_an_error_or_a_shorter_list() {
        let whole = Request::Submit(vec![tick(), tick()]).encode();
        for end in 0..whole.len() {
            if let Ok(Request::Submit(commands)) = Request::decode(whole.slice(..end)) {
                assert!(commands.len() < 2);
            }
        }
        assert_eq!(Request::decode(Bytes::from_static(&[2, 1])), Err(Malformed));
    }
}
