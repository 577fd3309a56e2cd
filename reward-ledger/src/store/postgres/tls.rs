//! TLS to the server: what a URL asks for, whom it trusts, and the handshake.
//!
//! | `sslmode` | `sslrootcert` | what it means |
//! |---|---|---|
//! | `disable` | | plain |
//! | `prefer`, or none | | encrypted where the server can; anybody may play the server |
//! | `require` | | encrypted, or no connection; anybody may play the server |
//! | `verify-full` | | encrypted, with a certificate for this host by an authority that the system trusts |
//! | any but `disable` | FILE | encrypted, with a certificate for this host by an authority in FILE |
//!
//! Over a local socket there is no TLS to be had: what insists on it is refused there.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::error::InvalidConfig;

/// The protocol's name in the handshake, as PostgreSQL 17 asks for it; older servers do not look.
const PROTOCOL: &[u8] = b"postgresql";

/// What a URL says about TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) mode: SslMode,
    trust: Trust,
}

/// Whose certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Trust {
    Anybody,
    System,
    File(PathBuf),
}

/// What a URL says about TLS, and the URL without it: the driver knows neither `verify-full` nor files.
pub(super) fn take_asked(url: &str) -> Result<(String, Asked), InvalidConfig> {
    let (mut rest, mode) = take(url, "sslmode");
    let file;
    (rest, file) = take(&rest, "sslrootcert");
    let (mode, unless_said) = match mode.as_deref() {
        Some("disable") => (SslMode::Disable, Trust::Anybody),
        None | Some("prefer") => (SslMode::Prefer, Trust::Anybody),
        Some("require") => (SslMode::Require, Trust::Anybody),
        Some("verify-full") => (SslMode::Require, Trust::System),
        Some(_) => {
            let problem = "its sslmode must be disable, prefer, require or verify-full".to_owned();
            return Err(InvalidConfig::DatabaseUrl { problem });
        }
    };
    let asked = match (mode, file) {
        (SslMode::Disable, _) | (_, None) => Asked {
            mode,
            trust: unless_said,
        },
        // Whoever names an authority wants to know that it is the server.
        (_, Some(file)) => Asked {
            mode: SslMode::Require,
            trust: Trust::File(PathBuf::from(file)),
        },
    };
    Ok((rest, asked))
}

/// A parameter's value, and the URL without the parameter.
fn take(url: &str, name: &str) -> (String, Option<String>) {
    let is_url = ["postgres://", "postgresql://"]
        .iter()
        .any(|prefix| url.starts_with(prefix));
    let (separator, begin) = if is_url {
        // A password may hold any sign but `@`.
        let credentials = url.find('@').unwrap_or(0);
        let rest = url.get(credentials..).unwrap_or_default();
        match rest.find('?') {
            Some(at) => ('&', credentials + at + 1),
            None => return (url.to_owned(), None),
        }
    } else {
        (' ', 0)
    };
    let (head, parameters) = url.split_at_checked(begin).unwrap_or((url, ""));
    let mut value = None;
    let kept: Vec<_> = parameters
        .split(separator)
        .filter(|parameter| match parameter.split_once('=') {
            Some((key, said)) if key == name => {
                value = Some(if is_url { decoded(said) } else { said.to_owned() });
                false
            }
            _ => true,
        })
        .collect();
    let separator = separator.to_string();
    (format!("{head}{}", kept.join(&separator)), value)
}

/// A value of a URL with its `%XX` read. What is no such pair stands for itself.
fn decoded(value: &str) -> String {
    let mut parts = value.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let pair = part.split_at_checked(2);
        let byte = pair.and_then(|(pair, _)| u8::from_str_radix(pair, 16).ok());
        match (byte, pair) {
            (Some(byte), Some((_, rest))) => {
                bytes.push(byte);
                bytes.extend_from_slice(rest.as_bytes());
            }
            _ => {
                bytes.push(b'%');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Asked {
    /// Makes handshakes as asked.
    pub(super) fn handshakes(&self) -> Result<Handshakes, InvalidConfig> {
        let says = |problem: String| InvalidConfig::DatabaseTls { problem };
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| says(error.to_string()))?;
        let builder = match &self.trust {
            Trust::Anybody => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Anybody { provider })),
            Trust::System => builder.with_root_certificates(of_system().map_err(says)?),
            Trust::File(file) => builder.with_root_certificates(of_file(file).map_err(says)?),
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Handshakes {
            connector: TlsConnector::from(Arc::new(config)),
        })
    }
}

fn of_system() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (taken, _) = roots.add_parsable_certificates(found.certs);
    match taken {
        0 => Err("the system has no certificate authorities: name a file with sslrootcert".to_owned()),
        _ => Ok(roots),
    }
}

fn of_file(file: &Path) -> Result<RootCertStore, String> {
    let says = |what: &dyn std::fmt::Display| format!("sslrootcert {}: {what}", file.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| says(&error))? {
        let certificate = certificate.map_err(|error| says(&error))?;
        roots.add(certificate).map_err(|error| says(&error))?;
    }
    match roots.is_empty() {
        true => Err(says(&"it holds no certificate in PEM")),
        false => Ok(roots),
    }
}

/// Makes handshakes.
#[derive(Clone)]
pub(super) struct Handshakes {
    connector: TlsConnector,
}

/// One handshake with a server.
pub(super) struct Handshake {
    connector: TlsConnector,
    /// A local socket has no name, and is asked for none: there is no handshake then.
    name: Result<ServerName<'static>, InvalidDnsNameError>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Handshakes {
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Infallible> {
        Ok(Handshake {
            connector: self.connector.clone(),
            name: ServerName::try_from(host.to_owned()),
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = self.name.map_err(io::Error::other)?;
            self.connector.connect(name, stream).await.map(Encrypted)
        })
    }
}

/// An encrypted connection.
#[derive(Debug)]
pub(super) struct Encrypted<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Believes every certificate: whoever listens in reads nothing, whoever stands between reads all. Asked for by `require`
/// without an authority, as with other clients of PostgreSQL.
#[derive(Debug)]
struct Anybody {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(url: &str) -> (String, Asked) {
        take_asked(url).unwrap()
    }

    #[test]
    fn what_a_url_says_of_tls_is_taken_out_of_it() {
        let system = Asked {
            mode: SslMode::Require,
            trust: Trust::System,
        };
        let of_file = Asked {
            mode: SslMode::Require,
            trust: Trust::File("/etc/a b/ca%.pem".into()),
        };
        let rest = "postgres://me:p?x@db:5/rewards?connect_timeout=3";
        let said = "postgres://me:p?x@db:5/rewards?sslmode=verify-full&connect_timeout=3";
        assert_eq!(asked(said), (rest.to_owned(), system.clone()));
        let said = format!("{rest}&sslrootcert=%2Fetc%2Fa%20b/ca%25.pem");
        assert_eq!(asked(&said), (rest.to_owned(), of_file.clone()));
        let said = format!("{rest}&sslrootcert=%2Fetc%2Fa%20b/ca%.pem&sslmode=require");
        assert_eq!(asked(&said), (rest.to_owned(), of_file));
        let rest = "host=db user=me password='a  b'";
        assert_eq!(
            asked(&format!("{rest} sslmode=verify-full")),
            (rest.to_owned(), system)
        );
        let plain = asked("host=db sslmode=disable sslrootcert=/ca.pem").1;
        assert_eq!((plain.mode, plain.trust), (SslMode::Disable, Trust::Anybody));
        let unsaid = asked("postgres://db/rewards").1;
        assert_eq!((unsaid.mode, unsaid.trust), (SslMode::Prefer, Trust::Anybody));
        let unknown = take_asked("postgres://me:hunter2@db/?sslmode=verify-ca");
        assert!(
            matches!(&unknown, Err(InvalidConfig::DatabaseUrl { problem }) if !problem.contains("hunter2")),
            "{unknown:?}"
        );
    }
}
