//! An outside server in this process, for tests and for trying things out.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::decide::{Answer, Status};
use super::target::{Target, TargetFuture};
use crate::types::Delivery;

/// Does each delivery once, by its key, and keeps books of it. With switches to be what outside servers are: busy, silent
/// after the work, forgetful.
#[derive(Debug, Default)]
pub struct MemoryTarget {
    books: Mutex<Books>,
}

/// What a [`MemoryTarget`] does with the next requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mood {
    /// Does what it is asked, and says so.
    #[default]
    Well,
    /// Does what it is asked, and its answer is lost.
    LosesAnswers,
    /// Does nothing now.
    Busy,
    /// Does this never.
    Refuses,
    /// Does nothing, and does not answer either.
    Silent,
}

#[derive(Debug, Default)]
struct Books {
    mood: Mood,
    /// How often each key was done, in the order of the first time.
    done: BTreeMap<String, u32>,
    order: Vec<String>,
    requests: u64,
    forgets_keys: Keys,
    tells_status: Tells,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Keys {
    #[default]
    Remembered,
    Forgotten,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Tells {
    #[default]
    Status,
    Nothing,
}

impl MemoryTarget {
    /// One that does what it is asked.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What it does from now on.
    pub fn be(&self, mood: Mood) {
        self.books().mood = mood;
    }

    /// It does the same key again from now on, as a server whose deduplication window is over.
    pub fn forget_keys(&self) {
        self.books().forgets_keys = Keys::Forgotten;
    }

    /// It does not answer questions for a status from now on.
    pub fn tell_no_status(&self) {
        self.books().tells_status = Tells::Nothing;
    }

    /// Requests that it has seen, questions for a status not counted.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.books().requests
    }

    /// The keys of what it has done, in their order.
    #[must_use]
    pub fn done(&self) -> Vec<String> {
        self.books().order.clone()
    }

    /// Keys that it has done more than once.
    #[must_use]
    pub fn done_twice(&self) -> Vec<String> {
        let books = self.books();
        let twice = books.done.iter().filter(|(_, times)| **times > 1);
        twice.map(|(key, _)| key.clone()).collect()
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn work(&mut self, key: String) {
        let times = self.done.entry(key.clone()).or_insert(0);
        if *times > 0 && self.forgets_keys == Keys::Remembered {
            return;
        }
        *times = times.saturating_add(1);
        self.order.push(key);
    }
}

impl Target for MemoryTarget {
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> TargetFuture<'a, Answer> {
        let mut books = self.books();
        books.requests = books.requests.saturating_add(1);
        let key = delivery.idempotency_key();
        let answer = match books.mood {
            Mood::Well => {
                books.work(key);
                Answer::Done
            }
            Mood::LosesAnswers => {
                books.work(key);
                return Box::pin(std::future::pending());
            }
            Mood::Silent => return Box::pin(std::future::pending()),
            Mood::Busy => Answer::Busy("busy".into()),
            Mood::Refuses => Answer::Refused("no such item".into()),
        };
        Box::pin(ready(answer))
    }

    fn status<'a>(&'a self, delivery: &'a Delivery) -> TargetFuture<'a, Status> {
        let books = self.books();
        let status = if books.tells_status == Tells::Nothing {
            Status::Unknown("no status".into())
        } else if books.done.contains_key(&delivery.idempotency_key()) {
            Status::Done
        } else {
            Status::NotDone
        };
        Box::pin(ready(status))
    }
}
