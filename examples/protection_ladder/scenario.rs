//! What goes wrong around a reward or a payment.

/// One course of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scenario {
    S1,
    S2,
    S3,
    S4,
    S5,
    S6,
    S7,
    S8,
    S9,
    S10,
    S11,
    S14,
}

impl Scenario {
    pub(crate) const ALL: [Self; 12] = [
        Self::S1,
        Self::S2,
        Self::S3,
        Self::S4,
        Self::S5,
        Self::S6,
        Self::S7,
        Self::S8,
        Self::S9,
        Self::S10,
        Self::S11,
        Self::S14,
    ];

    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::S1 => "S1",
            Self::S2 => "S2",
            Self::S3 => "S3",
            Self::S4 => "S4",
            Self::S5 => "S5",
            Self::S6 => "S6",
            Self::S7 => "S7",
            Self::S8 => "S8",
            Self::S9 => "S9",
            Self::S10 => "S10",
            Self::S11 => "S11",
            Self::S14 => "S14",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::S1 => "The holder stops for longer than its lock lives",
            Self::S2 => "Renewals fail in the middle of the work",
            Self::S3 => "A renewal arrives late",
            Self::S4 => "The network is cut, and comes back",
            Self::S5 => "The worker dies before it pays",
            Self::S6 => "One request comes in several messages at once",
            Self::S7 => "The commit is done, its answer is lost",
            Self::S8 => "The outside did the work, its answer is lost",
            Self::S9 => "The worker dies between commit and outside call",
            Self::S10 => "A late release",
            Self::S11 => "Claims race past the lock",
            Self::S14 => "A payment, and a holder that stops",
        }
    }

    pub(crate) const fn story(self) -> &'static str {
        match self {
            Self::S1 => {
                "A takes the lock, sees that nothing was paid, and stops as a whole: a garbage collection, a starved machine. The \
                 lock runs out, B takes it and pays. A goes on and pays."
            }
            Self::S2 => {
                "A works for twice the ordinary time to live. Its link to the lock service breaks right after the grant, so no \
                 renewal gets through. B takes over and pays; A finishes its work and pays."
            }
            Self::S3 => {
                "A sends a renewal in time, and the packet is slow on its way: it arrives after the lock has run out and B was \
                 granted it. Before A hears what became of it, it pays, too."
            }
            Self::S4 => {
                "A has two rewards to pay under one lock, and so has B, since the queue delivered the messages twice. A is cut off \
                 from the lock service. B takes over and pays the first; A's network heals, and A pays both; B pays the second."
            }
            Self::S5 => "A takes the lock, looks, and dies. B waits for the lock, looks, and pays.",
            Self::S6 => {
                "The queue delivers one request eight times, and the holder of the lock handles the copies side by side. Each looks, \
                 and then each pays. All of them have the authority, so all are owed an answer."
            }
            Self::S7 => {
                "The database commits A's payment, and the answer is lost. A, which still holds the lock, sends the same request again."
            }
            Self::S8 => {
                "A pays and asks the item server for the item. The item is handed out, and the answer is lost. Whoever calls the \
                 outside tries again. Counted at the item server."
            }
            Self::S9 => {
                "A pays, and dies before it asks the item server for the item. The message comes again, to B, which looks. Counted at \
                 the item server."
            }
            Self::S10 => {
                "A stops as in S1, B is granted the lock and works. A wakes up, notices nothing to do and releases. C asks for the lock \
                 while B is still at work."
            }
            Self::S11 => {
                "Eight claims come past the lock: a script, a second service, a bug. None holds it; where tokens are used, all show \
                 the same one. They come past the queue as well, which is what prepares the claim row of rung 6."
            }
            Self::S14 => {
                "A, with the lock of an order, sees no payment attempt and stops. B takes over, starts an attempt and has the gateway \
                 charge the card. A goes on. Counted at the gateway."
            }
        }
    }
}
