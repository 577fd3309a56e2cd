//! Bends scripts word by word: most of what comes out is Lua still.

use tests::random::Random;

use super::super::corpus::Script;

/// Words that no script of the corpus has, and that meet there what they are made for.
const MORE: &str = "nil true false 0 1 2 -1 3.5 1e15 KEYS ARGV KEYS[2] ARGV[2] ARGV[9] #KEYS #ARGV tostring tonumber type unpack \
    table.concat table.remove table.insert string.sub string.len string.lower string.upper math.floor math.max \
    redis.call redis.pcall redis.error_reply redis.status_reply ipairs == ~= < <= > >= + - * / % .. and or not if while \
    'get' 'set' 'del' 'mget' 'mset' 'msetnx' 'exists' 'persist' 'getdel' 'strlen' 'getrange' 'setnx' 'psetex' 'pexpire' 'expire' \
    'type' 'pttl' 'publish' 'select' 'NX' 'XX' 'GET' 'KEEPTTL' 'PX' 'EX' 'GT' 'a' 'b' 'token-1' '10' ''";

/// Statements that are put between two lines.
const STATEMENTS: [&str; 16] = [
    "while true do end",
    "repeat until true",
    "for i = 1, 3 do redis.call('set', KEYS[1], i) end",
    "for i, k in ipairs(ARGV) do if i == 2 then break end redis.call('setnx', k, i) end",
    "redis.call('persist', KEYS[1])",
    "redis.pcall('pexpire', KEYS[1], 'soon')",
    "if redis.call('get', KEYS[1]) then return {1, 'two', false, 4} end",
    "if not redis.call('set', KEYS[1], ARGV[1], 'NX', 'GET') then redis.call('del', 'c') end",
    "do local t = {n = #KEYS} t[#t + 1] = ARGV[1] .. 7 redis.call('set', 'b', t[1]) end",
    "do local function f(n) if n < 1 then return 0 end return n + f(n - 1) end redis.call('set', 'c', f(9)) end",
    "do local s = 'x' for i = 1, 40 do s = s .. s end end",
    "error('stop')",
    "error('stop', 0)",
    "error({err = 'MINE stop'})",
    "do return {tonumber(ARGV[2], 16), tonumber('z1', 36), tonumber('-7', 8), tonumber(ARGV[1], 2) or 'none'} end",
    "do return tostring(ARGV[2] / 7) end",
];

const KEYWORDS: [&str; 16] = [
    "if", "then", "else", "elseif", "end", "for", "in", "do", "local", "function", "return", "while",
    "repeat", "until", "break", "not",
];
const OPERATORS: [&str; 13] = [
    "==", "~=", "<=", ">=", "..", "<", ">", "+", "-", "*", "/", "%", "and",
];

/// Bends of one script at the most.
const BENDS_MAX: u64 = 3;
/// Places that are looked at for one that bends well.
const PLACES: usize = 8;

/// What a word is: one is mostly bent into another of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Keyword,
    /// Of Redis and of Lua's library.
    Given,
    Name,
    Value,
    Text,
    Operator,
    Sign,
}

fn kind(word: &str) -> Kind {
    match word.as_bytes().first() {
        _ if KEYWORDS.contains(&word) => Kind::Keyword,
        _ if OPERATORS.contains(&word) || word == "or" => Kind::Operator,
        _ if matches!(word, "nil" | "true" | "false")
            || word.starts_with("KEYS")
            || word.starts_with("ARGV") =>
        {
            Kind::Value
        }
        Some(byte) if byte.is_ascii_whitespace() => Kind::Space,
        Some(byte) if byte.is_ascii_digit() || *byte == b'#' => Kind::Value,
        Some(b'\'' | b'"') => Kind::Text,
        Some(byte) if byte.is_ascii_alphabetic() && word.contains('.') => Kind::Given,
        Some(byte) if byte.is_ascii_alphabetic() || *byte == b'_' => Kind::Name,
        _ => Kind::Sign,
    }
}

/// A script as words: names with their dots and an index that is written out, numbers, texts in quotes, signs, and the
/// space between.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(first_word(rest));
        words.push(word);
        rest = after;
    }
    words
}

/// The bytes of the first word.
fn first_word(text: &str) -> usize {
    let run = |belongs: fn(char) -> bool| text.find(|letter| !belongs(letter)).unwrap_or(text.len());
    let first = text.chars().next().unwrap_or(' ');
    match first {
        '\'' | '"' => {
            let (quote, inside) = text.split_at(1);
            inside.find(quote).map_or(text.len(), |end| end + 2)
        }
        _ if first.is_whitespace() => run(char::is_whitespace),
        _ if first.is_ascii_alphanumeric() || first == '_' => {
            let name = run(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.'));
            let rest = text.get(name..).unwrap_or_default();
            let is_index = rest.starts_with('[') && rest.get(2..3) == Some("]");
            if is_index { name + 3 } else { name }
        }
        _ if ["==", "~=", "<=", ">=", ".."]
            .iter()
            .any(|two| text.starts_with(two)) =>
        {
            2
        }
        _ => first.len_utf8(),
    }
}

/// Whether Redis bears it: 7.0 ends with a crash when an error is raised by a table that does not say what it is.
pub(super) fn is_borne_by_redis(text: &str) -> bool {
    let known = [
        "error('stop')",
        "error('stop', 0)",
        "error({err = 'MINE stop'})",
        "error_reply",
    ];
    let rest = known
        .iter()
        .fold(text.to_owned(), |rest, known| rest.replace(known, ""));
    !rest.contains("error")
}

/// A comment is bent in vain.
fn without_comments(text: &str) -> String {
    let code = text.lines().filter(|line| !line.starts_with("--"));
    code.flat_map(|line| [line, "\n"]).collect()
}

/// The scripts that are bent, and all words of them.
pub(super) struct Bender {
    scripts: Vec<Vec<String>>,
    words: Vec<String>,
}

impl Bender {
    pub(super) fn of(scripts: Vec<Script>) -> Self {
        let scripts: Vec<Vec<String>> = scripts
            .into_iter()
            .map(|script| {
                let code = without_comments(&script.text);
                words(&code).into_iter().map(str::to_owned).collect()
            })
            .collect();
        let mut all: Vec<String> = scripts.concat();
        all.extend(MORE.split_ascii_whitespace().map(str::to_owned));
        all.sort();
        all.dedup();
        Self { scripts, words: all }
    }

    /// Another script each time.
    pub(super) fn bend(&self, random: &mut Random) -> String {
        let mut script = random.choose(&self.scripts).clone();
        for _ in 0..=random.below(BENDS_MAX) {
            match random.below(20) {
                0..=11 => self.exchange(random, &mut script),
                12..=15 => put_statement(random, &mut script),
                16 => {
                    let (one, other) = (place(random, script.len()), place(random, script.len()));
                    script.swap(one, other);
                }
                17 if script.len() > 1 => drop(script.remove(place(random, script.len()))),
                18 => {
                    let from = random.choose(&self.scripts);
                    let start = place(random, from.len());
                    let copied: Vec<String> = from[start..].iter().take(9).cloned().collect();
                    let at = place(random, script.len());
                    script.splice(at..at, copied);
                }
                _ => {
                    let at = place(random, script.len());
                    script[at] = format!(" {} ", random.choose(&self.words));
                }
            }
        }
        script.concat()
    }

    /// Another word of the same kind, at a place where that may well be a script still.
    fn exchange(&self, random: &mut Random, script: &mut [String]) {
        let places: Vec<usize> = (0..PLACES).map(|_| place(random, script.len())).collect();
        let bends = |at: &&usize| !matches!(kind(&script[**at]), Kind::Space | Kind::Keyword | Kind::Sign);
        let at = *places.iter().find(bends).unwrap_or(&places[0]);
        let kind_of = kind(&script[at]);
        // Names mean something in their own script alone.
        let from = if kind_of == Kind::Name && random.percent(80) {
            &*script
        } else {
            &self.words
        };
        let alike: Vec<&String> = from.iter().filter(|word| kind(word) == kind_of).collect();
        let other = if alike.is_empty() {
            String::new()
        } else {
            (*random.choose(&alike)).clone()
        };
        script[at] = other;
    }
}

/// Puts a whole statement behind the end of a line.
fn put_statement(random: &mut Random, script: &mut Vec<String>) {
    let is_end = |at: &usize| script[*at].contains('\n');
    let ends: Vec<usize> = (0..script.len()).filter(is_end).collect();
    let at = if ends.is_empty() || random.percent(25) {
        0
    } else {
        *random.choose(&ends) + 1
    };
    script.insert(at, format!("{}\n", random.choose(&STATEMENTS)));
}

fn place(random: &mut Random, len: usize) -> usize {
    usize::try_from(random.below(len.max(1) as u64)).unwrap()
}
