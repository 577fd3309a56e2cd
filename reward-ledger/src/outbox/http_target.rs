//! An outside server over HTTP.
//!
//! | request | answer | means |
//! |---|---|---|
//! | `POST url` with the delivery as JSON, `Idempotency-Key`, and `Fence-Token` for a grant under a lease | 2xx | done |
//! | | 429, or no connection | not done now |
//! | | any other 4xx but 408, 409, 425 | never done |
//! | | anything else, or no answer | unknown |
//! | `GET url/KEY` | 200 | done |
//! | | 404 | not done |
//! | | anything else, or no answer | unknown |

use std::fmt;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, Response, StatusCode, Url, redirect};
use serde_json::json;

use super::decide::{Answer, Status};
use super::target::{Target, TargetFuture};
use crate::error::InvalidConfig;
use crate::types::{Authority, Delivery, Note};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const FENCE_TOKEN: HeaderName = HeaderName::from_static("fence-token");
/// Bytes of an answer that are read at the most: the connection is used again if that was all, and thrown away if not.
const ANSWER_BYTES_MAX: usize = 16 * 1_024;
/// A connection that cannot be made in this time was surely not used.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Idle connections that are kept: as many as there are usually requests side by side.
const IDLE_CONNECTIONS_MAX: usize = 256;

/// An outside server over HTTP or HTTPS.
pub struct HttpTarget {
    client: Client,
    url: Url,
}

/// Without the rest of the URL: it may hold a password.
impl fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host_str();
        f.debug_struct("HttpTarget")
            .field("host", &host)
            .finish_non_exhaustive()
    }
}

/// Builds an [`HttpTarget`].
#[must_use = "a builder makes nothing until `build`"]
pub struct HttpTargetBuilder {
    url: String,
    bearer: Option<String>,
    roots: Option<Vec<u8>>,
}

/// Without the URL and the token: both may be secrets.
impl fmt::Debug for HttpTargetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTargetBuilder").finish_non_exhaustive()
    }
}

impl HttpTargetBuilder {
    /// Shows this token as `Authorization: Bearer`.
    pub fn bearer_token(mut self, token: impl Into<String>) -> Self {
        self.bearer = Some(token.into());
        self
    }

    /// Trusts these certificate authorities (PEM, one or several) besides those of the system.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
        self
    }

    /// The target.
    ///
    /// # Errors
    /// [`InvalidConfig::Target`] where the URL, the token or the certificate is not valid.
    pub fn build(self) -> Result<HttpTarget, InvalidConfig> {
        let says = |problem: String| InvalidConfig::Target { problem };
        // The URL is not shown: it may hold a password.
        let url = Url::parse(&self.url).map_err(|error| says(format!("the target's URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.cannot_be_a_base() {
            return Err(says(
                "the target's URL: http://.. or https://.. is needed".to_owned(),
            ));
        }
        // Another part of the process may have chosen one already; then that one is used.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        let mut headers = HeaderMap::new();
        if let Some(token) = &self.bearer {
            let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| says("the bearer token holds characters that no header may".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(reqwest::header::AUTHORIZATION, value);
        }
        let mut client = Client::builder()
            .default_headers(headers)
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX);
        let roots = match &self.roots {
            Some(pem) => read_roots(pem).map_err(says)?,
            None => Vec::new(),
        };
        client = match url.scheme() {
            "https" => client.tls_certs_merge(roots),
            // Nobody is to be vouched for; a machine without any authorities is no trouble.
            _ => client.tls_certs_only(roots),
        };
        let client = client
            .build()
            .map_err(|error| says(note(&error).as_str().to_owned()))?;
        Ok(HttpTarget { client, url })
    }
}

fn read_roots(pem: &[u8]) -> Result<Vec<Certificate>, String> {
    let roots = Certificate::from_pem_bundle(pem).map_err(|error| note(&error).as_str().to_owned())?;
    match roots.is_empty() {
        true => Err("the authorities of the target: no certificate in PEM is there".to_owned()),
        false => Ok(roots),
    }
}

impl HttpTarget {
    /// The server at `url`, which deliveries are posted to.
    pub fn builder(url: impl Into<String>) -> HttpTargetBuilder {
        HttpTargetBuilder {
            url: url.into(),
            bearer: None,
            roots: None,
        }
    }

    async fn post(&self, delivery: &Delivery) -> Answer {
        let key = delivery.idempotency_key();
        let Ok(key) = HeaderValue::try_from(key.as_bytes()) else {
            return Answer::Refused("its key is no header value".into());
        };
        let mut request = self
            .client
            .post(self.url.clone())
            .header(IDEMPOTENCY_KEY, key)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body(delivery));
        // A reversal is the ledger's own: the token of the claim that it takes back vouches for nobody any more.
        if let (None, Some(token)) = (&delivery.reversal, delivery.receipt.token()) {
            request = request.header(FENCE_TOKEN, token.get());
        }
        match request.send().await {
            Ok(response) => answer_of(response).await,
            Err(error) if error.is_connect() || error.is_builder() => Answer::Busy(note(&error)),
            Err(error) => Answer::Unknown(note(&error)),
        }
    }

    async fn get(&self, delivery: &Delivery) -> Status {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push(&delivery.idempotency_key());
        }
        let response = match self.client.get(url).send().await {
            Ok(response) => response,
            Err(error) => return Status::Unknown(note(&error)),
        };
        let status = response.status();
        let text = read(response).await;
        match status {
            StatusCode::OK => Status::Done,
            StatusCode::NOT_FOUND => Status::NotDone,
            _ => Status::Unknown(Note::new(format!("status {status}: {text}"))),
        }
    }
}

impl Target for HttpTarget {
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> TargetFuture<'a, Answer> {
        Box::pin(self.post(delivery))
    }

    fn status<'a>(&'a self, delivery: &'a Delivery) -> TargetFuture<'a, Status> {
        Box::pin(self.get(delivery))
    }
}

/// The delivery as JSON; numbers of 64 bits as text.
fn body(delivery: &Delivery) -> String {
    let receipt = &delivery.receipt;
    let kind = if delivery.reversal.is_some() {
        "reverse"
    } else {
        "grant"
    };
    let resource = match receipt.authority() {
        Authority::Fenced(fence) => Some(String::from_utf8_lossy(fence.resource.as_bytes()).into_owned()),
        Authority::Unfenced => None,
    };
    json!({
        "kind": kind,
        "delivery_id": delivery.id.to_string(),
        "claim_id": receipt.claim_id().to_string(),
        "player_id": receipt.player().to_string(),
        "reward_event_id": receipt.event().as_str(),
        "item": receipt.item().as_str(),
        "amount": receipt.amount().to_string(),
        "resource": resource,
        "fence_token": receipt.token().map(|token| token.get().to_string()),
        "reason": delivery.reversal.as_ref().map(|reversal| reversal.reason.as_str().to_owned()),
    })
    .to_string()
}

async fn answer_of(response: Response) -> Answer {
    let status = response.status();
    let text = read(response).await;
    let note = || Note::new(format!("status {status}: {text}"));
    match status {
        status if status.is_success() => Answer::Done,
        StatusCode::TOO_MANY_REQUESTS => Answer::Busy(note()),
        // The same key is under way, or the request was not read whole: an earlier copy may be at work.
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_EARLY => Answer::Unknown(note()),
        status if status.is_client_error() => Answer::Refused(note()),
        _ => Answer::Unknown(note()),
    }
}

/// The start of an answer, in words. Reading it to its end lets the connection be used again.
async fn read(mut response: Response) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < ANSWER_BYTES_MAX {
        match response.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) | Err(_) => break,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An error with its causes: reqwest says the most in the last one.
fn note(error: &dyn std::error::Error) -> Note {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    Note::new(text)
}
