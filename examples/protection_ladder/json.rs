//! The run as JSON.

use serde_json::{Value, json};

use crate::facts::why;
use crate::ladder::{Cell, Run};
use crate::timeline::{Mark, Verdict, What};

/// The whole run.
pub(crate) fn of(run: &Run) -> Value {
    let rungs = run
        .rungs
        .iter()
        .map(|rung| json!({ "rung": rung.number(), "name": rung.name(), "is": rung.is() }));
    let skipped = run
        .skipped
        .iter()
        .map(|(rung, reason)| json!({ "rung": rung.number(), "name": rung.name(), "why": reason }));
    let scenarios = run.scenarios.iter().map(
        |scenario| json!({ "scenario": scenario.id(), "title": scenario.title(), "story": scenario.story() }),
    );
    json!({
        "scale": run.times.scale,
        "ttl_ms": millis(run.times.ttl()),
        "long_ttl_ms": millis(run.times.long_ttl()),
        "rungs": rungs.collect::<Vec<_>>(),
        "skipped": skipped.collect::<Vec<_>>(),
        "scenarios": scenarios.collect::<Vec<_>>(),
        "cells": run.cells.iter().map(cell).collect::<Vec<_>>(),
        "not_as_expected": crate::surprises(run),
    })
}

fn cell(cell: &Cell) -> Value {
    let reason = (!cell.counts.are_zero())
        .then(|| why(cell.rung, cell.scenario))
        .flatten();
    json!({
        "rung": cell.rung.number(),
        "scenario": cell.scenario.id(),
        "duplicates": cell.counts.duplicates,
        "lost": cell.counts.lost,
        "unanswered": cell.counts.unanswered,
        "why": reason,
        "timeline": cell.marks.iter().map(mark).collect::<Vec<_>>(),
    })
}

fn mark(mark: &Mark) -> Value {
    let verdict = if let What::Wrote { verdict, .. } = &mark.what {
        Some(match verdict {
            Verdict::Done => "done",
            Verdict::Again => "again",
            Verdict::Refused => "refused",
            Verdict::Replayed => "replayed",
            Verdict::Nothing => "nothing",
            Verdict::AnswerLost => "answer-lost",
        })
    } else {
        None
    };
    json!({ "ms": millis(mark.at), "who": mark.lane.name(), "what": mark.text(), "write": verdict })
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
