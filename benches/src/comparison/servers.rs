//! Starts what is compared, each on free ports of loopback and in a folder of its own.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lease_core::wire::Reply;
use lease_store::LeaseStore;
use tokio::runtime::Runtime;

use super::process::{Process, find, free_address, wait_until};
use super::redis::Replicas;
use super::resp::Connection;
use super::systems::System;
use super::{embedded, etcd, lease};
use crate::Error;
use crate::scratch::Scratch;

/// A system that serves.
#[derive(Debug)]
pub struct Running {
    /// Which.
    pub system: System,
    /// Where callers go.
    pub target: Target,
    /// Killed when this is dropped.
    processes: Vec<Process>,
}

/// Where callers go.
#[derive(Debug, Clone)]
pub enum Target {
    /// A store in this process.
    Embedded(LeaseStore),
    /// The node that leads.
    LeaseStore(SocketAddr),
    /// The master.
    Redis(SocketAddr, Replicas),
    /// The member that leads.
    Etcd(SocketAddr),
}

/// What is needed to start servers.
#[derive(Debug)]
pub struct Starter {
    /// The lease store's server.
    pub server: Option<PathBuf>,
    /// Folders.
    pub scratch: Scratch,
}

impl Running {
    /// An error if one of its processes has ended.
    ///
    /// # Errors
    /// One has.
    pub fn check(&mut self) -> Result<(), Error> {
        self.processes.iter_mut().try_for_each(Process::check)
    }
}

impl Starter {
    /// Starts a system; `None` if its program is not installed.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(&mut self, system: System, runtime: &Runtime) -> Result<Option<Running>, Error> {
        let folder = self.scratch.child(system.key());
        let mut processes = Vec::new();
        let target = match system {
            System::EmbeddedMemory => Target::Embedded(start_embedded(runtime, None)?),
            System::EmbeddedDisk => Target::Embedded(start_embedded(runtime, Some(folder))?),
            System::OneNode | System::ThreeNodes => {
                let server = self.server()?;
                let nodes = if system == System::OneNode { 1 } else { 3 };
                processes = start_nodes(&server, &folder, nodes)?;
                let leader = runtime.block_on(find_leader(&mut processes))?;
                Target::LeaseStore(leader)
            }
            System::RedisMemory | System::RedisSynced | System::RedisReplicated => {
                let Some(program) = find("redis-server") else {
                    return Ok(None);
                };
                let master = start_redis(&program, &folder, system, &mut processes)?;
                runtime.block_on(redis_is_ready(master, system, &mut processes))?;
                let replicas = if system == System::RedisReplicated {
                    Replicas::One
                } else {
                    Replicas::None
                };
                Target::Redis(master, replicas)
            }
            System::Etcd => {
                let Some(program) = find("etcd") else {
                    return Ok(None);
                };
                let members = start_etcd(&program, &folder, &mut processes)?;
                Target::Etcd(runtime.block_on(etcd_leader(&members, &mut processes))?)
            }
        };
        Ok(Some(Running {
            system,
            target,
            processes,
        }))
    }

    fn server(&mut self) -> Result<PathBuf, Error> {
        match &self.server {
            Some(server) => Ok(server.clone()),
            None => Ok(self.server.insert(build_server()?).clone()),
        }
    }
}

fn start_embedded(runtime: &Runtime, folder: Option<PathBuf>) -> Result<LeaseStore, Error> {
    runtime.block_on(async {
        runtime
            .spawn(async move { embedded::start(folder.as_deref()).await })
            .await
    })?
}

/// Builds the server as cargo was told to build this program: never an old one.
fn build_server() -> Result<PathBuf, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "lease-store",
            "--bin",
            "lease-store",
        ])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let built = command.output()?;
    let text = String::from_utf8_lossy(&built.stdout);
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut files = messages.filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)));
    files.next().ok_or_else(|| "the server could not be built".into())
}

fn start_nodes(server: &Path, folder: &Path, nodes: usize) -> Result<Vec<Process>, Error> {
    let mut peers = Vec::new();
    for _ in 0..nodes {
        peers.push(free_address()?);
    }
    let members: Vec<_> = peers
        .iter()
        .enumerate()
        .map(|(at, peer)| format!("{}={peer}", at + 1))
        .collect();
    let members = members.join(",");
    let mut processes = Vec::new();
    for (at, peer) in peers.iter().enumerate() {
        let home = folder.join(format!("node-{}", at + 1));
        let mut arguments = words(&["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data-dir"]);
        arguments.push(home.join("data").into());
        if nodes > 1 {
            let (id, peer) = ((at + 1).to_string(), peer.to_string());
            arguments.extend(words(&[
                "--node-id",
                &id,
                "--cluster",
                &members,
                "--peer-listen",
                &peer,
            ]));
        }
        processes.push(Process::start(server, &arguments, &home)?);
    }
    Ok(processes)
}

async fn find_leader(processes: &mut [Process]) -> Result<SocketAddr, Error> {
    wait_until("the lease store serves", processes, async |processes| {
        let nodes: Option<Vec<SocketAddr>> =
            processes.iter().map(|node| resp_address(&node.said())).collect();
        for node in nodes? {
            if lease::leads(node).await.unwrap_or(false) {
                return Some(node);
            }
        }
        None
    })
    .await
}

/// What a node prints when it serves.
fn resp_address(said: &str) -> Option<SocketAddr> {
    let line = said
        .split_inclusive('\n')
        .find(|line| line.starts_with("ready ") && line.ends_with('\n'))?;
    line.split_whitespace()
        .find_map(|word| word.strip_prefix("resp=")?.parse().ok())
}

fn start_redis(
    program: &Path,
    folder: &Path,
    system: System,
    processes: &mut Vec<Process>,
) -> Result<SocketAddr, Error> {
    let servers = if system == System::RedisReplicated { 3 } else { 1 };
    let append = if system == System::RedisMemory {
        "no"
    } else {
        "yes"
    };
    let master = free_address()?;
    let master_port = master.port().to_string();
    for number in 0..servers {
        let port = match number {
            0 => master_port.clone(),
            _ => free_address()?.port().to_string(),
        };
        let mut arguments = words(&[
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            append,
        ]);
        arguments.extend(words(&["--appendfsync", "always", "--loglevel", "warning"]));
        if number > 0 {
            arguments.extend(words(&["--replicaof", "127.0.0.1", &master_port]));
        }
        let home = folder.join(format!("server-{number}"));
        processes.push(Process::start(program, &arguments, &home)?);
    }
    Ok(master)
}

async fn redis_is_ready(master: SocketAddr, system: System, processes: &mut [Process]) -> Result<(), Error> {
    let replicas = if system == System::RedisReplicated { 2 } else { 0 };
    wait_until("Redis serves, with its replicas", processes, async |_| {
        let mut connection = Connection::open(master).await.ok()?;
        connection.call(&["SET", "ready", "yes"]).await.ok()?;
        let reply = connection.call(&["WAIT", "2", "1000"]).await.ok()?;
        (reply == Reply::Integer(replicas)).then_some(())
    })
    .await
}

fn start_etcd(program: &Path, folder: &Path, processes: &mut Vec<Process>) -> Result<Vec<SocketAddr>, Error> {
    let (mut clients, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        clients.push(free_address()?);
        peers.push(free_address()?);
    }
    let cluster: Vec<_> = peers
        .iter()
        .enumerate()
        .map(|(at, peer)| format!("m{at}=http://{peer}"))
        .collect();
    let cluster = cluster.join(",");
    for (at, (client, peer)) in clients.iter().zip(&peers).enumerate() {
        let (name, client, peer) = (
            format!("m{at}"),
            format!("http://{client}"),
            format!("http://{peer}"),
        );
        let mut arguments = words(&[
            "--name",
            &name,
            "--data-dir",
            "data",
            "--logger",
            "zap",
            "--log-level",
            "error",
        ]);
        arguments.extend(words(&[
            "--listen-client-urls",
            &client,
            "--advertise-client-urls",
            &client,
        ]));
        arguments.extend(words(&[
            "--listen-peer-urls",
            &peer,
            "--initial-advertise-peer-urls",
            &peer,
        ]));
        arguments.extend(words(&[
            "--initial-cluster",
            &cluster,
            "--initial-cluster-state",
            "new",
        ]));
        processes.push(Process::start(program, &arguments, &folder.join(&name))?);
    }
    Ok(clients)
}

async fn etcd_leader(members: &[SocketAddr], processes: &mut [Process]) -> Result<SocketAddr, Error> {
    wait_until("etcd has a leader", processes, async |_| {
        for member in members {
            if etcd::leads(*member).await.unwrap_or(false) {
                return Some(*member);
            }
        }
        None
    })
    .await
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(Into::into).collect()
}
