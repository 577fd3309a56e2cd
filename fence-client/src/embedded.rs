//! The store in the same process: no socket, no connection, the same answers.

use std::future::Future;
use std::pin::Pin;

use lease_core::Database;
use lease_store::LeaseStore;
use tokio::time::timeout;

use crate::call_error::CallError;
use crate::clock::Clock;
use crate::transport::{Answered, Call, Lane, Request, Transport};

/// A handle on the store.
#[derive(Debug)]
pub(crate) struct Embedded {
    store: LeaseStore,
    database: Database,
    clock: Clock,
}

impl Embedded {
    pub(crate) const fn new(store: LeaseStore, database: Database, clock: Clock) -> Self {
        Self {
            store,
            database,
            clock,
        }
    }
}

impl Transport for Embedded {
    fn call(&self, _: Lane, request: Request) -> Call<'_> {
        Box::pin(async move {
            let patience = request.patience;
            let sent = self.clock.now();
            let command = request.into_command().ok_or(CallError::Withdrawn)?;
            match timeout(patience, Box::pin(self.store.execute(self.database, command))).await {
                Ok(reply) => Ok(Answered { reply, sent }),
                Err(_) => Err(CallError::NoAnswer { patience }),
            }
        })
    }

    fn reach(&self) -> Pin<Box<dyn Future<Output = Result<(), CallError>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
