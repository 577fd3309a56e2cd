//! One transaction: a group of jobs, each on top of the ones before it.
//!
//! Runs the jobs over what was read so far, reads and locks what they missed, and runs them again until they miss
//! nothing; then draws numbers, runs them for the last time, writes and commits. Which connection, and what to do when it
//! fails, is the lane's business.

use super::changes::Changes;
use super::fetch::{self, Hold, column};
use super::link::{Link, Params, insert_claims, refuse_unsafe};
use super::mailbox::{Job, Value};
use super::rows::{LoadedRows, OpenRows};
use super::stage::PostgresStage;
use super::statements as sql;
use super::trouble::Trouble;
use super::{DRAWING_LOCK, READERS_LOCK, WRITERS_LOCK, number, signed};
use crate::core::Protections;
use crate::error::StorageFailure;
use crate::store::hook::Hook;
use crate::store::records::HeadRow;
use crate::store::transaction::Transaction;
use crate::store::{Standing, keys};
use crate::types::ClaimId;

/// Runs of one group at the most. Each one that misses something reads it, so jobs that need more than a few are wrong.
const RUNS_MAX: u32 = 64;

/// What a lane is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// New claims.
    Claims,
    /// Everything else that writes: one at a time over all processes.
    Rest,
    /// Reads, all of a group at one moment.
    Reads,
}

/// Whom a look at how far the ledger has come waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nobody. What looks often must: every new group stands in line behind one that waits.
    ForNobody,
    /// All that have drawn numbers and not committed.
    ForWriters,
}

/// What transactions are run with.
#[derive(Debug)]
pub(super) struct Session<'a> {
    pub(super) link: &'a Link,
    pub(super) purpose: Purpose,
    pub(super) protections: Protections,
    pub(super) hook: &'a Hook<PostgresStage>,
    /// The lane's name, and the number of this group in it.
    pub(super) lane: &'a str,
    pub(super) group: i64,
}

/// A group that was committed, or that wrote nothing.
pub(super) type Answers = Vec<Result<Value, StorageFailure>>;

impl Session<'_> {
    /// Answers a group of jobs.
    pub(super) async fn run(&self, jobs: &[Box<dyn Job>]) -> Result<Answers, Trouble> {
        self.at(PostgresStage::BeforeTransaction)?;
        let mut rows = LoadedRows::new(match self.purpose {
            Purpose::Claims => OpenRows::DoNotMatter,
            Purpose::Rest | Purpose::Reads => OpenRows::Matter,
        });
        // Before anything is asked, it is found out what to ask for: that goes out right behind the beginning.
        self.trial(jobs, &mut rows)?;
        let misses = rows.take_misses();
        let (base, ()) = tokio::try_join!(
            biased;
            self.begin(),
            fetch::fetch(self.link, &mut rows, misses, self.hold()),
        )?;
        put_head(&mut rows, base)?;
        let mut trial = self.trial(jobs, &mut rows)?;
        for _ in 1..RUNS_MAX {
            let misses = rows.take_misses();
            if misses.are_none() {
                break;
            }
            fetch::fetch(self.link, &mut rows, misses, self.hold()).await?;
            trial = self.trial(jobs, &mut rows)?;
        }
        if !rows.take_misses().are_none() {
            return Err(Trouble::Refused(StorageFailure::Database {
                action: "run a transaction",
                source: "it never came to an end of its reads".into(),
            }));
        }
        self.at(PostgresStage::BeforeWrites)?;
        self.finish(jobs, rows, base, trial).await
    }

    /// Runs the jobs; answers with the last number that they come to.
    fn trial(&self, jobs: &[Box<dyn Job>], rows: &mut LoadedRows) -> Result<u64, Trouble> {
        let mut transaction = Transaction::begin(rows, self.protections)?;
        for job in jobs {
            // A job that missed something may have failed for want of it. It is run again.
            let _answer = job.serve(&mut transaction);
        }
        Ok(transaction.standing().last.get())
    }

    async fn finish(
        &self,
        jobs: &[Box<dyn Job>],
        mut rows: LoadedRows,
        base: u64,
        last: u64,
    ) -> Result<Answers, Trouble> {
        if last > base {
            let first = self.draw_numbers(last - base).await?;
            put_head(&mut rows, first.saturating_sub(1))?;
        }
        let mut answers = Vec::with_capacity(jobs.len());
        let changes = {
            let mut transaction = Transaction::begin(&rows, self.protections)?;
            for job in jobs {
                answers.push(job.serve(&mut transaction));
            }
            match transaction.finish()? {
                Some((writes, _)) if answers.iter().all(Result::is_ok) => Some(Changes::of(writes, &rows)?),
                Some(_) if jobs.len() > 1 => return Err(Trouble::OneByOne),
                Some(_) | None => None,
            }
        };
        let Some(changes) = changes else {
            self.link.run("end a transaction", sql::ROLLBACK).await?;
            return Ok(answers);
        };
        tokio::try_join!(
            biased;
            changes.write(self.link, insert_claims(self.protections)),
            self.note_group(),
        )?;
        self.commit(answers).await
    }

    /// Lets the lane's row say, from the commit on, that this group was committed.
    async fn note_group(&self) -> Result<(), Trouble> {
        let action = "note the group";
        let params: Params<'_> = &[&self.lane, &self.group];
        match self.link.write(action, sql::COMMIT_LANE, params).await? {
            1 => Ok(()),
            _ => Err(Trouble::timed_out(action)),
        }
    }

    async fn commit(&self, answers: Answers) -> Result<Answers, Trouble> {
        self.at(PostgresStage::BeforeCommit)?;
        let committed = self.link.commit().await;
        let passed = self.at(PostgresStage::AfterCommit);
        match (committed, passed) {
            (Ok(Ok(())), Ok(())) => Ok(answers),
            (Ok(Err(error)), Ok(())) => Err(Trouble::of_commit(error, answers)),
            (Err(trouble), _) | (Ok(_), Err(trouble)) => Err(Trouble::Unknown {
                failure: trouble.into_failure(),
                answers,
            }),
        }
    }

    /// Begins the transaction; answers with the last number that was drawn. All of it is sent at the first poll, in order, so
    /// that whatever is sent next is done within the transaction and, where it is alone, once it is.
    async fn begin(&self) -> Result<u64, Trouble> {
        let link = self.link;
        if self.purpose == Purpose::Reads {
            link.run("begin to read", sql::BEGIN_READING).await?;
            return Ok(0);
        }
        let enter_alone = async {
            if self.purpose != Purpose::Rest {
                return Ok(Vec::new());
            }
            link.rows("enter alone", sql::ENTER_ALONE, &[&WRITERS_LOCK]).await
        };
        let (_, _, entered, last) = tokio::try_join!(
            biased;
            async { link.run("begin a transaction", sql::BEGIN).await },
            enter_alone,
            async { link.rows("enter", sql::ENTER, &[&READERS_LOCK]).await },
            async { link.rows("read the last number", sql::LAST_NUMBER, &[]).await },
        )?;
        for row in &entered {
            refuse_unsafe(column(row, 1)?, column(row, 2)?)?;
        }
        last_number(&last)
    }

    async fn draw_numbers(&self, count: u64) -> Result<u64, Trouble> {
        let count = signed(count);
        let action = "draw numbers of claims";
        let drawn = self
            .link
            .rows(action, sql::DRAW_NUMBERS, &[&DRAWING_LOCK, &count])
            .await?;
        last_number(&drawn)
    }

    fn hold(&self) -> Hold {
        match self.purpose {
            Purpose::Claims | Purpose::Rest => Hold::Yes,
            Purpose::Reads => Hold::No,
        }
    }

    /// A test's hook that fails stands for a connection that is cut.
    pub(super) fn at(&self, stage: PostgresStage) -> Result<(), Trouble> {
        self.hook.at(stage).map_err(|error| {
            Trouble::Lost(StorageFailure::Database {
                action: "pass a stage",
                source: error.into(),
            })
        })
    }
}

/// Where the ledger stands, as far as a group needs it: what is counted in the outbox is counted there.
fn put_head(rows: &mut LoadedRows, last_claim: u64) -> Result<(), StorageFailure> {
    let head = HeadRow {
        last_claim,
        ..HeadRow::default()
    };
    rows.put(keys::HEAD.to_vec(), fetch::encode(&head)?);
    Ok(())
}

fn last_number(found: &[tokio_postgres::Row]) -> Result<u64, Trouble> {
    match found.first() {
        Some(row) => Ok(number("claim number", column(row, 0)?)?),
        None => Err(Trouble::timed_out("read a number")),
    }
}

impl Session<'_> {
    /// The number of the lane's last group that was committed. One that is still under way is waited for.
    pub(super) async fn last_committed(&self) -> Result<i64, Trouble> {
        let action = "look up a commit";
        self.at(PostgresStage::BeforeLookUp)?;
        let found = self.link.rows(action, sql::ASK_LANE, &[&self.lane]).await?;
        match found.first() {
            Some(row) => Ok(column(row, 0)?),
            None => Err(Trouble::timed_out(action)),
        }
    }
}

/// How far the ledger has come. Writers are let on before the outbox is counted.
pub(super) async fn standing(link: &Link, wait: Wait) -> Result<Standing, Trouble> {
    let action = "read how far the ledger has come";
    if wait == Wait::ForWriters {
        link.run(action, sql::BEGIN).await?;
        link.rows(action, sql::WAIT_FOR_WRITERS, &[&READERS_LOCK]).await?;
    }
    let last = link.rows(action, sql::LAST_NUMBER, &[]).await?;
    if wait == Wait::ForWriters {
        link.run(action, sql::COMMIT).await?;
    }
    let counted = link.rows(action, sql::COUNT_OUTBOX, &[]).await?;
    let (open, dead) = match counted.first() {
        Some(row) => (column(row, 0)?, column(row, 1)?),
        None => (0, 0),
    };
    Ok(Standing {
        last: ClaimId::new(last_number(&last)?),
        outbox_open: number("outbox", open)?,
        outbox_dead: number("outbox", dead)?,
    })
}
