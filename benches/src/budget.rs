//! The budgets, in one table, and whether a run held them.

use std::fmt::Write as _;

/// A figure that has a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// `LeaseMachine::apply` of one acquire.
    ApplyAcquire,
    /// Memory of one live lease.
    LeaseBytes,
    /// One caller's acquire, in memory.
    MemoryAcquire,
    /// One caller's release, in memory.
    MemoryRelease,
    /// 256 callers on disk beside the bare disk.
    DiskRate,
    /// The longest acquire while leases end, in memory.
    ExpiryInMemory,
    /// The longest acquire while leases end, on disk.
    ExpiryOnDisk,
    /// The longest acquire during a snapshot, in memory.
    SnapshotInMemory,
    /// The longest acquire during a snapshot, on disk.
    SnapshotOnDisk,
    /// 256 claims beside the bare disk.
    ClaimRate,
    /// 256 claims beside one.
    ClaimGroup,
    /// 64 claims in PostgreSQL beside the hand-written transaction.
    ClaimsInPostgres,
    /// A publisher of a ledger on sled.
    DeliveriesOfSled,
    /// A publisher of a ledger in PostgreSQL.
    DeliveriesOfPostgres,
    /// An audit of a ledger on sled.
    AuditOfSled,
    /// Memory of that audit's process.
    AuditBytesOfSled,
    /// An audit of a ledger in PostgreSQL.
    AuditOfPostgres,
    /// Memory of that audit's process.
    AuditBytesOfPostgres,
}

/// Which side of a number is good.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

/// What a figure must hold to.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Which figure.
    pub figure: Figure,
    /// What is measured.
    pub what: &'static str,
    /// The bound.
    pub bound: Bound,
    /// Its unit; "times" is a ratio of two rates of one run.
    pub unit: &'static str,
    /// Why this much, and no other number.
    pub source: &'static str,
}

/// Bytes and times are for two cores of the kind that `docs/benchmarks.md` describes, with the server's allocator; ratios
/// hold anywhere.
pub const BUDGETS: [Budget; 18] = [
    Budget {
        figure: Figure::ApplyAcquire,
        what: "machine: apply of one acquire, 1,000,000 live leases of mixed ttls, median",
        bound: Bound::AtMost(1.5),
        unit: "us",
        source: "apply is serial: at 1.5 us it leaves room for 300,000 commands a second and half of the core",
    },
    Budget {
        figure: Figure::LeaseBytes,
        what: "machine: memory of one live lease, name and owner of 24 bytes",
        bound: Bound::AtMost(300.0),
        unit: "bytes",
        source: "the default limit of 4,000,000 leases stays near a gigabyte",
    },
    Budget {
        figure: Figure::MemoryAcquire,
        what: "embedded in memory: acquire by one caller, median",
        bound: Bound::AtMost(20.0),
        unit: "us",
        source: "tests that use the embedded store must not feel it; the bare design was measured at 11 to 12 us",
    },
    Budget {
        figure: Figure::MemoryRelease,
        what: "embedded in memory: release by one caller, median",
        bound: Bound::AtMost(20.0),
        unit: "us",
        source: "as an acquire",
    },
    Budget {
        figure: Figure::DiskRate,
        what: "embedded on disk: 256 callers / bare fdatasync loop",
        bound: Bound::AtLeast(10.0),
        unit: "times",
        source: "group commit: one sync serves a batch of callers",
    },
    Budget {
        figure: Figure::ExpiryInMemory,
        what: "in memory: longest acquire while 1,000,000 leases end",
        bound: Bound::AtMost(50.0),
        unit: "ms",
        source: "a tenth of the shortest election timeout, and no caller's timeout",
    },
    Budget {
        figure: Figure::ExpiryOnDisk,
        what: "on disk: longest acquire while 1,000,000 leases end",
        bound: Bound::AtMost(50.0),
        unit: "ms",
        source: "as in memory",
    },
    Budget {
        figure: Figure::SnapshotInMemory,
        what: "in memory: longest acquire during a snapshot of 1,000,000 leases",
        bound: Bound::AtMost(50.0),
        unit: "ms",
        source: "as for leases that end",
    },
    Budget {
        figure: Figure::SnapshotOnDisk,
        what: "on disk: longest acquire during a snapshot of 1,000,000 leases",
        bound: Bound::AtMost(50.0),
        unit: "ms",
        source: "as for leases that end",
    },
    Budget {
        figure: Figure::ClaimRate,
        what: "ledger on sled: 256 claims at once / bare fdatasync loop",
        bound: Bound::AtLeast(1.0),
        unit: "times",
        source: "group commit must win back what sled writes and syncs beside the one record",
    },
    Budget {
        figure: Figure::ClaimGroup,
        what: "ledger on sled: 256 claims at once / one caller",
        bound: Bound::AtLeast(3.0),
        unit: "times",
        source: "group commit: one barrier serves a group of claims",
    },
    Budget {
        figure: Figure::ClaimsInPostgres,
        what: "ledger in PostgreSQL: 64 claims at once / hand-written transaction, 64 connections",
        bound: Bound::AtLeast(1.5),
        unit: "times",
        source: "whoever gives up a transaction of their own must gain by it",
    },
    Budget {
        figure: Figure::DeliveriesOfSled,
        what: "publisher, ledger on sled: deliveries to a local server",
        bound: Bound::AtLeast(2_000.0),
        unit: "a second",
        source: "a season's end pays a million players within ten minutes",
    },
    Budget {
        figure: Figure::DeliveriesOfPostgres,
        what: "publisher, ledger in PostgreSQL: deliveries to a local server",
        bound: Bound::AtLeast(2_000.0),
        unit: "a second",
        source: "as on sled",
    },
    Budget {
        figure: Figure::AuditOfSled,
        what: "audit of 1,000,000 claims on sled",
        bound: Bound::AtMost(120.0),
        unit: "s",
        source: "an audit after every incident, and a nightly one, must not be put off",
    },
    Budget {
        figure: Figure::AuditBytesOfSled,
        what: "audit of 1,000,000 claims on sled: memory of its process at the most",
        bound: Bound::AtMost(768.0),
        unit: "MiB",
        source: "sled's page cache of 256 MiB, held with what sled keeps of each page, and no row more than a page of the audit",
    },
    Budget {
        figure: Figure::AuditOfPostgres,
        what: "audit of 1,000,000 claims in PostgreSQL",
        bound: Bound::AtMost(120.0),
        unit: "s",
        source: "as on sled",
    },
    Budget {
        figure: Figure::AuditBytesOfPostgres,
        what: "audit of 1,000,000 claims in PostgreSQL: memory of its process at the most",
        bound: Bound::AtMost(64.0),
        unit: "MiB",
        source: "no row more than a page of the audit",
    },
];

impl Bound {
    /// Whether `value` keeps to it.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }
}

/// What a run found.
#[derive(Debug, Default)]
pub struct Findings {
    found: Vec<(Figure, f64)>,
}

impl Findings {
    /// Takes note of a figure.
    pub fn note(&mut self, figure: Figure, value: f64) {
        self.found.push((figure, value));
    }

    /// Whether every figure that was measured keeps to its budget.
    #[must_use]
    pub fn all_hold(&self) -> bool {
        self.rows().all(|(budget, value)| budget.bound.holds(value))
    }

    /// The figures beside their budgets, as a table in Markdown.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = String::from("| budget | bound | measured | |\n|---|---|---|---|\n");
        for (budget, value) in self.rows() {
            let unit = budget.unit;
            let bound = match budget.bound {
                Bound::AtMost(most) => format!("at most {most} {unit}"),
                Bound::AtLeast(least) => format!("at least {least} {unit}"),
            };
            let verdict = if budget.bound.holds(value) {
                "holds"
            } else {
                "**missed**"
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "| {} | {bound} | {value:.2} {unit} | {verdict} |",
                budget.what
            );
        }
        table
    }

    fn rows(&self) -> impl Iterator<Item = (Budget, f64)> {
        BUDGETS.into_iter().flat_map(|budget| {
            let of_it = self
                .found
                .iter()
                .filter(move |(figure, _)| *figure == budget.figure);
            of_it.map(move |(_, value)| (budget, *value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_on_the_wrong_side_of_its_bound_is_a_miss() {
        let mut findings = Findings::default();
        findings.note(Figure::DiskRate, 12.0);
        findings.note(Figure::ApplyAcquire, 1.4);
        assert!(findings.all_hold());
        findings.note(Figure::ClaimGroup, 2.9);
        assert!(!findings.all_hold());
        assert!(
            findings
                .table()
                .contains("| at least 3 times | 2.90 times | **missed** |")
        );
    }
}
