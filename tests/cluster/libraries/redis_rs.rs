//! redis-rs, by its commands and scripts.

use std::net::SocketAddr;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult, Script, cmd, pipe};
use tests::clock::SOON;

use super::{EXTEND, LONG, RELEASE, SHORT, eventually, key, millis};

/// As its addresses name them.
pub(super) const PROTOCOLS: [&str; 2] = ["resp2", "resp3"];

async fn connect(address: SocketAddr, protocol: &str) -> MultiplexedConnection {
    let client = Client::open(format!("redis://{address}/3?protocol={protocol}")).unwrap();
    // By itself it waits for half a second, and the machine may be busy with other tests.
    let patient = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(SOON))
        .set_response_timeout(Some(SOON));
    client
        .get_multiplexed_async_connection_with_config(&patient)
        .await
        .unwrap()
}

/// `SET NX PX`: whether it is taken.
async fn take(connection: &mut MultiplexedConnection, key: &str, owner: &str, ttl: i64) -> bool {
    let mut set = cmd("SET");
    set.arg(key).arg(owner).arg("NX").arg("PX").arg(ttl);
    let said: Option<String> = set.query_async(connection).await.unwrap();
    said.inspect(|said| assert_eq!(said, "OK")).is_some()
}

async fn run(
    connection: &mut MultiplexedConnection,
    text: &str,
    key: &str,
    args: &[&str],
) -> RedisResult<i64> {
    let script = Script::new(text);
    let mut call = script.prepare_invoke();
    call.key(key);
    for arg in args {
        call.arg(*arg);
    }
    call.invoke_async(connection).await
}

pub(super) async fn use_locks(address: SocketAddr, protocol: &str) {
    let mut one = connect(address, protocol).await;
    let mut other = connect(address, protocol).await;
    let (key, long) = (key(), millis(LONG));
    assert!(take(&mut one, &key, "one", long).await);
    assert!(!take(&mut other, &key, "other", long).await);
    let (held, token): (String, i64) = pipe()
        .get(&key)
        .cmd("LEASE.TOKEN")
        .arg(&key)
        .arg("one")
        .query_async(&mut one)
        .await
        .unwrap();
    assert_eq!(held, "one");
    assert!(token > 0);

    let longer = (2 * long).to_string();
    assert_eq!(run(&mut one, EXTEND, &key, &["one", &longer]).await, Ok(1));
    let left: i64 = cmd("PTTL").arg(&key).query_async(&mut one).await.unwrap();
    assert!(left > long, "{left}");
    assert_eq!(run(&mut other, EXTEND, &key, &["other", &longer]).await, Ok(0));
    assert_eq!(run(&mut other, RELEASE, &key, &["other"]).await, Ok(0));
    assert_eq!(run(&mut one, RELEASE, &key, &["one"]).await, Ok(1));

    // Taken for a moment, and lost: another one has it, and the late release takes nothing from it.
    assert!(take(&mut one, &key, "one", millis(SHORT)).await);
    eventually("it has run out", || {
        let (mut other, key) = (other.clone(), key.clone());
        async move { take(&mut other, &key, "other", long).await.then_some(()) }
    })
    .await;
    assert_eq!(run(&mut one, EXTEND, &key, &["one", &longer]).await, Ok(0));
    assert_eq!(run(&mut one, RELEASE, &key, &["one"]).await, Ok(0));
    let lost: Option<i64> = cmd("LEASE.TOKEN")
        .arg(&key)
        .arg("one")
        .query_async(&mut one)
        .await
        .unwrap();
    assert_eq!(lost, None);
    let next: i64 = cmd("LEASE.TOKEN")
        .arg(&key)
        .arg("other")
        .query_async(&mut one)
        .await
        .unwrap();
    assert!(next > token, "{next} after {token}");
    let released: i64 = cmd("DELEX")
        .arg(&key)
        .arg("IFEQ")
        .arg("other")
        .query_async(&mut other)
        .await
        .unwrap();
    assert_eq!(released, 1);
    let refused = run(&mut one, "return redis.error_reply('MINE not yours')", &key, &[])
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Some("MINE"));
}

/// A lock that is held while the leader dies.
pub(super) struct Held {
    connection: MultiplexedConnection,
    key: String,
    token: i64,
}

impl Held {
    pub(super) async fn take(address: SocketAddr) -> Self {
        let (mut connection, key) = (connect(address, "resp3").await, key());
        assert!(take(&mut connection, &key, "me", millis(LONG)).await);
        let token = cmd("LEASE.TOKEN")
            .arg(&key)
            .arg("me")
            .query_async(&mut connection)
            .await
            .unwrap();
        Self {
            connection,
            key,
            token,
        }
    }

    /// It is held still, under its token.
    pub(super) async fn goes_on(mut self) {
        let Self {
            connection,
            key,
            token,
        } = &mut self;
        assert!(!take(connection, key, "another", millis(LONG)).await);
        let now: i64 = cmd("LEASE.TOKEN")
            .arg(&*key)
            .arg("me")
            .query_async(connection)
            .await
            .unwrap();
        assert_eq!(now, *token);
        let longer = (2 * millis(LONG)).to_string();
        assert_eq!(run(connection, EXTEND, key, &["me", &longer]).await, Ok(1));
        assert_eq!(run(connection, RELEASE, key, &["me"]).await, Ok(1));
        assert!(take(connection, key, "another", millis(LONG)).await);
    }
}
