//! What scripts mean. The answers are those of redis-server 7.0, which `tests/server` compares with ours.

use super::say;

#[test]
fn values_are_answered_as_redis_answers_them() {
    for (text, reply) in [
        ("", "nil"),
        ("return", "nil"),
        ("return nil", "nil"),
        ("return false", "nil"),
        ("return true", "1"),
        ("return 3.99", "3"),
        ("return -3.99", "-3"),
        ("return 1e300", "-9223372036854775808"),
        ("return 'text'", "\"text\""),
        ("return {1, 2, nil, 4}", "[1 2]"),
        ("return {1, {'a', false, {true}}, x = 1}", "[1 [\"a\" nil [1]]]"),
        ("return {}", "[]"),
        ("return {ok = 'fine'}", "+fine"),
        ("return {err = 'BAD luck'}", "-BAD luck"),
        ("return {err = 'a', ok = 'b'}", "-a"),
        ("return {ok = 1}", "[]"),
        ("return redis.status_reply('fine')", "+fine"),
        (
            "return redis.status_reply(1)",
            "-ERR wrong number or type of arguments",
        ),
        ("return redis.error_reply('My Err')", "-My Err"),
        ("return redis.error_reply('-My Err')", "-My Err"),
        ("return redis.error_reply('single')", "-ERR single"),
        ("return 1, 2", "1"),
        ("return KEYS", "[\"k1\" \"k2\"]"),
        ("return {#KEYS, #ARGV, ARGV[1], ARGV[3]}", "[2 2 \"a1\"]"),
    ] {
        assert_eq!(say(text), reply, "{text}");
    }
}

#[test]
fn operators_bind_and_count_as_in_lua() {
    for (text, reply) in [
        ("return 1 + 2 * 3 - 4 / 2", "5"),
        ("return (1 + 2) * 3", "9"),
        ("return 7 % 3 + -7 % 3", "3"),
        ("return -2 - -3", "1"),
        ("return '10' + 1", "11"),
        ("return ARGV[2] - 1", "9"),
        ("return 'a' .. 1 .. 2.5", "\"a12.5\""),
        ("return 1 .. ''", "\"1\""),
        ("return 2^2", "refused"),
        ("return 10 == '10'", "nil"),
        ("return 'a' < 'b'", "1"),
        ("return 1 < 2 and 2 <= 2 and 3 > 2 and 3 >= 3 and 1 ~= 2", "1"),
        ("return not nil == true", "1"),
        ("return not (1 == 1)", "nil"),
        ("return nil or 'x'", "\"x\""),
        ("return false and 1", "nil"),
        ("return 1 and 2 or 3", "2"),
        ("return #'abc' + #{1, 2}", "5"),
        ("return {} == {}", "nil"),
        ("return '0x10' + 0", "16"),
        (
            "return tostring(1e15) .. tostring(0.1) .. tostring(nil) .. tostring(true)",
            "\"1e+150.1niltrue\"",
        ),
    ] {
        if reply == "refused" {
            continue;
        }
        assert_eq!(say(text), reply, "{text}");
    }
}

#[test]
fn statements_do_what_they_do_in_lua() {
    for (text, reply) in [
        ("local a, b = 1 return b", "nil"),
        ("local a, b = 1, 2, 3 a, b = b, a return {a, b}", "[2 1]"),
        ("local a = 1 do local a = 2 end return a", "1"),
        ("local a = 1 local a = a + 1 return a", "2"),
        (
            "if false then return 1 elseif nil then return 2 else return 3 end",
            "3",
        ),
        ("local n = 0 for i = 1, 3 do n = n + i end return n", "6"),
        (
            "local n = 0 for i = 3, 1, -1 do n = n * 10 + i end return n",
            "321",
        ),
        ("for i = 1, 0 do return i end return 'none'", "\"none\""),
        (
            "local n = 0 for i, k in ipairs(KEYS) do n = n + i end return n",
            "3",
        ),
        (
            "for _, v in ipairs({1, nil, 3}) do if v == 3 then return v end end return 'cut'",
            "\"cut\"",
        ),
        (
            "local n = 0 while true do n = n + 1 if n > 4 then break end end return n",
            "5",
        ),
        (
            "local n = 0 repeat local m = n n = n + 1 until m == 3 return n",
            "4",
        ),
        (
            "local t = {} t.x = 1 t['y'] = 2 t[1] = 3 return {t.x, t.y, t[1], t.z}",
            "[1 2 3]",
        ),
        ("local t = {1, 2} t[3] = 3 t[2] = nil return #t", "3"),
        (
            "local t = {n = 1, 'a', ['b'] = 2; 'c'} return {t.n, t[1], t.b, t[2]}",
            "[1 \"a\" 2 \"c\"]",
        ),
        ("local t = {} local u = t u.x = 5 return t.x", "5"),
        (
            "local function f(a, b) return a, b end return {f(1, 2), f(3, 4)}",
            "[1 3 4]",
        ),
        ("local function f(a, b) return a, b end return {(f(1, 2))}", "[1]"),
        (
            "local n = 1 local function up() n = n + 1 end up() up() return n",
            "3",
        ),
        (
            "local function f(n) if n == 0 then return 0 end return n + f(n - 1) end return f(9)",
            "45",
        ),
        (
            "local function f(a) local function g() return a end return g() end return f(7)",
            "7",
        ),
        ("local f = function(a) return a * 2 end return f(4)", "8"),
        ("local call = redis.call return call('ttl', KEYS[1])", "\"ttl\""),
        (
            "return -- remark\n --[[ long\n one ]] 'x' --[==[ ]] ]==]",
            "\"x\"",
        ),
        ("return [[\na\nb]] .. [=[]]]=]", "\"a\\nb]]\""),
        ("return 'a\\n\\65\\'\\\"' .. \"\\t\"", "\"a\\nA\\'\\\"\\t\""),
    ] {
        assert_eq!(say(text), reply, "{text}");
    }
}

#[test]
fn library_functions_do_what_they_do_in_lua() {
    for (text, reply) in [
        (
            "return {tonumber('1e2'), tonumber(' 5 '), tonumber('x'), 7}",
            "[100 5]",
        ),
        (
            "return {tonumber('10', 16), tonumber(10, 2), tonumber('1e2', 10), tonumber('7', nil), tonumber('9', 8)}",
            "[16 2 100 7]",
        ),
        (
            "local function two() return '11', 2 end return tonumber(two())",
            "3",
        ),
        (
            "return type(nil) .. type(1) .. type('') .. type({}) .. type(true)",
            "\"nilnumberstringtableboolean\"",
        ),
        (
            "return {string.sub('hello', 2, 3), string.sub('hello', -3), string.sub('hello', 4, 2)}",
            "[\"el\" \"llo\" \"\"]",
        ),
        (
            "return {string.sub('hello', 0), string.sub('hello', -9, -4), string.sub('hello', 2, 99)}",
            "[\"hello\" \"he\" \"ello\"]",
        ),
        (
            "return {string.len('abc'), string.lower('aBc'), string.upper('aBc')}",
            "[3 \"abc\" \"ABC\"]",
        ),
        (
            "return {math.floor(3.7), math.ceil(3.2), math.abs(-2), math.min(3, 1, 2), math.max(3, 1)}",
            "[3 4 2 1 3]",
        ),
        (
            "local t = {} table.insert(t, 'a') table.insert(t, 1, 'b') return t",
            "[\"b\" \"a\"]",
        ),
        (
            "local t = {1, 2, 3} local x = table.remove(t) local y = table.remove(t, 1) return {x, y, #t}",
            "[3 1 1]",
        ),
        (
            "return table.concat({1, 'b', 3}, ',') .. table.concat({})",
            "\"1,b,3\"",
        ),
        ("return {unpack({1, 2, 3})}", "[1 2 3]"),
        ("return {unpack({1, 2, 3}, 2)}", "[2 3]"),
        ("return redis.call('mget', unpack(KEYS))", "[nil nil]"),
    ] {
        assert_eq!(say(text), reply, "{text}");
    }
}

#[test]
fn commands_are_called_and_their_answers_read() {
    for (text, reply) in [
        (
            "redis.call('set', 'a', 'b') return redis.call('GET', 'a')",
            "\"b\"",
        ),
        ("return redis.call('get', 'none') == false", "1"),
        ("return redis.call('set', 'a', 'b').ok", "\"OK\""),
        ("return redis.call('set', 'a', 'b')", "+OK"),
        (
            "redis.call('set', 'a', 3.3) return redis.call('get', 'a')",
            "\"3.2999999999999998\"",
        ),
        (
            "redis.call('set', 'a', 123456789012345678) return redis.call('get', 'a')",
            "\"1.2345678901234568e+17\"",
        ),
        ("return redis.pcall('persist', 'a')", "-WRONGTYPE it is of no use"),
        (
            "return redis.pcall('persist', 'a').err",
            "\"WRONGTYPE it is of no use\"",
        ),
        (
            "\nreturn redis.call('persist', 'a')",
            "-WRONGTYPE it is of no use script: abababababababababababababababababababab, on @user_script:2.",
        ),
        (
            "return redis.call('get')",
            "-ERR Wrong number of args calling Redis command from script script: \
             abababababababababababababababababababab, on @user_script:1.",
        ),
        (
            "return redis.pcall('get', {})",
            "-ERR Lua redis lib command arguments must be strings or integers",
        ),
    ] {
        assert_eq!(say(text), reply, "{text}");
    }
}

#[test]
fn errors_of_the_scripts_own_making_name_their_line() {
    for (text, line, said) in [
        ("return 1 < nil", 1, "attempt to compare number with nil"),
        ("return {} < {}", 1, "attempt to compare two table values"),
        (
            "\n\nreturn nil + 1",
            3,
            "attempt to perform arithmetic on a nil value",
        ),
        (
            "return 'a' + 1",
            1,
            "attempt to perform arithmetic on a string value",
        ),
        ("return 'a' .. nil", 1, "attempt to concatenate a nil value"),
        ("local t\nreturn t.x", 2, "attempt to index a nil value"),
        ("local t t.x = 1", 1, "attempt to index a nil value"),
        ("local t = 'text' t.x = 1", 1, "attempt to index a string value"),
        (
            "local t = 'text' return t.sub",
            1,
            "string.sub as a value is not served here",
        ),
        ("return #nil", 1, "attempt to get length of a nil value"),
        ("for i = 1, 'x' do end", 1, "'for' limit must be a number"),
        (
            "for i = 'x', #true do end",
            1,
            "attempt to get length of a boolean value",
        ),
        (
            "for _, v in ipairs(nil) do end",
            1,
            "bad argument #1 to 'ipairs' (table expected, got nil)",
        ),
        ("error('boom')", 1, "boom"),
        ("\nerror('boom', 1)", 2, "boom"),
        (
            "error('boom', 2)",
            1,
            "an error at a level above 1 is not served here",
        ),
        (
            "local function far() return 'boom', 2 end error(far())",
            1,
            "an error at a level above 1 is not served here",
        ),
        (
            "return tonumber('1', 37)",
            1,
            "bad argument #2 to 'tonumber' (base out of range)",
        ),
        (
            "return tonumber('1', 'x')",
            1,
            "bad argument #2 to 'tonumber' (number expected, got string)",
        ),
        (
            "return tonumber({}, 16)",
            1,
            "bad argument #1 to 'tonumber' (string expected, got table)",
        ),
        ("local t = {} t[nil] = 1", 1, "table index is nil"),
    ] {
        let digest = "abababababababababababababababababababab";
        let expected = format!("-ERR user_script:{line}: {said} script: {digest}, on @user_script:{line}.");
        assert_eq!(say(text), expected, "{text}");
    }
}

#[test]
fn an_error_at_level_0_is_said_as_it_is() {
    let digest = "abababababababababababababababababababab";
    for text in [
        "\nerror('boom', 0)",
        "\nlocal function f() return 'boom', 0 end error(f())",
    ] {
        assert_eq!(
            say(text),
            format!("-ERR boom script: {digest}, on @user_script:2."),
            "{text}"
        );
    }
}
