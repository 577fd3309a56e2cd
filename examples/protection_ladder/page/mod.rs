//! The page: the matrix, and a drawn timeline of each race. One file that needs no other, for narrow and wide screens,
//! light and dark.

mod drawing;
mod text;

use std::fmt::Write as _;

use self::text::escaped;
use crate::counts::Counts;
use crate::facts::why;
use crate::ladder::{Cell, Run};
use crate::rung::Rung;
use crate::scenario::Scenario;

const STYLE: &str = include_str!("style.css");

/// Puts the page together.
pub(crate) fn draw(run: &Run) -> String {
    let mut page = String::new();
    let written = write_page(&mut page, run);
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
    page
}

fn write_page(page: &mut String, run: &Run) -> std::fmt::Result {
    writeln!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>The protection ladder</title>\n\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>The protection ladder</h1>\n\
         <p>Ten protections of a reward, each on top of those before it, against twelve things that go wrong. Run for real, and \
         counted from the tables and the outside servers' own books. Locks lived {} ms in this run, those of rung 3 {} ms.</p></header>\n<main>",
        run.times.ttl().as_millis(),
        run.times.long_ttl().as_millis()
    )?;
    write_matrix(page, run)?;
    write_rungs(page, run)?;
    page.write_str(
        "<p class=\"reading\">In the drawings below time goes down, in milliseconds. A thick bar is a lock that is held; dashed, its \
         holder only believes so. An arrow is a write. Its tip: \u{2713} done, 2 done once more, \u{2715} refused, = the first receipt \
         again, ? nothing to answer with, \u{2026} the answer is lost. A cross on a track: the worker stops, is cut off, or dies.</p>\n",
    )?;
    for &scenario in &run.scenarios {
        write_scenario(page, run, scenario)?;
    }
    page.write_str("</main>\n</body>\n</html>\n")
}

fn write_matrix(page: &mut String, run: &Run) -> std::fmt::Result {
    page.write_str("<section aria-labelledby=\"matrix\"><h2 id=\"matrix\">What went wrong</h2>\n<table class=\"matrix\"><thead><tr><th scope=\"col\">rung</th>")?;
    for scenario in &run.scenarios {
        let (id, title) = (scenario.id(), escaped(scenario.title()));
        write!(
            page,
            "<th scope=\"col\"><a href=\"#{id}\" title=\"{title}\">{id}</a></th>"
        )?;
    }
    page.write_str("</tr></thead><tbody>\n")?;
    for &rung in &run.rungs {
        let (number, name) = (rung.number(), escaped(rung.name()));
        write!(
            page,
            "<tr><th scope=\"row\">{number}<span class=\"name\"> {name}</span></th>"
        )?;
        for &scenario in &run.scenarios {
            if let Some(cell) = run.cell(rung, scenario) {
                let (class, words) = (class(cell.counts), escaped(&cell.counts.to_string()));
                let (short, id) = (cell.counts.short(), cell_id(cell));
                write!(
                    page,
                    "<td class=\"{class}\"><a href=\"#{id}\" title=\"{words}\">{short}</a></td>"
                )?;
            }
        }
        page.write_str("</tr>\n")?;
    }
    page.write_str(
        "</tbody></table>\n<p class=\"legend\"><span class=\"bad\">7</span> done seven times too often \
         <span class=\"bad\">-1</span> never done <span class=\"meh\">?7</span> seven callers in good standing left without an answer \
         <span class=\"good\">0</span> nothing went wrong</p>\n",
    )?;
    for (rung, reason) in &run.skipped {
        writeln!(
            page,
            "<p class=\"skipped\">Rung {} was not run: {}</p>",
            rung.number(),
            escaped(reason)
        )?;
    }
    page.write_str("</section>\n")
}

fn write_rungs(page: &mut String, run: &Run) -> std::fmt::Result {
    page.write_str(
        "<section aria-labelledby=\"rungs\"><h2 id=\"rungs\">The rungs</h2>\n<dl class=\"rungs\">\n",
    )?;
    for rung in &run.rungs {
        let (number, name, is) = (rung.number(), escaped(rung.name()), escaped(rung.is()));
        writeln!(page, "<div><dt><b>{number}</b> {name}</dt><dd>{is}</dd></div>")?;
    }
    page.write_str("</dl></section>\n")
}

fn write_scenario(page: &mut String, run: &Run, scenario: Scenario) -> std::fmt::Result {
    let (id, title) = (scenario.id(), escaped(scenario.title()));
    let story = escaped(scenario.story());
    writeln!(
        page,
        "<section class=\"scenario\" aria-labelledby=\"{id}\"><h2 id=\"{id}\"><b>{id}</b> {title}</h2>\n<p>{story}</p>\n<div class=\"races\">"
    )?;
    let mut open = opened(run, scenario);
    for &rung in &run.rungs {
        if let Some(cell) = run.cell(rung, scenario) {
            let state = if open.contains(&rung) { " open" } else { "" };
            open.retain(|one| *one != rung);
            write_cell(page, cell, state)?;
        }
    }
    page.write_str("</div></section>\n")
}

/// The races that are shown at once: the first that fails, and the last rung.
fn opened(run: &Run, scenario: Scenario) -> Vec<Rung> {
    let fails = |rung: &&Rung| {
        run.cell(**rung, scenario)
            .is_some_and(|cell| !cell.counts.are_zero())
    };
    run.rungs
        .iter()
        .find(fails)
        .into_iter()
        .chain(run.rungs.last())
        .copied()
        .collect()
}

fn write_cell(page: &mut String, cell: &Cell, state: &str) -> std::fmt::Result {
    let (class, id, number) = (class(cell.counts), cell_id(cell), cell.rung.number());
    let (name, counts) = (escaped(cell.rung.name()), escaped(&cell.counts.label()));
    writeln!(
        page,
        "<details id=\"{id}\" class=\"race\"{state}><summary><b>{number}</b> <span class=\"what\">{name}</span> \
         <span class=\"{class}\">{counts}</span></summary>"
    )?;
    let reason = why(cell.rung, cell.scenario).filter(|_| !cell.counts.are_zero());
    if let Some(reason) = reason {
        writeln!(page, "<p>{}</p>", escaped(reason))?;
    }
    drawing::write(page, cell)?;
    page.write_str("</details>\n")
}

fn cell_id(cell: &Cell) -> String {
    format!("{}-{}", cell.scenario.id(), cell.rung.number())
}

const fn class(counts: Counts) -> &'static str {
    if counts.duplicates > 0 || counts.lost > 0 {
        "bad"
    } else if counts.unanswered > 0 {
        "meh"
    } else {
        "good"
    }
}
