//! The binary: everything is in the library's command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    reward_ledger::command_line::run()
}
