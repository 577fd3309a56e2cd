//! The lease store in a test: in memory, in this process, without a socket or a file.
//!
//! `cargo run --release --example embedded_store`

#![expect(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::error::Error;

use fence_client::{AcquireError, FenceClient, ShortDurations as _};
use lease_store::{LeaseStore, StoreConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The same store as the server's, with one voter and nothing on disk. `in_directory(..)` keeps it over a restart.
    let store = LeaseStore::start(StoreConfig::in_memory()).await?;
    let client = FenceClient::embedded(store.clone())?;

    // The lease is renewed in the background until it is released, dropped or lost.
    let lease = client
        .lease("lock:reward:player-42")
        .ttl(5.secs())
        .acquire()
        .await?;
    println!("granted: {}, for {:?} at least", lease.fence(), lease.remaining());

    // Whoever else asks is told who holds it. With `.wait(10.secs())` it would stand in the queue.
    match client.lease("lock:reward:player-42").try_acquire().await {
        Err(AcquireError::Held { holder }) => println!("refused: held by {}", holder.owner),
        other => return Err(format!("the lease was granted twice: {other:?}").into()),
    }

    // Each write carries `lease.fence()`, and what is written to refuses a lower token than it has seen.
    let first = lease.token();
    lease.release().await?;
    let next = client.lease("lock:reward:player-42").acquire().await?;
    println!("released and granted anew: {} > {first}", next.token());
    if next.token() <= first {
        return Err("a token has fallen".into());
    }

    next.release().await?;
    store.shutdown().await?;
    Ok(())
}
