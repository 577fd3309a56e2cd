use crate::types::SharedBytes;

/// How the beginning and the end of a listing are written, as in Redis's `SCAN`.
const EDGE: &[u8] = b"0";
/// Before the bytes of a place in between, so that none can look like the edge.
const PLACE: u8 = b':';

/// Where a listing goes on. Its bytes mean something to the server alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListCursor(SharedBytes);

impl ListCursor {
    /// The place that `bytes` stand for.
    #[must_use]
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        Self(SharedBytes::from(bytes.as_ref()))
    }

    /// The server's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// The text of this place, or of the edge: the beginning in a request, the end in an answer.
    #[must_use]
    pub fn write(cursor: Option<&Self>) -> Vec<u8> {
        cursor.map_or_else(|| EDGE.to_vec(), |cursor| [&[PLACE], cursor.as_bytes()].concat())
    }

    /// Reads a text; `Ok(None)` is the edge.
    ///
    /// # Errors
    /// [`NotACursor`] if no server of this kind writes such a text.
    pub fn read(text: &[u8]) -> Result<Option<Self>, NotACursor> {
        match text {
            [PLACE, place @ ..] => Ok(Some(Self::new(place))),
            EDGE => Ok(None),
            _ => Err(NotACursor),
        }
    }
}

/// A text that is no cursor of this store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of this store")]
pub struct NotACursor;
