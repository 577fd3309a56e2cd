//! Leases with linearizable fencing tokens, replicated by Raft: embedded library and Redis-protocol server.
pub mod raft;
pub mod runtime;
