//! What came of all turns, and the medians that are reported.

use std::collections::BTreeMap;

use super::systems::System;
use super::work::{Turn, Work};
use crate::samples::median;

/// What was measured in one turn of each round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The work.
    pub work: Work,
    /// How many callers at once.
    pub connections: usize,
    /// On which system.
    pub system: System,
}

/// The turns of all cells, in the order of the rounds.
#[derive(Debug, Default)]
pub struct Results {
    turns: BTreeMap<Cell, Vec<Turn>>,
    /// The machine's load at the beginning, and after each round.
    pub loads: Vec<String>,
}

impl Results {
    /// Adds a turn of the current round.
    pub fn add(&mut self, cell: Cell, turn: Turn) {
        self.turns.entry(cell).or_default().push(turn);
    }

    /// The turns of a cell, in the order of the rounds.
    #[must_use]
    pub fn turns(&self, cell: Cell) -> &[Turn] {
        self.turns.get(&cell).map(Vec::as_slice).unwrap_or_default()
    }

    /// All cells that were measured.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        self.turns.keys().copied()
    }

    /// The middle one of the rounds' values; `None` if there are none.
    #[must_use]
    pub fn median_of(&self, cell: Cell, value: impl Fn(&Turn) -> f64) -> Option<f64> {
        let turns = self.turns(cell);
        (!turns.is_empty()).then(|| median(&turns.iter().map(value).collect::<Vec<_>>()))
    }

    /// Operations a second, at the median.
    #[must_use]
    pub fn rate(&self, cell: Cell) -> Option<f64> {
        self.median_of(cell, |turn| turn.rate)
    }

    /// The middle one of the ratios of each round: what the machine does meanwhile hits both sides of a round alike.
    #[must_use]
    pub fn ratio(&self, above: Cell, below: Cell) -> Option<f64> {
        let pairs = self.turns(above).iter().zip(self.turns(below));
        let ratios: Vec<f64> = pairs.map(|(above, below)| above.rate / below.rate).collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(rate: f64) -> Turn {
        Turn {
            rate,
            median_us: 1.0,
            p99_us: 2.0,
            operations: 3,
        }
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let cell = |system| Cell {
            work: Work::Set,
            connections: 1,
            system,
        };
        let (ours, theirs) = (cell(System::OneNode), cell(System::RedisSynced));
        let mut results = Results::default();
        // The machine is slow in the second round; the ratio of the medians would be 4.
        for (our_rate, their_rate) in [(200.0, 100.0), (20.0, 10.0), (400.0, 50.0)] {
            results.add(ours, turn(our_rate));
            results.add(theirs, turn(their_rate));
        }
        assert_eq!(results.ratio(ours, theirs), Some(2.0));
        assert_eq!(results.rate(ours), Some(200.0));
        assert_eq!(results.ratio(ours, cell(System::Etcd)), None);
    }
}
