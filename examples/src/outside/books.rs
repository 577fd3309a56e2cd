use std::collections::BTreeMap;

use serde_json::Value;

/// What an outside server has done, and what it remembers of it.
#[derive(Debug, Default)]
pub struct Books {
    /// Each key with the body it came with first, and the number of its effect.
    keys: BTreeMap<String, (Value, u64)>,
    effects: Vec<String>,
    highest: BTreeMap<String, u64>,
}

/// Whether keys are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// They are.
    Good,
    /// They are not: as after the deduplication window.
    Lost,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// It is done now, as this number.
    Now(u64),
    /// It was done before, as this number.
    Before(u64),
    /// The key was used for something else.
    OtherBody,
    /// The token is stale.
    Stale {
        /// The highest that was seen.
        highest: u64,
    },
}

impl Books {
    /// Does the work of `key` once. A key that is known is answered before its token is looked at: its work is done, and
    /// saying so harms nobody. Without a fence, no token is looked at.
    pub fn work(&mut self, key: &str, body: Value, fence: Option<(String, u64)>, memory: Memory) -> Done {
        if let Some((first, number)) = self.keys.get(key)
            && memory == Memory::Good
        {
            return if *first == body {
                Done::Before(*number)
            } else {
                Done::OtherBody
            };
        }
        if let Some((resource, token)) = fence {
            let highest = self.highest.entry(resource).or_insert(0);
            if token < *highest {
                return Done::Stale { highest: *highest };
            }
            *highest = token;
        }
        self.effects.push(key.to_owned());
        let number = self.effects.len() as u64;
        self.keys.insert(key.to_owned(), (body, number));
        Done::Now(number)
    }

    /// The number of a key's effect.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        self.keys.get(key).map(|(_, number)| *number)
    }

    /// The keys of all effects, in their order.
    #[must_use]
    pub fn effects(&self) -> &[String] {
        &self.effects
    }
}
