//! One request over HTTP/1.1, without a library: what an admin address or an outside server is asked.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::clock::SOON;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The lines of the head, names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Answer {
    /// A header by its name in small letters.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A request, to be sent on a connection of its own.
#[derive(Debug, Clone)]
#[must_use = "a request asks nobody until `send`"]
pub struct Request<'a> {
    method: &'a str,
    path: &'a str,
    headers: Vec<(&'a str, String)>,
    body: String,
    patience: Duration,
}

impl<'a> Request<'a> {
    /// One without a body.
    pub const fn new(method: &'a str, path: &'a str) -> Self {
        Self {
            method,
            path,
            headers: Vec::new(),
            body: String::new(),
            patience: SOON,
        }
    }

    /// With a header, too.
    pub fn header(mut self, name: &'a str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// With JSON as its body.
    pub fn json(mut self, body: impl ToString) -> Self {
        self.body = body.to_string();
        self.header("content-type", "application/json")
    }

    /// Waits no longer than this for the answer to go on; [`SOON`] unless said.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sends it, and waits for the answer.
    ///
    /// # Errors
    /// There was no answer, or none that is HTTP. What was asked for may have been done.
    pub fn send(&self, address: SocketAddr) -> io::Result<Answer> {
        let mut socket = TcpStream::connect_timeout(&address, SOON)?;
        socket.set_read_timeout(Some(self.patience))?;
        let (method, path, length) = (self.method, self.path, self.body.len());
        // The server closes after the answer, so its end needs no counting.
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if length > 0 {
            text.push_str(&format!("content-length: {length}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(&self.body);
        socket.write_all(text.as_bytes())?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        parse(&answer).ok_or_else(|| io::Error::other(format!("no HTTP answer: {answer:?}")))
    }
}

/// Asks for `path` on a connection of its own.
#[must_use]
#[track_caller]
pub fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, "GET", path)
}

/// Asks with another method.
#[must_use]
#[track_caller]
pub fn request(address: SocketAddr, method: &str, path: &str) -> Answer {
    let sent = Request::new(method, path).send(address);
    sent.unwrap_or_else(|error| panic!("no HTTP answer: {error}"))
}

fn parse(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let headers = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    });
    Some(Answer {
        status,
        headers: headers.collect(),
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_apart() {
        let answer = parse("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (404, "no"));
        assert_eq!(answer.header("content-length"), Some("2"));
        assert!(parse("HTTP/1.1 200 OK\r\n").is_none());
    }
}
