//! The matrix: rungs by scenarios, as text and as Markdown, and why each rung that fails fails.

use std::fmt::Write as _;

use crate::facts::why;
use crate::ladder::Run;
use crate::rung::Rung;
use crate::surprises;

/// Characters of a rung's name.
const NAME_WIDTH: usize = 34;
/// Characters of a cell.
const CELL_WIDTH: usize = 5;

const LEGEND: &str = "7: done seven times too often   -1: never done   ?7: seven callers in good standing left without an answer";

/// For a terminal.
pub(crate) fn text(run: &Run) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let written = writeln!(out, "{}", text.trim_end());
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
    };
    let heading: String = run
        .scenarios
        .iter()
        .map(|scenario| format!("{:>CELL_WIDTH$}", scenario.id()))
        .collect();
    line(format!("{:NAME_WIDTH$}{heading}", ""));
    for &rung in &run.rungs {
        let cells: String = cells(run, rung)
            .map(|cell| format!("{cell:>CELL_WIDTH$}"))
            .collect();
        line(format!("{:>2} {:<30} {cells}", rung.number(), rung.name()));
    }
    line(String::new());
    line(LEGEND.to_owned());
    line(format!(
        "Locks live {} ms, those of rung 3 {} ms. Counted in this run, from the tables and the outside's own books.",
        run.times.ttl().as_millis(),
        run.times.long_ttl().as_millis()
    ));
    line(String::new());
    for &scenario in &run.scenarios {
        line(format!("{}  {}", scenario.id(), scenario.title()));
    }
    for &rung in &run.rungs {
        let reasons = reasons(run, rung);
        line(String::new());
        line(format!("{}. {}", rung.number(), rung.name()));
        if reasons.is_empty() {
            line("    Nothing went wrong.".to_owned());
        }
        for (scenarios, reason) in reasons {
            line(format!("    {scenarios}: {reason}"));
        }
    }
    for (rung, reason) in &run.skipped {
        line(format!(
            "\n!!! SKIPPED: rung {} ({}): {reason}",
            rung.number(),
            rung.name()
        ));
    }
    for surprise in surprises(run) {
        line(format!("\n*** Not what was to be shown: {surprise}"));
    }
    out
}

/// For a document.
pub(crate) fn markdown(run: &Run) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let written = writeln!(out, "{text}");
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
    };
    let ids: Vec<_> = run.scenarios.iter().map(|scenario| scenario.id()).collect();
    line(format!("| | rung | {} |", ids.join(" | ")));
    line(format!("|---:|---|{}", "---:|".repeat(ids.len())));
    for &rung in &run.rungs {
        let cells: Vec<_> = cells(run, rung).collect();
        line(format!(
            "| {} | {} | {} |",
            rung.number(),
            rung.name(),
            cells.join(" | ")
        ));
    }
    out
}

fn cells(run: &Run, rung: Rung) -> impl Iterator<Item = String> {
    run.scenarios.iter().map(move |&scenario| {
        run.cell(rung, scenario)
            .map_or_else(|| "?".to_owned(), |cell| cell.counts.short())
    })
}

/// Each reason with the scenarios that it is for.
fn reasons(run: &Run, rung: Rung) -> Vec<(String, &'static str)> {
    let mut reasons: Vec<(String, &'static str)> = Vec::new();
    let cells = run
        .cells
        .iter()
        .filter(|cell| cell.rung == rung && !cell.counts.are_zero());
    for cell in cells {
        let Some(reason) = why(rung, cell.scenario) else {
            continue;
        };
        match reasons.iter_mut().find(|(_, known)| *known == reason) {
            Some((scenarios, _)) => {
                scenarios.push_str(", ");
                scenarios.push_str(cell.scenario.id());
            }
            None => reasons.push((cell.scenario.id().to_owned(), reason)),
        }
    }
    reasons
}
