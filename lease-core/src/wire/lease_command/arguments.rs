//! Takes the arguments of one request in order, each checked where it is taken.

use std::borrow::Cow;

use crate::limits::FENCE_TOKEN_MAX;
use crate::types::{FenceToken, InvalidValue, LeaseName, Metadata, OwnerId, RequestId, Ttl};
use crate::wire::decimal::parse_u64;
use crate::wire::{CommandError, LeaseVerb, Request};

/// The arguments that were not taken yet.
pub(super) struct Arguments<'a> {
    verb: LeaseVerb,
    request: &'a Request,
    taken: usize,
}

impl<'a> Arguments<'a> {
    /// Those behind the command's name.
    pub(super) const fn of(verb: LeaseVerb, request: &'a Request) -> Self {
        Self {
            verb,
            request,
            taken: 1,
        }
    }

    pub(super) const fn verb(&self) -> LeaseVerb {
        self.verb
    }

    pub(super) const fn left(&self) -> usize {
        self.request.len().saturating_sub(self.taken)
    }

    /// The next argument, if there is one.
    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        let argument = self.request.arg(self.taken)?;
        self.taken = self.taken.saturating_add(1);
        Some(argument)
    }

    /// The next argument, which the command cannot do without.
    pub(super) fn required(&mut self) -> Result<&'a [u8], CommandError> {
        self.next().ok_or_else(|| self.wrong_arity())
    }

    pub(super) const fn wrong_arity(&self) -> CommandError {
        CommandError::WrongArity { verb: self.verb }
    }

    /// Nothing may be left.
    pub(super) fn end(&self) -> Result<(), CommandError> {
        if self.left() == 0 {
            Ok(())
        } else {
            Err(self.wrong_arity())
        }
    }

    pub(super) fn name(&mut self) -> Result<LeaseName, CommandError> {
        LeaseName::new(self.required()?).map_err(|invalid| CommandError::Name { invalid })
    }

    pub(super) fn owner(&mut self) -> Result<OwnerId, CommandError> {
        OwnerId::new(self.required()?).map_err(|invalid| CommandError::Name { invalid })
    }

    pub(super) fn token(&mut self) -> Result<FenceToken, CommandError> {
        let number = self.number("token", 1, FENCE_TOKEN_MAX)?;
        FenceToken::new(number).map_err(as_value)
    }

    pub(super) fn ttl(&mut self) -> Result<Ttl, CommandError> {
        let millis = parse_u64(self.required()?).ok_or(CommandError::Ttl)?;
        Ttl::from_millis(millis).map_err(|_| CommandError::Ttl)
    }

    pub(super) fn request_id(&mut self) -> Result<RequestId, CommandError> {
        RequestId::new(self.required()?).map_err(as_value)
    }

    pub(super) fn metadata(&mut self) -> Result<Metadata, CommandError> {
        Metadata::new(self.required()?).map_err(as_value)
    }

    pub(super) fn number(&mut self, what: &'static str, min: u64, max: u64) -> Result<u64, CommandError> {
        parse_u64(self.required()?)
            .filter(|number| (min..=max).contains(number))
            .ok_or(CommandError::Number { what, min, max })
    }

    /// The next option, one of `known` in letters of either case; its value follows. `None` at the end.
    pub(super) fn option(&mut self, known: &[&'static str]) -> Result<Option<&'static str>, CommandError> {
        let Some(given) = self.next() else {
            return Ok(None);
        };
        let option = known
            .iter()
            .copied()
            .find(|option| given.eq_ignore_ascii_case(option.as_bytes()))
            .ok_or_else(|| CommandError::unknown_option(self.verb, given))?;
        if self.left() == 0 {
            return Err(CommandError::MissingValue {
                verb: self.verb,
                option,
            });
        }
        Ok(Some(option))
    }
}

/// Keeps the value of an option that was not given before.
pub(super) fn set_once<T>(
    slot: &mut Option<T>,
    value: T,
    verb: LeaseVerb,
    option: &'static str,
) -> Result<(), CommandError> {
    if slot.replace(value).is_some() {
        return Err(CommandError::DuplicateOption { verb, option });
    }
    Ok(())
}

/// A number as an argument.
pub(super) fn decimal(number: u64) -> Cow<'static, [u8]> {
    Cow::Owned(number.to_string().into_bytes())
}

const fn as_value(invalid: InvalidValue) -> CommandError {
    CommandError::Value { invalid }
}
