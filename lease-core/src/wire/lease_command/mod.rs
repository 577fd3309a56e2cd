//! The `LEASE.*` requests as data: the client writes them, the server reads them.
//!
//! These are promises to clients. What the log holds is another type; the server converts by hand.

mod acquire;
mod arguments;
mod list;
mod renew;

use std::borrow::Cow;

use bytes::BytesMut;

pub use acquire::AcquireCommand;
pub use list::ListCommand;
pub use renew::{RenewCommand, RenewManyCommand};

use super::{CommandError, LeaseVerb, Request, encode_request};
use crate::limits::{HISTORY_COUNT_MAX, REASON_BYTES_MAX};
use crate::types::{FenceToken, InvalidValue, LeaseName, OwnerId, RequestId, SharedBytes};
use arguments::{Arguments, decimal, set_once};

/// One `LEASE.*` request whose values are all checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseCommand {
    /// `LEASE.ACQUIRE`
    Acquire(AcquireCommand),
    /// `LEASE.RENEW`
    Renew(RenewCommand),
    /// `LEASE.MRENEW`
    RenewMany(RenewManyCommand),
    /// `LEASE.RELEASE`
    Release {
        /// The lease.
        name: LeaseName,
        /// The token of the grant to end.
        token: FenceToken,
    },
    /// `LEASE.CANCEL`
    Cancel {
        /// The lease.
        name: LeaseName,
        /// The owner that the request named.
        owner: OwnerId,
        /// The request to give up.
        request: RequestId,
    },
    /// `LEASE.GET`
    Get {
        /// The lease.
        name: LeaseName,
    },
    /// `LEASE.LIST`
    List(ListCommand),
    /// `LEASE.TOKEN`
    Token {
        /// The lease.
        name: LeaseName,
        /// Who must hold it: the value that `SET` stored.
        owner: OwnerId,
    },
    /// `LEASE.FORCE`
    Force {
        /// The lease.
        name: LeaseName,
        /// Why, in the operator's words; empty if none are given. At most [`REASON_BYTES_MAX`] bytes.
        reason: SharedBytes,
    },
    /// `LEASE.HISTORY`
    History {
        /// The lease.
        name: LeaseName,
        /// Most events to answer, 1 to [`HISTORY_COUNT_MAX`]; `None` leaves it to the server.
        count: Option<u64>,
    },
    /// `LEASE.LEADER`
    Leader,
}

impl LeaseCommand {
    /// Reads the arguments of a request whose command is `verb`.
    ///
    /// # Errors
    /// [`CommandError`] if they do not say what to do. Nothing was applied.
    pub fn parse(verb: LeaseVerb, request: &Request) -> Result<Self, CommandError> {
        let mut arguments = Arguments::of(verb, request);
        let command = match verb {
            LeaseVerb::Acquire => Self::Acquire(AcquireCommand::read(&mut arguments)?),
            LeaseVerb::Renew => Self::Renew(RenewCommand::read(&mut arguments)?),
            LeaseVerb::RenewMany => Self::RenewMany(RenewManyCommand::read(&mut arguments)?),
            LeaseVerb::Release => Self::Release {
                name: arguments.name()?,
                token: arguments.token()?,
            },
            LeaseVerb::Cancel => Self::read_cancel(&mut arguments)?,
            LeaseVerb::Get => Self::Get {
                name: arguments.name()?,
            },
            LeaseVerb::List => Self::List(ListCommand::read(&mut arguments)?),
            LeaseVerb::Token => Self::Token {
                name: arguments.name()?,
                owner: arguments.owner()?,
            },
            LeaseVerb::Force => Self::read_force(&mut arguments)?,
            LeaseVerb::History => Self::read_history(&mut arguments)?,
            LeaseVerb::Leader => Self::Leader,
        };
        arguments.end()?;
        Ok(command)
    }

    /// The command's name.
    #[must_use]
    pub const fn verb(&self) -> LeaseVerb {
        match self {
            Self::Acquire(_) => LeaseVerb::Acquire,
            Self::Renew(_) => LeaseVerb::Renew,
            Self::RenewMany(_) => LeaseVerb::RenewMany,
            Self::Release { .. } => LeaseVerb::Release,
            Self::Cancel { .. } => LeaseVerb::Cancel,
            Self::Get { .. } => LeaseVerb::Get,
            Self::List(_) => LeaseVerb::List,
            Self::Token { .. } => LeaseVerb::Token,
            Self::Force { .. } => LeaseVerb::Force,
            Self::History { .. } => LeaseVerb::History,
            Self::Leader => LeaseVerb::Leader,
        }
    }

    /// The whole request as arguments, the command's name first.
    #[must_use]
    pub fn to_arguments(&self) -> Vec<Cow<'_, [u8]>> {
        let mut out = vec![Cow::Borrowed(self.verb().name().as_bytes())];
        match self {
            Self::Acquire(acquire) => acquire.write(&mut out),
            Self::Renew(renew) => renew.write(&mut out),
            Self::RenewMany(renewals) => renewals.write(&mut out),
            Self::Release { name, token } => out.extend([name.as_bytes().into(), decimal(token.get())]),
            Self::Cancel { name, owner, request } => out.extend([
                name.as_bytes().into(),
                owner.as_bytes().into(),
                b"REQ".as_slice().into(),
                request.as_bytes().into(),
            ]),
            Self::Get { name } => out.push(name.as_bytes().into()),
            Self::List(list) => list.write(&mut out),
            Self::Token { name, owner } => out.extend([name.as_bytes().into(), owner.as_bytes().into()]),
            Self::Force { name, reason } => {
                out.push(name.as_bytes().into());
                if !reason.is_empty() {
                    out.push(reason.as_slice().into());
                }
            }
            Self::History { name, count } => {
                out.push(name.as_bytes().into());
                if let Some(count) = count {
                    out.extend([b"COUNT".as_slice().into(), decimal(*count)]);
                }
            }
            Self::Leader => {}
        }
        out
    }

    /// Appends the request as it goes over the wire.
    pub fn encode(&self, out: &mut BytesMut) {
        encode_request(&self.to_arguments(), out);
    }

    fn read_cancel(arguments: &mut Arguments<'_>) -> Result<Self, CommandError> {
        let (name, owner) = (arguments.name()?, arguments.owner()?);
        let mut request = None;
        while let Some(option) = arguments.option(&["REQ"])? {
            set_once(&mut request, arguments.request_id()?, arguments.verb(), option)?;
        }
        let request = request.ok_or_else(|| arguments.wrong_arity())?;
        Ok(Self::Cancel { name, owner, request })
    }

    fn read_force(arguments: &mut Arguments<'_>) -> Result<Self, CommandError> {
        let name = arguments.name()?;
        let reason = arguments.next().unwrap_or_default();
        if reason.len() > REASON_BYTES_MAX {
            return Err(CommandError::Value {
                invalid: InvalidValue::Length {
                    what: "reason",
                    min: 0,
                    max: REASON_BYTES_MAX,
                    len: reason.len(),
                },
            });
        }
        Ok(Self::Force {
            name,
            reason: SharedBytes::from(reason),
        })
    }

    fn read_history(arguments: &mut Arguments<'_>) -> Result<Self, CommandError> {
        let name = arguments.name()?;
        let mut count = None;
        while let Some(option) = arguments.option(&["COUNT"])? {
            let value = arguments.number("COUNT", 1, HISTORY_COUNT_MAX)?;
            set_once(&mut count, value, arguments.verb(), option)?;
        }
        Ok(Self::History { name, count })
    }
}
