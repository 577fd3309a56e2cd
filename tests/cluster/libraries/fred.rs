//! fred, by its commands and scripts.

use std::net::SocketAddr;

use fred::prelude::*;
use fred::types::scripts::Script;
use fred::types::{ClusterHash, CustomCommand, RespVersion};

use super::{EXTEND, LONG, RELEASE, SHORT, eventually, key, millis};

pub(super) const VERSIONS: [RespVersion; 2] = [RespVersion::RESP2, RespVersion::RESP3];

async fn connect(address: SocketAddr, version: RespVersion) -> Client {
    let mut config = Config::from_url(&format!("redis://{address}/5")).unwrap();
    config.version = version;
    let client = Builder::from_config(config).build().unwrap();
    client.init().await.unwrap();
    client
}

/// `SET NX PX`: whether it is taken.
async fn take(client: &Client, key: &str, owner: &str, ttl: i64) -> bool {
    let set = client.set(key, owner, Some(Expiration::PX(ttl)), Some(SetOptions::NX), false);
    let said: Option<String> = set.await.unwrap();
    said.inspect(|said| assert_eq!(said, "OK")).is_some()
}

async fn token(client: &Client, key: &str, owner: &str) -> Option<i64> {
    let command = CustomCommand::new_static("LEASE.TOKEN", ClusterHash::FirstKey, false);
    client.custom(command, vec![key, owner]).await.unwrap()
}

async fn run(client: &Client, text: &str, key: &str, args: Vec<String>) -> i64 {
    let script = Script::from_lua(text);
    script.evalsha_with_reload(client, vec![key], args).await.unwrap()
}

pub(super) async fn use_locks(address: SocketAddr, version: RespVersion) {
    let one = connect(address, version.clone()).await;
    let other = connect(address, version).await;
    let (key, long) = (key(), millis(LONG));
    assert!(take(&one, &key, "one", long).await);
    assert!(!take(&other, &key, "other", long).await);
    let first = token(&one, &key, "one").await.unwrap();

    let longer = (2 * long).to_string();
    let extend = |owner: &str| vec![owner.to_owned(), longer.clone()];
    assert_eq!(run(&one, EXTEND, &key, extend("one")).await, 1);
    let left: i64 = one.pttl(&key).await.unwrap();
    assert!(left > long, "{left}");
    assert_eq!(run(&other, EXTEND, &key, extend("other")).await, 0);
    assert_eq!(run(&other, RELEASE, &key, vec!["other".to_owned()]).await, 0);
    assert_eq!(run(&one, RELEASE, &key, vec!["one".to_owned()]).await, 1);

    assert!(take(&one, &key, "one", millis(SHORT)).await);
    eventually("it has run out", || async {
        take(&other, &key, "other", long).await.then_some(())
    })
    .await;
    assert_eq!(run(&one, EXTEND, &key, extend("one")).await, 0);
    assert_eq!(run(&one, RELEASE, &key, vec!["one".to_owned()]).await, 0);
    assert_eq!(token(&one, &key, "one").await, None);
    assert!(token(&one, &key, "other").await.unwrap() > first);
    let taken_away: i64 = other.del(&key).await.unwrap();
    assert_eq!(taken_away, 1);
    one.quit().await.unwrap();
    other.quit().await.unwrap();
}

/// A lock that is held while the leader dies.
pub(super) struct Held {
    client: Client,
    key: String,
    token: i64,
}

impl Held {
    pub(super) async fn take(address: SocketAddr) -> Self {
        let (client, key) = (connect(address, RespVersion::RESP3).await, key());
        assert!(take(&client, &key, "me", millis(LONG)).await);
        let token = token(&client, &key, "me").await.unwrap();
        Self { client, key, token }
    }

    /// It is held still, under its token.
    pub(super) async fn goes_on(self) {
        let Self {
            client,
            key,
            token: first,
        } = self;
        assert!(!take(&client, &key, "another", millis(LONG)).await);
        assert_eq!(token(&client, &key, "me").await, Some(first));
        let longer = (2 * millis(LONG)).to_string();
        assert_eq!(run(&client, EXTEND, &key, vec!["me".to_owned(), longer]).await, 1);
        assert_eq!(run(&client, RELEASE, &key, vec!["me".to_owned()]).await, 1);
        assert!(take(&client, &key, "another", millis(LONG)).await);
        client.quit().await.unwrap();
    }
}
