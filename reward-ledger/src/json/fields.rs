//! Reading an object field by field: what is missing, of another kind, out of its range or unknown is named.

use lease_core::{Fence, FenceToken, LeaseName};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::event_id::RewardEventId;
use crate::types::{
    Amount, AttemptId, Claim, ClaimId, InvalidClaim, Item, OrderId, PlayerId, Reason, UnixMillis,
};

/// A field that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub(crate) struct BadField {
    /// Its name; with its place, where it is in a list.
    pub(crate) field: String,
    /// What is wrong with it.
    pub(crate) problem: String,
}

impl BadField {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }

    fn of(field: &str, error: &dyn std::error::Error) -> Self {
        Self::new(field, error.to_string())
    }

    /// The same, in the object called `outer`.
    pub(crate) fn within(self, outer: &str) -> Self {
        Self {
            field: format!("{outer}.{}", self.field),
            problem: self.problem,
        }
    }
}

/// An object whose fields are taken out one by one.
#[derive(Debug)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    pub(crate) fn of(value: Value) -> Result<Self, BadField> {
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(BadField::new("body", "a JSON object is needed"))
            }
        }
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BadField> {
        let value = serde_json::from_slice(bytes).map_err(|error| BadField::of("body", &error))?;
        Self::of(value)
    }

    /// Whether all fields were taken; the first that was not is unknown.
    pub(crate) fn end(self) -> Result<(), BadField> {
        match self.0.keys().next() {
            Some(field) => Err(BadField::new(field, "this field is unknown")),
            None => Ok(()),
        }
    }

    /// A field that may be missing or null.
    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field).filter(|value| !value.is_null())
    }

    pub(crate) fn maybe_text(&mut self, field: &str) -> Result<Option<String>, BadField> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(BadField::new(
                field,
                "a text is needed; numbers of 64 bits are text, too",
            )),
        }
    }

    pub(crate) fn text(&mut self, field: &str) -> Result<String, BadField> {
        self.maybe_text(field)?
            .ok_or_else(|| BadField::new(field, "this field is missing"))
    }

    /// A switch that is off where it is missing.
    pub(crate) fn is_set(&mut self, field: &str) -> Result<bool, BadField> {
        match self.take(field) {
            None => Ok(false),
            Some(Value::Bool(set)) => Ok(set),
            Some(_) => Err(BadField::new(field, "true or false is needed")),
        }
    }

    pub(crate) fn list(&mut self, field: &str) -> Result<Vec<Value>, BadField> {
        match self.take(field) {
            Some(Value::Array(values)) => Ok(values),
            Some(_) => Err(BadField::new(field, "a list is needed")),
            None => Err(BadField::new(field, "this field is missing")),
        }
    }

    pub(crate) fn object(&mut self, field: &str) -> Result<Option<Self>, BadField> {
        self.take(field)
            .map(Self::of)
            .transpose()
            .map_err(|bad| bad.within(field))
    }

    pub(crate) fn signed(&mut self, field: &str) -> Result<i64, BadField> {
        read_signed(field, &self.text(field)?)
    }

    pub(crate) fn unsigned(&mut self, field: &str) -> Result<u64, BadField> {
        read_unsigned(field, &self.text(field)?)
    }

    pub(crate) fn maybe_unsigned(&mut self, field: &str) -> Result<Option<u64>, BadField> {
        self.maybe_text(field)?
            .map(|text| read_unsigned(field, &text))
            .transpose()
    }

    pub(crate) fn player(&mut self) -> Result<PlayerId, BadField> {
        Ok(PlayerId::new(self.signed("player_id")?))
    }

    pub(crate) fn amount(&mut self) -> Result<Amount, BadField> {
        let amount = self.signed("amount")?;
        Amount::new(amount).map_err(|error| BadField::of("amount", &error))
    }

    pub(crate) fn item(&mut self, field: &str) -> Result<Item, BadField> {
        let item = self.maybe_text(field)?.unwrap_or_default();
        Item::new(item).map_err(|error| BadField::of(field, &error))
    }

    pub(crate) fn attempt(&mut self) -> Result<AttemptId, BadField> {
        let text = self.text("attempt_id")?;
        AttemptId::new(text).map_err(|error| BadField::of("attempt_id", &error))
    }

    pub(crate) fn order(&mut self) -> Result<OrderId, BadField> {
        OrderId::new(self.text("order_id")?).map_err(|error| BadField::of("order_id", &error))
    }

    pub(crate) fn reason(&mut self) -> Result<Reason, BadField> {
        Reason::new(self.text("reason")?).map_err(|error| BadField::of("reason", &error))
    }

    pub(crate) fn millis(&mut self, field: &str) -> Result<UnixMillis, BadField> {
        Ok(UnixMillis::new(self.unsigned(field)?))
    }

    pub(crate) fn claim_id(&mut self, field: &str) -> Result<ClaimId, BadField> {
        Ok(ClaimId::new(self.unsigned(field)?))
    }

    /// A resource: text, or `resource_hex` where its bytes are no text.
    pub(crate) fn maybe_resource(&mut self) -> Result<Option<LeaseName>, BadField> {
        if let Some(text) = self.maybe_text("resource")? {
            return read_resource(&text).map(Some);
        }
        let Some(hex) = self.maybe_text("resource_hex")? else {
            return Ok(None);
        };
        let bytes = read_hex("resource_hex", &hex)?;
        LeaseName::new(bytes)
            .map(Some)
            .map_err(|error| BadField::of("resource_hex", &error))
    }

    pub(crate) fn fence(&mut self) -> Result<Fence, BadField> {
        let resource = self
            .maybe_resource()?
            .ok_or_else(|| BadField::new("resource", "this field is missing"))?;
        Ok(Fence::new(resource, self.token("fence_token")?))
    }

    pub(crate) fn token(&mut self, field: &str) -> Result<FenceToken, BadField> {
        read_token(field, &self.text(field)?)
    }

    pub(crate) fn maybe_token(&mut self, field: &str) -> Result<Option<FenceToken>, BadField> {
        self.maybe_text(field)?
            .map(|text| read_token(field, &text))
            .transpose()
    }

    pub(crate) fn event(&mut self) -> Result<RewardEventId, BadField> {
        let text = self.text("reward_event_id")?;
        let event = if self.is_set("allow_random_event_id")? {
            RewardEventId::parse_allowing_random_look(text)
        } else {
            RewardEventId::parse(text)
        };
        event.map_err(|error| BadField::of("reward_event_id", &error))
    }

    /// A claim. It is unfenced only where that is said, and no fence is shown.
    pub(crate) fn claim(mut self) -> Result<Claim, BadField> {
        let player = self.player()?;
        let event = self.event()?;
        let amount = self.amount()?;
        let item = self.item("item")?;
        let attempt = self.attempt()?;
        let builder = if self.is_set("unfenced")? {
            Claim::unfenced_builder(player, event, amount)
        } else {
            Claim::builder(self.fence()?, player, event, amount)
        };
        self.end()?;
        builder
            .item(item.as_str())
            .attempt(attempt.as_str())
            .build()
            .map_err(|error| {
                let field = match &error {
                    InvalidClaim::OtherPlayer { .. } => "player_id",
                    InvalidClaim::Field(_) => "resource",
                    InvalidClaim::NoRandomness => "attempt_id",
                };
                BadField::of(field, &error)
            })
    }
}

pub(crate) fn read_signed(field: &str, text: &str) -> Result<i64, BadField> {
    canonical(field, text, text.parse::<i64>().ok())
}

pub(crate) fn read_unsigned(field: &str, text: &str) -> Result<u64, BadField> {
    canonical(field, text, text.parse::<u64>().ok())
}

/// One number, one spelling: `+7` and `007` would be second names of a key.
fn canonical<N: ToString>(field: &str, text: &str, number: Option<N>) -> Result<N, BadField> {
    number.filter(|number| number.to_string() == text).ok_or_else(|| {
        BadField::new(
            field,
            "a whole number of 64 bits is needed, as plain decimal text",
        )
    })
}

pub(crate) fn read_token(field: &str, text: &str) -> Result<FenceToken, BadField> {
    FenceToken::new(read_unsigned(field, text)?).map_err(|error| BadField::of(field, &error))
}

pub(crate) fn read_resource(text: &str) -> Result<LeaseName, BadField> {
    LeaseName::new(text).map_err(|error| BadField::of("resource", &error))
}

pub(crate) fn read_hex(field: &str, text: &str) -> Result<Vec<u8>, BadField> {
    let bad = || BadField::new(field, "pairs of hexadecimal digits are needed");
    // Parsing alone would take `+f` for a pair.
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex || !text.len().is_multiple_of(2) {
        return Err(bad());
    }
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| {
            let pair = text.get(at..at + 2).ok_or_else(bad)?;
            u8::from_str_radix(pair, 16).map_err(|_| bad())
        })
        .collect()
}
