//! Prints text again and again until Ctrl-C: it sleeps in between, and overwrites a terminal.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// Sleeps are cut into such pieces, so that Ctrl-C ends them.
const PIECE: Duration = Duration::from_millis(50);

/// Sleeps until then; `false` if `is_over` said so before.
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

/// The sequence that clears a terminal before text is printed again; empty elsewhere.
pub(crate) fn clear(is_text_again: bool) -> &'static str {
    if is_text_again && std::io::stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" }
}
