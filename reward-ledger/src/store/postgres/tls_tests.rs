//! TLS to a server of the tests' own, with an authority of the tests' own.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use super::server::{PostgresServer, connect};
use super::tests::gold;
use super::{OpenPostgresError, PostgresConfig, PostgresStore};
use crate::error::InvalidConfig;
use crate::ledger::Ledger;

/// An authority of the tests' own.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server whose certificate is for `name`, and a directory with its authority's as `ca.pem` and a foreign one's as
/// `other.pem`.
async fn server_of(name: &str) -> (PostgresServer, TempDir) {
    let authority = authority();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("ca.pem"), authority.pem()).unwrap();
    std::fs::write(dir.path().join("other.pem"), self::authority().pem()).unwrap();
    std::fs::write(dir.path().join("empty.pem"), "").unwrap();
    let server = PostgresServer::start_with_tls(&certificate.pem(), &key.serialize_pem()).await;
    (server.unwrap(), dir)
}

fn url(server: &PostgresServer, parameters: &str) -> String {
    let port = server.port().unwrap();
    format!("postgres://postgres@127.0.0.1:{port}/postgres?{parameters}")
}

async fn open(server: &PostgresServer, parameters: &str) -> Result<PostgresStore, OpenPostgresError> {
    PostgresStore::open(url(server, parameters)).await
}

/// Whether each session of a ledger is encrypted, as the server sees it.
async fn encrypted(server: &PostgresServer) -> Vec<bool> {
    let session = connect(&server.url("postgres")).await.unwrap();
    let rows = session
        .query(
            "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'reward-ledger'",
            &[],
        )
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_ledger_is_kept_over_an_encrypted_connection() {
    let (server, dir) = server_of("127.0.0.1").await;
    let file = dir.path().join("ca.pem");
    let full = format!("sslmode=verify-full&sslrootcert={}", file.display());
    for (token, parameters, wanted) in [
        (1, full.as_str(), true),
        (2, "sslmode=require", true),
        (3, "", true),
        (4, "sslmode=disable", false),
    ] {
        let ledger = Ledger::open(open(&server, parameters).await.unwrap());
        let claim = gold(token, 42, &format!("quest-{token}")).build().unwrap();
        assert!(ledger.claim(claim).await.unwrap().is_accepted());
        let sessions = encrypted(&server).await;
        assert!(!sessions.is_empty(), "{parameters}");
        assert!(
            sessions.iter().all(|encrypted| *encrypted == wanted),
            "{parameters}: {sessions:?}"
        );
        assert!(ledger.audit().await.unwrap().is_clean());
        ledger.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_not_the_one_that_was_meant_is_refused() {
    let (server, dir) = server_of("db.example").await;
    for file in ["ca.pem", "other.pem"] {
        let file = dir.path().join(file);
        let parameters = format!("sslmode=verify-full&sslrootcert={}", file.display());
        let refused = open(&server, &parameters).await;
        let Err(OpenPostgresError::Connect { source }) = refused else {
            panic!("{parameters}: {refused:?}");
        };
        let mut words = source.to_string();
        let mut cause = std::error::Error::source(&source);
        while let Some(error) = cause {
            words.push_str(&format!(": {error}"));
            cause = error.source();
        }
        assert!(words.contains("certificate"), "{words}");
    }
    assert!(open(&server, "sslmode=require").await.is_ok());
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_it_is_asked_for() {
    let server = PostgresServer::shared().await;
    let url = format!("{} sslmode=require", server.database().await);
    let refused = PostgresStore::open(url).await;
    assert!(
        matches!(refused, Err(OpenPostgresError::Connect { .. })),
        "{refused:?}"
    );
}

#[test]
fn authorities_that_cannot_be_read_are_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("empty.pem"), "").unwrap();
    for file in ["empty.pem", "missing.pem"] {
        let file = dir.path().join(file);
        let url = format!("postgres://db/rewards?sslrootcert={}", file.display());
        let refused = PostgresConfig::builder(url).build();
        let Err(InvalidConfig::DatabaseTls { problem }) = &refused else {
            panic!("{refused:?}");
        };
        assert!(problem.contains(&file.display().to_string()), "{problem}");
    }
}
