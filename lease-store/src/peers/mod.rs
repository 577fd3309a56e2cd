//! The network between the nodes of a cluster. It knows no Raft and no lease: what travels are bytes of a kind.
//!
//! [`transport`] is what everybody else is written against. [`TcpPeers`] calls and [`TcpServer`] answers over TCP, one
//! connection a peer and lane; [`memory`] does the same within one process, with cuts, delay and loss for tests. What
//! this leaves to others: the meaning of the bytes, and when a cluster exists ([`PeerIdentity::join`]).

mod frame;
mod handshake;
mod identity;
#[cfg(any(test, feature = "test-util"))]
pub mod memory;
mod tcp_client;
mod tcp_server;
#[cfg(test)]
mod tests;
pub mod transport;

pub use handshake::{HandshakeRefusal, Versions};
pub use identity::{OtherCluster, PeerIdentity};
pub use tcp_client::TcpPeers;
pub use tcp_server::TcpServer;
pub use transport::{Kind, Lane, NotSent, PeerError, PeerHandler, PeerTransport, Refusal};
