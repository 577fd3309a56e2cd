//! What a simulation looks at, and sets off, in a running store.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use lease_core::machine::LeaseMachine;

use crate::runtime::Rt;
use crate::store::Store;

/// The state of one node's machine, boiled down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// The index after the last entry applied.
    pub applied_next: u64,
    /// A hash of the whole state in its canonical form.
    pub state: u64,
}

impl<R: Rt> Store<R> {
    /// The index after the last entry that this node has applied.
    #[must_use]
    pub fn applied_next(&self) -> u64 {
        self.parts().node.applied_next()
    }

    /// The state of this node's machine between two entries.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let view = self.parts().replica.look(LeaseMachine::view);
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        let _ = view.encode(&mut bytes);
        // Its keys are constants: the same bytes have the same hash in every run.
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Fingerprint {
            applied_next: self.applied_next(),
            state: hasher.finish(),
        }
    }

    /// Asks the cluster to make `to` its leader; whether it was asked for.
    ///
    /// # Cancel safety
    /// Cancel safe: it was asked for, or was not.
    pub async fn hand_leadership_to(&self, to: u64) -> bool {
        self.parts().node.transfer_leader(to).await.is_ok()
    }

    /// What is wrong within the machine of this node, which checks itself.
    #[must_use]
    pub fn broken(&self) -> Option<String> {
        let checked = self.parts().replica.look(LeaseMachine::check);
        checked.err().map(|broken| broken.to_string())
    }
}
