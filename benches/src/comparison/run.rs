//! All turns of a run: what is compared is measured in turns, so that what the machine does meanwhile hits all alike.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::embedded::EmbeddedCaller;
use super::etcd::EtcdCaller;
use super::lease::LeaseCaller;
use super::options::Options;
use super::redis::{RedisCaller, Replicas};
use super::results::{Cell, Results};
use super::servers::{Running, Starter, Target};
use super::systems::System;
use super::work::{Caller, Turn, Work, drive};
use crate::Error;
use crate::host;
use crate::progress::say;
use crate::scratch::Scratch;

/// Runs what was asked for, with files below `below`.
///
/// # Errors
/// A system does not start, or gives an answer that the work does not need.
pub fn run(options: &Options, below: &Path) -> Result<Results, Error> {
    let mut starter = Starter {
        server: options.server.clone(),
        scratch: Scratch::below(below)?,
    };
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut systems = Vec::new();
    for system in &options.systems {
        say(format_args!("starts {}", system.title()));
        match starter.start(*system, &runtime)? {
            Some(running) => systems.push(running),
            None => say(format_args!(
                "{} is not installed and is left out; to get it: {}",
                system.title(),
                system.how_to_get()
            )),
        }
    }
    let mut results = Results::default();
    results.loads.push(host::load());
    for round in 1..=options.rounds {
        let each = options.works.iter().flat_map(|work| {
            let connections = options.connections.iter();
            connections.map(move |connections| (*work, *connections))
        });
        for (work, connections) in each {
            say(format_args!(
                "round {round} of {}, {connections} connections, {}",
                options.rounds,
                work.title()
            ));
            // Whoever comes first in one round does not in the next.
            let begin = round % systems.len().max(1);
            let (early, late) = systems.split_at_mut(begin);
            for running in late.iter_mut().chain(early) {
                let system = running.system;
                let cell = Cell {
                    work,
                    connections,
                    system,
                };
                if is_measured(cell) {
                    results.add(cell, turn(&runtime, running, cell, (round, options.time))?);
                }
            }
        }
        results.loads.push(host::load());
    }
    Ok(results)
}

/// Redis has no other means than `SET`, and an embedded store and etcd have no `SET`; alone, nobody hands over.
#[must_use]
pub fn is_measured(cell: Cell) -> bool {
    let speaks_resp = !matches!(
        cell.system,
        System::EmbeddedMemory | System::EmbeddedDisk | System::Etcd
    );
    match cell.work {
        Work::Set => speaks_resp,
        Work::Acquire => !speaks_resp || cell.system.is_ours(),
        Work::HandOver => cell.connections > 1,
        Work::AcquireRelease | Work::Renew | Work::Mixed => true,
    }
}

fn turn(
    runtime: &Runtime,
    running: &mut Running,
    cell: Cell,
    (round, time): (usize, Duration),
) -> Result<Turn, Error> {
    running.check()?;
    let target = running.target.clone();
    let measured = runtime.block_on(async {
        // On a task, as a server's work is.
        runtime
            .spawn(async move {
                match target {
                    Target::Embedded(store) => {
                        let callers = (0..cell.connections).map(|at| EmbeddedCaller::new(store.clone(), at));
                        let callers = callers.collect::<Result<Vec<_>, _>>()?;
                        drive(callers, cell.work, (round, cell.connections), time).await
                    }
                    Target::LeaseStore(address) => {
                        let open = |at| LeaseCaller::open(address, at);
                        drive(
                            open_all(cell.connections, open).await?,
                            cell.work,
                            (round, cell.connections),
                            time,
                        )
                        .await
                    }
                    Target::Redis(address, replicas) => {
                        let open = |at| open_redis(address, replicas, at);
                        drive(
                            open_all(cell.connections, open).await?,
                            cell.work,
                            (round, cell.connections),
                            time,
                        )
                        .await
                    }
                    Target::Etcd(address) => {
                        let open = |at| EtcdCaller::open(address, at);
                        drive(
                            open_all(cell.connections, open).await?,
                            cell.work,
                            (round, cell.connections),
                            time,
                        )
                        .await
                    }
                }
            })
            .await
    });
    measured?.map_err(|error| format!("{}, {}: {error}", cell.system.title(), cell.work.title()).into())
}

async fn open_redis(address: SocketAddr, replicas: Replicas, at: usize) -> Result<RedisCaller, Error> {
    RedisCaller::open(address, replicas, at).await
}

async fn open_all<C: Caller, F: Future<Output = Result<C, Error>>>(
    count: usize,
    open: impl Fn(usize) -> F,
) -> Result<Vec<C>, Error> {
    let mut callers = Vec::with_capacity(count);
    for at in 0..count {
        callers.push(open(at).await?);
    }
    Ok(callers)
}
