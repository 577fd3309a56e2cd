//! The harness of the tests on the whole system: real processes, their sockets, and what is checked about them.
//!
//! A failure of the harness panics with a message that begins with `harness:`; one of the product fails an assertion
//! of the test. Every wait here has a deadline.
#![expect(
    clippy::missing_panics_doc,
    reason = "the harness panics whenever it cannot go on"
)]

pub mod artifact;
pub mod clock;
pub mod effort;
pub mod history;
pub mod http;
pub mod launch;
pub mod node;
pub mod output;
pub mod proxy;
pub mod random;
pub mod resp;
pub mod show;
pub mod sim;

pub use launch::Launch;
pub use node::{Exit, Node};
pub use resp::Client;
