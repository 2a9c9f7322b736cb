//! Progress bar and lines, on stderr only; the bar only on a terminal. The driver's threads never draw: the thread that
//! waits for them moves the bar.

use std::io::{IsTerminal, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

#[derive(Debug, Clone)]
pub struct BenchProgress {
    bar: ProgressBar,
    visible: bool,
    has_lines: bool,
}

impl BenchProgress {
    /// `quiet`, as of `--json -`, hides the bar.
    #[must_use]
    pub fn new(length: u64, label: &str, quiet: bool) -> Self {
        let visible = !quiet && std::io::stderr().is_terminal();
        // Rarely redrawn: drawing takes time from spinning threads.
        let target = if visible { ProgressDrawTarget::stderr_with_hz(4) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        if let Ok(style) = ProgressStyle::with_template("{prefix:32} [{bar:32}] {percent:>3} % {msg} {eta}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(label.to_owned());
        Self { bar, visible, has_lines: true }
    }

    #[must_use]
    pub fn without_lines(&self) -> Self {
        Self { has_lines: false, ..self.clone() }
    }

    pub fn set_label(&self, label: &str) {
        self.bar.set_prefix(label.to_owned());
    }

    pub fn set_position(&self, position: u64) {
        self.bar.set_position(position);
    }

    #[must_use]
    pub fn position(&self) -> u64 {
        self.bar.position()
    }

    /// Prints above the bar if there is one; also without a bar, but not after [`without_lines`](Self::without_lines).
    pub fn line(&self, text: &str) {
        if !self.has_lines {
            return;
        }
        if self.visible {
            self.bar.println(text);
        } else {
            // A closed stderr is no error here.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    /// Looks every 100 ms, which costs spinning threads next to nothing.
    pub fn follow(&self, position: &mut dyn FnMut() -> u64, is_done: &mut dyn FnMut() -> bool) {
        while !is_done() {
            self.set_position(position());
            std::thread::sleep(Duration::from_millis(100));
        }
        self.set_position(position());
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_bar_still_counts() {
        let progress = BenchProgress::new(10, "canonical", true);
        assert!(progress.bar.is_hidden());
        let mut rounds = 0;
        progress.follow(&mut || 7, &mut || {
            rounds += 1;
            rounds > 1
        });
        assert_eq!(progress.position(), 7);
        progress.finish();
    }

    #[test]
    fn a_part_moves_the_bar_of_the_whole() {
        let progress = BenchProgress::new(10, "overview", true);
        let part = progress.without_lines();
        part.set_position(3);
        assert_eq!((progress.position(), progress.has_lines, part.has_lines), (3, true, false));
    }

    #[test]
    fn a_bar_is_drawn_only_on_a_terminal() {
        let progress = BenchProgress::new(10, "canonical", false);
        assert!(std::io::stderr().is_terminal() || progress.bar.is_hidden());
    }
}
