//! A lane: one connection, and the jobs that go over it.
//!
//! Owns its connection. Asks the server. Asked by [`Lanes`](super::mailbox::Lanes). It drains its mailbox into a group and
//! answers that by one transaction. A connection that is lost is made anew while callers' patience lasts; a commit whose
//! answer was lost is looked up before anybody is answered. It stops when the store is closed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::PostgresConfig;
use super::group::{self, Answers, Purpose, Session, Wait};
use super::link::Link;
use super::mailbox::{Job, LastWord, Message, Reachable, Said, Value};
use super::statements as sql;
use super::trouble::Trouble;
use crate::clock::monotonic_now;
use crate::error::{Certainty, StorageFailure, StoreError};
use crate::limits::GROUP_REQUESTS_MAX;
use crate::store::Standing;

/// Tries of one group that other sessions may overtake, in a row: each time, one of them has got on.
const OVERTAKEN_MAX: u32 = 16;
/// Before the second try; doubled for each further one, up to [`BACKOFF_MAX`].
const BACKOFF_MIN: Duration = Duration::from_millis(2);
/// A server that comes back is noticed this soon.
const BACKOFF_MAX: Duration = Duration::from_millis(250);

pub(super) struct Lane {
    config: Arc<PostgresConfig>,
    purpose: Purpose,
    /// Its name among all lanes of all processes, a UUID.
    name: String,
    /// The number of its last group.
    group: i64,
    open: Option<Link>,
    last_word: Arc<LastWord>,
}

/// How long a group is tried for, and how often it was.
struct Tries {
    until: Instant,
    overtaken: u32,
    failed: u32,
    /// Whether a commit is under way of which nothing is known.
    certainty: Certainty,
}

/// What the server knows of a group whose commit was not answered.
enum Fate {
    Committed,
    NotCommitted,
}

impl Lane {
    pub(super) const fn new(
        config: Arc<PostgresConfig>,
        purpose: Purpose,
        name: String,
        last_word: Arc<LastWord>,
    ) -> Self {
        Self {
            config,
            purpose,
            name,
            group: 0,
            open: None,
            last_word,
        }
    }

    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        let mut taken = Vec::new();
        while inbox.recv_many(&mut taken, GROUP_REQUESTS_MAX).await > 0 {
            let mut jobs = Vec::with_capacity(taken.len());
            for message in taken.drain(..) {
                match message {
                    // A caller that is gone is not served.
                    Message::Job(job) if job.is_gone() => {}
                    Message::Job(job) => jobs.push(job),
                    Message::Standing { reply, .. } if reply.is_closed() => {}
                    Message::Standing { wait, reply } => {
                        // A caller that is gone asks again, or never.
                        let _gone = reply.send(self.standing(wait).await);
                    }
                }
            }
            if !jobs.is_empty() {
                self.on_group(jobs).await;
            }
        }
        self.close().await;
        self.last_word.lane_ended();
    }

    async fn on_group(&mut self, jobs: Vec<Box<dyn Job>>) {
        match self.commit(&jobs).await {
            Ok(Some(answers)) => {
                for (job, answer) in jobs.into_iter().zip(answers) {
                    job.answer(answer.map_err(|failure| unavailable(Certainty::NotApplied, failure)));
                }
            }
            // A row that does not read back is the trouble of whoever asks for it, and of nobody else.
            Ok(None) => {
                for job in jobs {
                    let alone = [job];
                    let answer = self.commit(&alone).await.and_then(only);
                    let [job] = alone;
                    job.answer(answer);
                }
            }
            Err(error) => {
                for job in jobs {
                    job.answer(Err(error.clone()));
                }
            }
        }
    }

    /// Answers a group by one transaction, tried again for as long as that helps; `None` where each job should be done for
    /// itself.
    async fn commit(&mut self, jobs: &[Box<dyn Job>]) -> Result<Option<Answers>, StoreError> {
        let mut tries = Tries::start(&self.config);
        loop {
            self.group = self.group.saturating_add(1);
            let trouble = match self.session().await {
                Ok(session) => match session.run(jobs).await {
                    Ok(answers) => {
                        self.is_back();
                        return Ok(Some(answers));
                    }
                    Err(trouble) => trouble,
                },
                Err(trouble) => trouble,
            };
            let after = self.after(&trouble);
            self.recover(after).await;
            match trouble {
                Trouble::OneByOne => return Ok(None),
                Trouble::Unknown { failure, answers } => {
                    tries.certainty = Certainty::Unknown;
                    if let Fate::Committed = self.fate(&mut tries, failure).await? {
                        return Ok(Some(answers));
                    }
                    tries.certainty = Certainty::NotApplied;
                }
                trouble @ (Trouble::Overtaken(_) | Trouble::Lost(_) | Trouble::Refused(_)) => {
                    tries.next(trouble.into_failed()).await?;
                }
            }
        }
    }

    async fn standing(&mut self, wait: Wait) -> Result<Standing, StoreError> {
        let mut tries = Tries::start(&self.config);
        loop {
            let trouble = match self.session().await {
                Ok(session) => match group::standing(session.link, wait).await {
                    Ok(standing) => {
                        self.is_back();
                        return Ok(standing);
                    }
                    Err(trouble) => trouble,
                },
                Err(trouble) => trouble,
            };
            let after = self.after(&trouble);
            self.recover(after).await;
            tries.next(trouble.into_failed()).await?;
        }
    }

    /// Looks up what became of the last group. One that is still under way holds the lane's row, and is waited for.
    async fn fate(&mut self, tries: &mut Tries, failure: StorageFailure) -> Result<Fate, StoreError> {
        let mut failed = Failed::Lost(failure);
        loop {
            tries.next(failed).await?;
            let trouble = match self.session().await {
                Ok(session) => match session.last_committed().await {
                    Ok(group) if group == session.group => return Ok(Fate::Committed),
                    Ok(_) => return Ok(Fate::NotCommitted),
                    Err(trouble) => trouble,
                },
                Err(trouble) => trouble,
            };
            let after = self.after(&trouble);
            self.recover(after).await;
            failed = trouble.into_failed();
        }
    }

    /// The server has answered.
    fn is_back(&self) {
        if self.last_word.say(Reachable::Yes) == Said::News {
            tracing::info!("the ledger has its database back");
        }
    }

    /// The open connection, or a new one.
    async fn session(&mut self) -> Result<Session<'_>, Trouble> {
        if self.open.as_ref().is_none_or(Link::is_closed) {
            self.open = None;
            let mut link = Link::open(&self.config).await?;
            link.prepare(self.purpose, &self.config).await?;
            if self.purpose != Purpose::Reads {
                link.rows("open a lane", sql::OPEN_LANE, &[&self.name]).await?;
            }
            self.open = Some(link);
        }
        match &self.open {
            Some(link) => Ok(Session {
                link,
                purpose: self.purpose,
                protections: self.config.protections(),
                hook: self.config.hook(),
                lane: &self.name,
                group: self.group,
            }),
            None => Err(Trouble::timed_out("connect to the database")),
        }
    }

    /// What is to be done about a trouble. That the server does not answer is said once until it does again.
    fn after(&self, trouble: &Trouble) -> After {
        match trouble {
            Trouble::Overtaken(_) | Trouble::Refused(_) | Trouble::OneByOne => After::RollBack,
            Trouble::Lost(failure) | Trouble::Unknown { failure, .. } => {
                match self.last_word.say(Reachable::No) {
                    Said::News => tracing::warn!(error = ?failure, "the ledger lost its database"),
                    Said::KnownBefore => {
                        tracing::debug!(error = ?failure, "the ledger lost a connection to its database");
                    }
                }
                After::LetGo
            }
        }
    }

    /// Leaves no transaction open: rolls it back, or lets go of the connection.
    async fn recover(&mut self, after: After) {
        let keep = match (after, &self.open) {
            (After::RollBack, Some(link)) => link.run("roll back", sql::ROLLBACK).await.is_ok(),
            (After::RollBack, None) => false,
            (After::LetGo, _) => false,
        };
        if !keep {
            self.open = None;
        }
    }

    /// Its row would go in time; with a connection at hand it goes now.
    async fn close(&self) {
        if let Some(link) = &self.open
            && self.purpose != Purpose::Reads
            && let Err(trouble) = link.rows("close a lane", sql::CLOSE_LANE, &[&self.name]).await
        {
            tracing::debug!(error = ?trouble.into_failure(), "a lane's row stays for now");
        }
    }
}

/// A try that failed, as far as trying again goes.
pub(super) enum Failed {
    Overtaken(StorageFailure),
    Lost(StorageFailure),
    Refused(StorageFailure),
}

/// What is to be done with the connection after a try that failed.
#[derive(Debug, Clone, Copy)]
enum After {
    RollBack,
    LetGo,
}

impl Trouble {
    fn into_failed(self) -> Failed {
        match self {
            Self::Overtaken(failure) => Failed::Overtaken(failure),
            Self::Lost(failure) | Self::Unknown { failure, .. } => Failed::Lost(failure),
            Self::Refused(failure) => Failed::Refused(failure),
            Self::OneByOne => Failed::Refused(self.into_failure()),
        }
    }
}

impl Tries {
    fn start(config: &PostgresConfig) -> Self {
        Self {
            until: monotonic_now() + config.patience(),
            overtaken: 0,
            failed: 0,
            certainty: Certainty::NotApplied,
        }
    }

    /// Waits before another try, or gives up.
    async fn next(&mut self, failed: Failed) -> Result<(), StoreError> {
        let (failure, tried) = match failed {
            Failed::Refused(failure) => return Err(unavailable(self.certainty, failure)),
            Failed::Overtaken(failure) => {
                self.overtaken += 1;
                if self.overtaken > OVERTAKEN_MAX {
                    return Err(unavailable(self.certainty, failure));
                }
                (failure, self.overtaken)
            }
            Failed::Lost(failure) => {
                self.failed += 1;
                (failure, self.failed)
            }
        };
        let backoff = BACKOFF_MIN.saturating_mul(1 << tried.min(10)).min(BACKOFF_MAX);
        if monotonic_now() + backoff > self.until {
            return Err(unavailable(self.certainty, failure));
        }
        tokio::time::sleep(jittered(backoff)).await;
        Ok(())
    }
}

/// Anything up to `backoff`, so that those who met do not meet again. Without random bytes, all of it.
fn jittered(backoff: Duration) -> Duration {
    let mut bits = [0_u8; 1];
    match getrandom::fill(&mut bits) {
        Ok(()) => backoff.mul_f64(f64::from(bits[0]) / 255.0),
        Err(_) => backoff,
    }
}

/// The answer of a job that was done for itself.
fn only(answers: Option<Answers>) -> Result<Value, StoreError> {
    let answer = answers.and_then(|answers| answers.into_iter().next());
    let answer = answer.unwrap_or_else(|| Err(Trouble::OneByOne.into_failure()));
    answer.map_err(|failure| unavailable(Certainty::NotApplied, failure))
}

fn unavailable(certainty: Certainty, failure: StorageFailure) -> StoreError {
    StoreError::Unavailable {
        certainty,
        failure: Arc::new(failure),
    }
}
