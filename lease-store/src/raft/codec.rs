//! How records become bytes, on disk and between peers: one format byte, then bincode.
//!
//! Nobody else names bincode, so replacing it is this file and a new format number. What is encoded are the mirror
//! structs of [`super::records`], never openraft's own: those gain fields between versions, and bincode has no names
//! of fields to tell them apart by.

use lease_core::limits::ENTRY_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The first byte of every record. A record of another format is refused, never guessed at.
const FORMAT: u8 = 1;

/// Bytes of one record at the most: the largest entry and what surrounds its body.
pub(super) const RECORD_BYTES_MAX: usize = ENTRY_BYTES_MAX + 64 * 1_024;

const CONFIG: bincode::config::Configuration<
    bincode::config::LittleEndian,
    bincode::config::Varint,
    bincode::config::Limit<RECORD_BYTES_MAX>,
> = bincode::config::standard().with_limit::<RECORD_BYTES_MAX>();

/// Why bytes are no record, or a record cannot become bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The record is longer than it may be.
    #[error("a record of {bytes} bytes is longer than {max}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// What is allowed.
        max: usize,
    },
    /// There is not even a format byte.
    #[error("an empty record")]
    Empty,
    /// Another version of this software wrote it.
    #[error(
        "a record of format {found}, this build reads format {FORMAT}: start the build that wrote it, or a newer one"
    )]
    UnknownFormat {
        /// The format byte found.
        found: u8,
    },
    /// The bytes do not make a record.
    #[error("a malformed record: {reason}")]
    Malformed {
        /// What is wrong with them.
        reason: String,
    },
    /// Something follows the record.
    #[error("{bytes} bytes follow the record")]
    Trailing {
        /// How many bytes.
        bytes: usize,
    },
}

impl From<CodecError> for std::io::Error {
    fn from(error: CodecError) -> Self {
        Self::new(std::io::ErrorKind::InvalidData, error)
    }
}

/// The bytes of a record.
///
/// # Errors
/// The record is longer than [`RECORD_BYTES_MAX`].
pub(super) fn encode<T: Serialize>(record: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = vec![FORMAT];
    bincode::serde::encode_into_std_write(record, &mut bytes, CONFIG).map_err(|error| {
        CodecError::Malformed {
            reason: error.to_string(),
        }
    })?;
    check_length(bytes.len(), RECORD_BYTES_MAX)?;
    Ok(bytes)
}

/// The record that is the whole of `bytes`, which may be at most `max` long.
///
/// # Errors
/// The bytes are too long, of another format, malformed, or more than one record.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8], max: usize) -> Result<T, CodecError> {
    check_length(bytes.len(), max.min(RECORD_BYTES_MAX))?;
    let (&format, body) = bytes.split_first().ok_or(CodecError::Empty)?;
    if format != FORMAT {
        return Err(CodecError::UnknownFormat { found: format });
    }
    let (record, used) =
        bincode::serde::decode_from_slice(body, CONFIG).map_err(|error| CodecError::Malformed {
            reason: error.to_string(),
        })?;
    match body.len().checked_sub(used) {
        Some(0) => Ok(record),
        Some(bytes) => Err(CodecError::Trailing { bytes }),
        None => Err(CodecError::Malformed {
            reason: "read past its end".to_owned(),
        }),
    }
}

fn check_length(bytes: usize, max: usize) -> Result<(), CodecError> {
    if bytes > max {
        return Err(CodecError::TooLong { bytes, max });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was() {
        let bytes = encode(&(7_u64, "name".to_owned())).unwrap();
        assert_eq!(
            decode::<(u64, String)>(&bytes, 100).unwrap(),
            (7, "name".to_owned())
        );
    }

    #[test]
    fn bytes_after_a_record_are_refused() {
        let mut bytes = encode(&7_u64).unwrap();
        bytes.push(0);
        assert_eq!(decode::<u64>(&bytes, 100), Err(CodecError::Trailing { bytes: 1 }));
    }

    #[test]
    fn another_format_is_refused() {
        let mut bytes = encode(&7_u64).unwrap();
        bytes[0] = 2;
        assert_eq!(
            decode::<u64>(&bytes, 100),
            Err(CodecError::UnknownFormat { found: 2 })
        );
        assert_eq!(decode::<u64>(&[], 100), Err(CodecError::Empty));
    }

    #[test]
    fn a_record_past_its_limit_is_refused_before_it_is_read() {
        let bytes = encode(&vec![0_u8; 50]).unwrap();
        assert!(matches!(
            decode::<Vec<u8>>(&bytes, 40),
            Err(CodecError::TooLong { max: 40, .. })
        ));
    }

    #[test]
    fn a_length_beyond_the_limit_allocates_nothing() {
        // A vector that claims 2^60 bytes.
        let mut bytes = vec![FORMAT, 253];
        bytes.extend_from_slice(&(1_u64 << 60).to_le_bytes());
        assert!(matches!(
            decode::<Vec<u8>>(&bytes, 100),
            Err(CodecError::Malformed { .. })
        ));
    }

    #[test]
    fn every_cut_of_a_record_is_an_error() {
        let bytes = encode(&(300_u64, vec![1_u64, 2, 3], Some("x".to_owned()))).unwrap();
        for end in 0..bytes.len() {
            assert!(decode::<(u64, Vec<u64>, Option<String>)>(&bytes[..end], 100).is_err());
        }
    }
}
