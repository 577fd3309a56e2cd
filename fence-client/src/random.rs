//! Random numbers of the operating system: request ids, the default owner, jitter.

use std::fmt::Write as _;

/// Bytes of one random name: two clients never draw the same.
const NAME_BYTES: usize = 16;

/// A name that nobody else has, 32 hexadecimal digits.
///
/// # Errors
/// The operating system gives no random numbers.
pub(crate) fn random_name() -> Result<String, getrandom::Error> {
    let mut bytes = [0; NAME_BYTES];
    getrandom::fill(&mut bytes)?;
    let mut name = String::with_capacity(NAME_BYTES.saturating_mul(2));
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    Ok(name)
}

/// A random number for jitter; without random numbers there is no jitter, which does no harm to anything but load.
pub(crate) fn jitter() -> u64 {
    #[cfg(test)]
    if let Some(seeded) = seeded::next() {
        return seeded;
    }
    getrandom::u64().unwrap_or(0)
}

/// Jitter from a seed, so that a failing test of one thread can be run again.
#[cfg(test)]
pub(crate) mod seeded {
    use std::cell::Cell;

    thread_local!(static STATE: Cell<Option<u64>> = const { Cell::new(None) });

    /// All jitter of this thread follows from `seed` from now on.
    pub(crate) fn begin(seed: u64) {
        STATE.set(Some(seed));
    }

    /// The generator is Knuth's 64-bit linear one, of which the high half is good enough here.
    pub(super) fn next() -> Option<u64> {
        let state = STATE.get()?;
        let next = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        STATE.set(Some(next));
        Some(next.rotate_left(32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_long_and_differ() {
        let (one, other) = (random_name().unwrap(), random_name().unwrap());
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
    }
}
