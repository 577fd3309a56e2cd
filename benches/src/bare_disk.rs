//! What the disk itself can do: one record, one `fdatasync`, and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use crate::stopwatch::Stopwatch;

/// Bytes of one record: an acquire as the log holds it, with names and owners of 24 bytes, and its frame.
const RECORD_BYTES: usize = 120;
/// Bytes of the file, which is written and synced beforehand. A sync then has no length and no block to note: the
/// fastest form of this loop, and so the hardest to compare with.
const FILE_BYTES: u64 = 8 * 1_024 * 1_024;

/// The loop, between whose rounds others run.
#[derive(Debug)]
pub struct BareDisk {
    file: File,
    at: u64,
}

impl BareDisk {
    /// Prepares the file at `path`.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::create_new(path)?;
        let block = [0x5a; 64 * 1_024];
        for at in (0..FILE_BYTES).step_by(block.len()) {
            file.write_all_at(&block, at)?;
        }
        file.sync_all()?;
        Ok(Self { file, at: 0 })
    }

    /// Runs for about `time`; answers with records per second.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn rate(&mut self, time: Duration) -> io::Result<f64> {
        let record = [0xa5; RECORD_BYTES];
        let watch = Stopwatch::start();
        let mut records = 0_u32;
        while watch.elapsed() < time {
            self.file.write_all_at(&record, self.at)?;
            self.file.sync_data()?;
            self.at = (self.at + RECORD_BYTES as u64) % (FILE_BYTES - RECORD_BYTES as u64);
            records += 1;
        }
        Ok(f64::from(records) / watch.elapsed().as_secs_f64())
    }
}
