//! What clients believed, by their own clocks and their own rules: two never believe at once that they hold one lease.

use std::collections::BTreeMap;

use crate::history::Micros;

/// One client's belief that it holds a lease, in true time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Belief {
    pub(super) client: u32,
    pub(super) resource: String,
    pub(super) token: u64,
    pub(super) from: Micros,
    pub(super) to: Micros,
}

/// Beliefs of two holders at once.
pub(super) fn overlaps(beliefs: &[Belief]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<&Belief>> = BTreeMap::new();
    for belief in beliefs {
        by_name.entry(&belief.resource).or_default().push(belief);
    }
    let mut found = Vec::new();
    for of_one in by_name.values_mut() {
        of_one.sort_by_key(|belief| (belief.from, belief.token));
        let mut last: Option<&Belief> = None;
        for belief in of_one.iter() {
            if let Some(last) = last
                && last.token != belief.token
                && last.to > belief.from
            {
                found.push(format!(
                    "client {} believed in token {} of {} until {}, and client {} in {} from {}",
                    last.client,
                    last.token,
                    belief.resource,
                    last.to,
                    belief.client,
                    belief.token,
                    belief.from
                ));
            }
            if last.is_none_or(|last| last.to < belief.to) {
                last = Some(belief);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn belief(token: u64, from: Micros, to: Micros) -> Belief {
        Belief {
            client: 1,
            resource: "a".to_owned(),
            token,
            from,
            to,
        }
    }

    #[test]
    fn two_beliefs_at_once_are_seen_and_one_after_the_other_is_not() {
        assert!(overlaps(&[belief(1, 0, 10), belief(2, 10, 20), belief(2, 12, 30)]).is_empty());
        assert_eq!(overlaps(&[belief(1, 0, 10), belief(2, 9, 20)]).len(), 1);
        assert_eq!(
            overlaps(&[belief(1, 0, 50), belief(1, 5, 10), belief(2, 20, 30)]).len(),
            1
        );
    }
}
