//! A payment gateway that does what this project asks of outside systems, to try the publisher on and to see what its faults cost.
//!
//! `cargo run --release --example payment_gateway`, then `POST /charges` with an `Idempotency-Key`: each key is charged once.
//! `GET /charges/KEY` tells whether it was, `GET /effects` shows the books, and `PUT /switches` with
//! `{"slow_ms": 100, "lose_answers": 3, "forget_keys": true, "refuse": true, "busy": true, "no_status": true}` breaks it. With
//! `"check_tokens": true` it refuses stale tokens, for callers that hold the lease themselves.

use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;

use clap::Parser;
use examples::outside::{Outside, Switches};
use tokio::net::TcpListener;

#[derive(Debug, Parser)]
struct Cli {
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1:7441")]
    listen: SocketAddr,
    #[command(flatten)]
    switches: Switches,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cli = Cli::parse();
    let socket = TcpListener::bind(cli.listen).await?;
    let address = socket.local_addr()?;
    writeln!(std::io::stdout(), "ready http=http://{address}/charges")?;
    Outside::new("charge", cli.switches)
        .serve(socket, "/charges")
        .await?;
    Ok(())
}
