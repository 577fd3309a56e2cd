//! Replies in one line, for assertions that a person can read.

use lease_core::wire::Reply;

/// One line for a reply: `+OK`, `-ERR text`, `:1`, `"bytes"`, `nil`, `[a, b]`, `{key: value}`, `text"..."`.
#[must_use]
pub fn show(reply: &Reply) -> String {
    match reply {
        Reply::Simple(line) => format!("+{}", line.as_bytes().escape_ascii()),
        Reply::Error(error) => format!("-{}", String::from_utf8_lossy(error.as_bytes())),
        Reply::Integer(value) => format!(":{value}"),
        Reply::Bulk(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Reply::Verbatim(bytes) => format!("text\"{}\"", bytes.escape_ascii()),
        Reply::Nil | Reply::NilArray => "nil".to_owned(),
        Reply::Boolean(value) => format!("#{value}"),
        Reply::Double(value) => format!(",{value}"),
        Reply::Array(items) => list('[', items, ']'),
        Reply::Set(items) => list('<', items, '>'),
        Reply::Push(items) => list('(', items, ')'),
        Reply::Map(pairs) => {
            let pairs: Vec<_> = pairs
                .iter()
                .map(|(key, value)| format!("{}: {}", show(key), show(value)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
        other => format!("{other:?}"),
    }
}

fn list(open: char, items: &[Reply], close: char) -> String {
    let items: Vec<_> = items.iter().map(show).collect();
    format!("{open}{}{close}", items.join(", "))
}
