//! The network between the nodes: a proxy before the peer port of each, so that any pair can be cut in any direction.

use std::net::SocketAddr;

use tests::proxy::{Direction, Proxy};

use crate::trio::{NODES, others};

/// The wires between all nodes.
pub(crate) struct Wires {
    proxies: Vec<(u64, Proxy)>,
}

impl Wires {
    /// Before the nodes that listen for their peers at these addresses.
    pub(crate) fn before(nodes: impl IntoIterator<Item = (u64, SocketAddr)>) -> Self {
        let before = |(id, address)| (id, Proxy::before_peers_of(address));
        Self {
            proxies: nodes.into_iter().map(before).collect(),
        }
    }

    /// Where a node's peers are to call it.
    pub(crate) fn address(&self, id: u64) -> SocketAddr {
        self.proxy(id).address()
    }

    /// Nothing that `from` sends comes to `to` any more.
    pub(crate) fn cut(&self, from: u64, to: u64) {
        self.proxy(to).hold_up(from, Direction::ToServer);
        // Its answers.
        self.proxy(from).hold_up(to, Direction::FromServer);
    }

    /// Nothing passes between the two.
    pub(crate) fn cut_pair(&self, one: u64, other: u64) {
        self.cut(one, other);
        self.cut(other, one);
    }

    /// Nothing that the node sends comes anywhere.
    pub(crate) fn silence(&self, id: u64) {
        for other in others(id) {
            self.cut(id, other);
        }
    }

    /// Nothing that is sent to the node arrives.
    pub(crate) fn deafen(&self, id: u64) {
        for other in others(id) {
            self.cut(other, id);
        }
    }

    /// The node is alone.
    pub(crate) fn isolate(&self, id: u64) {
        self.silence(id);
        self.deafen(id);
    }

    /// Everything passes again, also what was held up.
    pub(crate) fn heal(&self) {
        for id in NODES {
            self.proxy(id).heal();
        }
    }

    /// Packets that were ever held up.
    pub(crate) fn held_up(&self) -> u64 {
        self.proxies.iter().map(|(_, proxy)| proxy.held_up()).sum()
    }

    fn proxy(&self, id: u64) -> &Proxy {
        let found = self.proxies.iter().find(|(node, _)| *node == id);
        found.map_or_else(|| panic!("harness: no node {id}"), |(_, proxy)| proxy)
    }
}
