//! The numbers under which a node forwards what must not be applied twice.

use std::collections::BTreeSet;

use lease_core::machine::Once;

/// One life of one node, as the machine knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) node: u64,
    pub(crate) incarnation: u64,
}

/// The numbers of one life, in the order in which they were first sent off.
#[derive(Debug)]
pub(super) struct Numbers {
    life: Life,
    next: u64,
    /// Those whose answer, or whose withdrawal, is still to come: all others below the next one are done with.
    open: BTreeSet<u64>,
}

impl Numbers {
    pub(super) const fn new(life: Life) -> Self {
        Self {
            life,
            next: 1,
            open: BTreeSet::new(),
        }
    }

    /// A number that was not given before.
    pub(super) fn issue(&mut self) -> u64 {
        let number = self.next;
        self.next = number.saturating_add(1);
        self.open.insert(number);
        number
    }

    /// What the machine is told of an open number.
    pub(super) fn once(&self, number: u64) -> Once {
        Once {
            node: self.life.node,
            incarnation: self.life.incarnation,
            number,
            settled_below: self.open.first().copied().unwrap_or(self.next),
        }
    }

    /// Its answer is known, or nobody will ask for it again.
    pub(super) fn settle(&mut self, number: u64) {
        self.open.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_below_the_lowest_open_number_is_done_with() {
        let mut numbers = Numbers::new(Life {
            node: 3,
            incarnation: 7,
        });
        let issued = [numbers.issue(), numbers.issue(), numbers.issue()];
        assert_eq!(issued, [1, 2, 3]);
        assert_eq!(numbers.once(3).settled_below, 1);
        numbers.settle(2);
        assert_eq!(numbers.once(3).settled_below, 1);
        numbers.settle(1);
        assert_eq!(numbers.once(3).settled_below, 3);
        numbers.settle(3);
        let fourth = numbers.issue();
        let expected = Once {
            node: 3,
            incarnation: 7,
            number: 4,
            settled_below: 4,
        };
        assert_eq!(numbers.once(fourth), expected);
    }
}
