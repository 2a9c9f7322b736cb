//! [`Silence`]: liveness timeout of a peer, which may be alive but stopped or hung.

use std::time::{Duration, Instant};

pub const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout after which a silent peer is killed: unlike its death, its silence may block others.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);
/// [`SILENCE_MAX`] for a supervisor that has not taken over yet.
pub const START_SILENCE_MAX: Duration = Duration::from_secs(10);
/// Longest time between two checks that counts. A longer one means that this process was stopped itself and could
/// receive nothing.
const LOOK_MAX: Duration = Duration::from_millis(1500);

/// Time in which a peer was silent and this process could have received its messages.
#[derive(Debug)]
pub struct Silence {
    looked: Instant,
    silent: Duration,
}

impl Silence {
    pub const fn begin(now: Instant) -> Self {
        Self { looked: now, silent: Duration::ZERO }
    }

    pub const fn heard(&mut self) {
        self.silent = Duration::ZERO;
    }

    /// Whether the peer has been silent for [`SILENCE_MAX`]. Call it at least once a second.
    pub fn is_too_long(&mut self, now: Instant) -> bool {
        self.is_as_long_as(SILENCE_MAX, now)
    }

    /// Same as [`Silence::is_too_long`], with another limit.
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
    fn own_standstill_is_excluded() {
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
        // This process was stopped three times, for an hour each.
        assert!((0..3).all(|_| !look_after(&mut silence, 3600)));
        assert!(look_after(&mut silence, 3600));
    }
}
