use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Stage;
use crate::core::Protections;
use crate::error::InvalidConfig;
use crate::limits::{ATTEMPT_ID_BYTES_MAX, EVENT_ID_BYTES_MAX, RECORD_BYTES_MAX, RESOURCE_BYTES_MAX};
use crate::store::hook::Hook;

/// Bytes of one segment of sled's log, and of its write buffer. sled moves a page of more than a quarter of this to a
/// file of its own, and syncs neither that file nor its removal; at this size the largest page fits.
pub(super) const SEGMENT_BYTES: usize = 2 * 1_024 * 1_024;
/// Bytes of pages that sled keeps in memory, unless said: all pages of some 200,000 claims. Measured: where half of the
/// pages must be read back, a group takes twice as long.
const CACHE_BYTES: u64 = 256 * 1_024 * 1_024;
const CACHE_BYTES_MIN: u64 = 1_024 * 1_024;
/// How long one step of the writer may take, unless said. A barrier takes a millisecond or so; a second is a sick disk.
const STUCK_AFTER: Duration = Duration::from_secs(5);
const STUCK_AFTER_MIN: Duration = Duration::from_millis(100);
const STUCK_AFTER_MAX: Duration = Duration::from_secs(600);

/// sled 0.34.7 keeps at most this many rows in a leaf, and writes up to this many changes to it before the leaf anew.
const LEAF_ROWS_MAX: usize = 16 + 1 + 10;
/// Most children of an inner page of sled 0.34.7.
const INDEX_KEYS_MAX: usize = 256 + 1 + 10;
const KEY_BYTES_MAX: usize = RESOURCE_BYTES_MAX + 32;
const _: () = assert!(KEY_BYTES_MAX >= EVENT_ID_BYTES_MAX + ATTEMPT_ID_BYTES_MAX);
const _: () = assert!(LEAF_ROWS_MAX * (RECORD_BYTES_MAX + KEY_BYTES_MAX + 16) < SEGMENT_BYTES / 4 - 64);
const _: () = assert!(INDEX_KEYS_MAX * (KEY_BYTES_MAX + 24) < SEGMENT_BYTES / 4 - 64);

/// How a [`SledStore`](super::SledStore) is opened.
#[derive(Debug, Clone)]
pub struct SledConfig {
    dir: PathBuf,
    segment_bytes: usize,
    cache_bytes: u64,
    stuck_after: Duration,
    protections: Protections,
    hook: Hook<Stage>,
}

impl SledConfig {
    /// The usual configuration of the ledger in `dir`, to be changed.
    pub fn builder(dir: impl Into<PathBuf>) -> SledConfigBuilder {
        SledConfigBuilder {
            config: Self::of(dir.into()),
        }
    }

    pub(super) fn of(dir: PathBuf) -> Self {
        Self {
            dir,
            segment_bytes: SEGMENT_BYTES,
            cache_bytes: CACHE_BYTES,
            stuck_after: STUCK_AFTER,
            protections: Protections::ALL,
            hook: Hook::none(),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) const fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }

    pub(super) const fn cache_bytes(&self) -> u64 {
        self.cache_bytes
    }

    pub(super) const fn stuck_after(&self) -> Duration {
        self.stuck_after
    }

    pub(super) const fn protections(&self) -> Protections {
        self.protections
    }

    pub(super) fn hook(&self) -> Hook<Stage> {
        self.hook.clone()
    }
}

/// Builds a [`SledConfig`].
#[derive(Debug, Clone)]
#[must_use = "a builder makes nothing until `build`"]
pub struct SledConfigBuilder {
    config: SledConfig,
}

impl SledConfigBuilder {
    /// Bytes of database pages kept in memory; 256 MiB unless said, 1 MiB at the least.
    ///
    /// Too small: old events are read from the disk. Too large: memory is missing elsewhere.
    pub const fn cache_bytes(mut self, bytes: u64) -> Self {
        self.config.cache_bytes = bytes;
        self
    }

    /// How long one step of the writer may take before it is reported as stuck, and callers are answered with
    /// [`StoreError::Stalled`](crate::StoreError::Stalled); 5 s unless said, 0.1 s to 10 min.
    ///
    /// Too short: a slow disk is called stuck. Too long: callers wait for a dead one.
    pub const fn stuck_after(mut self, time: Duration) -> Self {
        self.config.stuck_after = time;
        self
    }

    /// Smaller segments, for a test with small rows: a group then fills many of them.
    #[cfg(test)]
    pub(super) const fn segment_bytes(mut self, bytes: usize) -> Self {
        self.config.segment_bytes = bytes;
        self
    }

    /// Runs without a protection, for a negative control.
    #[cfg(any(test, feature = "test-util"))]
    pub const fn protections(mut self, protections: Protections) -> Self {
        self.config.protections = protections;
        self
    }

    /// Calls `hook` on the writer's thread at the start of every stage. It may end the process there (a crash point), wait
    /// (a stuck writer), or fail the stage as the disk would.
    #[cfg(any(test, feature = "test-util"))]
    pub fn on_stage(mut self, hook: impl Fn(Stage) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        self.config.hook = Hook::calling(hook);
        self
    }

    /// The configuration.
    ///
    /// # Errors
    /// [`InvalidConfig`] where a value is out of its range.
    pub fn build(self) -> Result<SledConfig, InvalidConfig> {
        let SledConfig {
            cache_bytes,
            stuck_after,
            ..
        } = self.config;
        if cache_bytes < CACHE_BYTES_MIN {
            return Err(InvalidConfig::CacheBytes {
                min: CACHE_BYTES_MIN,
                value: cache_bytes,
            });
        }
        if !(STUCK_AFTER_MIN..=STUCK_AFTER_MAX).contains(&stuck_after) {
            return Err(InvalidConfig::StuckAfter {
                min: STUCK_AFTER_MIN,
                max: STUCK_AFTER_MAX,
                value: stuck_after,
            });
        }
        Ok(self.config)
    }
}
