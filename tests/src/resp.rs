//! A small blocking client that sees what a connection really carries.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};

use bytes::BytesMut;
use lease_core::wire::{Reply, ReplyDecoder, encode_request};

use crate::clock::SOON;
use crate::show::show;

/// One read, in bytes.
const READ_BYTES: usize = 64 * 1_024;

/// One connection.
#[derive(Debug)]
pub struct Client {
    socket: TcpStream,
    decoder: ReplyDecoder,
    /// Bytes read since the last reply was given out.
    raw: Vec<u8>,
}

/// A connection that ended, or on which nothing came in time: what was asked may have been done.
#[derive(Debug)]
pub struct Gone(pub String);

impl Client {
    /// Connects, and panics if nobody is there.
    #[must_use]
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).unwrap_or_else(|Gone(why)| panic!("cannot connect to {address}: {why}"))
    }

    /// Connects, if anybody is there.
    ///
    /// # Errors
    /// Nobody is. Nothing was asked.
    pub fn try_connect(address: SocketAddr) -> Result<Self, Gone> {
        let connect = || {
            let socket = TcpStream::connect_timeout(&address, SOON)?;
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(SOON))?;
            socket.set_write_timeout(Some(SOON))?;
            Ok(socket)
        };
        let socket = connect().map_err(|error: std::io::Error| Gone(error.to_string()))?;
        Ok(Self {
            socket,
            decoder: ReplyDecoder::new(),
            raw: Vec::new(),
        })
    }

    /// Sends the words of `command`, and gives the answer in the form of [`show`].
    #[track_caller]
    pub fn say(&mut self, command: &str) -> String {
        show(&self.call(command))
    }

    /// Sends the words of `command`, and gives the answer.
    #[track_caller]
    pub fn call(&mut self, command: &str) -> Reply {
        self.call_args(&words(command))
    }

    /// Sends a request of any bytes, and gives the answer.
    #[track_caller]
    pub fn call_args<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Reply {
        self.try_call(args)
            .unwrap_or_else(|Gone(why)| panic!("no answer: {why}"))
    }

    /// Sends a request, and gives the answer if there is one.
    ///
    /// # Errors
    /// The connection ended: the request may have been applied.
    pub fn try_call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Result<Reply, Gone> {
        self.try_send_raw(&encoded(args))?;
        self.try_receive()
    }

    /// Sends a request, and gives the bytes of its answer.
    #[track_caller]
    pub fn call_raw<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Vec<u8> {
        self.call_args(args);
        std::mem::take(&mut self.raw)
    }

    /// Sends the words of `command` and waits for nothing.
    #[track_caller]
    pub fn send(&mut self, command: &str) {
        self.send_raw(&encoded(&words(command)));
    }

    /// Sends bytes as they are.
    #[track_caller]
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let sent = self.try_send_raw(bytes);
        sent.unwrap_or_else(|Gone(why)| panic!("cannot send: {why}"));
    }

    /// Sends bytes as they are, if the server takes them.
    ///
    /// # Errors
    /// It does not. Part of them may have been sent.
    pub fn try_send_raw(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.raw.clear();
        self.socket
            .write_all(bytes)
            .map_err(|error| Gone(error.to_string()))
    }

    /// The next answer.
    #[track_caller]
    pub fn receive(&mut self) -> Reply {
        self.try_receive()
            .unwrap_or_else(|Gone(why)| panic!("no answer: {why}"))
    }

    /// The next answer, in the form of [`show`].
    #[track_caller]
    pub fn hear(&mut self) -> String {
        show(&self.receive())
    }

    /// The next answer, if there is one.
    ///
    /// # Errors
    /// The connection ended, or nothing came in time.
    pub fn try_receive(&mut self) -> Result<Reply, Gone> {
        let mut bytes = [0; READ_BYTES];
        loop {
            let decoded = self.decoder.next_reply();
            match decoded
                .map_err(|error| Gone(format!("no reply: {error}; read {}", self.raw.escape_ascii())))?
            {
                Some(reply) => return Ok(reply),
                None => match self.socket.read(&mut bytes) {
                    Ok(0) => return Err(Gone("the server ended the connection".to_owned())),
                    Ok(read) => {
                        let read = bytes.get(..read).unwrap_or_default();
                        self.decoder.feed(read);
                        self.raw.extend_from_slice(read);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(Gone(error.to_string())),
                },
            }
        }
    }

    /// The server has ended the connection, and said nothing more.
    #[track_caller]
    pub fn expect_end(&mut self) {
        match self.try_receive() {
            Ok(reply) => panic!("the connection should be over, and answers {}", show(&reply)),
            Err(Gone(why)) => assert!(
                ["ended the connection", "reset by peer", "Broken pipe"]
                    .iter()
                    .any(|end| why.contains(end)),
                "the connection should be over: {why}"
            ),
        }
    }

    /// Says that nothing more will be sent; answers can still be read.
    #[track_caller]
    pub fn finish_sending(&self) {
        let shut = self.socket.shutdown(Shutdown::Write);
        assert!(shut.is_ok(), "harness: cannot shut half a socket: {shut:?}");
    }

    /// The socket itself.
    #[must_use]
    pub const fn socket(&self) -> &TcpStream {
        &self.socket
    }
}

/// The words of a command that has no spaces in its arguments.
#[must_use]
pub fn words(command: &str) -> Vec<&str> {
    command.split_ascii_whitespace().collect()
}

/// A request as it is sent.
#[must_use]
pub fn encoded<A: AsRef<[u8]>>(args: &[A]) -> BytesMut {
    let mut out = BytesMut::new();
    encode_request(args, &mut out);
    out
}
