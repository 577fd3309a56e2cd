//! Frames: how calls and answers are cut out of a stream.
//!
//! ```text
//! length (u32)      of all that follows the checksum
//! checksum (u32)    of the same bytes
//! id (u64)          of the call; its answer has the same
//! tag (u8)          of a call: its kind; of an answer: 0, or the refusal
//! body
//! ```
//! Numbers are little-endian. A length is checked before anything is kept for it, and memory grows only with what has
//! arrived. TCP's own checksum misses one damaged segment in some 65,000; what is replicated must not hang on that.

use std::io;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Bytes before the checksummed part.
const LEAD_BYTES: usize = 8;
/// Bytes of the checksummed part before the body.
const HEAD_BYTES: usize = 9;
/// Bytes that are read at once at the most, until a long frame has shown that it comes.
const READ_BYTES: usize = 64 * 1_024;
/// A body up to this length is copied behind its head, so that both leave in one call to the system.
const COPY_BYTES_MAX: usize = 16 * 1_024;

/// The tag of an answer that is no refusal.
pub(super) const ANSWERED: u8 = 0;

/// One call or answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) id: u64,
    pub(super) tag: u8,
    pub(super) body: Bytes,
}

/// Why a stream yields no more frames.
#[derive(Debug, Error)]
pub(super) enum FrameError {
    #[error("a frame of {bytes} bytes is longer than {max}")]
    TooLong { bytes: usize, max: usize },
    #[error("a frame of {bytes} bytes is too short")]
    TooShort { bytes: usize },
    #[error("a frame fails its checksum")]
    Damaged,
    #[error("the stream ended within a frame")]
    CutOff,
    #[error("the stream failed")]
    Io(#[from] io::Error),
}

/// Cuts frames out of a stream.
#[derive(Debug)]
pub(super) struct FrameReader<S> {
    stream: S,
    buffer: BytesMut,
    body_bytes_max: usize,
}

impl<S: AsyncRead + Unpin> FrameReader<S> {
    pub(super) fn new(stream: S, body_bytes_max: usize) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            body_bytes_max,
        }
    }

    /// The next frame; `None` when the stream ends between two.
    ///
    /// Cancel safe: what was read is kept for the next call.
    pub(super) async fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            let lacking = match self.take()? {
                Taken::Frame(frame) => return Ok(Some(frame)),
                Taken::Lacking(bytes) => bytes,
            };
            // A peer that has sent much may send as much again: memory is at most twice what came.
            let step = lacking.min(self.buffer.len().max(READ_BYTES));
            self.buffer.reserve(step);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(FrameError::CutOff)
                };
            }
        }
    }

    fn take(&mut self) -> Result<Taken, FrameError> {
        let Some(lead) = self.buffer.first_chunk::<LEAD_BYTES>() else {
            return Ok(Taken::Lacking(READ_BYTES));
        };
        let [l0, l1, l2, l3, c0, c1, c2, c3] = *lead;
        let bytes = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let sum = u32::from_le_bytes([c0, c1, c2, c3]);
        if bytes < HEAD_BYTES {
            return Err(FrameError::TooShort { bytes });
        }
        let max = self.body_bytes_max.saturating_add(HEAD_BYTES);
        if bytes > max {
            return Err(FrameError::TooLong { bytes, max });
        }
        let there = self.buffer.len().saturating_sub(LEAD_BYTES);
        if there < bytes {
            return Ok(Taken::Lacking(bytes.saturating_sub(there)));
        }
        self.buffer.advance(LEAD_BYTES);
        let mut checked = self.buffer.split_to(bytes).freeze();
        if crc32fast::hash(&checked) != sum {
            return Err(FrameError::Damaged);
        }
        let id = checked.get_u64_le();
        let tag = checked.get_u8();
        Ok(Taken::Frame(Frame {
            id,
            tag,
            body: checked,
        }))
    }
}

enum Taken {
    Frame(Frame),
    /// That many bytes more, or fewer if less is known.
    Lacking(usize),
}

/// Gathers frames and writes many at once.
#[derive(Debug)]
pub(super) struct FrameWriter<S> {
    stream: S,
    gathered: BytesMut,
}

impl<S: AsyncWrite + Unpin> FrameWriter<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            gathered: BytesMut::new(),
        }
    }

    /// Bytes that wait for [`FrameWriter::flush`].
    pub(super) fn gathered_bytes(&self) -> usize {
        self.gathered.len()
    }

    /// Adds a frame; a long one is written at once, and all before it.
    ///
    /// Not cancel safe: the stream is useless then.
    pub(super) async fn put(&mut self, frame: &Frame) -> io::Result<()> {
        let Frame { id, tag, body } = frame;
        let bytes = body.len().saturating_add(HEAD_BYTES);
        let length = u32::try_from(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a frame of 4 GiB"))?;
        let mut sum = crc32fast::Hasher::new();
        sum.update(&id.to_le_bytes());
        sum.update(&[*tag]);
        sum.update(body);
        self.gathered.put_u32_le(length);
        self.gathered.put_u32_le(sum.finalize());
        self.gathered.put_u64_le(*id);
        self.gathered.put_u8(*tag);
        if body.len() <= COPY_BYTES_MAX {
            self.gathered.put_slice(body);
            return Ok(());
        }
        self.flush().await?;
        self.stream.write_all(body).await
    }

    /// Writes all that was added.
    ///
    /// Not cancel safe: the stream is useless then.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.gathered).await?;
        self.gathered.clear();
        self.stream.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(id: u64, tag: u8, body: &[u8]) -> Frame {
        let body = Bytes::copy_from_slice(body);
        Frame { id, tag, body }
    }

    async fn written(frames: &[Frame]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = FrameWriter::new(&mut out);
        for frame in frames {
            writer.put(frame).await.unwrap();
        }
        writer.flush().await.unwrap();
        out
    }

    async fn read(bytes: &[u8], body_bytes_max: usize) -> Result<Vec<Frame>, FrameError> {
        let mut reader = FrameReader::new(bytes, body_bytes_max);
        let mut frames = Vec::new();
        while let Some(frame) = reader.next().await? {
            frames.push(frame);
        }
        Ok(frames)
    }

    #[tokio::test]
    async fn frames_of_every_length_come_back_in_order() {
        let lengths = [0, 1, COPY_BYTES_MAX, COPY_BYTES_MAX + 1, 3 * READ_BYTES];
        let frames: Vec<Frame> = lengths
            .iter()
            .zip(1_u8..)
            .map(|(&length, tag)| frame(u64::from(tag) << 40, tag, &vec![tag; length]))
            .collect();
        let bytes = written(&frames).await;
        assert_eq!(read(&bytes, 3 * READ_BYTES).await.unwrap(), frames);
    }

    #[tokio::test]
    async fn a_frame_that_comes_byte_by_byte_is_read_although_every_read_is_given_up() {
        use futures_util::FutureExt as _;
        let sent = frame(9, 3, b"a body");
        let bytes = written(std::slice::from_ref(&sent)).await;
        let (mut near, far) = tokio::io::duplex(64);
        let mut reader = FrameReader::new(far, 100);
        let mut found = None;
        for byte in bytes {
            assert!(found.is_none());
            near.write_all(&[byte]).await.unwrap();
            found = reader.next().now_or_never();
        }
        assert_eq!(found.unwrap().unwrap(), Some(sent));
    }

    #[tokio::test]
    async fn every_flipped_bit_and_every_cut_is_seen() {
        let bytes = written(&[frame(7, 1, b"some body")]).await;
        for position in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[position] ^= 1 << bit;
                assert!(read(&flipped, 100).await.is_err(), "bit {bit} of byte {position}");
            }
            if position > 0 {
                assert!(read(&bytes[..position], 100).await.is_err(), "cut at {position}");
            }
        }
    }

    #[tokio::test]
    async fn a_length_out_of_bounds_is_refused_before_anything_is_kept_for_it() {
        let mut bytes = vec![0xFF; 4];
        bytes.extend_from_slice(&[0; 4]);
        let mut reader = FrameReader::new(bytes.as_slice(), 100);
        let refused = reader.next().await;
        assert!(
            matches!(refused, Err(FrameError::TooLong { max: 109, .. })),
            "{refused:?}"
        );
        assert!(reader.buffer.capacity() <= 2 * READ_BYTES);
        let short = [8, 0, 0, 0, 0, 0, 0, 0];
        let refused = read(&short, 100).await;
        assert!(
            matches!(refused, Err(FrameError::TooShort { bytes: 8 })),
            "{refused:?}"
        );
    }

    #[tokio::test]
    async fn memory_grows_only_with_what_has_arrived() {
        let mut bytes = (64_u32 << 20).to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&[1; 1_000]);
        let (mut near, far) = tokio::io::duplex(4_096);
        near.write_all(&bytes).await.unwrap();
        let mut reader = FrameReader::new(far, 64 << 20);
        let waits = futures_util::FutureExt::now_or_never(reader.next());
        assert!(waits.is_none());
        assert!(
            reader.buffer.capacity() <= 3 * READ_BYTES,
            "{}",
            reader.buffer.capacity()
        );
    }
}
