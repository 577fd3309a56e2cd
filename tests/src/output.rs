//! What a process writes, line by line, while it runs.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::clock::Deadline;

/// Bytes of one stream that are kept at the most; a process that says more than that is broken.
const BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// One stream of one process. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Output {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    written: Mutex<Written>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Written {
    text: String,
    ended: bool,
}

impl Output {
    /// Reads `stream` on a thread of its own, which ends with the stream.
    pub(crate) fn follow(stream: impl Read + Send + 'static) -> Self {
        let output = Self::default();
        let reader = output.clone();
        // It ends when the process does, which the harness sees to.
        drop(std::thread::spawn(move || reader.read_all(stream)));
        output
    }

    /// What has been written so far.
    #[must_use]
    pub fn text(&self) -> String {
        self.lock().text.clone()
    }

    /// Waits until `find` finds something in what has been written; `None` if the stream ends, or the deadline
    /// passes, before that.
    pub fn wait_for<T>(&self, deadline: Deadline, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        let mut read = self.lock();
        loop {
            if let Some(found) = find(&read.text) {
                return Some(found);
            }
            let left = deadline.left()?;
            if read.ended {
                return None;
            }
            let waited = self.shared.changed.wait_timeout(read, left);
            read = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until the stream ends, and says whether it did before the deadline.
    #[must_use]
    pub fn wait_for_end(&self, deadline: Deadline) -> bool {
        let mut read = self.lock();
        while !read.ended {
            let Some(left) = deadline.left() else {
                return false;
            };
            let waited = self.shared.changed.wait_timeout(read, left);
            read = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn read_all(&self, stream: impl Read) {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(stream.read_until(b'\n', &mut line), Ok(1..)) {
            let mut read = self.lock();
            if read.text.len() + line.len() <= BYTES_MAX {
                read.text.push_str(&String::from_utf8_lossy(&line));
            }
            self.shared.changed.notify_all();
            line.clear();
        }
        self.lock().ended = true;
        self.shared.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.shared.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
