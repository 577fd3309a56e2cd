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

/// The error that `operation` on this file descriptor shall fail with, if any.
pub(crate) fn fault(operation: Operation, descriptor: libc::c_int) -> Option<libc::c_int> {
    static SOURCE: OnceLock<Option<Source>> = OnceLock::new();
    let source = SOURCE.get_or_init(source).as_ref()?;
    let path = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
    if !path.starts_with(&source.under) {
        return None;
    }
    // Not there: no fault is in force.
    let orders = std::fs::read_to_string(&source.order).ok()?;
    ordered(&orders, operation)
}

fn source() -> Option<Source> {
    // The kernel shows real paths, so a link on the way to the directory must be followed here.
    let under = std::fs::canonicalize(std::env::var_os("FAULTS_UNDER")?).ok()?;
    let order = Path::new(&std::env::var_os("FAULTS_ORDER")?).to_owned();
    Some(Source { under, order })
}

fn ordered(orders: &str, operation: Operation) -> Option<libc::c_int> {
    orders.lines().find_map(|line| {
        let (word, error) = line.trim().split_once(' ')?;
        (parse_operation(word)? == operation).then(|| parse_error(error.trim()))?
    })
}

fn parse_operation(word: &str) -> Option<Operation> {
    match word {
        "sync" => Some(Operation::Sync),
        _ => None,
    }
}

fn parse_error(name: &str) -> Option<libc::c_int> {
    match name {
        "EIO" => Some(libc::EIO),
        "ENOSPC" => Some(libc::ENOSPC),
        "EDQUOT" => Some(libc::EDQUOT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_names_an_operation_and_its_error() {
        let sync = |orders| ordered(orders, Operation::Sync);
        assert_eq!(sync("sync EIO\n"), Some(libc::EIO));
        assert_eq!(sync("# nothing yet\n  sync   ENOSPC "), Some(libc::ENOSPC));
        for nothing in ["", "sync", "sync EWHATEVER", "write EIO"] {
            assert_eq!(sync(nothing), None, "{nothing}");
        }
    }
}
