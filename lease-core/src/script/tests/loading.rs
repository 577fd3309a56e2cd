//! What is refused when a script is loaded, and how.

use super::{DIGEST, Program, ScriptDigest};
use crate::limits::SCRIPT_TEXT_BYTES_MAX;

fn refused(text: &str) -> String {
    match Program::parse(text.as_bytes()) {
        Ok(_) => panic!("taken: {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_construct_outside_the_subset_is_named_with_its_line() {
    for (text, construct, line) in [
        ("return 2 ^ 2", "the operator '^'", 1),
        ("\nx = 1", "a new value for 'x', which is no local variable", 2),
        ("return x", "the global 'x'", 1),
        ("return redis", "the global 'redis'", 1),
        ("for k, v in pairs(KEYS) do end", "the global 'pairs'", 1),
        ("for k in KEYS do end", "the global 'KEYS'", 1),
        ("return math.random(1)", "math.random", 1),
        ("return redis.sha1hex('')", "redis.sha1hex", 1),
        ("return cjson.decode('')", "cjson.decode", 1),
        ("return string.format('%d', 1)", "string.format", 1),
        ("return pcall(redis.call)", "the global 'pcall'", 1),
        ("local s = 'a'\nreturn s:sub(1)", "a method call", 2),
        ("function f() end", "a global function", 1),
        ("return function() end", "a function as a value", 1),
        ("local function f() end return f", "a function as a value", 1),
        ("return tonumber", "tonumber as a value", 1),
        ("local function f(...) end", "'...'", 1),
        (
            "return redis.call('hset', 'a', 'b', 'c')",
            "redis.call of 'hset'",
            1,
        ),
        (
            "return redis.pcall('expireat', 'a', 1)",
            "redis.pcall of 'expireat'",
            1,
        ),
        (
            "return redis.call(ARGV[1])",
            "redis.call of a command that is not written out",
            1,
        ),
        (
            "return redis.call()",
            "redis.call of a command that is not written out",
            1,
        ),
        (
            "local t = {} return t()",
            "a call of a value that is no function's name",
            1,
        ),
        ("#!lua\nreturn 1", "a line that starts with '#'", 1),
        (
            "local function f() end f = 1",
            "a new value for 'f', which is no local variable",
            1,
        ),
    ] {
        let expected = format!(
            "unsupported script: {construct} at line {line} (docs/protocol.md lists what scripts may hold)"
        );
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn what_lua_takes_behind_ipairs_and_is_not_served_is_no_mistake() {
    for text in [
        "for i in ipairs(KEYS) 'x' do end",
        "for i in ipairs(KEYS), 1 do end",
        "for i in ipairs(KEYS, 1) do end",
        "for i in ipairs() do end",
        "for i in ipairs{1} do end",
    ] {
        let construct = "a 'for' over something else than ipairs";
        let expected = format!(
            "unsupported script: {construct} at line 1 (docs/protocol.md lists what scripts may hold)"
        );
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_lua_is_refused_in_the_words_of_luas_compiler() {
    for (text, line, said) in [
        ("return 1 1", 1, "'<eof>' expected near '1'"),
        ("if x then", 1, ""),
        ("retrn 1", 1, ""),
        ("return 'a", 1, "unfinished string"),
        ("\nreturn [[a", 2, "unfinished long string or comment"),
        ("local 1", 1, "<name> expected near '1'"),
        ("for i = 1 do end", 1, "',' expected near 'do'"),
        ("return 3x", 1, "malformed number near '3x'"),
        ("break", 1, "no loop to break near 'break'"),
        ("return $", 1, "unexpected symbol near '$'"),
        ("local a = 1 a", 1, "syntax error near '<eof>'"),
        (
            "for i in ipairs\n(KEYS) do end",
            2,
            "ambiguous syntax (function call x new statement) near '('",
        ),
        ("do return 1 local a end", 1, "'end' expected near 'local'"),
    ] {
        let found = refused(text);
        if said.is_empty() {
            continue;
        }
        let expected = format!("Error compiling script (new function): user_script:{line}: {said}");
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn depth_and_size_are_bounded_whatever_is_nested() {
    let nested = |open: &str, inner: &str, close: &str, count: usize| {
        format!("{}{inner}{}", open.repeat(count), close.repeat(count))
    };
    for count in [500, 20_000] {
        for text in [
            format!("return {}", nested("(", "1", ")", count)),
            format!("return {}", nested("{", "", "}", count)),
            format!("return {}1", "not ".repeat(count)),
            format!("return {}1", "- ".repeat(count)),
            format!("return 1{}", " + 1".repeat(count)),
            format!("return ''{}", "..''".repeat(count)),
            format!("local t return t{}", ".x".repeat(count)),
            format!("local t return t{}", "[1]".repeat(count)),
            nested("do ", "", " end ", count),
            nested("if 1 then ", "", " end ", count),
            nested("local function f() ", "", " end ", count),
            format!("local t t{} = 1", ".x".repeat(count)),
        ] {
            let said = Program::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(said.starts_with("unsupported script: "), "{said}");
        }
    }
    let long = format!("return '{}'", "x".repeat(SCRIPT_TEXT_BYTES_MAX));
    assert!(refused(&long).contains("bytes of text, at most"));
}

#[test]
fn a_digest_is_read_in_letters_of_either_case() {
    let text = DIGEST.to_string();
    assert_eq!(ScriptDigest::parse(text.as_bytes()), Some(DIGEST));
    assert_eq!(ScriptDigest::parse(text.to_uppercase().as_bytes()), Some(DIGEST));
    for wrong in [&text[1..], &format!("{text}a"), &text.replace('a', "g"), ""] {
        assert_eq!(ScriptDigest::parse(wrong.as_bytes()), None, "{wrong}");
    }
}
