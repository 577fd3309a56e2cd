//! What one connection remembers between its requests.

use std::sync::Arc;

use lease_core::Database;
use lease_core::machine::Watched;
use lease_core::wire::{Access, ErrorWord, Protocol, Reply};

use super::auth::Password;
use super::pubsub::Subscriber;
use super::transaction::Transaction;
use lease_core::redis::read_integer;

/// Longest name that `CLIENT SETNAME` takes, in bytes.
const CLIENT_NAME_BYTES_MAX: usize = 256;

/// One connection's state.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) protocol: Protocol,
    pub(super) database: Database,
    pub(super) databases: u8,
    pub(super) access: Access,
    pub(super) name: Vec<u8>,
    /// Begun by `MULTI`.
    pub(super) transaction: Option<Transaction>,
    /// By `WATCH`.
    pub(super) watched: Vec<Watched>,
    /// While it listens to anything.
    pub(super) subscriber: Option<Subscriber>,
    password: Option<Arc<Password>>,
}

/// A session before a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    database: Database,
    name: Vec<u8>,
}

impl Session {
    pub(super) fn new(id: u64, databases: u8, password: Option<Arc<Password>>) -> Self {
        let access = access_at_start(password.as_deref());
        Self {
            id,
            protocol: Protocol::default(),
            database: Database::ZERO,
            databases,
            access,
            name: Vec::new(),
            transaction: None,
            watched: Vec::new(),
            subscriber: None,
            password,
        }
    }

    /// Back to how a connection starts, as `RESET` does.
    pub(super) fn reset(&mut self) {
        self.protocol = Protocol::default();
        self.database = Database::ZERO;
        self.access = access_at_start(self.password.as_deref());
        self.name.clear();
        self.transaction = None;
        self.watched.clear();
        self.subscriber = None;
    }

    /// What commands within a transaction may change.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            database: self.database,
            name: self.name.clone(),
        }
    }

    /// Back to how it was: the transaction was not done.
    pub(super) fn restore(&mut self, mark: Mark) {
        self.database = mark.database;
        self.name = mark.name;
    }

    /// How many channels and patterns it listens to.
    pub(super) fn subscriptions(&self) -> usize {
        self.subscriber.as_ref().map_or(0, Subscriber::count)
    }

    /// Shows a password.
    ///
    /// # Errors
    /// The reply that refuses it.
    pub(super) fn authenticate(&mut self, user: Option<&[u8]>, shown: &[u8]) -> Result<(), Reply> {
        let Some(password) = &self.password else {
            // Redis has a default user that any password fits; naming it is fine, a bare password is a mistake.
            return match user {
                Some(b"default") => Ok(()),
                Some(_) => Err(wrong_password()),
                None => Err(Reply::error(
                    ErrorWord::Err,
                    "AUTH <password> called without any password configured for the default user. Are you sure your \
                     configuration is correct?",
                )),
            };
        };
        if user.is_none_or(|user| user == b"default") && password.is(shown) {
            self.access = Access::Authenticated;
            Ok(())
        } else {
            Err(wrong_password())
        }
    }

    /// Goes over to another database.
    ///
    /// # Errors
    /// The reply that refuses it.
    pub(super) fn select(&mut self, number: &[u8]) -> Result<(), Reply> {
        let number = read_integer(number)?;
        if i32::try_from(number).is_err() {
            let (min, max) = (i32::MIN, i32::MAX);
            let text = format!("value is out of range, value must between {min} and {max}");
            return Err(Reply::error(ErrorWord::Err, text));
        }
        let out_of_range = || Reply::error(ErrorWord::Err, "DB index is out of range");
        let number = u64::try_from(number).map_err(|_| out_of_range())?;
        if number >= u64::from(self.databases) {
            return Err(out_of_range());
        }
        self.database = Database::new(number).map_err(|_| out_of_range())?;
        Ok(())
    }

    /// Takes a name for this connection.
    ///
    /// # Errors
    /// The reply that refuses it.
    pub(super) fn set_name(&mut self, name: &[u8]) -> Result<(), Reply> {
        if name.len() > CLIENT_NAME_BYTES_MAX || !name.iter().all(u8::is_ascii_graphic) {
            return Err(Reply::error(
                ErrorWord::Err,
                "Client names cannot contain spaces, newlines or special characters.",
            ));
        }
        self.name = name.to_vec();
        Ok(())
    }
}

const fn access_at_start(password: Option<&Password>) -> Access {
    if password.is_some() {
        Access::Unauthenticated
    } else {
        Access::Authenticated
    }
}

fn wrong_password() -> Reply {
    Reply::error(
        ErrorWord::WrongPass,
        "invalid username-password pair or user is disabled.",
    )
}
