//! Generated sequences of commands.

use tests::random::Random;

/// Commands in a sequence at least.
const COMMANDS: usize = 20;
/// Few keys and values, so that they meet.
const KEYS: [&str; 4] = ["a", "b", "c", ""];
const VALUES: [&str; 4] = ["x", "y", "", "a longer value"];

/// The words of a sequence: each command draws from few keys and values, so that they meet.
pub(super) struct Author<'a> {
    random: &'a mut Random,
    /// Times that were used up: any two lie so far apart that a busy machine does not swap them.
    times: u64,
    commands: Vec<Vec<String>>,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl Author<'_> {
    pub(super) fn sequence(random: &mut Random) -> Vec<Vec<String>> {
        let mut author = Author {
            random,
            times: 0,
            commands: Vec::new(),
        };
        while author.commands.len() < COMMANDS {
            match author.random.below(12) {
                0 => author.transaction(),
                1 => author.passed_expiry(),
                _ => {
                    let command = author.command();
                    author.write(command);
                }
            }
        }
        author.commands
    }

    fn write(&mut self, mut command: Vec<String>) {
        if self.random.percent(30) {
            command[0].make_ascii_lowercase();
        }
        self.commands.push(command);
    }

    fn key(&mut self) -> &'static str {
        self.random.choose::<&str>(&KEYS)
    }

    fn value(&mut self) -> &'static str {
        self.random.choose::<&str>(&VALUES)
    }

    fn command(&mut self) -> Vec<String> {
        let (key, value) = (self.key(), self.value());
        match self.random.below(20) {
            0..=4 => self.set(),
            5 => words(&["GET", key]),
            6 => words(&[
                *self.random.choose(&["DEL", "UNLINK", "EXISTS", "MGET"]),
                key,
                "a",
                "a",
            ]),
            7 => words(&[
                *self.random.choose(&["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"]),
                key,
            ]),
            8 | 9 => self.expire(),
            10 => words(&[*self.random.choose(&["PERSIST", "TYPE", "STRLEN", "GETDEL"]), key]),
            11 => words(&["SETNX", key, value]),
            12 => {
                let time = self.time();
                words(&[*self.random.choose(&["SETEX", "PSETEX"]), key, &time, value])
            }
            13 => {
                let other = self.key();
                let mut many = words(&[*self.random.choose(&["MSET", "MSETNX"]), key, value, other, "z"]);
                if self.random.percent(10) {
                    many.pop();
                }
                many
            }
            14 => {
                let (start, end) = (self.index(), self.index());
                words(&["GETRANGE", key, &start, &end])
            }
            15 => match self.random.below(3) {
                0 => words(&["KEYS", *self.random.choose(&["*", "a", "[ab]", "?", "", "[^a]*"])]),
                1 => words(&["DBSIZE"]),
                _ => words(&[
                    "SCAN",
                    "0",
                    "COUNT",
                    "1000",
                    "MATCH",
                    *self.random.choose(&["*", "b"]),
                ]),
            },
            16 => words(&[
                "SELECT",
                *self
                    .random
                    .choose(&["0", "1", "15", "16", "-1", "x", "", "01", "99999999999"]),
            ]),
            17 => self.session(),
            _ => self.wrong(),
        }
    }

    fn session(&mut self) -> Vec<String> {
        let value = self.value();
        match self.random.below(9) {
            0 => words(&["PING"]),
            1 => words(&["PING", value]),
            2 => words(&["ECHO", value]),
            3 => words(&["CLIENT", "SETNAME", *self.random.choose(&["me", "", "a b"])]),
            4 => words(&["CLIENT", *self.random.choose(&["GETNAME", "SETNAME", "getname"])]),
            5 => words(&["PUBLISH", "nobody", value]),
            6 => words(&[
                "PUBSUB",
                *self.random.choose(&["CHANNELS", "NUMPAT", "NUMSUB", "NONSENSE"]),
            ]),
            7 => words(&[*self.random.choose(&["EXEC", "DISCARD", "UNWATCH"])]),
            _ => words(&[
                *self.random.choose(&["WAIT"]),
                *self.random.choose(&["x", "0"]),
                *self.random.choose(&["-1", "x", "0"]),
            ]),
        }
    }

    /// Too few and too many arguments, and no command at all.
    fn wrong(&mut self) -> Vec<String> {
        let name = *self.random.choose(&[
            "SET",
            "GET",
            "DEL",
            "EXISTS",
            "TTL",
            "PTTL",
            "EXPIRE",
            "PEXPIRE",
            "PERSIST",
            "ECHO",
            "PING",
            "SELECT",
            "AUTH",
            "UNLINK",
            "MGET",
            "MSET",
            "MSETNX",
            "SETNX",
            "SETEX",
            "PSETEX",
            "GETDEL",
            "STRLEN",
            "TYPE",
            "GETRANGE",
            "EXPIREAT",
            "PEXPIRETIME",
            "SCAN",
            "KEYS",
            "DBSIZE",
            "WATCH",
            "SUBSCRIBE",
            "PUBLISH",
            "NONSENSE",
        ]);
        let count = usize::try_from(self.random.below(5)).unwrap();
        if ["SUBSCRIBE", "WATCH", "SCAN"].contains(&name) && count > 0 {
            return words(&["PING"]);
        }
        std::iter::once(name)
            .chain(std::iter::repeat_n("a", count))
            .map(str::to_owned)
            .collect()
    }

    fn set(&mut self) -> Vec<String> {
        let mut set = words(&["SET", self.key(), self.value()]);
        for _ in 0..self.random.below(4) {
            let option = *self.random.choose(&[
                "NX", "XX", "GET", "KEEPTTL", "EX", "PX", "px", "nx", "EXAT", "PXAT", "BAD",
            ]);
            set.push(option.to_owned());
            if ["EX", "PX", "px"].contains(&option) && self.random.percent(95) {
                set.push(self.time());
            }
            if ["EXAT", "PXAT"].contains(&option) && self.random.percent(95) {
                set.push(self.point());
            }
        }
        set
    }

    fn expire(&mut self) -> Vec<String> {
        let name = *self
            .random
            .choose(&["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"]);
        let mut expire = words(&[name, self.key()]);
        let time = if name.ends_with("AT") {
            self.point()
        } else {
            self.time()
        };
        expire.push(time);
        for _ in 0..self.random.below(3) {
            expire.push((*self.random.choose(&["NX", "XX", "gt", "LT", "BAD"])).to_owned());
        }
        expire
    }

    /// A key whose time is over is gone for every later command.
    fn passed_expiry(&mut self) {
        let (key, value) = (self.key(), self.value());
        let set = *self.random.choose(&["PXAT", "EXAT"]);
        self.write(words(&["SET", key, value, set, "1"]));
        self.write(words(&["GET", key]));
    }

    /// Between `WATCH` and `EXEC` nothing is renewed and nothing comes and goes: see the head of this file.
    fn transaction(&mut self) {
        if self.random.percent(40) {
            self.write(words(&["WATCH", "a", "b"]));
            match self.random.below(4) {
                0 => self.write(words(&["SET", "a", "1"])),
                1 => self.write(words(&["SET", "c", "1"])),
                2 => self.write(words(&["UNWATCH"])),
                _ => {}
            }
        }
        self.write(words(&["MULTI"]));
        for _ in 0..self.random.below(6) {
            let command = match self.random.below(12) {
                0 => words(&["MULTI"]),
                1 => words(&["WATCH", "a"]),
                2 => words(&["SELECT", *self.random.choose(&["0", "1", "x"])]),
                3 => words(&["PING"]),
                4 if self.random.percent(30) => self.wrong_arguments(),
                _ => self.on_keys(),
            };
            self.write(command);
        }
        let end = if self.random.percent(85) {
            "EXEC"
        } else {
            "DISCARD"
        };
        self.write(words(&[end]));
    }

    fn wrong_arguments(&mut self) -> Vec<String> {
        words(&[*self.random.choose(&["SET", "NONSENSE", "GET"])])
    }

    fn on_keys(&mut self) -> Vec<String> {
        let (key, value) = (self.key(), self.value());
        match self.random.below(8) {
            0 | 1 => self.set(),
            2 => self.expire(),
            3 => words(&["GET", key]),
            4 => words(&["DEL", key, "a"]),
            5 => words(&["MSETNX", key, value, "b", value]),
            6 => words(&[*self.random.choose(&["PTTL", "TTL", "EXISTS", "GETDEL"]), key]),
            _ => words(&["PERSIST", key]),
        }
    }

    fn index(&mut self) -> String {
        (*self
            .random
            .choose(&["0", "1", "-1", "-3", "100", "-100", "x", "9223372036854775807"]))
        .to_owned()
    }

    /// Times far enough away that none ends while the test runs, and times that cannot be.
    fn time(&mut self) -> String {
        if self.random.percent(50) {
            self.times += 1;
            return (1_000_000 + self.times * 100_000).to_string();
        }
        let number = *self.random.choose(&[
            "0",
            "-1",
            "-9223372036854775808",
            "9223372036854775808",
            "-9223372036854776",
            "x",
            "",
            "1.5",
            "+5000000",
            " 5000000",
            "05000000",
            "-0",
        ]);
        number.to_owned()
    }

    /// Points of the wall clock: long past, and in the next centuries in seconds as well as in milliseconds.
    fn point(&mut self) -> String {
        if self.random.percent(60) {
            self.times += 1;
            return (9_000_000_000_000 + self.times * 100_000).to_string();
        }
        (*self
            .random
            .choose(&["0", "-1", "1.5", "x", "9223372036854775808"]))
        .to_owned()
    }
}
