//! A cluster of three nodes, each in a directory of its own and always on the same addresses.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};

use rustix::process::Signal;
use tempfile::TempDir;
use tests::clock::{Deadline, SOON, wait_until};
use tests::{Client, Launch, Node, http};

use crate::wires::Wires;

/// The nodes.
pub(crate) const NODES: [u64; 3] = [1, 2, 3];

/// Ports below the ones that systems give to outgoing connections: none of those can take the port of a node while it
/// is down.
const PORT_MIN: u16 = 10_000;
const PORTS: u16 = 22_000;
/// Clusters whose ports were taken in between, at the most.
const TRIES: usize = 20;

/// Three nodes, of which some may be down.
pub(crate) struct Trio {
    directory: TempDir,
    places: Vec<Place>,
    wires: Option<Wires>,
}

/// Where a node is, and its process.
struct Place {
    id: u64,
    peer: SocketAddr,
    resp: SocketAddr,
    node: Option<Node>,
}

impl Trio {
    /// Forms a cluster of nodes that start in this order, and waits until all serve.
    pub(crate) fn form(order: [u64; 3]) -> Self {
        Self::form_from(order, Self::prepare, Self::spawn)
    }

    /// As [`Trio::form`], of nodes that `spawn` starts.
    pub(crate) fn form_by(order: [u64; 3], spawn: impl Fn(&mut Self, u64)) -> Self {
        Self::form_from(order, Self::prepare, spawn)
    }

    /// As [`Trio::form`], with wires between the nodes that can be cut.
    pub(crate) fn form_on_wires() -> Self {
        let on_wires = || {
            let mut trio = Self::prepare();
            let nodes = trio.places.iter().map(|place| (place.id, place.peer));
            trio.wires = Some(Wires::before(nodes));
            trio
        };
        Self::form_from(NODES, on_wires, Self::spawn)
    }

    fn form_from(order: [u64; 3], prepare: impl Fn() -> Self, spawn: impl Fn(&mut Self, u64)) -> Self {
        for _ in 0..TRIES {
            let mut trio = prepare();
            for id in order {
                spawn(&mut trio, id);
            }
            if order.into_iter().all(|id| trio.serves(id)) {
                return trio;
            }
        }
        panic!("harness: {TRIES} times a port was taken by somebody else");
    }

    /// A cluster of which nothing runs yet.
    pub(crate) fn prepare() -> Self {
        let places = NODES.map(|id| Place {
            id,
            peer: free_address(),
            resp: free_address(),
            node: None,
        });
        Self {
            directory: tempfile::tempdir().unwrap(),
            places: places.into(),
            wires: None,
        }
    }

    /// The wires between the nodes.
    pub(crate) fn wires(&self) -> &Wires {
        let wires = self.wires.as_ref();
        wires.unwrap_or_else(|| panic!("harness: these nodes have no wires"))
    }

    /// The list that all nodes are given.
    pub(crate) fn members(&self) -> String {
        let called_at = |place: &Place| match &self.wires {
            Some(wires) => wires.address(place.id),
            None => place.peer,
        };
        let members = self
            .places
            .iter()
            .map(|place| format!("{}={}", place.id, called_at(place)));
        members.collect::<Vec<_>>().join(",")
    }

    pub(crate) fn directory(&self, id: u64) -> PathBuf {
        self.directory.path().join(format!("node-{id}"))
    }

    /// How a node is started.
    pub(crate) fn launch(&self, id: u64) -> Launch {
        self.launch_with_list(id, &self.members())
    }

    fn launch_with_list(&self, id: u64, members: &str) -> Launch {
        let place = self.place(id);
        let (number, peer) = (id.to_string(), place.peer.to_string());
        Launch::in_directory(&self.directory(id))
            .listen(&place.resp.to_string())
            .args(["--node-id", &number, "--cluster", members, "--peer-listen", &peer])
    }

    /// How a node is started by a settings file that says all.
    pub(crate) fn launch_by_file(&self, id: u64) -> Launch {
        let place = self.place(id);
        let members = self
            .places
            .iter()
            .map(|place| format!("{} = \"{}\"", place.id, place.peer));
        let settings = format!(
            "data-dir = {:?}\nlisten = \"{}\"\nadmin = \"127.0.0.1:0\"\n\n[cluster]\nnode-id = {id}\npeer-listen = \"{}\"\n\
             members = {{ {} }}\n",
            self.directory(id),
            place.resp,
            place.peer,
            members.collect::<Vec<_>>().join(", "),
        );
        let file = self.directory.path().join(format!("node-{id}.toml"));
        std::fs::write(&file, settings).unwrap();
        Launch::from_file(&file)
    }

    /// Starts a node by a settings file, and does not wait for it.
    pub(crate) fn spawn_by_file(&mut self, id: u64) {
        let launch = self.launch_by_file(id);
        self.spawn_as(id, launch);
    }

    /// Starts a node and does not wait for it.
    pub(crate) fn spawn(&mut self, id: u64) {
        self.spawn_with_list(id, &self.members());
    }

    /// Starts a node that is given this list, and does not wait for it.
    pub(crate) fn spawn_with_list(&mut self, id: u64, members: &str) {
        let launch = self.launch_with_list(id, members);
        self.spawn_as(id, launch);
    }

    /// Starts a node like this, and does not wait for it.
    pub(crate) fn spawn_as(&mut self, id: u64, launch: Launch) {
        self.place_mut(id).node = Some(launch.spawn());
    }

    /// Starts a node and waits until it serves.
    pub(crate) fn start(&mut self, id: u64) {
        self.spawn(id);
        self.wait_until_ready(id);
    }

    pub(crate) fn wait_until_ready(&mut self, id: u64) {
        let node = self.place_mut(id).node.as_mut();
        node.unwrap_or_else(|| panic!("harness: node {id} does not run"))
            .wait_until_ready();
    }

    /// Whether a node that was spawned serves; false if its port was taken.
    fn serves(&mut self, id: u64) -> bool {
        let said = |text: &str| text.contains("ready ").then_some(());
        let ready = self.node(id).stdout().wait_for(Deadline::after(SOON), said);
        if ready.is_none() && self.node(id).stderr().text().contains("cannot listen") {
            return false;
        }
        self.wait_until_ready(id);
        true
    }

    pub(crate) fn node(&self, id: u64) -> &Node {
        let node = self.place(id).node.as_ref();
        node.unwrap_or_else(|| panic!("harness: node {id} does not run"))
    }

    /// Takes a node out, to end it.
    pub(crate) fn take(&mut self, id: u64) -> Node {
        let node = self.place_mut(id).node.take();
        node.unwrap_or_else(|| panic!("harness: node {id} does not run"))
    }

    /// Kills a node as a power cut would.
    pub(crate) fn kill(&mut self, id: u64) {
        self.take(id).kill();
    }

    /// Stops a node in the middle of whatever it does, and waits until it stands still.
    pub(crate) fn pause(&self, id: u64) {
        self.node(id).signal(Signal::STOP);
        let status = format!("/proc/{}/status", self.node(id).process_id());
        wait_until("the process stands still", || {
            std::fs::read_to_string(&status)
                .unwrap()
                .contains("State:\tT")
                .then_some(())
        });
    }

    /// Lets a node go on.
    pub(crate) fn resume(&self, id: u64) {
        self.node(id).signal(Signal::CONT);
    }

    pub(crate) fn resp(&self, id: u64) -> SocketAddr {
        self.place(id).resp
    }

    /// Where all of them serve clients, or will again.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.places.iter().map(|place| place.resp).collect()
    }

    pub(crate) fn client(&self, id: u64) -> Client {
        Client::connect(self.resp(id))
    }

    /// The leader of whom all these nodes are sure, one of themselves.
    pub(crate) fn leader_among(&self, ids: &[u64]) -> u64 {
        wait_until("the nodes know one leader", || {
            let mut leaders = ids.iter().map(|id| self.leader_known_to(*id));
            let first = leaders.next().flatten()?;
            (ids.contains(&first) && leaders.all(|other| other == Some(first))).then_some(first)
        })
    }

    /// The leader of whom all running nodes are sure.
    pub(crate) fn leader(&self) -> u64 {
        let running = self.places.iter().filter(|place| place.node.is_some());
        self.leader_among(&running.map(|place| place.id).collect::<Vec<_>>())
    }

    fn leader_known_to(&self, id: u64) -> Option<u64> {
        let answer = http::get(self.node(id).admin(), "/v1/cluster");
        let status: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        status.get("leader")?.as_u64()
    }

    fn place(&self, id: u64) -> &Place {
        let found = self.places.iter().find(|place| place.id == id);
        found.unwrap_or_else(|| panic!("harness: no node {id}"))
    }

    fn place_mut(&mut self, id: u64) -> &mut Place {
        let found = self.places.iter_mut().find(|place| place.id == id);
        found.unwrap_or_else(|| panic!("harness: no node {id}"))
    }
}

/// The other two.
pub(crate) fn others(id: u64) -> [u64; 2] {
    match id {
        1 => [2, 3],
        2 => [1, 3],
        _ => [1, 2],
    }
}

/// An address of loopback that is free, and was given to nobody else in this process.
fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Another run at the same time begins elsewhere.
    let start = u16::try_from(u64::from(std::process::id()) * 97 % u64::from(PORTS)).unwrap_or_default();
    for _ in 0..PORTS {
        let offset = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS;
        let address = SocketAddr::from(([127, 0, 0, 1], PORT_MIN + offset));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("harness: no port is free");
}
