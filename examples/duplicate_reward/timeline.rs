//! What happened when and where, drawn as a table of four columns with an arrow from whoever asked to whoever answered.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    WorkerA,
    Store,
    WorkerB,
    Ledger,
}

const PLACES: [Place; 4] = [Place::WorkerA, Place::Store, Place::WorkerB, Place::Ledger];
/// Characters of a line.
const LINE_WIDTH: usize = 104;

impl Place {
    const fn heading(self) -> &'static str {
        match self {
            Self::WorkerA => "worker A",
            Self::Store => "lease store",
            Self::WorkerB => "worker B",
            Self::Ledger => "ledger",
        }
    }

    /// First character of the column.
    const fn start(self) -> usize {
        match self {
            Self::WorkerA => 12,
            Self::Store => 35,
            Self::WorkerB => 58,
            Self::Ledger => 81,
        }
    }

    /// Characters of the column. Between two columns there is room for an arrow.
    const fn width(self) -> usize {
        match self {
            Self::WorkerA | Self::Store | Self::WorkerB => 19,
            Self::Ledger => LINE_WIDTH - self.start(),
        }
    }
}

/// How a step is to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tone {
    Plain,
    Quiet,
    Right,
    Wrong,
}

/// One row: somebody does something, and perhaps somebody answers.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    by: Place,
    does: String,
    answer: Option<(Place, String)>,
    tone: Tone,
}

impl Step {
    pub(crate) fn new(by: Place, does: impl Into<String>) -> Self {
        Self {
            by,
            does: does.into(),
            answer: None,
            tone: Tone::Plain,
        }
    }

    pub(crate) fn answered(mut self, by: Place, with: impl Into<String>) -> Self {
        self.answer = Some((by, with.into()));
        self
    }

    pub(crate) const fn quiet(self) -> Self {
        self.tone(Tone::Quiet)
    }

    pub(crate) const fn right(self) -> Self {
        self.tone(Tone::Right)
    }

    pub(crate) const fn wrong(self) -> Self {
        self.tone(Tone::Wrong)
    }

    const fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

/// The steps of one act, as they happen. Threads share it.
#[derive(Debug)]
pub(crate) struct Timeline {
    started: Instant,
    steps: Mutex<Vec<(Duration, Step)>>,
}

impl Timeline {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the clock of this example"
    )]
    pub(crate) fn start() -> Self {
        Self {
            started: Instant::now(),
            steps: Mutex::default(),
        }
    }

    /// Since the start.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Notes a step that has just happened.
    pub(crate) fn add(&self, step: Step) {
        self.add_at(self.now(), step);
    }

    /// Notes a step that happened at another moment.
    pub(crate) fn add_at(&self, at: Duration, step: Step) {
        self.steps
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((at, step));
    }

    /// The table.
    pub(crate) fn draw(&self, paint: Paint) -> String {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner).clone();
        steps.sort_by_key(|(at, _)| *at);
        let mut heading = Line::new("     time");
        for place in PLACES {
            heading.put(place.start(), place.heading());
        }
        let mut out = format!("{}\n", paint.quiet(&heading.text()));
        for (at, step) in &steps {
            for line in draw_step(*at, step) {
                let line = match step.tone {
                    Tone::Plain => line,
                    Tone::Quiet => paint.quiet(&line),
                    Tone::Right => paint.right(&line),
                    Tone::Wrong => paint.wrong(&line),
                };
                let written = writeln!(out, "{line}");
                debug_assert!(written.is_ok(), "writing to a string cannot fail");
            }
        }
        out
    }
}

fn draw_step(at: Duration, step: &Step) -> Vec<String> {
    let cells = std::iter::once((step.by, step.does.as_str()))
        .chain(step.answer.as_ref().map(|(place, text)| (*place, text.as_str())));
    let mut lines = vec![Line::new(&format!("{:>6} ms", at.as_millis()))];
    for (place, text) in cells {
        for (row, piece) in wrap(text, place.width()).into_iter().enumerate() {
            if row == lines.len() {
                lines.push(Line::new(""));
            }
            if let Some(line) = lines.get_mut(row) {
                line.put(place.start(), &piece);
            }
        }
    }
    if let (Some((answering, _)), Some(first)) = (&step.answer, lines.first_mut()) {
        first.arrow(step.by.start(), answering.start());
    }
    lines.iter().map(Line::text).collect()
}

/// Breaks a text at its spaces.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match pieces.last_mut() {
            Some(piece) if piece.chars().count() + 1 + word.chars().count() <= width => {
                piece.push(' ');
                piece.push_str(word);
            }
            _ => pieces.push(word.to_owned()),
        }
    }
    pieces
}

/// One line of characters.
struct Line(Vec<char>);

impl Line {
    fn new(text: &str) -> Self {
        let mut line = Self(vec![' '; LINE_WIDTH]);
        line.put(0, text);
        line
    }

    fn put(&mut self, start: usize, text: &str) {
        for (cell, character) in self.0.iter_mut().skip(start).zip(text.chars()) {
            *cell = character;
        }
    }

    /// From the text that starts at `from` to the one that starts at `to`, over whatever is empty between.
    fn arrow(&mut self, from: usize, to: usize) {
        let (left, right) = (from.min(to), from.max(to));
        let text_end = self
            .0
            .iter()
            .take(right)
            .rposition(|cell| *cell != ' ')
            .unwrap_or(left);
        let shaft = text_end + 2..right.saturating_sub(1);
        let head = if from < to {
            shaft.end.saturating_sub(1)
        } else {
            shaft.start
        };
        let tip = if from < to { '▶' } else { '◀' };
        for at in shaft {
            if let Some(cell) = self.0.get_mut(at) {
                *cell = if at == head { tip } else { '─' };
            }
        }
    }

    fn text(&self) -> String {
        self.0.iter().collect::<String>().trim_end().to_owned()
    }
}

/// Colours, where they are read by a person.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paint {
    Colours,
    Nothing,
}

impl Paint {
    /// Colours on a terminal, unless `NO_COLOR` is set.
    pub(crate) fn of_stdout() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        if wanted && std::io::stdout().is_terminal() {
            Self::Colours
        } else {
            Self::Nothing
        }
    }

    pub(crate) fn title(self, text: &str) -> String {
        self.coded("1", text)
    }

    pub(crate) fn right(self, text: &str) -> String {
        self.coded("32", text)
    }

    pub(crate) fn wrong(self, text: &str) -> String {
        self.coded("1;31", text)
    }

    fn quiet(self, text: &str) -> String {
        self.coded("2", text)
    }

    fn coded(self, code: &str, text: &str) -> String {
        match self {
            Self::Colours => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Nothing => text.to_owned(),
        }
    }
}
