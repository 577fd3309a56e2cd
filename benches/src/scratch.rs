//! A folder on a real disk that goes away after the run.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Error;

/// File systems that keep files in memory: a sync there costs nothing, so a figure from there says nothing.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// The folder.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    file_system: String,
}

impl Scratch {
    /// A fresh folder below `dir`.
    ///
    /// # Errors
    /// It cannot be made, or it would lie in memory.
    pub fn below(dir: &Path) -> Result<Self, Error> {
        let dir = tempfile::Builder::new().prefix("bench-").tempdir_in(dir)?;
        let file_system = on_a_disk(dir.path())
            .map_err(|in_memory| format!("{in_memory}: name a folder on a disk with --dir"))?;
        Ok(Self { dir, file_system })
    }

    /// A folder in it, not made yet.
    #[must_use]
    pub fn child(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The name of the file system, such as `ext4`.
    #[must_use]
    pub fn file_system(&self) -> &str {
        &self.file_system
    }
}

/// The file system of `path`.
///
/// # Errors
/// It keeps files in memory.
pub fn on_a_disk(path: &Path) -> Result<String, Error> {
    let file_system = file_system_of(path);
    if IN_MEMORY.contains(&file_system.as_str()) {
        return Err(format!("{} is in memory ({file_system})", path.display()).into());
    }
    Ok(file_system)
}

/// What the mount table says of the longest mount point above `path`.
fn file_system_of(path: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mount = |line: &str| {
        let mut words = line.split(' ').skip(1);
        Some((PathBuf::from(words.next()?), words.next()?.to_owned()))
    };
    mounts
        .lines()
        .filter_map(mount)
        .filter(|(point, _)| path.starts_with(point))
        .max_by_key(|(point, _)| point.components().count())
        .map_or_else(|| "unknown".to_owned(), |(_, kind)| kind)
}
