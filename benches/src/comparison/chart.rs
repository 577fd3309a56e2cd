//! A chart of a run: for each work and number of callers one group of bars, the longest of a group filling it. Beside each
//! system stands where its acknowledged changes are.

use std::fmt::Write as _;

use super::report::{connections, thousands};
use super::results::{Cell, Results};
use super::systems::System;
use super::work::Work;

const WIDTH: f64 = 1_110.0;
const LABEL_WIDTH: f64 = 480.0;
const FIGURE_WIDTH: f64 = 90.0;
const BAR_HEIGHT: f64 = 16.0;
const BAR_STEP: f64 = 20.0;
const HEAD_HEIGHT: f64 = 34.0;
const MARGIN: f64 = 16.0;

/// The chart, as one SVG document.
#[must_use]
pub fn svg(results: &Results) -> String {
    let mut body = String::new();
    let mut y = MARGIN;
    text(
        &mut body,
        (MARGIN, y + 14.0),
        "title",
        "Operations a second, medians of the rounds; beside each system, where an acknowledged change is",
    );
    y += HEAD_HEIGHT;
    for work in Work::ALL {
        for connections in connections(results) {
            y = group(results, work, connections, y, &mut body);
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <style>.title{{font-size:16px;font-weight:bold}}.head{{font-weight:bold}}.end{{text-anchor:end}}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n",
        height = y + MARGIN,
    )
}

fn group(results: &Results, work: Work, connections: usize, top: f64, body: &mut String) -> f64 {
    let rates: Vec<(System, f64)> = System::ALL
        .into_iter()
        .filter_map(|system| {
            let cell = Cell {
                work,
                connections,
                system,
            };
            Some((system, results.rate(cell)?))
        })
        .collect();
    let longest = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    if longest <= 0.0 {
        return top;
    }
    let mut y = top + HEAD_HEIGHT / 2.0;
    let head = format!("{}, {connections} at once", work.title());
    text(body, (MARGIN, y), "head", &head);
    y += 8.0;
    let room = WIDTH - LABEL_WIDTH - FIGURE_WIDTH - 2.0 * MARGIN;
    for (system, rate) in rates {
        let (x, width) = (MARGIN + LABEL_WIDTH, room * rate / longest);
        let label = format!("{}: {}", system.title(), system.kept());
        text(body, (x - 8.0, y + 12.0), "end", &label);
        let _ = writeln!(
            body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\" fill=\"{}\"/>",
            colour(system)
        );
        text(body, (x + width + 6.0, y + 12.0), "", &thousands(rate));
        y += BAR_STEP;
    }
    y
}

const fn colour(system: System) -> &'static str {
    if system.is_ours() { "#2b6cb0" } else { "#a0aec0" }
}

/// The words of this chart need no escapes: none has `<`, `>` or `&`.
fn text(body: &mut String, (x, y): (f64, f64), class: &str, words: &str) {
    let _ = writeln!(
        body,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{words}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::super::work::Turn;
    use super::*;

    #[test]
    fn the_longest_bar_of_a_group_fills_it_and_the_others_are_in_proportion() {
        let mut results = Results::default();
        for (system, rate) in [(System::OneNode, 2_000.0), (System::RedisSynced, 500.0)] {
            let cell = Cell {
                work: Work::Set,
                connections: 64,
                system,
            };
            let turn = Turn {
                rate,
                median_us: 1.0,
                p99_us: 1.0,
                operations: 1,
            };
            results.add(cell, turn);
        }
        let chart = svg(&results);
        assert!(
            chart.contains("width=\"508.0\"") && chart.contains("width=\"127.0\""),
            "{chart}"
        );
        assert!(chart.contains(">2,000<") && chart.ends_with("</svg>\n"));
        let words = System::ALL.map(System::title).into_iter();
        for words in words
            .chain(System::ALL.map(System::kept))
            .chain(Work::ALL.map(Work::title))
        {
            assert!(!words.contains(['<', '>', '&']), "{words} needs escapes");
        }
    }
}
