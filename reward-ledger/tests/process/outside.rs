//! An outside server of the tests' own, over HTTP or HTTPS: it remembers what it did by its keys, and may refuse.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::program::SOON;

/// What it does with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    /// 422, for good.
    Refuses,
}

#[derive(Debug)]
struct Books {
    mood: Mood,
    /// How often each key was done, and under which token last.
    done: BTreeMap<String, (u32, String)>,
    refused: u32,
}

/// A running server. It ends with the process.
#[derive(Debug, Clone)]
pub(crate) struct Outside {
    pub(crate) address: SocketAddr,
    books: Arc<(Mutex<Books>, Condvar)>,
}

/// An authority of the tests' own, and a certificate that it gave.
pub(crate) struct Vouched {
    /// The authority's certificate as PEM.
    pub(crate) authority: String,
    server: Arc<ServerConfig>,
}

impl Vouched {
    /// A certificate for a server of this name.
    pub(crate) fn of(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let server = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Self {
            authority: authority.pem(),
            server: Arc::new(server),
        }
    }
}

impl Outside {
    pub(crate) fn start(mood: Mood) -> Self {
        Self::serve(mood, |socket, outside| outside.answer(socket))
    }

    /// Over TLS.
    pub(crate) fn start_with_tls(vouched: &Vouched) -> Self {
        let config = Arc::clone(&vouched.server);
        Self::serve(Mood::Well, move |socket, outside| {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            outside.answer(StreamOwned::new(session, socket))
        })
    }

    fn serve(mood: Mood, answer: impl Fn(TcpStream, &Self) -> std::io::Result<()> + Send + 'static) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let books = Books {
            mood,
            done: BTreeMap::new(),
            refused: 0,
        };
        let outside = Self {
            address: socket.local_addr().unwrap(),
            books: Arc::new((Mutex::new(books), Condvar::new())),
        };
        let serving = outside.clone();
        std::thread::spawn(move || {
            for peer in socket.incoming().flatten() {
                // A client that does not believe us goes away.
                let _gone = answer(peer, &serving);
            }
        });
        outside
    }

    pub(crate) fn be(&self, mood: Mood) {
        self.books.0.lock().unwrap().mood = mood;
    }

    /// How often each key was done once `enough` of them are, and under which token last.
    pub(crate) fn done(&self, enough: usize) -> BTreeMap<String, (u32, String)> {
        let books = self.books.0.lock().unwrap();
        let waited = self
            .books
            .1
            .wait_timeout_while(books, SOON, |books| books.done.len() < enough);
        let (books, _) = waited.unwrap();
        books.done.clone()
    }

    /// How many requests were refused, once there is one.
    pub(crate) fn refused(&self) -> u32 {
        let books = self.books.0.lock().unwrap();
        let waited = self
            .books
            .1
            .wait_timeout_while(books, SOON, |books| books.refused == 0);
        waited.unwrap().0.refused
    }

    /// One request, one answer.
    fn answer(&self, socket: impl Read + Write) -> std::io::Result<()> {
        let mut socket = BufReader::new(socket);
        let (mut first, mut headers) = (String::new(), BTreeMap::new());
        socket.read_line(&mut first)?;
        loop {
            let mut line = String::new();
            socket.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.insert(name.to_lowercase(), value.to_owned()),
                None => break,
            };
        }
        let said = |name: &str| headers.get(name).cloned().unwrap_or_default();
        let mut body = vec![0; said("content-length").parse().unwrap_or(0)];
        socket.read_exact(&mut body)?;
        let status = self.status_of(&first, &said("idempotency-key"), &said("fence-token"));
        let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        socket.get_mut().write_all(answer.as_bytes())?;
        socket.get_mut().flush()
    }

    fn status_of(&self, first: &str, key: &str, token: &str) -> &'static str {
        let mut books = self.books.0.lock().unwrap();
        if let Some(path) = first.strip_prefix("GET ") {
            let path = path.replace("%2F", "/");
            return match books.done.keys().any(|key| path.contains(key)) {
                true => "200 OK",
                false => "404 Not Found",
            };
        }
        let status = match books.mood {
            Mood::Well => {
                let done = books.done.entry(key.to_owned()).or_default();
                *done = (done.0 + 1, token.to_owned());
                "200 OK"
            }
            Mood::Refuses => {
                books.refused += 1;
                "422 Unprocessable Content"
            }
        };
        self.books.1.notify_all();
        status
    }
}
