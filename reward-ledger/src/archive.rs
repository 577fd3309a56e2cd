//! Export and import: the whole ledger as lines of JSON, from any store into any other.
//!
//! A row's line says all that is kept of it, a receipt its very bytes. Tables follow each other so that a row stands after
//! what it rests on, and fences last: an export of a ledger that is in use holds, of everything that is in it, also what it
//! rests on. The last line counts the others, so that an export that was cut off is known.

use std::io::{self, BufRead};

use serde_json::json;
use thiserror::Error;

use crate::error::StoreError;
use crate::json::{BadField, Fields, read_archived, write_archived};
use crate::ledger::Ledger;
use crate::store::{ArchiveTable, Archived, Cursor, Restored};

/// Rows that one transaction of an import puts in.
const ROWS: usize = 256;
/// Bytes of a line at the most: a claim with all its texts, escaped and in hexadecimal, with room to spare.
const LINE_BYTES_MAX: u64 = 64 * 1_024;

/// Reads a ledger a page at a time.
#[derive(Debug)]
pub struct Exporter {
    ledger: Ledger,
    tables: std::slice::Iter<'static, ArchiveTable>,
    table: Option<ArchiveTable>,
    after: Option<Cursor>,
    lines: u64,
}

impl Exporter {
    /// Starts at the first row.
    #[must_use]
    pub fn new(ledger: Ledger) -> Self {
        let mut tables = ArchiveTable::ALL.iter();
        let table = tables.next().copied();
        Self {
            ledger,
            tables,
            table,
            after: None,
            lines: 0,
        }
    }

    /// The next lines, each with its end; `None` after the last. They may be none in between.
    ///
    /// # Errors
    /// [`StoreError`]. Reading applies nothing.
    ///
    /// # Cancel safety
    /// Safe: a dropped call is made again.
    pub async fn next(&mut self) -> Result<Option<String>, StoreError> {
        let Some(table) = self.table else {
            return Ok(None);
        };
        let page = self.ledger.store().archive(table, self.after.clone()).await?;
        let mut text = String::new();
        for row in &page.rows {
            text.push_str(&write_archived(row));
            text.push('\n');
        }
        self.lines += page.rows.len() as u64;
        self.after = page.next;
        if self.after.is_none() {
            self.table = self.tables.next().copied();
        }
        if self.table.is_none() {
            let end = json!({ "row": "end", "lines": self.lines.to_string() });
            text.push_str(&end.to_string());
            text.push('\n');
        }
        Ok(Some(text))
    }

    /// Lines so far, the last one not counted.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.lines
    }
}

/// Why an import stopped. The lines before it are in the ledger; the same import may be run again.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The lines could not be read.
    #[error("could not read line {line}")]
    Read {
        /// Which, from 1.
        line: u64,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A line is no row of an export.
    #[error("line {line}, {field}: {problem}")]
    Line {
        /// Which, from 1.
        line: u64,
        /// The field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The ledger holds something else in its place, or misses what it rests on.
    #[error("line {line}: {problem}")]
    Differs {
        /// Which, from 1.
        line: u64,
        /// What differs.
        problem: String,
    },
    /// The lines end before the one that counts them, or after it, or it counts otherwise: this is not the whole export.
    #[error("the export is cut off: {lines} lines, and the last is not their count")]
    CutOff {
        /// Lines read.
        lines: u64,
    },
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ImportError {
    /// Whether the same import may succeed when it is run again.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.is_retryable(),
            Self::Read { .. } => true,
            Self::Line { .. } | Self::Differs { .. } | Self::CutOff { .. } => false,
        }
    }

    /// Always: the lines before it are in the ledger. They are what was exported.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        true
    }
}

/// Puts the lines of an export into a ledger, some at a time; `progress` is told the number of lines.
///
/// # Errors
/// [`ImportError`].
///
/// # Cancel safety
/// A dropped call leaves what is in so far; run the import again.
pub async fn import(
    ledger: &Ledger,
    lines: impl BufRead,
    mut progress: impl FnMut(u64),
) -> Result<u64, ImportError> {
    let mut reader = Lines { lines, read: 0 };
    let mut rows = Vec::new();
    let mut first_of_rows = 1;
    loop {
        let line = reader.next()?;
        let end = match &line {
            Some(Line::Row(_)) => false,
            Some(Line::End { lines }) if *lines == reader.read.saturating_sub(1) => true,
            Some(Line::End { .. }) | None => return Err(ImportError::CutOff { lines: reader.read }),
        };
        if let Some(Line::Row(row)) = line {
            rows.push(*row);
        }
        if rows.len() == ROWS || end {
            let count = rows.len() as u64;
            match ledger.store().restore(std::mem::take(&mut rows)).await? {
                Restored::Done => {}
                Restored::Refused { index, problem } => {
                    let line = first_of_rows + index as u64;
                    return Err(ImportError::Differs { line, problem });
                }
            }
            first_of_rows += count;
            progress(reader.read);
        }
        if end {
            let lines = reader.read.saturating_sub(1);
            return match reader.next()? {
                None => Ok(lines),
                Some(_) => Err(ImportError::CutOff { lines: reader.read }),
            };
        }
    }
}

enum Line {
    Row(Box<Archived>),
    End { lines: u64 },
}

struct Lines<R> {
    lines: R,
    read: u64,
}

impl<R: BufRead> Lines<R> {
    /// The next line; a blank end is none.
    fn next(&mut self) -> Result<Option<Line>, ImportError> {
        let number = self.read + 1;
        let mut bytes = Vec::new();
        let mut bounded = io::Read::take(&mut self.lines, LINE_BYTES_MAX);
        let read = bounded.read_until(b'\n', &mut bytes);
        let read = read.map_err(|source| ImportError::Read { line: number, source })?;
        if read == 0 {
            return Ok(None);
        }
        self.read = number;
        let bad = |bad: BadField| ImportError::Line {
            line: number,
            field: bad.field,
            problem: bad.problem,
        };
        if bytes.pop() != Some(b'\n') {
            return Err(ImportError::CutOff { lines: number });
        }
        if let Some(lines) = read_end(&bytes).map_err(bad)? {
            return Ok(Some(Line::End { lines }));
        }
        let row = read_archived(&bytes).map_err(bad)?;
        Ok(Some(Line::Row(Box::new(row))))
    }
}

/// The count of the last line; `None` for any other.
fn read_end(bytes: &[u8]) -> Result<Option<u64>, BadField> {
    // Only the last line is that short.
    if bytes.len() > 64 {
        return Ok(None);
    }
    let mut fields = Fields::parse(bytes)?;
    match fields.text("row")?.as_str() {
        "end" => fields.unsigned("lines").map(Some),
        _ => Ok(None),
    }
}
