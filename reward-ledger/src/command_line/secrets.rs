//! Passwords that stand in arguments: what is said of a mistyped argument does not show them.

/// What is said in place of an argument that may hold a password.
const HIDDEN: &str = "(not shown)";

/// The message without the arguments, and their values, that may hold a password.
pub(super) fn hide(message: &str, arguments: impl Iterator<Item = String>) -> String {
    let mut shown = message.to_owned();
    for argument in arguments {
        let value = argument.split_once('=').map(|(_, value)| value);
        for secret in [Some(argument.as_str()), value].into_iter().flatten() {
            if may_hold_a_password(secret) {
                shown = shown.replace(secret, HIDDEN);
            }
        }
    }
    shown
}

/// A URL with credentials, or PostgreSQL's own form.
fn may_hold_a_password(text: &str) -> bool {
    text.contains('@') || text.contains("password")
}

#[cfg(test)]
mod tests {
    use super::hide;

    #[test]
    fn an_argument_that_may_hold_a_password_is_not_shown() {
        for (argument, message) in [
            (
                "postgres://me:hunter2@db/x",
                "unexpected argument 'postgres://me:hunter2@db/x' found",
            ),
            (
                "--stor=postgres://me:hunter2@db/x",
                "unexpected value 'postgres://me:hunter2@db/x' found",
            ),
            (
                "--stor=postgres://me:hunter2@db/x",
                "unexpected '--stor=postgres://me:hunter2@db/x' found",
            ),
            (
                "host=db password=hunter2",
                "unexpected argument 'host=db password=hunter2' found",
            ),
            ("me:hunter2@db", "unexpected argument 'me:hunter2@db' found"),
        ] {
            let shown = hide(message, [argument.to_owned()].into_iter());
            assert!(!shown.contains("hunter2"), "{shown}");
            assert!(
                shown.contains("unexpected") && shown.contains("(not shown)"),
                "{shown}"
            );
        }
        let plain = "unexpected argument '--unheard' found";
        let shown = hide(
            plain,
            ["--unheard".to_owned(), "--amount=5".to_owned()].into_iter(),
        );
        assert_eq!(shown, plain);
    }
}
