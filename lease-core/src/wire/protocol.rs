use std::fmt;

/// Which of Redis's two protocols a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// What a connection starts with.
    #[default]
    Resp2,
    /// What `HELLO 3` asks for.
    Resp3,
}

impl Protocol {
    /// The protocol that `HELLO` names by this number.
    #[must_use]
    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            2 => Some(Self::Resp2),
            3 => Some(Self::Resp3),
            _ => None,
        }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RESP{}", self.number())
    }
}
