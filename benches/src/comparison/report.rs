//! The report of a run, as Markdown for people and as JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::options::Options;
use super::promises::{Verdict, verdicts};
use super::results::{Cell, Results};
use super::systems::System;
use super::work::Work;
use crate::host;

/// Everything, as Markdown.
#[must_use]
pub fn markdown(results: &Results, options: &Options, machine: &str) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "# lease-store beside Redis and etcd\n");
    let _ = writeln!(
        out,
        "{machine}. {} rounds in turns of {:?} each; medians of the rounds. Load of the last minute at the start and after \
         each round: {}. The generator ran on the same machine.\n",
        options.rounds,
        options.time,
        results.loads.join(", "),
    );
    guarantees(results, &mut out);
    ratios(&verdicts(results), &mut out);
    for work in Work::ALL {
        figures(results, work, &mut out);
    }
    out
}

/// Systems that were measured, in the order of the report.
fn systems(results: &Results) -> Vec<System> {
    let measured = |system: &System| results.cells().any(|cell| cell.system == *system);
    System::ALL.into_iter().filter(measured).collect()
}

/// Numbers of connections that were measured.
#[must_use]
pub(super) fn connections(results: &Results) -> Vec<usize> {
    let mut counts: Vec<usize> = results.cells().map(|cell| cell.connections).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn guarantees(results: &Results, out: &mut String) {
    let _ = writeln!(out, "## What was guaranteed\n");
    let _ = writeln!(
        out,
        "| | durable | replicated | survives a node | linearizable | fenced |\n|---|---|---|---|---|---|"
    );
    for system in systems(results) {
        let has = system.guarantees();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            system.title(),
            has.durable,
            has.replicated,
            has.survives_a_node,
            has.linearizable,
            has.fenced
        );
    }
    out.push('\n');
}

fn ratios(verdicts: &[Verdict], out: &mut String) {
    if verdicts.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "## What is promised\n\n| | bound | measured | |\n|---|---|---|---|"
    );
    for verdict in verdicts {
        let word = if verdict.holds { "holds" } else { "**falls short**" };
        let _ = writeln!(
            out,
            "| {} | {} | {:.2} | {word} |",
            verdict.what, verdict.bound, verdict.measured
        );
    }
    out.push('\n');
}

fn figures(results: &Results, work: Work, out: &mut String) {
    let counts = connections(results);
    let rows: Vec<(System, Vec<String>)> = systems(results)
        .into_iter()
        .filter_map(|system| {
            let cells = counts.iter().map(|connections| Cell {
                work,
                connections: *connections,
                system,
            });
            let texts: Vec<String> = cells.map(|cell| text(results, cell)).collect();
            texts
                .iter()
                .any(|text| !text.is_empty())
                .then_some((system, texts))
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let heads: Vec<String> = counts.iter().map(|count| format!("{count} at once")).collect();
    let _ = writeln!(out, "## {}\n", capital(work.title()));
    let _ = writeln!(out, "A second; then the median and the 99th percentile of one.\n");
    let _ = writeln!(
        out,
        "| | {} |\n|---|{}",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    for (system, texts) in rows {
        let _ = writeln!(out, "| {} | {} |", system.title(), texts.join(" | "));
    }
    out.push('\n');
}

fn text(results: &Results, cell: Cell) -> String {
    let Some(rate) = results.rate(cell) else {
        return String::new();
    };
    let median = results.median_of(cell, |turn| turn.median_us).unwrap_or_default();
    let p99 = results.median_of(cell, |turn| turn.p99_us).unwrap_or_default();
    format!("{} ({}, {})", thousands(rate), time(median), time(p99))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// Microseconds in words.
fn time(micros: f64) -> String {
    if micros < 1_000.0 {
        format!("{micros:.0} us")
    } else {
        format!("{:.1} ms", micros / 1_000.0)
    }
}

/// A whole number with commas.
#[must_use]
pub(super) fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Everything, as JSON: each turn of each round.
#[must_use]
pub fn json(results: &Results, options: &Options, machine: &str) -> Value {
    let cells = results.cells().map(|cell| {
        let turns = results.turns(cell).iter().map(|turn| {
            json!({
                "per_second": turn.rate,
                "median_us": turn.median_us,
                "p99_us": turn.p99_us,
                "operations": turn.operations,
            })
        });
        json!({
            "system": cell.system.key(),
            "work": cell.work.key(),
            "connections": cell.connections,
            "rounds": turns.collect::<Vec<_>>(),
        })
    });
    let guarantees = systems(results).into_iter().map(|system| {
        let has = system.guarantees();
        json!({
            "system": system.key(),
            "title": system.title(),
            "durable": has.durable,
            "replicated": has.replicated,
            "survives_a_node": has.survives_a_node,
            "linearizable": has.linearizable,
            "fenced": has.fenced,
        })
    });
    let promises = verdicts(results).into_iter().map(|verdict| {
        json!({
            "what": verdict.what,
            "bound": verdict.bound,
            "measured": verdict.measured,
            "holds": verdict.holds,
        })
    });
    json!({
        "machine": machine,
        "loads": results.loads,
        "load_at_the_end": host::load(),
        "rounds": options.rounds,
        "seconds": options.time.as_secs_f64(),
        "guarantees": guarantees.collect::<Vec<_>>(),
        "promises": promises.collect::<Vec<_>>(),
        "cells": cells.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::work::Turn;
    use super::*;

    #[test]
    fn numbers_and_times_are_written_for_people() {
        let shown: Vec<_> = [7.0, 999.4, 1_000.0, 1_234_567.0].map(thousands).into();
        assert_eq!(shown, ["7", "999", "1,000", "1,234,567"]);
        assert_eq!(
            (time(12.4), time(2_040.0)),
            ("12 us".to_owned(), "2.0 ms".to_owned())
        );
    }

    #[test]
    fn a_report_has_what_was_measured_and_what_was_guaranteed_and_nothing_else() {
        let mut results = Results::default();
        let cell = Cell {
            work: Work::Renew,
            connections: 64,
            system: System::Etcd,
        };
        results.add(
            cell,
            Turn {
                rate: 1_500.0,
                median_us: 900.0,
                p99_us: 4_000.0,
                operations: 1_500,
            },
        );
        let super::super::options::Asked::Run(options) = Options::read(["--bench".to_owned()]).unwrap()
        else {
            panic!("it was asked to run");
        };
        let text = markdown(&results, &options, "2 cores");
        assert!(
            text.contains("| etcd, three members | 1,500 (900 us, 4.0 ms) |"),
            "{text}"
        );
        assert!(text.contains("yes, on a majority; renewals no"), "{text}");
        assert!(!text.contains("Redis,") && !text.contains("SET NX"), "{text}");
        let value = json(&results, &options, "2 cores");
        assert_eq!(value["cells"][0]["rounds"][0]["operations"], 1_500);
    }
}
