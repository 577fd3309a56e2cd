//! When a cluster may form: a pure function of what all listed peers answer.
//!
//! A node that was wiped would forget its vote, and could help two leaders to the same term. So an empty node never
//! joins by itself what exists already, and a cluster begins only when *all* listed nodes are there, empty, and were
//! given the same list. The lowest of them then writes the first entry; the others wait for it.
//!
//! One node with a wrong list ends nobody but itself: it is outnumbered. Where no list has a majority of its nodes behind
//! it yet, all wait and say so, since none of them can know which one is right.

use std::collections::BTreeMap;

use thiserror::Error;

/// The members that a node was given: ids and peer addresses.
pub(crate) type MemberList = BTreeMap<u64, String>;

/// What a node says of itself when it is probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The members that it was given.
    pub(crate) list: MemberList,
    /// How far it has come.
    pub(crate) stage: Stage,
    /// How many nodes were given its list, itself among them, as far as it has seen.
    pub(crate) alike: usize,
}

/// How far a node has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has voted or holds entries: it is part of this cluster.
    Member {
        /// The cluster.
        cluster: u64,
    },
    /// It has seen all others empty, and waits for the first entry of this cluster.
    Adopted {
        /// The cluster.
        cluster: u64,
    },
    /// It knows nothing. If it is the lowest, the cluster will have this id.
    Empty {
        /// A random number, drawn when its directory was made.
        proposed: u64,
    },
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Ask again: somebody is not there yet.
    Wait,
    /// All are empty and agree: the cluster has this id.
    Form {
        /// The cluster.
        cluster: u64,
    },
    /// This node is part of the cluster already, or of its beginning: go on.
    GoOn {
        /// The cluster.
        cluster: u64,
    },
}

/// Why a node must not start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormationError {
    /// This node is not on its own list.
    #[error("node {node} is not in its own --cluster list")]
    NotListed {
        /// This node.
        node: u64,
    },
    /// A peer was given another list, and most nodes of that one have it.
    #[error(
        "node {peer} was started with another --cluster list, and so were most nodes on it: give this node the same list"
    )]
    OtherList {
        /// The peer.
        peer: u64,
    },
    /// This node is empty, and a peer has a cluster.
    #[error(
        "this node is empty, but node {peer} is part of a cluster already. If this node was part of it, its data was \
         lost and it must not vote again: remove it from the cluster and add a new node under an id that was never used. \
         If it is new, add it to the running cluster instead"
    )]
    ClusterExists {
        /// The peer.
        peer: u64,
    },
    /// A peer is part of another cluster.
    #[error("node {peer} is part of another cluster: one of the two has a data directory of another one")]
    OtherCluster {
        /// The peer.
        peer: u64,
    },
}

/// Decides for the node `own` on its list, by what the others answered (`None`: not reached).
pub(crate) fn decide(
    own: u64,
    standing: &Standing,
    peers: &BTreeMap<u64, Option<Standing>>,
) -> Result<Decision, FormationError> {
    if !standing.list.contains_key(&own) {
        return Err(FormationError::NotListed { node: own });
    }
    let known = match standing.stage {
        Stage::Member { cluster } => return Ok(Decision::GoOn { cluster }),
        Stage::Adopted { cluster } => Some(cluster),
        Stage::Empty { .. } => None,
    };
    for (peer, theirs) in peers
        .iter()
        .filter_map(|(peer, theirs)| Some((*peer, theirs.as_ref()?)))
    {
        check_peer(peer, theirs, known)?;
    }
    if let Some(cluster) = known
        && peers
            .values()
            .flatten()
            .any(|theirs| matches!(theirs.stage, Stage::Member { .. }))
    {
        return Ok(Decision::GoOn { cluster });
    }
    let mut others = standing.list.keys().filter(|node| **node != own);
    let like_us =
        |theirs: &Option<Standing>| theirs.as_ref().is_some_and(|theirs| theirs.list == standing.list);
    if !others.all(|node| peers.get(node).is_some_and(like_us)) {
        check_lists(standing, peers)?;
        return Ok(Decision::Wait);
    }
    let lowest = standing.list.keys().next().copied().unwrap_or(own);
    let proposal = if lowest == own {
        Some(standing)
    } else {
        peers.get(&lowest).and_then(Option::as_ref)
    };
    Ok(proposal.map_or(Decision::Wait, |lowest| Decision::Form {
        cluster: lowest.stage.cluster(),
    }))
}

/// Whether all others have agreed to the cluster of `ours`.
pub(crate) fn all_agree(
    ours: &Standing,
    peers: &BTreeMap<u64, Option<Standing>>,
) -> Result<bool, FormationError> {
    let known = Some(ours.stage.cluster());
    let mut all = true;
    for (peer, theirs) in peers {
        match theirs {
            Some(theirs) => {
                check_peer(*peer, theirs, known)?;
                all &= theirs.list == ours.list && !matches!(theirs.stage, Stage::Empty { .. });
            }
            None => all = false,
        }
    }
    Ok(all)
}

/// How many nodes were given the list of `ours`, itself among them.
pub(crate) fn alike(ours: &Standing, peers: &BTreeMap<u64, Option<Standing>>) -> usize {
    let others = peers.values().flatten();
    let alike = others.filter(|theirs| theirs.list == ours.list).count();
    alike.saturating_add(1)
}

/// The peers that were given another list.
pub(crate) fn unlike(ours: &Standing, peers: &BTreeMap<u64, Option<Standing>>) -> Vec<u64> {
    let unlike = |theirs: &Option<Standing>| theirs.as_ref().is_some_and(|theirs| theirs.list != ours.list);
    let others = peers.iter().filter(|(_, theirs)| unlike(theirs));
    others.map(|(peer, _)| *peer).collect()
}

fn check_peer(peer: u64, theirs: &Standing, known: Option<u64>) -> Result<(), FormationError> {
    match (theirs.stage, known) {
        (Stage::Member { .. }, None) => Err(FormationError::ClusterExists { peer }),
        (Stage::Member { cluster } | Stage::Adopted { cluster }, Some(known)) if cluster != known => {
            Err(FormationError::OtherCluster { peer })
        }
        _ => Ok(()),
    }
}

/// Whether this node's list may be the right one: it is not while most nodes of another list have that one.
fn check_lists(ours: &Standing, peers: &BTreeMap<u64, Option<Standing>>) -> Result<(), FormationError> {
    if is_most_of(&ours.list, alike(ours, peers)) {
        return Ok(());
    }
    let reached = peers
        .iter()
        .filter_map(|(peer, theirs)| Some((*peer, theirs.as_ref()?)));
    for (peer, theirs) in reached.filter(|(_, theirs)| theirs.list != ours.list) {
        let seen_here = peers.values().flatten().filter(|other| other.list == theirs.list);
        if is_most_of(&theirs.list, theirs.alike.max(seen_here.count())) {
            return Err(FormationError::OtherList { peer });
        }
    }
    Ok(())
}

fn is_most_of(list: &MemberList, alike: usize) -> bool {
    alike > list.len() / 2
}

impl Stage {
    /// The cluster that this node is part of, or would begin.
    pub(crate) const fn cluster(self) -> u64 {
        match self {
            Self::Member { cluster } | Self::Adopted { cluster } => cluster,
            Self::Empty { proposed } => proposed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(nodes: &[u64]) -> MemberList {
        nodes
            .iter()
            .map(|node| (*node, format!("host-{node}:7422")))
            .collect()
    }

    fn at(stage: Stage) -> Standing {
        Standing {
            list: list(&[1, 2, 3]),
            stage,
            alike: 1,
        }
    }

    /// An empty node with the list of these nodes, which `alike` of them were given.
    fn with_list(nodes: &[u64], alike: usize) -> Standing {
        Standing {
            list: list(nodes),
            stage: empty(20),
            alike,
        }
    }

    const fn empty(proposed: u64) -> Stage {
        Stage::Empty { proposed }
    }

    fn peers(two: Option<Stage>, three: Option<Stage>) -> BTreeMap<u64, Option<Standing>> {
        BTreeMap::from([(2, two.map(at)), (3, three.map(at))])
    }

    #[test]
    fn all_empty_and_of_one_mind_form_the_cluster_of_the_lowest() {
        let all_there = peers(Some(empty(20)), Some(empty(30)));
        assert_eq!(
            decide(1, &at(empty(10)), &all_there),
            Ok(Decision::Form { cluster: 10 })
        );
        let seen_by_two = BTreeMap::from([(1, Some(at(empty(10)))), (3, Some(at(empty(30))))]);
        assert_eq!(
            decide(2, &at(empty(20)), &seen_by_two),
            Ok(Decision::Form { cluster: 10 })
        );
    }

    #[test]
    fn whoever_is_missing_is_waited_for() {
        for missing in [
            peers(None, Some(empty(30))),
            peers(Some(empty(20)), None),
            BTreeMap::new(),
        ] {
            assert_eq!(decide(1, &at(empty(10)), &missing), Ok(Decision::Wait));
        }
    }

    #[test]
    fn whoever_has_a_wrong_list_is_outnumbered_and_ends_alone() {
        let wrong = Some(with_list(&[2, 3], 1));
        // The others wait for it, at the list that most of them have.
        let seen_by_one = BTreeMap::from([(2, Some(at(empty(20)))), (3, wrong.clone())]);
        assert_eq!(decide(1, &at(empty(10)), &seen_by_one), Ok(Decision::Wait));
        assert_eq!(unlike(&at(empty(10)), &seen_by_one), [3]);
        assert_eq!(alike(&at(empty(10)), &seen_by_one), 2);
        // It sees one of them alone, which tells it of the other.
        let seen_by_three = BTreeMap::from([(2, Some(with_list(&[1, 2, 3], 2)))]);
        assert_eq!(
            decide(3, &with_list(&[2, 3], 1), &seen_by_three),
            Err(FormationError::OtherList { peer: 2 })
        );
        // Or both, before they know of each other.
        let seen_by_three = BTreeMap::from([(1, Some(at(empty(10)))), (2, Some(at(empty(20))))]);
        assert_eq!(
            decide(3, &with_list(&[1, 2, 3, 4], 1), &seen_by_three),
            Err(FormationError::OtherList { peer: 1 })
        );
    }

    #[test]
    fn while_no_list_has_a_majority_behind_it_nobody_ends() {
        let other = Some(with_list(&[1, 2], 1));
        let answers = BTreeMap::from([(2, other), (3, None)]);
        assert_eq!(decide(1, &at(empty(10)), &answers), Ok(Decision::Wait));
        let all_differ = BTreeMap::from([(2, Some(with_list(&[1, 2], 1))), (3, Some(with_list(&[1, 3], 1)))]);
        assert_eq!(decide(1, &at(empty(10)), &all_differ), Ok(Decision::Wait));
    }

    #[test]
    fn a_node_that_agreed_waits_for_one_that_came_back_with_another_list() {
        let ours = at(Stage::Adopted { cluster: 10 });
        let answers = BTreeMap::from([
            (2, Some(at(Stage::Adopted { cluster: 10 }))),
            (3, Some(with_list(&[2, 3], 1))),
        ]);
        assert_eq!(decide(1, &ours, &answers), Ok(Decision::Wait));
        assert_eq!(all_agree(&ours, &answers), Ok(false));
    }

    #[test]
    fn an_empty_node_beside_a_cluster_is_refused_and_told_the_way_out() {
        let answers = peers(None, Some(Stage::Member { cluster: 7 }));
        let refused = decide(1, &at(empty(10)), &answers).unwrap_err();
        assert_eq!(refused, FormationError::ClusterExists { peer: 3 });
        assert!(refused.to_string().contains("under an id that was never used"));
    }

    #[test]
    fn a_node_that_agreed_before_it_crashed_goes_on_with_its_cluster_and_no_other() {
        let ours = at(Stage::Adopted { cluster: 10 });
        let began = peers(Some(Stage::Member { cluster: 10 }), None);
        assert_eq!(decide(1, &ours, &began), Ok(Decision::GoOn { cluster: 10 }));
        let other = peers(Some(Stage::Member { cluster: 11 }), None);
        assert_eq!(
            decide(1, &ours, &other),
            Err(FormationError::OtherCluster { peer: 2 })
        );
        let not_yet = peers(Some(empty(20)), Some(Stage::Adopted { cluster: 10 }));
        assert_eq!(decide(1, &ours, &not_yet), Ok(Decision::Form { cluster: 10 }));
    }

    #[test]
    fn the_first_entry_waits_until_nobody_looks_for_an_empty_cluster_any_more() {
        let ours = at(Stage::Adopted { cluster: 10 });
        let agreed = Some(Stage::Adopted { cluster: 10 });
        assert_eq!(all_agree(&ours, &peers(agreed, agreed)), Ok(true));
        assert_eq!(all_agree(&ours, &peers(agreed, Some(empty(30)))), Ok(false));
        assert_eq!(all_agree(&ours, &peers(agreed, None)), Ok(false));
        let other = all_agree(&ours, &peers(agreed, Some(Stage::Adopted { cluster: 11 })));
        assert_eq!(other, Err(FormationError::OtherCluster { peer: 3 }));
    }

    #[test]
    fn a_member_asks_nobody_and_a_node_off_its_list_does_not_start() {
        let member = at(Stage::Member { cluster: 10 });
        assert_eq!(
            decide(1, &member, &BTreeMap::new()),
            Ok(Decision::GoOn { cluster: 10 })
        );
        assert_eq!(
            decide(9, &member, &BTreeMap::new()),
            Err(FormationError::NotListed { node: 9 })
        );
    }
}
