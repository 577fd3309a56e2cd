//! `HELLO`: which protocol, who, and under which name, in one request.

use lease_core::wire::{ErrorWord, Protocol, Reply, Request};

use super::REDIS_VERSION;
use super::session::Session;
use super::verb::wrong_arity;
use lease_core::redis::syntax_error;

/// Answers `HELLO [protover [AUTH username password] [SETNAME clientname]]`.
pub(super) fn hello(session: &mut Session, request: &Request) -> Reply {
    greet(session, request).unwrap_or_else(|refused| refused)
}

fn greet(session: &mut Session, request: &Request) -> Result<Reply, Reply> {
    let mut protocol = session.protocol;
    if let Some(number) = request.arg(1) {
        protocol = read_protocol(number)?;
    }
    let mut at = 2;
    let (mut login, mut name) = (None, None);
    while let Some(option) = request.arg(at) {
        let first = request.arg(at.saturating_add(1));
        let second = request.arg(at.saturating_add(2));
        if option.eq_ignore_ascii_case(b"AUTH")
            && let (Some(user), Some(password)) = (first, second)
        {
            login = Some((user, password));
            at = at.saturating_add(3);
        } else if option.eq_ignore_ascii_case(b"SETNAME")
            && let Some(shown) = first
        {
            name = Some(shown);
            at = at.saturating_add(2);
        } else {
            let option = String::from_utf8_lossy(option);
            return Err(Reply::error(
                ErrorWord::Err,
                format_args!("Syntax error in HELLO option '{option}'"),
            ));
        }
    }
    if let Some((user, password)) = login {
        session.authenticate(Some(user), password)?;
    }
    if session.access == lease_core::wire::Access::Unauthenticated {
        return Err(Reply::error(
            ErrorWord::NoAuth,
            "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> \
             option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        session.set_name(name)?;
    }
    session.protocol = protocol;
    Ok(greeting(session))
}

fn read_protocol(number: &[u8]) -> Result<Protocol, Reply> {
    let number: i64 = std::str::from_utf8(number)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| {
            Reply::error(
                ErrorWord::Err,
                "Protocol version is not an integer or out of range",
            )
        })?;
    Protocol::from_number(number)
        .ok_or_else(|| Reply::error(ErrorWord::NoProto, "unsupported protocol version"))
}

/// Some clients read `proto`, `version`, `mode` and `role`, and take `id` for a number.
fn greeting(session: &Session) -> Reply {
    let pair = |name, value| (Reply::word(name), value);
    Reply::Map(vec![
        pair("server", Reply::word("lease-store")),
        pair("version", Reply::word(REDIS_VERSION)),
        pair("proto", Reply::Integer(session.protocol.number())),
        pair("id", Reply::count(session.id)),
        pair("mode", Reply::word("standalone")),
        pair("role", Reply::word("master")),
        pair("modules", Reply::Array(Vec::new())),
    ])
}

/// Answers `AUTH [username] password`.
pub(super) fn auth(session: &mut Session, request: &Request) -> Reply {
    let shown = match (request.arg(1), request.arg(2), request.arg(3)) {
        (Some(password), None, _) => session.authenticate(None, password),
        (Some(user), Some(password), None) => session.authenticate(Some(user), password),
        (Some(_), Some(_), Some(_)) => Err(syntax_error().into()),
        (None, ..) => Err(wrong_arity("auth")),
    };
    shown.map_or_else(|refused| refused, |()| Reply::OK)
}
