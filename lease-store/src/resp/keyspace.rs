//! `KEYS`, `SCAN`, `DBSIZE`, `FLUSHDB`, `FLUSHALL`: for operators and test suites.

use lease_core::Database;
use lease_core::redis::{matches, read_integer, read_pattern, syntax_error};
use lease_core::wire::{ErrorReply, ErrorWord, Reply, Request};

use super::connection::Connection;
use super::listener::Flushing;
use super::plan::{Call, Plan};
use crate::service::CallError;
use crate::store::LeaseStore;

/// Keys that `KEYS` answers at the most: it is a tool for small stores and for tests, `SCAN` is for others.
const KEYS_ANSWERED_MAX: usize = 10_000;
/// Keys that `SCAN` looks at if it is not told, as Redis.
const SCAN_COUNT_DEFAULT: u64 = 10;

/// `DBSIZE`
pub(super) fn size(connection: &Connection) -> Plan {
    let (store, database) = (connection.store.clone(), connection.session.database);
    read(async move { Ok(Reply::count(store.count_keys(database).await?)) })
}

/// `KEYS pattern`
pub(super) fn keys(connection: &Connection, request: &Request) -> Plan {
    let pattern = match read_pattern(request.arg(1).unwrap_or_default()) {
        Ok(pattern) => pattern.to_vec(),
        Err(refused) => return Plan::Now(refused.into()),
    };
    let (store, database) = (connection.store.clone(), connection.session.database);
    read(async move {
        let wanted = |name: &[u8]| matches(&pattern, name);
        let found = store.find_keys(database, wanted, KEYS_ANSWERED_MAX).await?;
        Ok(match found {
            Some(keys) => Reply::Array(keys.iter().map(|key| Reply::bulk(key.name.as_bytes())).collect()),
            None => Reply::error(
                ErrorWord::Limit,
                format_args!("more than {KEYS_ANSWERED_MAX} keys are there: use SCAN"),
            ),
        })
    })
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
pub(super) fn scan(connection: &Connection, request: &Request) -> Plan {
    let scan = match read_scan(request) {
        Ok(scan) => scan,
        Err(refused) => return Plan::Now(refused.into()),
    };
    let (store, database) = (connection.store.clone(), connection.session.database);
    read(async move {
        let page = store.scan_keys(database, scan.cursor, scan.count).await?;
        let names = page.leases.iter().map(|lease| lease.name.as_bytes());
        let wanted = names.filter(|name| {
            scan.strings && scan.pattern.as_ref().is_none_or(|pattern| matches(pattern, name))
        });
        Ok(Reply::Array(vec![
            Reply::bulk(page.next_cursor.to_string()),
            Reply::Array(wanted.map(Reply::bulk).collect()),
        ]))
    })
}

struct Scan {
    cursor: u32,
    count: u64,
    pattern: Option<Vec<u8>>,
    /// Whether strings are asked for, which all keys are.
    strings: bool,
}

fn read_scan(request: &Request) -> Result<Scan, ErrorReply> {
    let cursor = request
        .arg(1)
        .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    let mut scan = Scan {
        cursor: cursor.ok_or_else(|| ErrorReply::new(ErrorWord::Err, "invalid cursor"))?,
        count: SCAN_COUNT_DEFAULT,
        pattern: None,
        strings: true,
    };
    let mut at = 2_usize;
    while let Some(option) = request.arg(at) {
        let value = request.arg(at.saturating_add(1)).ok_or_else(syntax_error)?;
        if option.eq_ignore_ascii_case(b"COUNT") {
            let count = u64::try_from(read_integer(value)?).unwrap_or(0);
            if count == 0 {
                return Err(syntax_error());
            }
            scan.count = count;
        } else if option.eq_ignore_ascii_case(b"MATCH") {
            scan.pattern = Some(read_pattern(value)?.to_vec());
        } else if option.eq_ignore_ascii_case(b"TYPE") {
            scan.strings = value.eq_ignore_ascii_case(b"string");
        } else {
            return Err(syntax_error());
        }
        at = at.saturating_add(2);
    }
    Ok(scan)
}

/// `FLUSHDB [ASYNC | SYNC]`, `FLUSHALL [ASYNC | SYNC]`
pub(super) fn flush(connection: &Connection, which: Databases, request: &Request) -> Plan {
    let mode = request
        .arg(1)
        .is_none_or(|mode| mode.eq_ignore_ascii_case(b"ASYNC") || mode.eq_ignore_ascii_case(b"SYNC"));
    if request.len() > 2 || !mode {
        return Plan::Now(syntax_error().into());
    }
    if connection.facts.flushing == Flushing::Refused {
        let text = "this server ends no lease wholesale: start it with --allow-flush if it is for tests";
        return Plan::Now(Reply::error(ErrorWord::NoPerm, text));
    }
    let store = connection.store.clone();
    let (first, last) = match which {
        Databases::Selected => {
            let selected = u64::from(connection.session.database.get());
            (selected, selected)
        }
        Databases::All => (0, u64::from(connection.session.databases).saturating_sub(1)),
    };
    read(async move {
        flush_all(&store, first, last).await?;
        Ok(Reply::OK)
    })
}

/// Which databases a flush empties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Databases {
    Selected,
    All,
}

async fn flush_all(store: &LeaseStore, first: u64, last: u64) -> Result<(), CallError> {
    for number in first..=last {
        if let Ok(database) = Database::new(number) {
            store.flush_database(database).await?;
        }
    }
    Ok(())
}

/// What comes after the changes before it, and holds up those behind it.
fn read(asked: impl Future<Output = Result<Reply, CallError>> + Send + 'static) -> Plan {
    let call: Call = Box::pin(async move { asked.await.unwrap_or_else(|error| error.to_reply()).into() });
    Plan::Read(call)
}
