//! What goes wrong around a reward, on the real parts: store, client and ledger in one process, and a server where the
//! network matters.
//!
//! One module for each scenario, written once and run on every store: in memory, on sled, and on a real PostgreSQL (`desk`
//! says what is not about the store). Beside each test stands its negative control: the same course of events without the
//! protection that matters, which must be seen to go wrong. Where no socket and no process matters, leases live in tokio's
//! paused time, and the times are those that users have: a ttl of five seconds. After each scenario the books are audited
//! and counted.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod books;
mod cases;
mod desk;
mod late_release;
mod ledger_cases;
mod lost_answer;
mod many_messages;
mod network_cut;
mod outside;
mod outside_server;
mod past_the_lock;
mod pause;
mod payment;
mod power_cut;
mod publishers;
mod random_event;
mod real_time;
mod renewal;
mod soak;
mod stage;
mod store_unreachable;
mod two_rewards;
mod worker_dies;
