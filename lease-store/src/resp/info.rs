//! `INFO` and `COMMAND`: what clients and people ask of a server.

use std::fmt::Write as _;

use lease_core::wire::{Reply, Request};

use super::{REDIS_VERSION, verb};
use crate::store::LeaseStore;

/// What `INFO` tells about this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerFacts {
    pub(super) port: u16,
    pub(super) uptime_s: u64,
    pub(super) connections: u64,
}

/// Answers `INFO [section ..]`; some clients refuse a server whose `INFO` fails or says that it is loading.
pub(super) fn info(store: &LeaseStore, facts: ServerFacts, request: &Request) -> Reply {
    let asked: Vec<&[u8]> = request.args().skip(1).collect();
    let wants = |section: &str| {
        let all = ["default", "all", "everything", section];
        asked.is_empty()
            || asked.iter().any(|name| {
                all.iter()
                    .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
            })
    };
    let stats = store.stats();
    let mut text = String::new();
    let mut section = |name: &str, lines: &[(&str, String)]| {
        if wants(name) {
            let title = name.get(..1).unwrap_or_default().to_ascii_uppercase();
            // Writing to a string cannot fail.
            let _ = write!(text, "# {title}{}\r\n", name.get(1..).unwrap_or_default());
            for (key, value) in lines {
                let _ = write!(text, "{key}:{value}\r\n");
            }
            text.push_str("\r\n");
        }
    };
    section(
        "server",
        &[
            ("redis_version", REDIS_VERSION.to_owned()),
            ("server", "lease-store".to_owned()),
            ("lease_version", env!("CARGO_PKG_VERSION").to_owned()),
            ("redis_mode", "standalone".to_owned()),
            ("arch_bits", usize::BITS.to_string()),
            ("process_id", std::process::id().to_string()),
            ("tcp_port", facts.port.to_string()),
            ("uptime_in_seconds", facts.uptime_s.to_string()),
        ],
    );
    section(
        "clients",
        &[
            ("connected_clients", facts.connections.to_string()),
            ("blocked_clients", store.parked_callers().to_string()),
        ],
    );
    section("memory", &[("lease_state_bytes", stats.bytes.to_string())]);
    section("persistence", &[("loading", "0".to_owned())]);
    section(
        "stats",
        &[
            ("lease_last_token", stats.last_token.to_string()),
            ("lease_waiters", stats.waiters.to_string()),
            ("number_of_cached_scripts", store.scripts_held().to_string()),
        ],
    );
    section(
        "replication",
        &[
            ("role", "master".to_owned()),
            ("connected_slaves", "0".to_owned()),
        ],
    );
    section("cluster", &[("cluster_enabled", "0".to_owned())]);
    section("keyspace", &[("lease_leases", stats.leases.to_string())]);
    Reply::Verbatim(text.into())
}

/// Answers `COMMAND [COUNT|DOCS ..]`: no table, which every client takes for "ask me nothing".
pub(super) fn command(request: &Request) -> Reply {
    let subcommand = request.arg(1).unwrap_or_default();
    if subcommand.eq_ignore_ascii_case(b"COUNT") {
        Reply::count(verb::count() as u64)
    } else if subcommand.eq_ignore_ascii_case(b"DOCS") {
        Reply::Map(Vec::new())
    } else {
        Reply::Array(Vec::new())
    }
}
