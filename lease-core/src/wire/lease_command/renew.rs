use std::borrow::Cow;

use super::arguments::{Arguments, decimal};
use crate::limits::RENEW_MANY_MAX;
use crate::types::{FenceToken, LeaseName, Ttl};
use crate::wire::CommandError;

/// `LEASE.RENEW name token [ttl-ms]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewCommand {
    /// The lease.
    pub name: LeaseName,
    /// The token of the grant to extend.
    pub token: FenceToken,
    /// From now on; `None` takes the last one given.
    pub ttl: Option<Ttl>,
}

impl RenewCommand {
    pub(super) fn read(arguments: &mut Arguments<'_>) -> Result<Self, CommandError> {
        let (name, token) = (arguments.name()?, arguments.token()?);
        let ttl = if arguments.left() > 0 {
            Some(arguments.ttl()?)
        } else {
            None
        };
        Ok(Self { name, token, ttl })
    }

    pub(super) fn write<'a>(&'a self, out: &mut Vec<Cow<'a, [u8]>>) {
        out.extend([self.name.as_bytes().into(), decimal(self.token.get())]);
        out.extend(self.ttl.map(|ttl| decimal(ttl.as_millis())));
    }
}

/// `LEASE.MRENEW name token [name token ...]`: each lease keeps its own last time to live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewManyCommand {
    /// The leases and the tokens of the grants to extend, 1 to [`RENEW_MANY_MAX`].
    pub leases: Vec<(LeaseName, FenceToken)>,
}

impl RenewManyCommand {
    pub(super) fn read(arguments: &mut Arguments<'_>) -> Result<Self, CommandError> {
        let pairs = arguments.left().div_ceil(2);
        if pairs == 0 {
            return Err(arguments.wrong_arity());
        }
        if pairs > RENEW_MANY_MAX {
            return Err(CommandError::TooManyRenewals);
        }
        let mut leases = Vec::with_capacity(pairs);
        while arguments.left() > 0 {
            leases.push((arguments.name()?, arguments.token()?));
        }
        Ok(Self { leases })
    }

    pub(super) fn write<'a>(&'a self, out: &mut Vec<Cow<'a, [u8]>>) {
        for (name, token) in &self.leases {
            out.extend([name.as_bytes().into(), decimal(token.get())]);
        }
    }
}
