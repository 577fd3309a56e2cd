//! The encoding of stored rows: a version, then the record. The only file that names the codec library, so that it
//! can be replaced here.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::limits::RECORD_BYTES_MAX;

/// A kind of row.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// What people call it.
    const NAME: &'static str;
    /// The version of its layout; numbers are never used again.
    const VERSION: u8;
}

/// Bytes that are not those of the record, or a record that has none.
#[derive(Debug, Error)]
pub(crate) enum CodecError {
    #[error("version {found} is unknown")]
    Version { found: u8 },
    #[error("it is empty")]
    Empty,
    #[error("{bytes} bytes follow after it")]
    Trailing { bytes: usize },
    #[error("it does not decode")]
    Decode(#[source] bincode::error::DecodeError),
    #[error("it does not encode")]
    Encode(#[source] bincode::error::EncodeError),
}

const CONFIG: Configuration<LittleEndian, Varint, Limit<RECORD_BYTES_MAX>> =
    bincode::config::standard().with_limit::<RECORD_BYTES_MAX>();

pub(crate) fn encode<R: Record>(record: &R) -> Result<Vec<u8>, CodecError> {
    let mut bytes = vec![R::VERSION];
    bincode::serde::encode_into_std_write(record, &mut bytes, CONFIG).map_err(CodecError::Encode)?;
    Ok(bytes)
}

/// Reads a record back; it must use all of the bytes.
pub(crate) fn decode<R: Record>(bytes: &[u8]) -> Result<R, CodecError> {
    let (&version, body) = bytes.split_first().ok_or(CodecError::Empty)?;
    if version != R::VERSION {
        return Err(CodecError::Version { found: version });
    }
    let (record, used) = bincode::serde::decode_from_slice(body, CONFIG).map_err(CodecError::Decode)?;
    match body.len().checked_sub(used) {
        Some(0) | None => Ok(record),
        Some(bytes) => Err(CodecError::Trailing { bytes }),
    }
}
