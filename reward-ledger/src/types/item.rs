use std::fmt;
use std::sync::Arc;

use super::{InvalidField, check_text};
use crate::limits::ITEM_BYTES_MAX;

/// What is granted, such as `gold`. May be empty, where the event says it all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item(Arc<str>);

impl Item {
    /// An item from its name.
    ///
    /// # Errors
    /// [`InvalidField::Length`] above [`ITEM_BYTES_MAX`] bytes, [`InvalidField::Character`] for control characters.
    pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidField> {
        let name = name.as_ref();
        check_text("item", 0, ITEM_BYTES_MAX, name)?;
        Ok(Self(Arc::from(name)))
    }

    /// No name.
    #[must_use]
    pub fn none() -> Self {
        Self(Arc::from(""))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Item {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
