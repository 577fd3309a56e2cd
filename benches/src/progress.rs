//! Lines that say what a long run is doing, apart from its figures.

/// Says on stderr what is measured now.
#[expect(clippy::print_stderr, reason = "a run of minutes must not look stuck")]
pub fn say(doing: impl std::fmt::Display) {
    eprintln!("... {doing}");
}
