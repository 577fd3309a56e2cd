//! What a connection says first: who the client is, and which database it means.

use std::fmt;
use std::io;

use bytes::BytesMut;
use lease_core::Database;
use lease_core::wire::{ErrorReply, Reply, ReplyDecodeError, ReplyDecoder, encode_request};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// User of a password without one, as Redis has it.
const DEFAULT_USER: &str = "default";

/// The first requests of each connection.
#[derive(Clone, Default)]
pub(crate) struct Greeting {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: Option<Database>,
}

/// The greeting was not answered with yes.
#[derive(Debug)]
pub(crate) enum GreetingFailed {
    Refused(ErrorReply),
    Garbled(ReplyDecodeError),
    Io(io::Error),
}

impl Greeting {
    /// Says it and reads the answers; gives the decoder back, which stands at the start of the next answer.
    pub(crate) async fn exchange<S>(&self, stream: &mut S) -> Result<ReplyDecoder, GreetingFailed>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut out = BytesMut::new();
        let mut missing = self.encode(&mut out);
        stream.write_all(&out).await.map_err(GreetingFailed::Io)?;
        let mut decoder = ReplyDecoder::new();
        while missing > 0 {
            match decoder.next_reply().map_err(GreetingFailed::Garbled)? {
                Some(Reply::Error(reply)) => return Err(GreetingFailed::Refused(reply)),
                Some(_) => missing = missing.saturating_sub(1),
                None => {
                    let read = stream
                        .read_buf(&mut decoder.space())
                        .await
                        .map_err(GreetingFailed::Io)?;
                    if read == 0 {
                        return Err(GreetingFailed::Io(io::ErrorKind::UnexpectedEof.into()));
                    }
                }
            }
        }
        Ok(decoder)
    }

    /// Appends the requests; gives their number.
    fn encode(&self, out: &mut BytesMut) -> usize {
        let mut requests: usize = 1;
        if let Some(password) = &self.password {
            let user = self.user.as_deref().unwrap_or(DEFAULT_USER);
            encode_request(&["AUTH", user, password], out);
            requests = requests.saturating_add(1);
        }
        if let Some(database) = self.database.filter(|database| *database != Database::ZERO) {
            encode_request(&["SELECT", &database.to_string()], out);
            requests = requests.saturating_add(1);
        }
        // Whoever lacks a password is told so here, and not at the first lease.
        encode_request(&["PING"], out);
        requests
    }
}

/// Without the password.
impl fmt::Debug for Greeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Greeting")
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "..."))
            .field("database", &self.database)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn greet(greeting: Greeting, answers: &'static [u8]) -> (Result<(), GreetingFailed>, Vec<u8>) {
        let (mut ours, mut theirs) = tokio::io::duplex(1_024);
        theirs.write_all(answers).await.unwrap();
        theirs.shutdown().await.unwrap();
        let answer = greeting.exchange(&mut ours).await.map(drop);
        drop(ours);
        let mut said = Vec::new();
        theirs.read_to_end(&mut said).await.unwrap();
        (answer, said)
    }

    #[tokio::test]
    async fn password_and_database_come_first() {
        let greeting = Greeting {
            user: None,
            password: Some("secret".to_owned()),
            database: Some(Database::new(3).unwrap()),
        };
        assert!(!format!("{greeting:?}").contains("secret"));
        let (answer, said) = greet(greeting, b"+OK\r\n+OK\r\n+PONG\r\n").await;
        assert!(answer.is_ok());
        assert_eq!(
            String::from_utf8(said).unwrap(),
            "*3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$6\r\nsecret\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*1\r\n$4\r\nPING\r\n"
        );
    }

    #[tokio::test]
    async fn a_refusal_is_told_as_it_was_said() {
        let (answer, _) = greet(Greeting::default(), b"-NOAUTH Authentication required.\r\n").await;
        assert!(
            matches!(answer, Err(GreetingFailed::Refused(reply)) if reply.as_bytes().starts_with(b"NOAUTH"))
        );
    }

    #[tokio::test]
    async fn a_peer_that_hangs_up_or_speaks_otherwise_is_an_error() {
        let (answer, _) = greet(Greeting::default(), b"").await;
        assert!(matches!(answer, Err(GreetingFailed::Io(_))));
        let (answer, _) = greet(Greeting::default(), b"HTTP/1.1 400 Bad Request\r\n").await;
        assert!(matches!(answer, Err(GreetingFailed::Garbled(_))));
    }
}
