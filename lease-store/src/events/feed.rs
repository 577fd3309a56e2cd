//! From whoever applies entries to whoever tells subscribers: it never waits, and a gap is told.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lease_core::machine::Effect;
use tokio::sync::{Notify, mpsc};

use super::{News, event};

/// Entries that wait to be told at the most: seconds of a busy store.
const ENTRIES_MAX: usize = 4_096;
/// Bytes of what they say, at the most.
const BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// Something was left out: what comes next does not join on to what came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap;

/// What both ends know.
#[derive(Debug, Default)]
struct Shared {
    listened: AtomicBool,
    gap_came: Notify,
    bytes: AtomicUsize,
}

/// The end at which entries are applied.
#[derive(Debug, Default)]
pub(super) struct Source {
    shared: Arc<Shared>,
    sender: Mutex<Option<mpsc::Sender<Vec<News>>>>,
}

/// The end at which they are told.
#[derive(Debug)]
pub(crate) struct Feed {
    shared: Arc<Shared>,
    receiver: mpsc::Receiver<Vec<News>>,
}

/// Whether anybody listens: nothing is fed for nobody.
#[derive(Debug)]
pub(crate) struct Listened(Arc<Shared>);

impl Listened {
    pub(crate) fn begin(&self) {
        self.0.listened.store(true, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.0.listened.store(false, Ordering::SeqCst);
    }
}

impl Source {
    /// A feed in place of the one before.
    pub(super) fn feed(&self) -> (Feed, Listened) {
        let (sender, receiver) = mpsc::channel(ENTRIES_MAX);
        *self.lock() = Some(sender);
        let shared = Arc::clone(&self.shared);
        (Feed { shared, receiver }, Listened(Arc::clone(&self.shared)))
    }

    pub(super) fn send(&self, effects: &[Effect]) {
        if !self.shared.listened.load(Ordering::SeqCst) {
            return;
        }
        let news: Vec<News> = effects.iter().filter_map(news).collect();
        if news.is_empty() {
            return;
        }
        let sender = self.lock();
        let bytes = size(&news);
        let waiting = self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
        if waiting.saturating_add(bytes) > BYTES_MAX || !sent(sender.as_ref(), news) {
            self.shared.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.lose();
        }
    }

    pub(super) fn lose(&self) {
        self.shared.gap_came.notify_one();
    }

    /// Nothing under this lock can panic half-way, so a poisoned one is as good as a sound one.
    fn lock(&self) -> MutexGuard<'_, Option<mpsc::Sender<Vec<News>>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed {
    /// What one entry said, or that some were left out; `None` once nothing is applied any more.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is lost.
    pub(crate) async fn next(&mut self) -> Option<Result<Vec<News>, Gap>> {
        tokio::select! {
            biased;
            () = self.shared.gap_came.notified() => {
                Some(Err(Gap))
            }
            news = self.receiver.recv() => {
                let news = news?;
                self.shared.bytes.fetch_sub(size(&news), Ordering::Relaxed);
                Some(Ok(news))
            }
        }
    }
}

fn sent(sender: Option<&mpsc::Sender<Vec<News>>>, news: Vec<News>) -> bool {
    sender.is_some_and(|sender| sender.try_send(news).is_ok())
}

fn size(news: &[News]) -> usize {
    news.iter().map(News::bytes).fold(0, usize::saturating_add)
}

fn news(effect: &Effect) -> Option<News> {
    match effect {
        Effect::Woken { .. } => None,
        Effect::Granted { .. } | Effect::Ended { .. } => event(effect).map(News::Lease),
        Effect::Published { channel, message } => Some(News::Said {
            channel: channel.clone(),
            message: message.clone(),
        }),
    }
}
