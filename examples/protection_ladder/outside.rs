//! The outside: the item server or payment gateway of one course of events, and how a worker calls it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use examples::outside::{Outside, Switches};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::Failure;

const PATH: &str = "/work";
/// How long a caller waits for an answer. One that is lost never comes, so this only says how long the ladder takes.
const PATIENCE: Duration = Duration::from_millis(500);

/// A running outside server. Dropped, it is gone.
#[derive(Debug)]
pub(crate) struct OutsideServer {
    outside: Outside,
    address: SocketAddr,
    _serving: JoinSet<std::io::Result<()>>,
}

/// What a caller heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    Done,
    Nothing,
}

impl OutsideServer {
    /// Serves on a free port; `lost` answers are lost after the work was done.
    pub(crate) async fn start(what: &'static str, lost: u64) -> Result<Self, Failure> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = socket.local_addr()?;
        let switches = Switches {
            lose_answers: lost,
            ..Switches::default()
        };
        let outside = Outside::new(what, switches);
        let mut serving = JoinSet::new();
        serving.spawn(outside.clone().serve(socket, PATH));
        Ok(Self {
            outside,
            address,
            _serving: serving,
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// What stands in its books.
    pub(crate) fn effects(&self) -> Vec<String> {
        self.outside.effects()
    }

    /// Asks for the work under an idempotency key, once.
    pub(crate) async fn ask(&self, key: &str) -> Result<Heard, Failure> {
        let request = format!(
            "POST {PATH} HTTP/1.1\r\nHost: {}\r\nIdempotency-Key: {key}\r\nContent-Type: application/json\r\n\
             Content-Length: 2\r\nConnection: close\r\n\r\n{{}}",
            self.address
        );
        let exchange = async {
            let mut socket = TcpStream::connect(self.address).await?;
            socket.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            socket.read_to_string(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        };
        match tokio::time::timeout(PATIENCE, exchange).await {
            Err(_) => Ok(Heard::Nothing),
            Ok(answer)
                if answer
                    .as_ref()
                    .is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) =>
            {
                Ok(Heard::Done)
            }
            Ok(answer) => Err(format!("the outside server answered {:?}", answer?).into()),
        }
    }
}
