//! gRPC over one HTTP/2 connection: single calls, and one stream that asks and answers in turns.
//!
//! Source: "gRPC over HTTP2", for the frame before each message and the status in the trailers.

use std::net::SocketAddr;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use http::{Method, Request, Version};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::protobuf::{Fields, Message};
use crate::Error;

/// Flag and length before each message, in bytes.
const PREFIX_BYTES: usize = 5;

/// One connection.
#[derive(Debug)]
pub struct Channel {
    authority: String,
    sender: SendRequest<Bytes>,
    // Dropped, it ends with the channel.
    _driver: JoinSet<()>,
}

impl Channel {
    /// Connects.
    ///
    /// # Errors
    /// Nobody is there.
    pub async fn open(address: SocketAddr) -> Result<Self, Error> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = h2::client::handshake(stream).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // What breaks it breaks the calls on it, which say so.
            let _ = connection.await;
        });
        Ok(Self {
            authority: address.to_string(),
            sender,
            _driver: driver,
        })
    }

    /// One request, one answer.
    ///
    /// # Errors
    /// The connection broke, or the server refuses.
    pub async fn call(&mut self, method: &str, message: &Message) -> Result<Fields, Error> {
        let mut stream = self.start(method, Ends::AfterOne, message).await?;
        let fields = stream.receive().await?;
        stream.end().await?;
        Ok(fields)
    }

    /// The first request of several, each to be answered before the next one.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn stream(&mut self, method: &str, message: &Message) -> Result<Stream, Error> {
        self.start(method, Ends::Never, message).await
    }

    async fn start(&mut self, method: &str, ends: Ends, message: &Message) -> Result<Stream, Error> {
        let request = Request::builder()
            .method(Method::POST)
            .version(Version::HTTP_2)
            .uri(format!("http://{}{method}", self.authority))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())?;
        let mut sender = self.sender.clone().ready().await?;
        let (answer, mut send) = sender.send_request(request, false)?;
        send.send_data(frame(message), ends == Ends::AfterOne)?;
        Ok(Stream {
            send,
            answer: Answer::Awaited(answer),
            unread: BytesMut::new(),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    AfterOne,
    Never,
}

#[derive(Debug)]
enum Answer {
    Awaited(h2::client::ResponseFuture),
    Begun(RecvStream),
}

/// A call whose answers are being read.
#[derive(Debug)]
pub struct Stream {
    send: SendStream<Bytes>,
    answer: Answer,
    unread: BytesMut,
}

impl Stream {
    /// Sends another request.
    ///
    /// # Errors
    /// The connection broke.
    pub fn send(&mut self, message: &Message) -> Result<(), Error> {
        Ok(self.send.send_data(frame(message), false)?)
    }

    /// The next answer.
    ///
    /// # Errors
    /// The connection broke, or the server refuses.
    pub async fn receive(&mut self) -> Result<Fields, Error> {
        loop {
            if let Some(message) = take_message(&mut self.unread)? {
                return Fields::read(message);
            }
            let body = self.body().await?;
            match body.data().await {
                Some(data) => {
                    let data = data?;
                    body.flow_control().release_capacity(data.len())?;
                    self.unread.put(data);
                }
                None => return Err(self.refusal().await),
            }
        }
    }

    /// Reads to the end, and checks that the server is content.
    async fn end(&mut self) -> Result<(), Error> {
        let body = self.body().await?;
        while let Some(data) = body.data().await {
            drop(data?);
        }
        let trailers = body.trailers().await?;
        match trailers.as_ref().and_then(|trailers| trailers.get("grpc-status")) {
            Some(status) if status == "0" => Ok(()),
            status => Err(format!("refused: status {status:?}, {trailers:?}").into()),
        }
    }

    async fn refusal(&mut self) -> Error {
        match self.end().await {
            Ok(()) => "the answer has no message".into(),
            Err(refused) => refused,
        }
    }

    async fn body(&mut self) -> Result<&mut RecvStream, Error> {
        if let Answer::Awaited(answer) = &mut self.answer {
            let response = answer.await?;
            if let Some(status) = response.headers().get("grpc-status")
                && status != "0"
            {
                return Err(format!("refused: {:?}", response.headers()).into());
            }
            self.answer = Answer::Begun(response.into_body());
        }
        match &mut self.answer {
            Answer::Begun(body) => Ok(body),
            Answer::Awaited(_) => Err("the answer has not begun".into()),
        }
    }
}

fn frame(message: &Message) -> Bytes {
    let bytes = message.as_bytes();
    let mut out = BytesMut::with_capacity(PREFIX_BYTES + bytes.len());
    out.put_u8(0);
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.put_slice(bytes);
    out.freeze()
}

fn take_message(unread: &mut BytesMut) -> Result<Option<Bytes>, Error> {
    let mut prefix = unread.as_ref();
    if prefix.len() < PREFIX_BYTES {
        return Ok(None);
    }
    if prefix.get_u8() != 0 {
        return Err("the answer is compressed, which was not asked for".into());
    }
    let len = usize::try_from(prefix.get_u32())?;
    if prefix.len() < len {
        return Ok(None);
    }
    unread.advance(PREFIX_BYTES);
    Ok(Some(unread.split_to(len).freeze()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_out_of_pieces_of_any_size() {
        let sent = Message::default().bytes(1, b"some words");
        let framed = [frame(&sent), frame(&Message::default())].concat();
        let (mut unread, mut seen) = (BytesMut::new(), Vec::new());
        for byte in framed {
            unread.put_u8(byte);
            seen.extend(take_message(&mut unread).unwrap());
        }
        assert_eq!(seen, [Bytes::copy_from_slice(sent.as_bytes()), Bytes::new()]);
        assert!(take_message(&mut BytesMut::from(b"\x01\0\0\0\0".as_slice())).is_err());
    }
}
