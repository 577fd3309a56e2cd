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
    static SOURCE: OnceLock<Option<Source>> = OnceLock::new();
    let source = SOURCE.get_or_init(source).as_ref()?;
    let path = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
    if !path.starts_with(&source.under) {
        return None;
    }
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

fn source() -> Option<Source> {
    // The kernel shows real paths, so a link on the way to the directory must be followed here.
    let under = std::fs::canonicalize(std::env::var_os("FAULTS_UNDER")?).ok()?;
    let order = Path::new(&std::env::var_os("FAULTS_ORDER")?).to_owned();
    Some(Source { under, order })
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
