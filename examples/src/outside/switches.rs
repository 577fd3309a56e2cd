use clap::Args;
use serde_json::Value;

/// What is wrong with an outside server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are switches, each of its own")]
pub struct Switches {
    /// Milliseconds that each request takes longer.
    #[arg(long, default_value_t = 0)]
    pub slow_ms: u64,
    /// Requests whose answer is lost after the work was done; counts down.
    #[arg(long, default_value_t = 0)]
    pub lose_answers: u64,
    /// Do the same key again, as after the deduplication window.
    #[arg(long)]
    pub forget_keys: bool,
    /// Refuse everything, for good.
    #[arg(long)]
    pub refuse: bool,
    /// Do nothing now.
    #[arg(long)]
    pub busy: bool,
    /// Do not tell the status of keys.
    #[arg(long)]
    pub no_status: bool,
    /// Refuse a new key whose token is below the highest seen for its resource. For callers that hold the lease themselves:
    /// a ledger has looked at the token already, and what it sends again may come after newer ones.
    #[arg(long)]
    pub check_tokens: bool,
    /// Of the request being worked on: its answer is lost.
    #[arg(skip)]
    pub lose_answer: bool,
}

impl Switches {
    /// As they are for the next request.
    pub fn next_request(&mut self) -> Self {
        let lose_answer = self.lose_answers > 0;
        self.lose_answers = self.lose_answers.saturating_sub(1);
        Self { lose_answer, ..*self }
    }

    /// With those that the object names turned as it says.
    #[must_use]
    pub fn with(mut self, body: &Value) -> Self {
        let number = |name: &str, before| body.get(name).and_then(Value::as_u64).unwrap_or(before);
        let switch = |name: &str, before| body.get(name).and_then(Value::as_bool).unwrap_or(before);
        self.slow_ms = number("slow_ms", self.slow_ms);
        self.lose_answers = number("lose_answers", self.lose_answers);
        self.forget_keys = switch("forget_keys", self.forget_keys);
        self.refuse = switch("refuse", self.refuse);
        self.busy = switch("busy", self.busy);
        self.no_status = switch("no_status", self.no_status);
        self.check_tokens = switch("check_tokens", self.check_tokens);
        self
    }
}
