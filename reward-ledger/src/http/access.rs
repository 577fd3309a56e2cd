//! Who is let in.

use axum::extract::{Request, State as Shared};
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;

use super::State;
use super::problem::Problem;

/// Who is let in.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// Everybody on this machine; other addresses are not listened on.
    LoopbackOnly,
    /// Whoever shows this token as `Authorization: Bearer`.
    Token(String),
    /// Everybody. Asked for by name.
    Everybody,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::LoopbackOnly => "LoopbackOnly",
            Self::Token(_) => "Token(..)",
            Self::Everybody => "Everybody",
        })
    }
}

impl Access {
    fn lets_in(&self, shown: Option<&[u8]>) -> bool {
        let Self::Token(token) = self else {
            return true;
        };
        let shown = shown.and_then(|shown| shown.strip_prefix(b"Bearer "));
        shown.is_some_and(|shown| are_equal(shown, token.as_bytes()))
    }
}

/// Compares in a time that tells nothing but the length.
fn are_equal(shown: &[u8], token: &[u8]) -> bool {
    let pairs = shown.iter().zip(token);
    shown.len() == token.len() && pairs.fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

pub(super) async fn check(
    Shared(state): Shared<State>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let shown = request.headers().get(AUTHORIZATION);
    if state.access.lets_in(shown.map(|value| value.as_bytes())) {
        Ok(next.run(request).await)
    } else {
        Err(Problem::unauthorized())
    }
}
