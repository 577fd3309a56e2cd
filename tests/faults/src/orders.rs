//! What shall fail, as the order file says it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A group of calls that fail together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Whatever makes written data durable.
    Sync,
}

/// Where the faults of this process come from.
struct Source {
    under: PathBuf,
    order: PathBuf,
    /// Whether what is not synced is noted, to be taken.
    unsynced: bool,
}

/// What is ordered for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It fails with this error.
    Error(libc::c_int),
    /// It hangs for as long as the order stands, and is then done as always.
    Hang,
}

/// Between two looks at an order to hang, in microseconds.
const LOOK_EVERY_MICROS: libc::useconds_t = 2_000;

/// The error that `operation` on this file descriptor shall fail with, if any. Comes back once it is not ordered to hang.
pub(crate) fn fault(operation: Operation, descriptor: libc::c_int) -> Option<libc::c_int> {
    let source = source_of(descriptor)?;
    loop {
        // Not there: no fault is in force.
        let orders = std::fs::read_to_string(&source.order).ok()?;
        match ordered(&orders, operation)? {
            Fault::Error(error) => return Some(error),
            // SAFETY: it takes a number.
            Fault::Hang => unsafe { libc::usleep(LOOK_EVERY_MICROS) },
        };
    }
}

/// Whether what is written to this file descriptor and not synced may be taken.
pub(crate) fn takes_unsynced(descriptor: libc::c_int) -> bool {
    // Most processes are not asked for this, and write a lot.
    source().is_some_and(|source| source.unsynced) && source_of(descriptor).is_some()
}

/// Whether the power shall be cut now.
pub(crate) fn cut_ordered() -> bool {
    let orders = source().and_then(|source| std::fs::read_to_string(&source.order).ok());
    orders.is_some_and(|orders| orders.lines().any(|line| line.trim() == "power cut"))
}

/// The source of faults, if this file descriptor is one of those that it is for.
fn source_of(descriptor: libc::c_int) -> Option<&'static Source> {
    let source = source()?;
    let path = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
    path.starts_with(&source.under).then_some(source)
}

fn source() -> Option<&'static Source> {
    static SOURCE: OnceLock<Option<Source>> = OnceLock::new();
    SOURCE.get_or_init(read_source).as_ref()
}

fn read_source() -> Option<Source> {
    // The kernel shows real paths, so a link on the way to the directory must be followed here.
    let under = std::fs::canonicalize(std::env::var_os("FAULTS_UNDER")?).ok()?;
    let order = Path::new(&std::env::var_os("FAULTS_ORDER")?).to_owned();
    Some(Source {
        under,
        order,
        unsynced: std::env::var_os("FAULTS_UNSYNCED").is_some(),
    })
}

fn ordered(orders: &str, operation: Operation) -> Option<Fault> {
    orders.lines().find_map(|line| {
        let (word, fault) = line.trim().split_once(' ')?;
        (parse_operation(word)? == operation).then(|| parse_fault(fault.trim()))?
    })
}

fn parse_operation(word: &str) -> Option<Operation> {
    match word {
        "sync" => Some(Operation::Sync),
        _ => None,
    }
}

fn parse_fault(name: &str) -> Option<Fault> {
    match name {
        "EIO" => Some(Fault::Error(libc::EIO)),
        "ENOSPC" => Some(Fault::Error(libc::ENOSPC)),
        "EDQUOT" => Some(Fault::Error(libc::EDQUOT)),
        "hangs" => Some(Fault::Hang),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_names_an_operation_and_its_error() {
        let sync = |orders| ordered(orders, Operation::Sync);
        assert_eq!(sync("sync EIO\n"), Some(Fault::Error(libc::EIO)));
        let second = sync("# nothing yet\n  sync   ENOSPC ");
        assert_eq!(second, Some(Fault::Error(libc::ENOSPC)));
        assert_eq!(sync("sync hangs\n"), Some(Fault::Hang));
        for nothing in ["", "sync", "sync EWHATEVER", "write EIO"] {
            assert_eq!(sync(nothing), None, "{nothing}");
        }
    }
}
