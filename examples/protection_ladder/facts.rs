//! What each rung can and cannot hold, and why. The run is held against it.

use crate::counts::Counts;
use crate::rung::Rung;
use crate::scenario::Scenario;

/// What a cell must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    /// Nothing goes wrong.
    Holds,
    /// Something is done again.
    Duplicates,
    /// Something is never done.
    Loses,
    /// Somebody in good standing is told nothing.
    LeavesUnanswered,
    /// It is a matter of times, and not of the protection: nothing is claimed.
    Depends,
}

impl Fact {
    /// Whether a count shows it.
    pub(crate) const fn is_shown_by(self, counts: Counts) -> bool {
        match self {
            Self::Holds => counts.are_zero(),
            Self::Duplicates => counts.duplicates > 0,
            Self::Loses => counts.lost > 0,
            Self::LeavesUnanswered => counts.unanswered > 0,
            Self::Depends => true,
        }
    }
}

/// What a rung must show in a scenario.
pub(crate) fn fact(rung: Rung, scenario: Scenario) -> Fact {
    use Scenario as S;
    match rung {
        Rung::PlainLock | Rung::OwnDelete | Rung::LongerTtl | Rung::Watchdog | Rung::Redlock => {
            match scenario {
                S::S2 if rung == Rung::LongerTtl => Fact::Depends,
                S::S1 | S::S2 | S::S3 | S::S4 | S::S6 | S::S7 | S::S8 | S::S11 | S::S14 => Fact::Duplicates,
                S::S10 if rung == Rung::PlainLock => Fact::Duplicates,
                S::S5 | S::S10 => Fact::Holds,
                S::S9 => Fact::Loses,
            }
        }
        Rung::PublishedSql => match scenario {
            S::S1 | S::S2 | S::S3 | S::S5 | S::S10 | S::S14 => Fact::Holds,
            S::S4 | S::S6 | S::S7 => Fact::LeavesUnanswered,
            S::S8 => Fact::Duplicates,
            S::S9 | S::S11 => Fact::Loses,
        },
        Rung::CheckedToken => match scenario {
            S::S1 | S::S2 | S::S3 | S::S4 | S::S5 | S::S10 | S::S14 => Fact::Holds,
            S::S6 | S::S7 | S::S8 | S::S11 => Fact::Duplicates,
            S::S9 => Fact::Loses,
        },
        Rung::UniqueKey => match scenario {
            S::S6 | S::S7 => Fact::LeavesUnanswered,
            S::S1 | S::S2 | S::S3 | S::S4 | S::S5 | S::S8 | S::S9 | S::S10 | S::S11 | S::S14 => {
                outside_only(scenario)
            }
        },
        Rung::Receipts => outside_only(scenario),
        Rung::Outbox => Fact::Holds,
    }
}

/// Where the ledger holds, and nothing reaches beyond it.
const fn outside_only(scenario: Scenario) -> Fact {
    match scenario {
        Scenario::S8 => Fact::Duplicates,
        Scenario::S9 => Fact::Loses,
        Scenario::S1
        | Scenario::S2
        | Scenario::S3
        | Scenario::S4
        | Scenario::S5
        | Scenario::S6
        | Scenario::S7
        | Scenario::S10
        | Scenario::S11
        | Scenario::S14 => Fact::Holds,
    }
}

/// Why a rung fails in a scenario; nothing where it is not said to fail.
pub(crate) fn why(rung: Rung, scenario: Scenario) -> Option<&'static str> {
    use Scenario as S;
    let holds = matches!(fact(rung, scenario), Fact::Holds);
    if holds {
        return None;
    }
    Some(match (rung, scenario) {
        (_, S::S8) => {
            "Each call of the outside is a request of its own there, so a retry after a lost answer is more work."
        }
        (_, S::S9) => {
            "The intent to call the outside was only in the worker's memory. Whoever comes next sees that the reward is paid, and \
             has nothing to do."
        }
        (Rung::PublishedSql, S::S4) => {
            "The fence is kept in each claim's row, so A's stale token passes for a reward that B has not come to yet. B's own \
             INSERT .. ON CONFLICT DO NOTHING then returns no row, and B has nothing to answer with."
        }
        (Rung::PublishedSql, S::S6 | S::S7) => {
            "fence_token < the new one refuses an equal token, so the holder's own second request is taken for a stale one, and no \
             receipt is shown."
        }
        (Rung::PublishedSql, S::S11) => {
            "An UPDATE of a claim row that is not there touches 0 rows, which looks like a stale token: all eight are sent away, and \
             the reward is never paid."
        }
        (Rung::CheckedToken, S::S6 | S::S7 | S::S11) => {
            "An equal token must pass, since a holder writes more than once. So a token alone does not tell a retry from a new reward."
        }
        (Rung::UniqueKey, S::S6 | S::S7) => {
            "Nothing is paid twice, but a key that is taken does not say by whom and with what. Whoever asked is told of an error, \
             although its reward is paid."
        }
        (Rung::PlainLock, S::S3) => {
            "The late SET does not look whose the lock is and takes it from B; and whatever the answer, A paid before it came."
        }
        (Rung::PlainLock, S::S10) => {
            "A's DEL does not look whose the lock is: it deletes B's, so C is let in while B works."
        }
        (Rung::Watchdog, S::S1 | S::S14) => {
            "A watchdog is a part of the worker: it stops with it. The table takes the late write like any other."
        }
        (Rung::Watchdog, S::S2 | S::S3 | S::S4) => {
            "The watchdog cannot renew, or hears too late that it could not, and the work goes on meanwhile. The table takes the late \
             write like any other."
        }
        (Rung::Redlock, S::S1 | S::S2 | S::S3 | S::S4 | S::S14) => {
            "A majority of masters agrees that the lock is B's by now. Nobody asks them when A writes."
        }
        (Rung::LongerTtl, S::S1 | S::S3 | S::S4 | S::S14) => {
            "The lock lives ten times as long, and a pause has no bound: when it is over, the late write lands like any other."
        }
        (Rung::LongerTtl, S::S2) => {
            "This work happens to be over before the longer lock runs out. Work that takes longer pays twice."
        }
        (_, S::S6) => {
            "All copies are under the same lock, which keeps other workers out and not the holder's own tasks."
        }
        (_, S::S7) => "The table has no key that would tell the retry from a new payment.",
        (_, S::S11) => "A lock holds those who ask for it. The table takes the rest like any other.",
        _ => {
            "The lock ran out, and nothing tells the table. Between A's last look and its write no lock can stop A."
        }
    })
}
