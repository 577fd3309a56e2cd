//! Nothing whatever makes the loader or a run panic, overflow the stack, or go on for ever.

use proptest::prelude::*;
use proptest::sample::select;

use super::{Ended, Program, run_on_shelf, say};
use crate::script::ScriptBound;

/// So many cases; `PROPTEST_CASES` (256 if unset) makes it more or fewer in proportion.
fn cases(usual: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig {
        cases: usual.saturating_mul(config.cases) / 256,
        ..config
    }
}

/// Words that meet each other often enough to make whole scripts.
fn word() -> impl Strategy<Value = &'static str> {
    let words = "and break do else elseif end false for function if in local nil not or repeat return then true until \
        while x y f 1 2.5 's' \"10\" KEYS ARGV redis.call redis.pcall 'get' 'set' ipairs tonumber unpack table.insert \
        table.concat table.remove string.sub error ( ) { } [ ] , ; . .. = == ~= < >= + - * / % # : ... ^ [[ ]] -- \n";
    select(
        words
            .split(' ')
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>(),
    )
}

/// An expression, by size.
fn expression() -> impl Strategy<Value = String> {
    let leaf = select(vec![
        "nil", "true", "false", "0", "1", "-1", "3", "1e300", "0/0", "''", "'10'", "'abc'", "KEYS", "ARGV",
        "KEYS[1]", "ARGV[2]", "x", "y", "t", "#t", "#KEYS",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operator = select(vec![
            "+", "-", "*", "/", "%", "..", "==", "~=", "<", "<=", ">", ">=", "and", "or",
        ]);
        let function = select(vec![
            "tonumber",
            "tostring",
            "type",
            "unpack",
            "table.concat",
            "table.remove",
            "string.sub",
            "string.len",
            "math.floor",
            "math.max",
            "f",
            "redis.error_reply",
            "redis.status_reply",
            "table.insert",
            "error",
        ]);
        let verb = select(vec!["get", "set", "mget", "del", "persist", "pttl"]);
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (select(vec!["not", "-", "#"]), inner.clone()).prop_map(|(op, a)| format!("{op} {a}")),
            (function, prop::collection::vec(inner.clone(), 0..4))
                .prop_map(|(name, args)| format!("{name}({})", args.join(", "))),
            (verb, prop::collection::vec(inner.clone(), 0..4)).prop_map(|(verb, args)| std::iter::once(
                format!("redis.pcall('{verb}'")
            )
            .chain(args)
            .collect::<Vec<_>>()
            .join(", ")
                + ")"),
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("{{{}}}", items.join(", "))),
            (inner.clone(), inner).prop_map(|(key, value)| format!("{{[{key}] = {value}, a = {value}}}")),
        ]
    })
}

/// A whole script that is Lua, though it may do anything.
fn script() -> impl Strategy<Value = String> {
    let statement = expression().prop_flat_map(|a| {
        (Just(a), expression()).prop_flat_map(|(a, b)| {
            select(vec![
                format!("x = {a}"),
                format!("t[{a}] = {b}"),
                format!("local y, z = {a}, {b}"),
                format!("x, t[1] = {a}, {b}"),
                format!("if {a} then y = {b} elseif {b} then x = {a} else t = {{}} end"),
                format!("for i = {a}, {b} do x = i t[i] = x end"),
                format!("for i, v in ipairs({a}) do y = v if {b} then break end end"),
                format!("while {a} do x = {b} end"),
                format!("repeat x = {a} until {b}"),
                format!("x = x .. tostring({a})"),
                format!("do return {a}, {b} end"),
                format!("f({a}, {b})"),
            ])
        })
    });
    prop::collection::vec(statement, 0..8).prop_map(|statements| {
        let body = statements.join("\n");
        format!(
            "local x, y, t = 1, 'y', {{1, 'two', three = 3}}\n\
             local function f(a, b) if a then x = x b = t return b, a end return f(b, x) end\n{body}\nreturn {{x, y, t}}"
        )
    })
}

/// Runs what is taken; whatever it does, it ends, and the same way twice.
fn load_and_run(text: &[u8]) -> Result<(), TestCaseError> {
    let Ok(program) = Program::parse(text) else {
        return Ok(());
    };
    let read = Program::from_bytes(&program.to_bytes()).unwrap();
    prop_assert_eq!(&read, &program);
    prop_assert_eq!(run_on_shelf(&program), run_on_shelf(&read));
    Ok(())
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn no_words_whatever_make_the_loader_panic_or_a_run_go_on(words in prop::collection::vec(word(), 0..40)) {
        load_and_run(words.join(" ").as_bytes())?;
    }

    #[test]
    fn no_bytes_whatever_make_the_loader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        load_and_run(&bytes)?;
    }

    #[test]
    fn a_script_ends_the_same_way_twice_whatever_it_does(text in script()) {
        prop_assert!(Program::parse(text.as_bytes()).is_ok(), "{}", text);
        load_and_run(text.as_bytes())?;
    }

    #[test]
    fn changed_bytes_of_a_program_are_refused_or_run_to_their_end(
        text in script(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = Program::parse(text.as_bytes()).unwrap().to_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(program) = Program::from_bytes(&bytes) {
            let _ = run_on_shelf(&program);
            prop_assert_eq!(program.to_bytes(), bytes);
        }
    }
}

#[test]
fn what_would_never_end_or_grow_for_ever_reaches_a_bound() {
    let steps = "bound: the script takes more than 100000 steps";
    let bytes = "bound: the script makes more than 4194304 bytes of texts and tables";
    let depth = "bound: the script is nested too deeply (stack overflow)";
    for (text, said) in [
        ("while true do end", steps),
        ("repeat until false", steps),
        ("for i = 2, 1, 0 do end", steps),
        ("for i = 1, 1e300 do end", steps),
        ("local t = {1} for i, v in ipairs(t) do t[i + 1] = v end", steps),
        ("while true do redis.pcall('persist', 'a') end", steps),
        ("local s = 'x' while true do s = s .. s end", bytes),
        ("local t = {} while true do t = {t} end", steps),
        ("local function f() return f() end return f()", depth),
        ("local function f() return 1 + f() end return f()", depth),
        (
            "local t = {} t[1] = t return t",
            "bound: the script's reply has more than 33554432 bytes or 8 levels",
        ),
    ] {
        assert_eq!(say(text), said, "{text}");
    }
}

/// A run that is nested as deeply as it may be leaves most of a small stack alone.
#[test]
fn the_deepest_run_fits_a_stack_of_a_megabyte() {
    let deepest = || {
        let wrapped =
            |open: &str, close: &str, count| format!("{}f(n){}", open.repeat(count), close.repeat(count));
        for text in [
            format!(
                "local function f(n) return {} end return f(1)",
                wrapped("1 + (", ")", 18)
            ),
            format!(
                "local function f(n) return {} end return f(1)",
                wrapped("{", "}", 28)
            ),
            format!(
                "local function f(n) return {} end return f(1)",
                wrapped("not ", "", 28)
            ),
            format!(
                "local function f(n) {} end return f(1)",
                wrapped("while n do ", " end", 50)
            ),
            format!(
                "local function f(n) {} end return f(1)",
                wrapped("if n then ", " end", 50)
            ),
            format!(
                "local function f(n) {} end return f(1)",
                wrapped("for i, n in ipairs({n}) do ", " end", 50)
            ),
        ] {
            assert_eq!(
                super::answer(&text).unwrap_err(),
                Ended::Bound(ScriptBound::Depth)
            );
        }
    };
    let thread = std::thread::Builder::new().stack_size(1_024 * 1_024);
    thread.spawn(deepest).unwrap().join().unwrap();
}
