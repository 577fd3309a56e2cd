//! A publisher and an outside server on this machine.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use examples::outside::{Outside, Switches};
use reward_ledger::{HttpTarget, Ledger, PublishPolicy, Publisher, Territory};
use tokio::net::TcpListener;

use crate::Error;
use crate::audits::fill;
use crate::embedded::Flavour;
use crate::stopwatch::Stopwatch;

/// Rows of one player.
const EVENTS_EACH: u32 = 20;
/// As a server that forgets its keys after a day.
const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// Claims `rows` rewards on `ledger`, then publishes them to an item server over HTTP, as publishers usually do; answers with
/// deliveries per second, each noted as delivered. Runs on the runtime that the ledger was opened on.
///
/// # Errors
/// The ledger refuses, or the outside did not do each of them once.
pub async fn rate(ledger: &Ledger, rows: u32) -> Result<f64, Error> {
    fill(ledger, rows, EVENTS_EACH).await?;
    let outside = Outside::new("item", Switches::default());
    let address = serve(outside.clone())?;
    let target = HttpTarget::builder(format!("http://{address}/items")).build()?;
    let policy = PublishPolicy::builder(WINDOW).build()?;
    let watch = Stopwatch::start();
    let publisher = Publisher::start(ledger.clone(), target, policy, Territory::everything());
    publisher
        .published_until(|published| published.delivered >= u64::from(rows))
        .await
        .ok_or("the publisher ended")?;
    let rate = f64::from(rows) / watch.elapsed().as_secs_f64();
    let published = publisher.stop().await;
    let mut done = outside.effects();
    done.sort_unstable();
    done.dedup();
    if outside.effects().len() != done.len() || done.len() as u64 != published.delivered {
        return Err(format!("{} effects of {published:?}", outside.effects().len()).into());
    }
    Ok(rate)
}

/// Serves on a thread and a runtime of its own, until the process ends.
fn serve(outside: Outside) -> Result<SocketAddr, Error> {
    let (tell, told) = mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("item-server".to_owned())
        .spawn(move || -> Result<(), Error> {
            Flavour::CurrentThread.runtime()?.block_on(async {
                let socket = TcpListener::bind("127.0.0.1:0").await?;
                tell.send(socket.local_addr()?)?;
                Ok(outside.serve(socket, "/items").await?)
            })
        })?;
    Ok(told.recv()?)
}
