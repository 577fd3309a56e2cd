//! One reward, two workers and a pause: paid twice under a plain expiring lock, paid once with a fencing token.
//!
//! `cargo run --release --example duplicate_reward`
//!
//! Everything here is real and in this process: the lease store, the client, the ledger, and worker A, a thread that
//! stops for longer than its lock lives. Times are scaled down from the usual seconds: `--ttl-ms 5000 --pause-ms 5100`
//! plays it at full length. Each figure is counted from the tables afterwards.

#![expect(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

mod accounts;
mod expired;
mod fenced;
mod pause;
mod plain_lock;
mod timeline;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser};
use reward_ledger::{InvalidEventId, RewardEventId};

use timeline::Paint;

/// What can go wrong in an example: it is shown, and ends it.
type Failure = Box<dyn Error + Send + Sync>;

/// How much longer than the ttl the pause must be at the least: B needs some of it to be granted and to pay.
const PAUSE_OVER_TTL_MS_MIN: u64 = 100;
/// Shortest ttl: below it, the scheduler of a busy machine decides the race, and not the pause.
const TTL_MS_MIN: u64 = 100;
/// Longest ttl: an example should end.
const TTL_MS_MAX: u64 = 60_000;

/// Shows how a reward is paid twice under a plain expiring lock, and how a fencing token prevents it.
#[derive(Debug, Parser)]
#[command(name = "duplicate_reward")]
struct Arguments {
    /// Time to live of the lock, in milliseconds.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(TTL_MS_MIN..=TTL_MS_MAX))]
    ttl_ms: u64,
    /// How long worker A stops in the middle of its work, in milliseconds; by default for twice the ttl.
    #[arg(long)]
    pause_ms: Option<u64>,
}

/// What both acts play: a message asks for one reward, and the queue delivers it to both workers, as queues do.
#[derive(Debug, Clone)]
struct Scene {
    lock: &'static str,
    ttl: Duration,
    pause: Duration,
    player: i64,
    event: RewardEventId,
    amount: i64,
    message: &'static str,
}

impl Scene {
    fn new(ttl_ms: u64, pause_ms: u64) -> Result<Self, InvalidEventId> {
        let player = 42;
        Ok(Self {
            lock: "lock:reward:player-42",
            ttl: Duration::from_millis(ttl_ms),
            pause: Duration::from_millis(pause_ms),
            player,
            event: RewardEventId::builder("season-2026-week-34", player, "rank-3").build()?,
            amount: 500,
            message: "message-7",
        })
    }
}

/// What a table says after an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    payments: u64,
    gold: i128,
}

/// How an act came out.
#[derive(Debug)]
struct Outcome {
    counted: Counted,
    /// What became of the write that A made too late.
    late_write: LateWrite,
}

/// What became of the write that A made too late.
#[derive(Debug, PartialEq, Eq)]
enum LateWrite {
    /// It was taken like any other.
    Taken,
    /// It was refused, and A was shown what the other worker had done.
    RefusedAndShown { presented: u64, seen: u64 },
    /// Something else happened.
    Other(String),
}

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let arguments = Arguments::parse();
    let ttl_ms = arguments.ttl_ms;
    let pause_ms = arguments.pause_ms.unwrap_or(2 * ttl_ms);
    if pause_ms < ttl_ms + PAUSE_OVER_TTL_MS_MIN {
        let least = ttl_ms + PAUSE_OVER_TTL_MS_MIN;
        let what =
            format!("--pause-ms must be at least {least} with a ttl of {ttl_ms} ms: else there is no race");
        Arguments::command()
            .error(ErrorKind::ValueValidation, what)
            .exit();
    }
    let scene = Scene::new(ttl_ms, pause_ms)?;
    let paint = Paint::of_stdout();

    println!("{}", introduction(&scene));
    println!(
        "{}",
        paint.title("ACT ONE   a plain lock that expires, as with SET NX PX")
    );
    let plain = plain_lock::play(&scene, paint).await?;
    println!("{}", paint.title("ACT TWO   the same, with a fencing token"));
    let fenced = fenced::play(&scene, paint).await?;
    println!("{}", verdict(&scene, &plain, &fenced, paint));

    let expected = Counted {
        payments: 1,
        gold: i128::from(scene.amount),
    };
    let shown = plain.counted.payments == 2 && plain.late_write == LateWrite::Taken;
    let prevented =
        fenced.counted == expected && matches!(fenced.late_write, LateWrite::RefusedAndShown { .. });
    if shown && prevented {
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "{}",
        paint.wrong("This is not what was to be shown: two payments in act one, one in act two.")
    );
    Ok(ExitCode::FAILURE)
}

fn introduction(scene: &Scene) -> String {
    let Scene {
        lock,
        ttl,
        pause,
        player,
        event,
        amount,
        ..
    } = scene;
    let (ttl, pause) = (ttl.as_millis(), pause.as_millis());
    format!(
        "\nPlayer {player} has earned {amount} gold, once: {event}.\n\
         The queue delivers the message to two workers, as queues do now and then. A lock keeps them apart:\n\
         `{lock}`, which lives {ttl} ms. Worker A takes it, looks whether the gold was paid, sees\n\
         that the lock is its own, and then stops for {pause} ms: a garbage collection, a starved machine. Nothing\n\
         fails, and nobody does anything wrong.\n"
    )
}

fn verdict(scene: &Scene, plain: &Outcome, fenced: &Outcome, paint: Paint) -> String {
    let line = |name: &str, outcome: &Outcome| {
        let Counted { payments, gold } = outcome.counted;
        let late = match &outcome.late_write {
            LateWrite::Taken => "taken like any other".to_owned(),
            LateWrite::RefusedAndShown { presented, seen } => {
                format!("refused ({presented} < {seen}), and A was shown B's receipt")
            }
            LateWrite::Other(what) => what.clone(),
        };
        let text = format!("  {name:<16} {payments:>8}   {gold:>9} gold   {late}");
        if gold == i128::from(scene.amount) {
            paint.right(&text)
        } else {
            paint.wrong(&text)
        }
    };
    let heading = format!(
        "  {:<16} {:>8}   {:>14}   {}",
        "", "payments", "player got", "A's late write"
    );
    format!(
        "{}\n{}\n{}\n{}\n\n\
         The lock did what it promised both times: one holder at a time, for a while. What no lock can do is stop a\n\
         worker that was paused between its last look and its write. The ledger can: it keeps the highest token that it\n\
         has seen, and refuses lower ones. Beside that, its unique key grants each event of a player once.\n",
        paint.title("WHAT THE TABLES SAY"),
        heading,
        line("plain lock", plain),
        line("fencing token", fenced),
    )
}
