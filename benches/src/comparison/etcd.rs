//! A caller of etcd over gRPC, as its own clients do it: a lease, and a key that is put with it if nobody has it.
//!
//! Whoever wants a name in turn asks etcd's lock service, which queues by create revision. A renewal is a keep-alive
//! on a stream that stays open. Each caller has a connection of its own, as with the others.

use std::net::SocketAddr;

use super::grpc::{Channel, Stream};
use super::protobuf::{Fields, Message};
use super::work::{Caller, Held, TTL_MS};
use crate::Error;

const GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
const REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
const TXN: &str = "/etcdserverpb.KV/Txn";
const RANGE: &str = "/etcdserverpb.KV/Range";
const STATUS: &str = "/etcdserverpb.Maintenance/Status";
const LOCK: &str = "/v3lockpb.Lock/Lock";
const UNLOCK: &str = "/v3lockpb.Lock/Unlock";

/// `Compare.CREATE`, `Compare.EQUAL`.
const CREATE: i64 = 1;
const EQUAL: i64 = 0;

/// One caller.
#[derive(Debug)]
pub struct EtcdCaller {
    channel: Channel,
    owner: String,
    keeping: Option<Stream>,
    session: Option<i64>,
}

/// The member at this address leads.
///
/// # Errors
/// Nobody is there, or it refuses.
pub async fn leads(address: SocketAddr) -> Result<bool, Error> {
    let status = Channel::open(address)
        .await?
        .call(STATUS, &Message::default())
        .await?;
    let member = Fields::read(status.bytes(1))?.number(2);
    Ok(member != 0 && status.number(4) == member)
}

impl EtcdCaller {
    /// Connects.
    ///
    /// # Errors
    /// Nobody is there.
    pub async fn open(address: SocketAddr, number: usize) -> Result<Self, Error> {
        Ok(Self {
            channel: Channel::open(address).await?,
            owner: format!("owner:{number:08}"),
            keeping: None,
            session: None,
        })
    }

    async fn grant(&mut self) -> Result<i64, Error> {
        let seconds = i64::try_from(TTL_MS / 1_000)?;
        let granted = self
            .channel
            .call(GRANT, &Message::default().number(1, seconds))
            .await?;
        match granted.number(2) {
            0 => Err("a lease without an id".into()),
            id => Ok(id),
        }
    }
}

fn lease_of(held: &Held) -> i64 {
    i64::from_ne_bytes(held.number.to_ne_bytes())
}

/// Put `name` with a lease if nobody has created it.
fn put_if_absent(name: &str, owner: &str, lease: i64) -> Message {
    let absent = Message::default()
        .number(1, EQUAL)
        .number(2, CREATE)
        .bytes(3, name.as_bytes())
        .number(5, 0);
    let put = Message::default()
        .bytes(1, name.as_bytes())
        .bytes(2, owner.as_bytes())
        .number(3, lease);
    Message::default()
        .message(1, &absent)
        .message(2, &Message::default().message(2, &put))
}

impl Caller for EtcdCaller {
    async fn set(&mut self, _: String) -> Result<(), Error> {
        Err("etcd has no SET".into())
    }

    async fn acquire(&mut self, name: String) -> Result<Held, Error> {
        let lease = self.grant().await?;
        let put = put_if_absent(&name, &self.owner, lease);
        if self.channel.call(TXN, &put).await?.number(2) != 1 {
            return Err(format!("{name} was there").into());
        }
        let number = u64::from_ne_bytes(lease.to_ne_bytes());
        Ok(Held { name, number })
    }

    async fn release(&mut self, held: Held) -> Result<(), Error> {
        // The key goes with its lease.
        let lease = Message::default().number(1, lease_of(&held));
        self.channel.call(REVOKE, &lease).await?;
        Ok(())
    }

    async fn renew(&mut self, held: &Held) -> Result<(), Error> {
        let lease = Message::default().number(1, lease_of(held));
        match &mut self.keeping {
            Some(stream) => stream.send(&lease)?,
            None => self.keeping = Some(self.channel.stream(KEEP_ALIVE, &lease).await?),
        }
        let Some(stream) = &mut self.keeping else {
            return Err("no stream".into());
        };
        let kept = stream.receive().await?;
        if kept.number(2) == lease_of(held) && kept.number(3) > 0 {
            Ok(())
        } else {
            Err(format!("not renewed: {kept:?}").into())
        }
    }

    async fn look(&mut self, held: &Held) -> Result<(), Error> {
        let range = Message::default().bytes(1, held.name.as_bytes());
        let found = self.channel.call(RANGE, &range).await?;
        let owner = Fields::read(found.bytes(2))?.bytes(5);
        if owner == self.owner.as_bytes() {
            Ok(())
        } else {
            Err(format!("held by {owner:?}").into())
        }
    }

    async fn acquire_in_turn(&mut self, name: String) -> Result<Held, Error> {
        let session = match self.session {
            Some(session) => session,
            None => {
                let session = self.grant().await?;
                *self.session.insert(session)
            }
        };
        let lock = Message::default().bytes(1, name.as_bytes()).number(2, session);
        let key = self.channel.call(LOCK, &lock).await?.bytes(2);
        let name = String::from_utf8(key.to_vec())?;
        Ok(Held { name, number: 0 })
    }

    async fn release_in_turn(&mut self, held: Held) -> Result<(), Error> {
        let key = Message::default().bytes(1, held.name.as_bytes());
        self.channel.call(UNLOCK, &key).await?;
        Ok(())
    }
}
