//! The run: every rung meets every scenario, each on a stage of its own, many side by side.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::Failure;
use crate::counts::Counts;
use crate::rung::Rung;
use crate::scenario::Scenario;
use crate::scenes;
use crate::servers::Servers;
use crate::stage::Stage;
use crate::timeline::Mark;
use crate::times::Times;

/// Stages that play side by side: most of their time they wait for a time to live.
const STAGES_AT_ONCE: usize = 16;
/// A scenario that has not ended by then, in full length on a busy machine, will not.
const SCENARIO_TIME_MAX: Duration = Duration::from_secs(300);

/// How a rung met a scenario.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) rung: Rung,
    pub(crate) scenario: Scenario,
    pub(crate) counts: Counts,
    pub(crate) marks: Vec<Mark>,
}

/// A run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) times: Times,
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) rungs: Vec<Rung>,
    /// What could not be run here, and why.
    pub(crate) skipped: Vec<(Rung, String)>,
    /// In the order of rungs, then of scenarios.
    pub(crate) cells: Vec<Cell>,
}

impl Run {
    pub(crate) fn cell(&self, rung: Rung, scenario: Scenario) -> Option<&Cell> {
        let is_it = |cell: &&Cell| cell.rung == rung && cell.scenario == scenario;
        self.cells.iter().find(is_it)
    }
}

/// Runs these rungs against these scenarios. `progress` is told of each cell.
pub(crate) async fn climb(
    rungs: &[Rung],
    scenarios: &[Scenario],
    times: Times,
    mut progress: impl FnMut(usize, usize),
) -> Result<Run, Failure> {
    let servers = Arc::new(Servers::start(rungs).await);
    let (mut here, mut skipped) = (Vec::new(), Vec::new());
    for &rung in rungs {
        match servers.missing(rung) {
            None => here.push(rung),
            Some(why) => skipped.push((rung, why)),
        }
    }
    let room = Arc::new(Semaphore::new(STAGES_AT_ONCE));
    let mut playing = JoinSet::new();
    for &rung in &here {
        for &scenario in scenarios {
            let (servers, room) = (Arc::clone(&servers), Arc::clone(&room));
            playing.spawn(async move {
                let _room = room.acquire_owned().await?;
                let played = tokio::time::timeout(SCENARIO_TIME_MAX, meet(rung, scenario, times, &servers));
                let at = || format!("rung {} in {}", rung.number(), scenario.id());
                match played.await {
                    Ok(Ok(cell)) => Ok(cell),
                    Ok(Err(error)) => Err(Failure::from(format!("{}: {error}", at()))),
                    Err(_) => Err(Failure::from(format!("{} does not end", at()))),
                }
            });
        }
    }
    let all = playing.len();
    let mut cells = Vec::new();
    while let Some(cell) = playing.join_next().await {
        cells.push(cell??);
        progress(cells.len(), all);
    }
    cells.sort_by_key(|cell| (cell.rung, cell.scenario));
    Ok(Run {
        times,
        scenarios: scenarios.to_vec(),
        rungs: here,
        skipped,
        cells,
    })
}

async fn meet(rung: Rung, scenario: Scenario, times: Times, servers: &Servers) -> Result<Cell, Failure> {
    let stage = Arc::new(Stage::set(rung, scenario, times, servers).await?);
    let counts = scenes::play(scenario, &stage).await?;
    let marks = stage.timeline.marks();
    if let Some(stage) = Arc::into_inner(stage) {
        stage.strike().await?;
    }
    Ok(Cell {
        rung,
        scenario,
        counts,
        marks,
    })
}
