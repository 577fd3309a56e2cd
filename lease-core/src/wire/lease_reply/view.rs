use super::AnswerError;
use super::fields::{Fields, write_remaining, write_token};
use crate::types::{FenceToken, LeaseName, Metadata, OwnerId};
use crate::wire::{LeaseVerb, ListCursor, Reply};

/// What `LEASE.GET` shows of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseView {
    /// Who holds it.
    pub owner: OwnerId,
    /// The token of the grant.
    pub token: FenceToken,
    /// Milliseconds left; `None` without a deadline.
    pub remaining_ms: Option<u64>,
    /// Milliseconds since the grant.
    pub held_for_ms: u64,
    /// How many stand in the queue.
    pub waiters: u64,
    /// What the holder wants others to see.
    pub metadata: Option<Metadata>,
}

/// The answer to `LEASE.GET`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetReply {
    /// The lease; `None` if nobody holds the name.
    pub lease: Option<LeaseView>,
}

impl GetReply {
    /// The answer as it is sent.
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        self.lease.as_ref().map_or(Reply::Nil, |lease| {
            Reply::Array(vec![
                Reply::bulk(lease.owner.as_bytes()),
                write_token(Some(lease.token)),
                write_remaining(lease.remaining_ms),
                Reply::count(lease.held_for_ms),
                Reply::count(lease.waiters),
                lease
                    .metadata
                    .as_ref()
                    .map_or(Reply::Nil, |metadata| Reply::bulk(metadata.as_bytes())),
            ])
        })
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`AnswerError`] if it is an error, or of another form. Nothing was applied: this only reads.
    pub fn from_reply(reply: Reply) -> Result<Self, AnswerError> {
        let Some(mut fields) = Fields::of_nullable(LeaseVerb::Get, reply)? else {
            return Ok(Self { lease: None });
        };
        let lease = LeaseView {
            owner: fields.owner()?,
            token: fields.token()?,
            remaining_ms: fields.remaining_ms()?,
            held_for_ms: fields.count()?,
            waiters: fields.count()?,
            metadata: match fields.bytes_or_nil()? {
                Some(bytes) => Some(Metadata::new(bytes).map_err(|_| fields.unexpected())?),
                None => None,
            },
        };
        Ok(Self { lease: Some(lease) })
    }
}

/// One lease of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntry {
    /// The name.
    pub name: LeaseName,
    /// Who holds it.
    pub owner: OwnerId,
    /// The token of the grant.
    pub token: FenceToken,
    /// Milliseconds left; `None` without a deadline.
    pub remaining_ms: Option<u64>,
    /// How many stand in the queue.
    pub waiters: u64,
}

/// The answer to `LEASE.LIST`: one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListReply {
    /// Where the next page begins; `None` after the last one.
    pub next: Option<ListCursor>,
    /// The leases of this page.
    pub leases: Vec<ListEntry>,
}

impl ListReply {
    /// The answer as it is sent.
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        let mut items = Vec::with_capacity(self.leases.len().saturating_add(1));
        items.push(Reply::Bulk(ListCursor::write(self.next.as_ref()).into()));
        items.extend(self.leases.iter().map(|lease| {
            Reply::Array(vec![
                Reply::bulk(lease.name.as_bytes()),
                Reply::bulk(lease.owner.as_bytes()),
                write_token(Some(lease.token)),
                write_remaining(lease.remaining_ms),
                Reply::count(lease.waiters),
            ])
        }));
        Reply::Array(items)
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`AnswerError`] if it is an error, or of another form. Nothing was applied: this only reads.
    pub fn from_reply(reply: Reply) -> Result<Self, AnswerError> {
        let mut fields = Fields::of(LeaseVerb::List, reply)?;
        let next = ListCursor::read(&fields.bytes()?).map_err(|_| fields.unexpected())?;
        let leases = fields.rest().map(read_entry).collect::<Result<_, _>>()?;
        Ok(Self { next, leases })
    }
}

fn read_entry(reply: Reply) -> Result<ListEntry, AnswerError> {
    let mut fields = Fields::of(LeaseVerb::List, reply)?;
    Ok(ListEntry {
        name: fields.name()?,
        owner: fields.owner()?,
        token: fields.token()?,
        remaining_ms: fields.remaining_ms()?,
        waiters: fields.count()?,
    })
}
