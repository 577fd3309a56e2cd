use std::fmt;

/// The commands of the lease protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseVerb {
    /// Takes a lease, or waits for it.
    Acquire,
    /// Extends a lease.
    Renew,
    /// Extends several leases.
    RenewMany,
    /// Ends a lease by its token.
    Release,
    /// Gives an acquire up.
    Cancel,
    /// Shows one lease.
    Get,
    /// Shows many leases, page by page.
    List,
    /// The token of a lease that was taken by a plain `SET`.
    Token,
    /// Ends a lease against its holder's will.
    Force,
    /// What happened to a name of late.
    History,
    /// Which node answers, and who leads.
    Leader,
}

impl LeaseVerb {
    /// All commands, in the order of the documentation.
    pub const ALL: [Self; 11] = [
        Self::Acquire,
        Self::Renew,
        Self::RenewMany,
        Self::Release,
        Self::Cancel,
        Self::Get,
        Self::List,
        Self::Token,
        Self::Force,
        Self::History,
        Self::Leader,
    ];

    /// The command's name, in capitals.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acquire => "LEASE.ACQUIRE",
            Self::Renew => "LEASE.RENEW",
            Self::RenewMany => "LEASE.MRENEW",
            Self::Release => "LEASE.RELEASE",
            Self::Cancel => "LEASE.CANCEL",
            Self::Get => "LEASE.GET",
            Self::List => "LEASE.LIST",
            Self::Token => "LEASE.TOKEN",
            Self::Force => "LEASE.FORCE",
            Self::History => "LEASE.HISTORY",
            Self::Leader => "LEASE.LEADER",
        }
    }

    /// The command's arguments, as its documentation writes them.
    #[must_use]
    pub const fn arguments(self) -> &'static str {
        match self {
            Self::Acquire => "name owner ttl-ms [WAIT ms] [REQ id] [META bytes]",
            Self::Renew => "name token [ttl-ms]",
            Self::RenewMany => "name token [name token ...]",
            Self::Release => "name token",
            Self::Cancel => "name owner REQ id",
            Self::Get => "name",
            Self::List => "[PREFIX p] [CURSOR c] [COUNT n]",
            Self::Token => "name owner",
            Self::Force => "name [reason]",
            Self::History => "name [COUNT n]",
            Self::Leader => "",
        }
    }

    /// The command of this name, in letters of either case.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        // Every request passes here: most are told apart by their first six letters.
        let (family, _) = name.split_at_checked(6)?;
        if !family.eq_ignore_ascii_case(b"LEASE.") {
            return None;
        }
        Self::ALL
            .into_iter()
            .find(|verb| name.eq_ignore_ascii_case(verb.name().as_bytes()))
    }
}

/// The name, and its arguments if it takes any.
impl fmt::Display for LeaseVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if !self.arguments().is_empty() {
            write!(f, " {}", self.arguments())?;
        }
        Ok(())
    }
}
