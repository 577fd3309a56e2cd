//! One race as a drawing: time goes down, a track for each worker, one for the ledger and one for the outside. A thick bar
//! is a lock that is held; it goes on dashed where its holder only believes so. An arrow is a write, and its tip says what became of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::text::{escaped, wrapped};
use crate::ladder::Cell;
use crate::timeline::{Lane, Mark, Verdict, What};

/// Width of the drawing, in its own units: about the pixels of a narrow phone.
const WIDTH: usize = 336;
/// Where the times end.
const TIMES_END: usize = 40;
const FIRST_TRACK: usize = 56;
const TRACK_GAP: usize = 30;
/// Between the last track and the words.
const WORDS_GAP: usize = 16;
const HEAD: usize = 30;
const LINE: usize = 15;
const ROW_GAP: usize = 11;
/// Width of an average character of the words, in hundredths: thin and bold.
const THIN_HUNDREDTHS: usize = 625;
const BOLD_HUNDREDTHS: usize = 700;

/// A mark with its place.
struct Row<'a> {
    mark: &'a Mark,
    y: usize,
    lines: Vec<String>,
}

pub(super) fn write(page: &mut String, cell: &Cell) -> std::fmt::Result {
    let tracks = tracks(&cell.marks);
    let words = FIRST_TRACK + TRACK_GAP * tracks.len().saturating_sub(1) + WORDS_GAP;
    let (rows, height) = place(&cell.marks, words);
    let label = format!(
        "{} on rung {}: {}",
        cell.scenario.id(),
        cell.rung.number(),
        cell.counts
    );
    writeln!(
        page,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">",
        escaped(&label)
    )?;
    for (lane, x) in &tracks {
        writeln!(
            page,
            "<text class=\"head\" x=\"{x}\" y=\"14\">{}</text><path class=\"track\" d=\"M{x} 22V{}\"/>",
            lane.short(),
            height.saturating_sub(6)
        )?;
    }
    for lane in [Lane::A, Lane::B, Lane::C] {
        if let Some(x) = tracks.get(&lane) {
            write_holds(page, &rows, lane, *x)?;
        }
    }
    for row in &rows {
        write_row(page, row, &tracks, words)?;
    }
    page.write_str("</svg>\n")
}

impl Lane {
    const fn short(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::Books => "books",
            Self::Outside => "out",
        }
    }
}

/// The tracks that something happens on, with their places.
fn tracks(marks: &[Mark]) -> BTreeMap<Lane, usize> {
    let mut lanes: Vec<Lane> = marks.iter().map(|mark| mark.lane).collect();
    lanes.push(Lane::Books);
    for mark in marks {
        if let What::Wrote { to, .. } = mark.what {
            lanes.push(to);
        }
    }
    lanes.sort_unstable();
    lanes.dedup();
    let places = (0..).map(|number| FIRST_TRACK + number * TRACK_GAP);
    lanes.into_iter().zip(places).collect()
}

fn place(marks: &[Mark], words: usize) -> (Vec<Row<'_>>, usize) {
    let mut y = HEAD;
    let mut rows = Vec::new();
    for mark in marks {
        let text = match mark.lane {
            Lane::A | Lane::B | Lane::C => format!("{} {}", mark.lane.name(), mark.text()),
            Lane::Books | Lane::Outside => mark.text(),
        };
        let character = match tone(&mark.what) {
            "quiet" | "strong" => THIN_HUNDREDTHS,
            _ => BOLD_HUNDREDTHS,
        };
        let lines = wrapped(&text, WIDTH.saturating_sub(words) * 100 / character);
        let height = lines.len() * LINE;
        rows.push(Row {
            mark,
            y: y + LINE,
            lines,
        });
        y += height + ROW_GAP;
    }
    (rows, y + ROW_GAP)
}

/// The bars of one worker: from each grant to the end of it, or to somebody else's grant and, dashed, to the last that it
/// does under it.
fn write_holds(page: &mut String, rows: &[Row<'_>], lane: Lane, x: usize) -> std::fmt::Result {
    for (at, row) in rows.iter().enumerate() {
        if row.mark.lane != lane || !matches!(row.mark.what, What::Granted(_)) {
            continue;
        }
        let after = || rows.iter().skip(at + 1);
        let own_end = after()
            .find(|row| row.mark.lane == lane && matches!(row.mark.what, What::Released(_) | What::Dies));
        let next_grant = after().find(|row| matches!(row.mark.what, What::Granted(_)));
        let last = own_end
            .or_else(|| rows.iter().rfind(|row| row.mark.lane == lane))
            .map_or(row.y, |row| row.y);
        // Who dies leaves its lock behind: held by nobody, until it runs out.
        let died = own_end.is_some_and(|row| row.mark.what == What::Dies);
        let held_to = match next_grant {
            Some(next) if next.y < last || died => next.y,
            _ => last,
        };
        let (from, letter) = (row.y, lane.name());
        writeln!(
            page,
            "<path class=\"hold {letter}\" d=\"M{x} {from}V{held_to}\"/>"
        )?;
        if held_to < last {
            writeln!(
                page,
                "<path class=\"belief {letter}\" d=\"M{x} {held_to}V{last}\"/>"
            )?;
        }
    }
    Ok(())
}

fn write_row(
    page: &mut String,
    row: &Row<'_>,
    tracks: &BTreeMap<Lane, usize>,
    words: usize,
) -> std::fmt::Result {
    let y = row.y;
    let baseline = y + 4;
    write!(
        page,
        "<text class=\"time\" x=\"{TIMES_END}\" y=\"{baseline}\">{}</text>",
        row.mark.at.as_millis()
    )?;
    let x = tracks.get(&row.mark.lane).copied().unwrap_or(FIRST_TRACK);
    let letter = row.mark.lane.short();
    match &row.mark.what {
        What::Wrote { to, verdict, .. } => {
            let to = tracks.get(to).copied().unwrap_or(x);
            write_arrow(page, (x, to, y), *verdict)?;
        }
        What::Granted(_) => write!(
            page,
            "<circle class=\"grant {letter}\" cx=\"{x}\" cy=\"{y}\" r=\"6\"/>"
        )?,
        What::Stops | What::CutOff | What::Dies => {
            let (left, right, top, bottom) = (x - 6, x + 6, y - 6, y + 6);
            write!(
                page,
                "<path class=\"cross\" d=\"M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}\"/>"
            )?;
        }
        What::Released(_) | What::Wakes | What::Heals | What::Note(_) => {
            write!(
                page,
                "<circle class=\"dot {letter}\" cx=\"{x}\" cy=\"{y}\" r=\"3.5\"/>"
            )?;
        }
    }
    let tone = tone(&row.mark.what);
    write!(
        page,
        "<text class=\"words {tone}\" x=\"{words}\" y=\"{baseline}\">"
    )?;
    for (number, line) in row.lines.iter().enumerate() {
        let step = if number == 0 { 0 } else { LINE };
        write!(
            page,
            "<tspan x=\"{words}\" dy=\"{step}\">{}</tspan>",
            escaped(line)
        )?;
    }
    page.write_str("</text>\n")
}

/// From a worker's track to the ledger's or the outside's; its tip says what became of the write.
fn write_arrow(
    page: &mut String,
    (from, to, y): (usize, usize, usize),
    verdict: Verdict,
) -> std::fmt::Result {
    let (class, tip) = match verdict {
        Verdict::Done => ("good", "✓"),
        Verdict::Again => ("bad", "2"),
        Verdict::Refused => ("refused", "✕"),
        Verdict::Replayed => ("good", "="),
        Verdict::Nothing => ("meh", "?"),
        Verdict::AnswerLost => ("meh", "…"),
    };
    let (end, middle) = (to.saturating_sub(8), y + 4);
    write!(
        page,
        "<path class=\"arrow {class}\" d=\"M{from} {y}H{end}\"/><circle class=\"dot {class}\" cx=\"{from}\" cy=\"{y}\" r=\"3.5\"/>\
         <circle class=\"tip {class}\" cx=\"{to}\" cy=\"{y}\" r=\"8\"/><text class=\"sign\" x=\"{to}\" y=\"{middle}\">{tip}</text>"
    )
}

const fn tone(what: &What) -> &'static str {
    match what {
        What::Wrote { verdict, .. } => match verdict {
            Verdict::Again => "bad",
            Verdict::Refused => "refused",
            Verdict::Nothing | Verdict::AnswerLost => "meh",
            Verdict::Done | Verdict::Replayed => "strong",
        },
        What::Granted(_) => "strong",
        What::Released(_)
        | What::Stops
        | What::Wakes
        | What::Dies
        | What::CutOff
        | What::Heals
        | What::Note(_) => "quiet",
    }
}
