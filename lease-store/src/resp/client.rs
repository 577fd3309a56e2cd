//! `CLIENT`: what connection libraries say about themselves.

use lease_core::redis::syntax_error;
use lease_core::wire::{ErrorWord, Reply, Request};

use super::session::Session;
use super::verb::{unknown_subcommand, wrong_arity};

/// Answers `CLIENT subcommand ..`.
pub(super) fn client(session: &mut Session, request: &Request) -> Reply {
    let subcommand = request.arg(1).unwrap_or_default();
    let is = |name: &[u8]| subcommand.eq_ignore_ascii_case(name);
    let arguments = request.len().saturating_sub(2);
    if is(b"SETNAME") && arguments == 1 {
        let named = session.set_name(request.arg(2).unwrap_or_default());
        return named.map_or_else(|refused| refused, |()| Reply::OK);
    }
    if is(b"GETNAME") && arguments == 0 {
        return if session.name.is_empty() {
            Reply::Nil
        } else {
            Reply::bulk(&session.name)
        };
    }
    if is(b"ID") && arguments == 0 {
        return Reply::count(session.id);
    }
    if is(b"SETINFO") && arguments == 2 {
        return set_info(request);
    }
    if is(b"TRACKING") && arguments >= 1 {
        return tracking(request);
    }
    if is(b"NO-EVICT") || is(b"NO-TOUCH") {
        return Reply::OK;
    }
    let known: [&[u8]; 5] = [b"SETNAME", b"GETNAME", b"ID", b"SETINFO", b"TRACKING"];
    if known.iter().any(|name| is(name)) {
        let name = String::from_utf8_lossy(subcommand).to_ascii_lowercase();
        return wrong_arity(&format!("client|{name}"));
    }
    unknown_subcommand("client", subcommand)
}

fn set_info(request: &Request) -> Reply {
    let option = request.arg(2).unwrap_or_default();
    let value = request.arg(3).unwrap_or_default();
    if !option.eq_ignore_ascii_case(b"LIB-NAME") && !option.eq_ignore_ascii_case(b"LIB-VER") {
        let option = String::from_utf8_lossy(option);
        return Reply::error(ErrorWord::Err, format_args!("Unrecognized option '{option}'"));
    }
    if value.iter().all(u8::is_ascii_graphic) {
        Reply::OK
    } else {
        let option = String::from_utf8_lossy(option).to_ascii_lowercase();
        Reply::error(
            ErrorWord::Err,
            format_args!("{option} cannot contain spaces, newlines or special characters."),
        )
    }
}

/// With `OPTIN` a key is followed only behind `CLIENT CACHING YES`, which is not served: so nothing ever has to be
/// invalidated. A client that asked for anything else would trust a cache that nobody invalidates.
fn tracking(request: &Request) -> Reply {
    let mode = request.arg(2).unwrap_or_default();
    let is_known =
        |option: &[u8]| option.eq_ignore_ascii_case(b"OPTIN") || option.eq_ignore_ascii_case(b"NOLOOP");
    let all_known = request.args().skip(3).all(is_known);
    if mode.eq_ignore_ascii_case(b"OFF") && all_known {
        return Reply::OK;
    }
    if !mode.eq_ignore_ascii_case(b"ON") {
        return syntax_error().into();
    }
    let opts_in = request
        .args()
        .skip(3)
        .any(|option| option.eq_ignore_ascii_case(b"OPTIN"));
    if opts_in && all_known {
        Reply::OK
    } else {
        Reply::error(
            ErrorWord::Err,
            "no key is followed here: CLIENT TRACKING takes ON OPTIN, with or without NOLOOP, and OFF",
        )
    }
}
