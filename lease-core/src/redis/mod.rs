//! Redis's commands on string keys: what is asked, which command of the machine that is, and what its outcome is
//! answered.
//!
//! A server that reads a socket and a script that calls a command meet the same words here, so that both answer alike.
//! It leaves to others which database is selected, what the wall clock shows, and whether a read needs the log.
//!
//! Source: behaviour and texts follow redis-server 7.0; `IFEQ`, `IFDEQ`, `DELEX` and `DIGEST` follow Redis 8.4, and
//! `DELIFEQ` Valkey 9.

mod arguments;
mod ask;
mod expire;
mod glob;
mod reply;
mod set;
mod verb;

pub use arguments::{Context, read_integer, syntax_error};
pub use ask::{Asked, Change, Look, ask};
pub use glob::{matches, read_pattern};
pub use reply::too_many_values;
pub use verb::{Arity, KeyVerb, wrong_arity};

#[cfg(test)]
mod tests;
