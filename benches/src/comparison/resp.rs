//! One RESP connection of the generator, the same for Redis and for the lease store.

use std::net::SocketAddr;

use bytes::BytesMut;
use lease_core::wire::{Reply, ReplyDecoder, encode_request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Error;

/// A connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    out: BytesMut,
    decoder: ReplyDecoder,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Nobody is there.
    pub async fn open(address: SocketAddr) -> Result<Self, Error> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            out: BytesMut::new(),
            decoder: ReplyDecoder::new(),
        })
    }

    /// Adds a command to what is sent next.
    pub fn add<A: AsRef<[u8]>>(&mut self, command: &[A]) {
        encode_request(command, &mut self.out);
    }

    /// Sends what was added, in one write.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn send(&mut self) -> Result<(), Error> {
        self.stream.write_all_buf(&mut self.out).await?;
        Ok(())
    }

    /// The next answer; an error reply is an error.
    ///
    /// # Errors
    /// The connection broke, or the server refuses.
    pub async fn receive(&mut self) -> Result<Reply, Error> {
        loop {
            match self.decoder.next_reply()? {
                Some(Reply::Error(refused)) => return Err(format!("refused: {refused}").into()),
                Some(reply) => return Ok(reply),
                None => {
                    if self.stream.read_buf(&mut self.decoder.space()).await? == 0 {
                        return Err("the server closed the connection".into());
                    }
                }
            }
        }
    }

    /// Sends one command and takes its answer.
    ///
    /// # Errors
    /// The connection broke, or the server refuses.
    pub async fn call<A: AsRef<[u8]>>(&mut self, command: &[A]) -> Result<Reply, Error> {
        self.add(command);
        self.send().await?;
        self.receive().await
    }
}

/// An answer that the work does not need.
pub(crate) fn unexpected(to: &str, reply: &Reply) -> Error {
    format!("the answer to {to} is {reply:?}").into()
}
