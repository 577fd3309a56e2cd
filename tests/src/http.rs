//! One request over HTTP/1.1, without a library: what the admin address is asked.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

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
    let text = exchange(address, method, path).unwrap_or_else(|error| panic!("no HTTP answer: {error}"));
    parse(&text).unwrap_or_else(|| panic!("no HTTP answer: {text:?}"))
}

fn exchange(address: SocketAddr, method: &str, path: &str) -> std::io::Result<String> {
    let mut socket = TcpStream::connect_timeout(&address, SOON)?;
    socket.set_read_timeout(Some(SOON))?;
    // The server closes after the answer, so its end needs no counting.
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    socket.write_all(head.as_bytes())?;
    let mut text = String::new();
    socket.read_to_string(&mut text)?;
    Ok(text)
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
