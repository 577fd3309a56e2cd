//! The words of a script: one entry a line, `TIME COMMAND [; COMMAND ..]`.

use std::sync::Arc;

use lease_core::machine::{
    Acquire, Command, KeyCommand, LeaseKey, Limits, MachineVersion, ManyCondition, Once, ReleaseCause,
    Renewal, RunScript, ScriptSource, Set, SetCondition, SetExpiry, Sighting, Submission, TtlCondition, Wait,
    Watched,
};
use lease_core::script::{Program, ScriptDigest};
use lease_core::{
    Attachment, Database, FenceToken, LeaseName, Metadata, OwnerId, RequestId, SharedBytes, Timestamp, Ttl,
};

/// The words of one command that are not read yet.
struct Words<'a>(std::iter::Peekable<std::str::SplitWhitespace<'a>>);

impl<'a> Words<'a> {
    fn next(&mut self) -> &'a str {
        self.0.next().unwrap()
    }

    /// Takes the next word if it is this one.
    fn take(&mut self, word: &str) -> bool {
        self.0.next_if(|next| *next == word).is_some()
    }

    fn number(&mut self) -> u64 {
        self.next().parse().unwrap()
    }

    fn number_if_any(&mut self) -> Option<u64> {
        self.0.next_if(|next| next.parse::<u64>().is_ok())?.parse().ok()
    }

    /// `NAME` or `DATABASE/NAME`.
    fn key(&mut self) -> LeaseKey {
        key(self.next())
    }

    fn owner(&mut self) -> OwnerId {
        OwnerId::redis_value(self.next()).unwrap()
    }

    fn token(&mut self) -> FenceToken {
        FenceToken::new(self.number()).unwrap()
    }

    fn ttl(&mut self) -> Ttl {
        Ttl::from_millis(self.number()).unwrap()
    }

    fn once(&mut self) -> Once {
        let Attachment {
            node,
            incarnation,
            number,
        } = self.attachment();
        Once {
            node,
            incarnation,
            number,
            settled_below: self.number(),
        }
    }

    fn attachment(&mut self) -> Attachment {
        let mut parts = self.next().split('.').map(|part| part.parse().unwrap());
        let mut part = || parts.next().unwrap();
        Attachment {
            node: part(),
            incarnation: part(),
            number: part(),
        }
    }
}

/// `NAME` in database 0, or `DATABASE/NAME`.
pub(crate) fn key(word: &str) -> LeaseKey {
    let (database, name) = word.split_once('/').unwrap_or(("0", word));
    let database = Database::new(database.parse().unwrap()).unwrap();
    LeaseKey::new(database, LeaseName::new(name).unwrap())
}

/// One command, after `once NODE.INCARNATION.NUMBER SETTLED-BELOW` if it has a number.
pub(crate) fn submission(text: &str, limits: Limits) -> Submission {
    let mut words = Words(text.split_whitespace().peekable());
    let once = words.take("once").then(|| words.once());
    let rest: Vec<&str> = words.0.collect();
    let command = command(&rest.join(" "), limits);
    Submission { once, command }
}

/// One command. `limits` are those that are active, of which a `limit` changes one.
pub(crate) fn command(text: &str, limits: Limits) -> Command {
    let mut words = Words(text.split_whitespace().peekable());
    let first = words.next();
    let command = match first {
        "tick" => Command::Tick,
        "touch" => Command::Touch { key: words.key() },
        "script-load" | "eval" | "evalsha" | "script-flush" => script(first, &mut words),
        "acquire" => Command::Acquire(acquire(&mut words)),
        "renew" => Command::Renew(renewal(&mut words)),
        "renew-many" => {
            let mut renewals = Vec::new();
            while words.0.peek().is_some() {
                renewals.push(renewal(&mut words));
            }
            Command::RenewMany(renewals)
        }
        "release" => Command::Release {
            key: words.key(),
            token: words.token(),
            cause: if words.take("orphaned") {
                ReleaseCause::Orphaned
            } else {
                ReleaseCause::Holder
            },
        },
        "release-by" => Command::ReleaseByOwner {
            key: words.key(),
            owner: words.owner(),
        },
        "pexpire" => Command::SetTtl {
            key: words.key(),
            ttl: Some(words.ttl()),
            condition: ttl_condition(&mut words),
        },
        "persist" => Command::SetTtl {
            key: words.key(),
            ttl: None,
            condition: TtlCondition::Always,
        },
        "force" => Command::Force {
            key: words.key(),
            reason: SharedBytes::from(words.0.by_ref().collect::<Vec<_>>().join(" ").as_str()),
        },
        "delete" => Command::Delete { key: words.key() },
        "cancel" => Command::Cancel {
            key: words.key(),
            owner: words.owner(),
            request: RequestId::new(words.next()).unwrap(),
        },
        "floor" => Command::RaiseTokenFloor {
            floor: words.number(),
        },
        "activate" => Command::Activate {
            version: MachineVersion::new(words.next().parse().unwrap()),
        },
        "limit" => Command::SetLimits(limit(&mut words, limits)),
        "set" => Command::Set(set(&mut words)),
        "multi" => transaction(&mut words),
        other => of_a_node(other, &mut words),
    };
    assert_eq!(words.0.next(), None, "left over in {text:?}");
    command
}

/// What nodes tell of themselves and of each other.
fn of_a_node(word: &str, words: &mut Words<'_>) -> Command {
    match word {
        "detach" => Command::Detach {
            attachment: words.attachment(),
        },
        "node-started" => Command::NodeStarted {
            node: words.number(),
            incarnation: words.number(),
        },
        "node-lost" => Command::NodeLost {
            node: words.number(),
            incarnation: words.number(),
        },
        "withdraw" => Command::Withdraw {
            once: words.once(),
            key: words.key(),
        },
        other => Command::Key(key_command(other, words)),
    }
}

/// `KEY TOKEN DEADLINE` or `KEY none` for each key that is watched, `exec`, and commands on keys with a comma between them.
fn transaction(words: &mut Words<'_>) -> Command {
    let mut watched = Vec::new();
    while !words.take("exec") {
        let key = words.key();
        let seen = if words.take("none") {
            None
        } else {
            let (token, deadline) = (words.token(), Timestamp::from_millis(words.number()));
            Some(Sighting { token, deadline })
        };
        watched.push(Watched { key, seen });
    }
    let mut commands = Vec::new();
    while words.0.peek().is_some() {
        let name = words.next();
        commands.push(key_command(name, words));
        words.take(",");
    }
    Command::Transaction { watched, commands }
}

fn key_command(name: &str, words: &mut Words<'_>) -> KeyCommand {
    match name {
        "set" => KeyCommand::Set(set(words)),
        "pexpire" => KeyCommand::SetTtl {
            key: words.key(),
            ttl: Some(words.ttl()),
            condition: ttl_condition(words),
        },
        "persist" => KeyCommand::SetTtl {
            key: words.key(),
            ttl: None,
            condition: TtlCondition::Always,
        },
        "del" => KeyCommand::Delete { keys: keys(words) },
        "delex" => KeyCommand::DeleteIf {
            key: words.key(),
            condition: set_condition(words),
        },
        "take" => KeyCommand::Take { key: words.key() },
        "mset" | "msetnx" => {
            let mut pairs = Vec::new();
            while words.0.peek().is_some_and(|word| *word != ",") {
                pairs.push((words.key(), words.owner()));
            }
            let condition = if name == "mset" {
                ManyCondition::Always
            } else {
                ManyCondition::IfNoneHeld
            };
            KeyCommand::SetMany { pairs, condition }
        }
        "expire-now" => KeyCommand::ExpireNow {
            key: words.key(),
            condition: ttl_condition(words),
        },
        "look" => KeyCommand::Look { keys: keys(words) },
        "publish" => KeyCommand::Publish {
            channel: SharedBytes::from(words.next()),
            message: SharedBytes::from(words.0.by_ref().collect::<Vec<_>>().join(" ").as_str()),
        },
        other => panic!("no such command: {other}"),
    }
}

fn keys(words: &mut Words<'_>) -> Vec<LeaseKey> {
    let mut keys = Vec::new();
    while words.0.peek().is_some_and(|word| *word != ",") {
        keys.push(words.key());
    }
    keys
}

fn acquire(words: &mut Words<'_>) -> Acquire {
    let mut acquire = Acquire {
        key: words.key(),
        owner: words.owner(),
        ttl: words.ttl(),
        wait: None,
        request: None,
        metadata: None,
    };
    if words.take("wait") {
        acquire.wait = Some(Wait {
            for_ms: words.number(),
            attachment: words.attachment(),
        });
    }
    if words.take("req") {
        acquire.request = Some(RequestId::new(words.next()).unwrap());
    }
    if words.take("meta") {
        acquire.metadata = Some(Metadata::new(words.next()).unwrap());
    }
    acquire
}

fn renewal(words: &mut Words<'_>) -> Renewal {
    Renewal {
        key: words.key(),
        token: words.token(),
        ttl: words.number_if_any().map(|ttl| Ttl::from_millis(ttl).unwrap()),
    }
}

fn ttl_condition(words: &mut Words<'_>) -> TtlCondition {
    match words.0.next_if(|word| *word != ",") {
        None => TtlCondition::Always,
        Some("nx") => TtlCondition::IfPersistent,
        Some("xx") => TtlCondition::IfExpiring,
        Some("gt") => TtlCondition::IfLater,
        Some("lt") => TtlCondition::IfEarlier,
        Some("xxlt") => TtlCondition::IfExpiringAndEarlier,
        Some(other) => panic!("no such condition: {other}"),
    }
}

fn set(words: &mut Words<'_>) -> Set {
    Set {
        key: words.key(),
        value: words.owner(),
        expiry: if words.take("px") {
            SetExpiry::In(words.ttl())
        } else if words.take("keepttl") {
            SetExpiry::Keep
        } else if words.take("over") {
            SetExpiry::Over
        } else {
            SetExpiry::Never
        },
        condition: set_condition(words),
    }
}

fn set_condition(words: &mut Words<'_>) -> SetCondition {
    if words.take("nx") {
        SetCondition::IfAbsent
    } else if words.take("xx") {
        SetCondition::IfPresent
    } else if words.take("ifeq") {
        SetCondition::IfEqual(words.owner())
    } else if words.take("ifne") {
        SetCondition::IfNotEqual(words.owner())
    } else if words.take("ifdeq") {
        SetCondition::IfDigestEqual(words.number())
    } else if words.take("ifdne") {
        SetCondition::IfDigestNotEqual(words.number())
    } else {
        SetCondition::Always
    }
}

fn limit(words: &mut Words<'_>, mut limits: Limits) -> Limits {
    let field = match words.next() {
        "leases" => &mut limits.leases_max,
        "bytes" => &mut limits.bytes_max,
        "waiters" => &mut limits.waiters_max,
        "waiters-per-name" => &mut limits.waiters_per_name_max,
        "requests" => &mut limits.requests_max,
        "request-memory" => &mut limits.request_memory_ms,
        "endings" => &mut limits.endings_max,
        other => panic!("no such limit: {other}"),
    };
    *field = words.number();
    limits
}

/// What concerns scripts.
fn script(first: &str, words: &mut Words<'_>) -> Command {
    match first {
        "script-load" => Command::LoadScript {
            digest: digest(words),
            program: program(words),
        },
        "script-flush" => Command::FlushScripts,
        _ => Command::RunScript(run_script(words)),
    }
}

/// A script's digest by a number of one byte.
fn digest(words: &mut Words<'_>) -> ScriptDigest {
    ScriptDigest::new([u8::try_from(words.number()).unwrap(); 20])
}

/// What is left of the words is a script.
fn program(words: &mut Words<'_>) -> Arc<Program> {
    let text = words.0.by_ref().collect::<Vec<_>>().join(" ");
    Arc::new(Program::parse(text.as_bytes()).unwrap())
}

/// `NUMBER DATABASE keys KEY .. args ARGUMENT .. : [TEXT]`
fn run_script(words: &mut Words<'_>) -> RunScript {
    let (digest, database) = (digest(words), Database::new(words.number()).unwrap());
    let mut until = |end: &str| {
        let mut list = Vec::new();
        while !words.take(end) {
            list.push(SharedBytes::from(words.next()));
        }
        list
    };
    assert_eq!(until("keys"), []);
    let (keys, arguments) = (until("args"), until(":"));
    let source = if words.0.peek().is_some() {
        let program = program(words);
        ScriptSource::Given { digest, program }
    } else {
        ScriptSource::Held { digest }
    };
    RunScript {
        source,
        database,
        databases: 16,
        value_bytes_max: 1_048_576,
        keys,
        arguments,
    }
}
