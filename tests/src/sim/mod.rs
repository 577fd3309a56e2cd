//! The three-node cluster in a deterministic simulation: the real machine, actors, Raft and formation, clients with the
//! real client's decisions, faults, and the judge. A seed is a run: the same seed twice gives the same bytes.
//!
//! ```text
//! run ─► stage (processes, disks, wires) ◄─ faults (by seed)
//!            ▲                     ▲
//!   clients ─┘ requests            └─ watch (equal machines, stopped nodes, outages)
//!      └────► history ─► judge ◄── the end: healed, everything must get going and come to rest
//! ```
//! What it leaves out: TCP and its handshake, RESP, real files. Messages keep their order on a lane and connections
//! break; clients call the store as the server's connections do.

mod belief;
mod client;
mod coverage;
mod faults;
mod final_phase;
mod judge;
mod lease_work;
mod note;
mod run;
mod scenes;
mod stage;
mod watch;
mod wire;

pub use coverage::{Coverage, missing};
pub use run::{Plan, Run, Trouble, play, run, run_recorded};
pub use scenes::Scene;
