//! `SilenceTimer`: liveness timeout of a peer, which may be alive but stopped or hung.

use std::time::{Duration, Instant};

pub const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout after which a silent peer is killed: its silence may block others.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);
/// [`SILENCE_MAX`] for a supervisor that has not taken over yet.
pub const START_SILENCE_MAX: Duration = Duration::from_secs(10);
/// A longer one means that this process was stopped and could receive nothing.
const CHECK_INTERVAL_MAX: Duration = Duration::from_millis(1500);

/// Silence of a peer while this process could have received its messages.
#[derive(Debug)]
pub struct SilenceTimer {
    checked_at: Instant,
    silent: Duration,
}

impl SilenceTimer {
    pub const fn begin(now: Instant) -> Self {
        Self { checked_at: now, silent: Duration::ZERO }
    }

    pub const fn reset(&mut self) {
        self.silent = Duration::ZERO;
    }

    /// Whether the peer was silent for [`SILENCE_MAX`]; call it at least once a second.
    pub fn is_expired(&mut self, now: Instant) -> bool {
        self.has_lasted(SILENCE_MAX, now)
    }

    /// Same as [`SilenceTimer::is_expired`], with another limit.
    pub fn has_lasted(&mut self, limit: Duration, now: Instant) -> bool {
        self.silent += now.saturating_duration_since(self.checked_at).min(CHECK_INTERVAL_MAX);
        self.checked_at = now;
        self.silent >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_standstill_is_excluded() {
        let mut now = Instant::now();
        let mut silence = SilenceTimer::begin(now);
        let mut check_after = |silence: &mut SilenceTimer, seconds: u64| {
            now += Duration::from_secs(seconds);
            silence.is_expired(now)
        };
        assert!((0..4).all(|_| !check_after(&mut silence, 1)));
        silence.reset();
        assert!((0..4).all(|_| !check_after(&mut silence, 1)));
        assert!(check_after(&mut silence, 1));
        silence.reset();
        assert!((0..3).all(|_| !check_after(&mut silence, 3600)));
        assert!(check_after(&mut silence, 3600));
    }
}
