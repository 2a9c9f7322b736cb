//! [`Silence`]: whether a peer that lives says nothing any more, as one that was stopped, or waits for something for ever.

use std::time::{Duration, Instant};

/// How often each asks the other for a sign of life.
pub const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// A peer that is silent for so long is killed: its death stops nothing, and its silence may.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);
/// As [`SILENCE_MAX`], of a supervisor that has only begun.
pub const START_SILENCE_MAX: Duration = Duration::from_secs(10);
/// What counts between two looks at most: of more it was this process that was held up, and has heard nothing.
const LOOK_MAX: Duration = Duration::from_millis(1500);

/// How long a peer has said nothing while this process would have heard it.
#[derive(Debug)]
pub struct Silence {
    looked: Instant,
    silent: Duration,
}

impl Silence {
    pub const fn begin(now: Instant) -> Self {
        Self { looked: now, silent: Duration::ZERO }
    }

    /// It has said something.
    pub const fn heard(&mut self) {
        self.silent = Duration::ZERO;
    }

    /// Whether it is silent for longer than [`SILENCE_MAX`]. For whoever looks at least once a second.
    pub fn is_too_long(&mut self, now: Instant) -> bool {
        self.is_as_long_as(SILENCE_MAX, now)
    }

    /// As [`Silence::is_too_long`], with another limit.
    pub fn is_as_long_as(&mut self, limit: Duration, now: Instant) -> bool {
        self.silent += now.saturating_duration_since(self.looked).min(LOOK_MAX);
        self.looked = now;
        self.silent >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_counts_in_which_it_could_have_been_heard() {
        let mut now = Instant::now();
        let mut silence = Silence::begin(now);
        let mut look_after = |silence: &mut Silence, seconds: u64| {
            now += Duration::from_secs(seconds);
            silence.is_too_long(now)
        };
        assert!((0..4).all(|_| !look_after(&mut silence, 1)));
        silence.heard();
        assert!((0..4).all(|_| !look_after(&mut silence, 1)));
        assert!(look_after(&mut silence, 1));
        silence.heard();
        // This process was stopped three times for an hour each.
        assert!((0..3).all(|_| !look_after(&mut silence, 3600)));
        assert!(look_after(&mut silence, 3600));
    }
}
