//! What the store counts, and how it is shown to Prometheus. Names and units are documented in `docs/operating.md`.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use lease_core::machine::Stats;

/// The counters of one process.
#[derive(Debug, Default)]
pub struct Metrics {
    entries: AtomicU64,
    commands: AtomicU64,
    requests: AtomicU64,
    request_errors: AtomicU64,
    connections: AtomicU64,
    connections_refused: AtomicU64,
}

/// What is true at the moment of asking.
#[derive(Debug, Clone, Copy)]
pub struct Gauges {
    /// What the machine holds.
    pub stats: Stats,
    /// Callers parked at this node.
    pub parked: u64,
    /// Connections that are open.
    pub connections: u64,
    /// The index of the last entry applied here.
    pub applied_index: u64,
    /// The term, as far as this node knows.
    pub term: u64,
    /// 1 if this node leads, else 0.
    pub leading: u64,
}

impl Metrics {
    pub(crate) fn entry_proposed(&self, commands: usize) {
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.commands.fetch_add(commands as u64, Ordering::Relaxed);
    }

    pub(crate) fn requests_served(&self, requests: u64, errors: u64) {
        self.requests.fetch_add(requests, Ordering::Relaxed);
        self.request_errors.fetch_add(errors, Ordering::Relaxed);
    }

    pub(crate) fn connection_accepted(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connection_refused(&self) {
        self.connections_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Everything, in Prometheus's text format.
    #[must_use]
    pub fn render(&self, gauges: &Gauges) -> String {
        let mut text = String::new();
        for (name, help, value) in self.counters() {
            line(&mut text, name, help, "counter", value);
        }
        for (name, help, value) in gauges.rows() {
            line(&mut text, name, help, "gauge", value);
        }
        text
    }

    fn counters(&self) -> [Row; 6] {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            (
                "lease_entries_proposed_total",
                "Log entries proposed by this node.",
                value(&self.entries),
            ),
            (
                "lease_commands_proposed_total",
                "Commands in those entries.",
                value(&self.commands),
            ),
            (
                "lease_requests_total",
                "Requests answered.",
                value(&self.requests),
            ),
            (
                "lease_request_errors_total",
                "Requests answered with an error.",
                value(&self.request_errors),
            ),
            (
                "lease_connections_accepted_total",
                "Client connections accepted.",
                value(&self.connections),
            ),
            (
                "lease_connections_refused_total",
                "Client connections refused.",
                value(&self.connections_refused),
            ),
        ]
    }
}

impl Gauges {
    fn rows(&self) -> [Row; 10] {
        let Self {
            stats,
            parked,
            connections,
            applied_index,
            term,
            leading,
        } = *self;
        [
            ("lease_leases_held", "Leases held.", stats.leases),
            ("lease_waiters", "Callers in all queues.", stats.waiters),
            (
                "lease_requests_remembered",
                "Request ids remembered.",
                stats.requests,
            ),
            (
                "lease_state_bytes",
                "Bytes of names, owners and metadata.",
                stats.bytes,
            ),
            (
                "lease_last_token",
                "The last fencing token issued, or its floor.",
                stats.last_token,
            ),
            ("lease_parked_callers", "Callers parked at this node.", parked),
            ("lease_connections", "Client connections open.", connections),
            (
                "lease_raft_applied_index",
                "Index of the last entry applied here.",
                applied_index,
            ),
            ("lease_raft_term", "Raft term.", term),
            ("lease_raft_leading", "1 if this node leads.", leading),
        ]
    }
}

/// Name, help, value.
type Row = (&'static str, &'static str, u64);

fn line(text: &mut String, name: &str, help: &str, kind: &str, value: u64) {
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"
    );
}
