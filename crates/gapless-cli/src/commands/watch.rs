//! Prints text periodically until Ctrl-C, overwriting a terminal.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// Limits a sleep, so that Ctrl-C is noticed.
const PIECE: Duration = Duration::from_millis(50);

/// `false` if `is_over` ended it.
pub(crate) fn sleep_until(until: Instant, is_over: impl Fn() -> bool) -> bool {
    loop {
        if is_over() {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(PIECE.min(left));
    }
}

/// Empty for output other than a terminal.
pub(crate) fn clear(is_text_again: bool) -> &'static str {
    if is_text_again && std::io::stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" }
}
