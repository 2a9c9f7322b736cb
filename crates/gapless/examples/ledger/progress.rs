use crate::transfer::with_commas;
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// When progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ProgressMode {
    /// On a terminal.
    #[default]
    Auto,
    /// Also elsewhere, as lines of their own.
    Always,
    /// Not at all.
    Never,
}

pub struct ProgressLine {
    is_shown: bool,
    is_terminal: bool,
    file_bytes: u64,
    last_shown: Instant,
    last_line: u64,
}

const INTERVAL: Duration = Duration::from_millis(100);
const LINES_PER_MESSAGE: u64 = 250;

impl ProgressLine {
    pub fn new(mode: ProgressMode, file_bytes: u64, line: u64) -> Self {
        let is_terminal = stderr().is_terminal();
        let is_shown = mode == ProgressMode::Always || (mode == ProgressMode::Auto && is_terminal);
        Self { is_shown, is_terminal, file_bytes, last_shown: Instant::now(), last_line: line }
    }

    pub fn show(&mut self, line: u64, bytes: u64) {
        if !self.is_shown {
            return;
        }
        let percent = (100 * bytes).checked_div(self.file_bytes).unwrap_or(100).min(100);
        let text = format!("line {} taken, {percent} %", with_commas(line.into()));
        // Standard error may be closed.
        if self.is_terminal && self.last_shown.elapsed() >= INTERVAL {
            let _ = write!(stderr(), "\r{text}\x1b[K");
            self.last_shown = Instant::now();
        } else if !self.is_terminal && line >= self.last_line + LINES_PER_MESSAGE {
            let _ = writeln!(stderr(), "{text}");
            self.last_line = line;
        }
    }

    pub fn clear(&self) {
        if self.is_shown && self.is_terminal {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
