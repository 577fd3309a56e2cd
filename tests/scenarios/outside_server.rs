//! An outside server of `examples/` on a port of its own, in real time.

use std::net::SocketAddr;
use std::time::Duration;

use examples::outside::{Outside, Switches};
use reward_ledger::{HttpTarget, OutsideRecords};
use tests::http::{Answer, Request};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::real_time::{beside, blocking, in_real_time};

/// It ends when it is dropped.
pub(crate) struct OutsideServer {
    outside: Outside,
    path: &'static str,
    address: SocketAddr,
    serving: JoinHandle<std::io::Result<()>>,
}

impl OutsideServer {
    /// Where items are handed out.
    pub(crate) async fn of_items() -> Self {
        Self::start("item", "/items").await
    }

    /// Where cards are charged.
    pub(crate) async fn of_payments() -> Self {
        Self::start("charge", "/charges").await
    }

    async fn start(what: &'static str, path: &'static str) -> Self {
        let socket = in_real_time(TcpListener::bind("127.0.0.1:0")).await.unwrap();
        let address = socket.local_addr().unwrap();
        let outside = Outside::new(what, Switches::default());
        let serving = beside(outside.clone().serve(socket, path));
        Self {
            outside,
            path,
            address,
            serving,
        }
    }

    pub(crate) fn switch(&self, switches: Switches) {
        self.outside.switch(switches);
    }

    /// The keys of what it has done; one that was done twice stands twice.
    pub(crate) fn effects(&self) -> Vec<String> {
        self.outside.effects()
    }

    /// Its books, as an audit takes them.
    pub(crate) fn books(&self) -> OutsideRecords {
        let mut books = OutsideRecords::new();
        self.effects().iter().for_each(|key| books.effect(key));
        books
    }

    /// What a publisher sends to.
    pub(crate) fn target(&self) -> HttpTarget {
        let url = format!("http://{}{}", self.address, self.path);
        HttpTarget::builder(url).build().unwrap()
    }

    /// Asks for the work of `key`; `None` where no answer came in time.
    pub(crate) async fn post(&self, key: &str, token: Option<u64>, patience: Duration) -> Option<Answer> {
        let (address, path, key) = (self.address, self.path, key.to_owned());
        let sent = move || {
            let mut request = Request::new("POST", path)
                .header("idempotency-key", key)
                .patience(patience);
            if let Some(token) = token {
                request = request.header("fence-token", token);
            }
            request
                .json(r#"{"resource": "lock:order-1", "amount": "1999"}"#)
                .send(address)
        };
        blocking(sent).await.ok()
    }

    /// Whether the work of `key` was done, as it says itself; `None` where it does not tell.
    pub(crate) async fn has_done(&self, key: &str) -> Option<bool> {
        // A key stands in one segment of the path.
        let (address, path) = (self.address, format!("{}/{}", self.path, key.replace('/', "%2F")));
        let answer = blocking(move || Request::new("GET", &path).send(address)).await;
        match answer.unwrap().status {
            200 => Some(true),
            404 => Some(false),
            _ => None,
        }
    }
}

impl Drop for OutsideServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
