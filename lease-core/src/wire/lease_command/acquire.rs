use std::borrow::Cow;

use super::arguments::{Arguments, decimal, set_once};
use crate::limits::WAIT_MS_MAX;
use crate::types::{LeaseName, Metadata, OwnerId, RequestId, Ttl};
use crate::wire::CommandError;

/// `LEASE.ACQUIRE name owner ttl-ms [WAIT ms] [REQ id] [META bytes]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcquireCommand {
    /// The lease.
    pub name: LeaseName,
    /// Who asks.
    pub owner: OwnerId,
    /// How long the lease lasts from its grant.
    pub ttl: Ttl,
    /// How long to stand in the queue while it is held, in milliseconds; 0 answers at once.
    pub wait_ms: u64,
    /// Makes a retry of this request get the same token.
    pub request: Option<RequestId>,
    /// What others shall see beside the lease.
    pub metadata: Option<Metadata>,
}

impl AcquireCommand {
    pub(super) fn read(arguments: &mut Arguments<'_>) -> Result<Self, CommandError> {
        let (name, owner, ttl) = (arguments.name()?, arguments.owner()?, arguments.ttl()?);
        let (mut wait_ms, mut request, mut metadata) = (None, None, None);
        while let Some(option) = arguments.option(&["WAIT", "REQ", "META"])? {
            let verb = arguments.verb();
            match option {
                "WAIT" => {
                    let millis = arguments.number("WAIT in milliseconds", 0, WAIT_MS_MAX)?;
                    set_once(&mut wait_ms, millis, verb, option)?;
                }
                "REQ" => set_once(&mut request, arguments.request_id()?, verb, option)?,
                _ => set_once(&mut metadata, arguments.metadata()?, verb, option)?,
            }
        }
        Ok(Self {
            name,
            owner,
            ttl,
            wait_ms: wait_ms.unwrap_or(0),
            request,
            metadata,
        })
    }

    pub(super) fn write<'a>(&'a self, out: &mut Vec<Cow<'a, [u8]>>) {
        out.push(self.name.as_bytes().into());
        out.push(self.owner.as_bytes().into());
        out.push(decimal(self.ttl.as_millis()));
        if self.wait_ms > 0 {
            out.extend([b"WAIT".as_slice().into(), decimal(self.wait_ms)]);
        }
        if let Some(request) = &self.request {
            out.extend([b"REQ".as_slice().into(), request.as_bytes().into()]);
        }
        if let Some(metadata) = &self.metadata {
            out.extend([b"META".as_slice().into(), metadata.as_bytes().into()]);
        }
    }
}
