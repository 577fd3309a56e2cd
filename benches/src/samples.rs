//! Times that were measured, and what is read from them.

use std::time::Duration;

/// Times of single calls or batches.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    times: Vec<Duration>,
}

impl Samples {
    /// Adds one time.
    pub fn push(&mut self, time: Duration) {
        self.times.push(time);
    }

    /// Adds all times of another one.
    pub fn append(&mut self, mut other: Self) {
        self.times.append(&mut other.times);
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The time that half of them do not exceed; zero if there are none.
    #[must_use]
    pub fn median(&self) -> Duration {
        self.exceeded_by_one_in(2)
    }

    /// The time that at most one in `n` exceeds: 100 gives the 99th percentile, 1,000 the 99.9th.
    #[must_use]
    pub fn exceeded_by_one_in(&self, n: usize) -> Duration {
        let mut sorted = self.times.clone();
        sorted.sort_unstable();
        let above = sorted.len().checked_div(n).unwrap_or(0);
        let at = sorted.len().saturating_sub(above.saturating_add(1));
        sorted.get(at).copied().unwrap_or_default()
    }

    /// The longest; zero if there are none.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.times.iter().max().copied().unwrap_or_default()
    }
}

impl Extend<Duration> for Samples {
    fn extend<T: IntoIterator<Item = Duration>>(&mut self, times: T) {
        self.times.extend(times);
    }
}

/// The middle value of several rounds; 0 if there are none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Microseconds, with their fraction.
#[must_use]
pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Milliseconds, with their fraction.
#[must_use]
pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_read_from_the_upper_end() {
        let mut samples = Samples::default();
        samples.extend((1..=1_000).rev().map(Duration::from_micros));
        assert_eq!(samples.median(), Duration::from_micros(500));
        assert_eq!(samples.exceeded_by_one_in(1_000), Duration::from_micros(999));
        assert_eq!(samples.max(), Duration::from_micros(1_000));
        assert_eq!(Samples::default().median(), Duration::ZERO);
    }

    #[test]
    fn a_median_does_not_follow_an_outlier() {
        assert!((median(&[3.0, 1.0, 1_000.0, 2.0, 4.0]) - 3.0).abs() < f64::EPSILON);
    }
}
