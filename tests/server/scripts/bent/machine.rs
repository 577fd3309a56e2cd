//! One lease machine, the keys in it, and the call of a script.

use std::sync::Arc;

use lease_core::machine::{
    Command, Effect, KeyCommand, LeaseKey, LeaseMachine, Outcome, Preview, RunScript, ScriptAccess,
    ScriptSource, Set, SetCondition, SetExpiry,
};
use lease_core::script::{Program, ScriptDigest};
use lease_core::wire::{ErrorReply, Line, Reply};
use lease_core::{Database, LeaseName, OwnerId, SharedBytes, Timestamp, Ttl};
use tests::random::Random;

use super::super::agree;

/// The keys that are looked at.
pub(super) const KEYS: [&str; 3] = ["a", "b", "c"];
/// The time of a key that has one, in milliseconds: no run lasts as long.
pub(super) const TTL_MS: u64 = 5_000_000;
/// The cluster's time, in milliseconds. It stands still.
const NOW_MS: u64 = 1_000;
const DIGEST: ScriptDigest = ScriptDigest::new([0; 20]);

/// Which keys are held at first, by which value, and whether they end.
pub(super) fn state(random: &mut Random) -> Vec<(&'static str, &'static str, bool)> {
    let mut state = Vec::new();
    for key in KEYS {
        let value = *random.choose(&["token-1", "token-2", "", "token-1 and more", "7"]);
        match random.below(4) {
            0 => {}
            1 => state.push((key, value, false)),
            _ => state.push((key, value, true)),
        }
    }
    state
}

/// What a script is called with.
#[derive(Debug)]
pub(super) struct Call {
    keys: Vec<&'static str>,
    arguments: [&'static str; 4],
}

impl Call {
    pub(super) fn random(random: &mut Random) -> Self {
        let keys = match random.below(3) {
            0 => &KEYS[..1],
            1 => &KEYS[..2],
            _ => &KEYS[..],
        };
        Self {
            keys: keys.to_vec(),
            arguments: [
                *random.choose(&["token-1", "token-2", "token-1", ""]),
                *random.choose(&["3000000", "7000000", "0", "-1", "x", ""]),
                "other",
                *random.choose(&["0", "1", "99"]),
            ],
        }
    }

    /// As it is sent to a server.
    pub(super) fn request(&self, text: &str) -> Vec<String> {
        let count = self.keys.len().to_string();
        let words = ["EVAL", text, &count].into_iter();
        let all = words.chain(self.keys.iter().copied()).chain(self.arguments);
        all.map(str::to_owned).collect()
    }

    fn script(&self, program: &Program) -> RunScript {
        let texts = |all: &[&str]| all.iter().map(|text| SharedBytes::from(*text)).collect();
        RunScript {
            source: ScriptSource::Given {
                digest: DIGEST,
                program: Arc::new(program.clone()),
            },
            database: Database::ZERO,
            databases: 16,
            value_bytes_max: 1_048_576,
            keys: texts(&self.keys),
            arguments: texts(&self.arguments),
        }
    }
}

/// One key as it stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key {
    value: Option<OwnerId>,
    /// As `PTTL` says it.
    pub(super) remaining_ms: i64,
}

impl Key {
    pub(super) fn is_as_in_redis((ours, (value, time)): (&Self, &(Reply, Reply))) -> bool {
        let our_value = ours
            .value
            .as_ref()
            .map_or(Reply::Nil, |value| Reply::bulk(value.as_bytes()));
        our_value == *value && agree(&Reply::Integer(ours.remaining_ms), time)
    }
}

pub(super) struct Machine(LeaseMachine);

impl Machine {
    pub(super) fn with(state: &[(&'static str, &'static str, bool)]) -> Self {
        let mut commands = vec![Command::RaiseTokenFloor { floor: 0 }];
        commands.extend(state.iter().map(|(key, value, ends)| {
            let expiry = if *ends {
                SetExpiry::In(Ttl::from_millis(TTL_MS).unwrap())
            } else {
                SetExpiry::Never
            };
            Command::Key(KeyCommand::Set(Set {
                key: lease_key(key),
                value: OwnerId::redis_value(value).unwrap(),
                expiry,
                condition: SetCondition::Always,
            }))
        }));
        let mut machine = LeaseMachine::new();
        machine.apply(now(), &commands).unwrap();
        Self(machine)
    }

    pub(super) fn preview(&self, program: &Program, call: &Call) -> Preview {
        self.0
            .preview(now(), &call.script(program), ScriptAccess::ReadWrite)
    }

    pub(super) fn run(&mut self, program: Program, call: &Call) -> (Outcome, Vec<Effect>) {
        let command = Command::RunScript(call.script(&program));
        let mut applied = self.0.apply(now(), &[command]).unwrap();
        (applied.outcomes.remove(0), applied.effects)
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        let key = |name| match self.0.get(&lease_key(name)) {
            None => Key {
                value: None,
                remaining_ms: -2,
            },
            Some(info) => Key {
                value: Some(info.owner),
                remaining_ms: if info.deadline == Timestamp::NEVER {
                    -1
                } else {
                    i64::try_from(info.deadline.millis_since(now())).unwrap()
                },
            },
        };
        KEYS.into_iter().map(key).collect()
    }

    #[track_caller]
    pub(super) fn check(&self, case: &str) {
        let checked = self.0.check();
        assert!(checked.is_ok(), "{checked:?}: {case}");
    }
}

const fn now() -> Timestamp {
    Timestamp::from_millis(NOW_MS)
}

fn lease_key(name: &str) -> LeaseKey {
    LeaseKey::new(Database::ZERO, LeaseName::redis_key(name).unwrap())
}

/// An error without what is not counted here: the name of the script, and the line, which is Redis's that of an operation and
/// ours that of its statement or call.
pub(super) fn plain(reply: &Reply) -> Reply {
    match reply {
        Reply::Error(error) => {
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let said = match text.split_once(" script: ") {
                Some((said, _)) => said,
                None => &text,
            };
            let line = Line::new(without_lines(said).into());
            Reply::Error(ErrorReply::from_line(line))
        }
        Reply::Array(items) => Reply::Array(items.iter().map(plain).collect()),
        other => other.clone(),
    }
}

fn without_lines(text: &str) -> String {
    let mut parts = text.split("user_script:");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str("user_script");
        plain.push_str(part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
    }
    plain
}
