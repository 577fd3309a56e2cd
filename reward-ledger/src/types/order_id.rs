use std::fmt;
use std::sync::Arc;

use super::{InvalidField, check_text};
use crate::limits::ORDER_ID_BYTES_MAX;

/// What is paid for once: an order, an invoice, a subscription's month.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderId(Arc<str>);

impl OrderId {
    /// An order id from its text.
    ///
    /// # Errors
    /// [`InvalidField::Length`] outside 1 to [`ORDER_ID_BYTES_MAX`] bytes, [`InvalidField::Character`] for control
    /// characters.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidField> {
        let text = text.as_ref();
        check_text("order id", 1, ORDER_ID_BYTES_MAX, text)?;
        Ok(Self(Arc::from(text)))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
