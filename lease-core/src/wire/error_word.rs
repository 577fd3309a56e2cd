use std::fmt;

/// The first word of an error reply: what a program switches on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorWord {
    /// The request is wrong in itself.
    Err,
    /// No leader can be reached.
    ClusterDown,
    /// The request may have been applied; its answer is not known.
    Unknown,
    /// A total bound is reached.
    Limit,
    /// A name or an owner breaks its rule.
    BadName,
    /// A time to live breaks its rule.
    BadTtl,
    /// The caller may not do this.
    NoPerm,
    /// The caller has not shown a password yet.
    NoAuth,
    /// The password is wrong.
    WrongPass,
    /// The key holds another kind of value.
    WrongType,
    /// No script of that digest is loaded.
    NoScript,
    /// `HELLO` asked for a protocol that is not spoken here.
    NoProto,
    /// A command of the transaction was refused before `EXEC`.
    ExecAbort,
}

/// Whether to send the request once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The same request would meet the same refusal.
    Never,
    /// After a pause, at any node.
    AfterPause,
    /// After a pause, with the same request id, since it may have been applied.
    SameRequest,
}

/// What is known of one error word.
struct Meaning {
    text: &'static str,
    may_have_applied: bool,
    retry: Retry,
}

impl ErrorWord {
    /// All words.
    pub const ALL: [Self; 13] = [
        Self::Err,
        Self::ClusterDown,
        Self::Unknown,
        Self::Limit,
        Self::BadName,
        Self::BadTtl,
        Self::NoPerm,
        Self::NoAuth,
        Self::WrongPass,
        Self::WrongType,
        Self::NoScript,
        Self::NoProto,
        Self::ExecAbort,
    ];

    const fn meaning(self) -> Meaning {
        let (text, may_have_applied, retry) = match self {
            Self::Err => ("ERR", false, Retry::Never),
            Self::ClusterDown => ("CLUSTERDOWN", false, Retry::AfterPause),
            Self::Unknown => ("UNKNOWN", true, Retry::SameRequest),
            Self::Limit => ("LIMIT", false, Retry::AfterPause),
            Self::BadName => ("BADNAME", false, Retry::Never),
            Self::BadTtl => ("BADTTL", false, Retry::Never),
            Self::NoPerm => ("NOPERM", false, Retry::Never),
            Self::NoAuth => ("NOAUTH", false, Retry::Never),
            Self::WrongPass => ("WRONGPASS", false, Retry::Never),
            Self::WrongType => ("WRONGTYPE", false, Retry::Never),
            Self::NoScript => ("NOSCRIPT", false, Retry::Never),
            Self::NoProto => ("NOPROTO", false, Retry::Never),
            Self::ExecAbort => ("EXECABORT", false, Retry::Never),
        };
        Meaning {
            text,
            may_have_applied,
            retry,
        }
    }

    /// The word as it is sent.
    #[must_use]
    pub const fn text(self) -> &'static str {
        self.meaning().text
    }

    /// The word that is spelled so, in capitals; `None` for a word of another or a newer server.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|word| word.text().as_bytes() == text)
    }

    /// Whether to send the request once more.
    #[must_use]
    pub const fn retry(self) -> Retry {
        self.meaning().retry
    }

    /// Whether sending the same request again can help.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        !matches!(self.retry(), Retry::Never)
    }

    /// Whether the request may have been applied all the same.
    #[must_use]
    pub const fn may_have_applied(self) -> bool {
        self.meaning().may_have_applied
    }
}

impl fmt::Display for ErrorWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_comes_back_from_its_text_and_only_unknown_may_have_applied() {
        for word in ErrorWord::ALL {
            assert_eq!(ErrorWord::parse(word.text().as_bytes()), Some(word));
            assert_eq!(word.may_have_applied(), word == ErrorWord::Unknown);
            assert_eq!(word.may_have_applied(), word.retry() == Retry::SameRequest);
        }
        assert_eq!(ErrorWord::parse(b"clusterdown"), None);
        assert_eq!(ErrorWord::parse(b"READONLY"), None);
    }
}
