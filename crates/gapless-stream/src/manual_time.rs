//! `ManualTime`: a stream time that stands still until its owner moves it, for tests of timers.

use gapless_agent::Now;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// A completed step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeStep {
    /// Stream time, ns since the epoch; timers due by then are in the stream.
    pub at_ns: u64,
    pub last_sequence: u64,
}

/// A stream time that stands still until its owner moves it, for tests of timers. A move stops at each timer on its
/// way, so a timer set by another one fires at its own time, too.
pub struct ManualTime {
    now_ns: Option<u64>,
    is_moving: bool,
    steps: SyncSender<TimeStep>,
}

impl ManualTime {
    /// A stopped time and the receiver of its steps, one for each
    /// [`SequencerRequest::MoveTime`](crate::messages::SequencerRequest::MoveTime); at most one may be pending.
    #[must_use]
    pub fn new() -> (Self, Receiver<TimeStep>) {
        let (steps, receiver) = sync_channel(1);
        (Self { now_ns: None, is_moving: false, steps }, receiver)
    }

    pub(crate) fn read(&mut self, now: Now) -> Now {
        Now { epoch_ns: *self.now_ns.get_or_insert(now.epoch_ns), ..now }
    }

    /// Advances to `to_ns`, but not past the next timer, and not before the last frame's time `last_ns`, because each
    /// frame is later than the one before. Returns the new time.
    pub(crate) fn step(&mut self, to_ns: u64, last_ns: u64, next_timer_ns: Option<u64>) -> u64 {
        let now_ns = self.now_ns.unwrap_or_default().max(last_ns);
        let at_ns = next_timer_ns.unwrap_or(u64::MAX).min(to_ns).max(now_ns);
        (self.now_ns, self.is_moving) = (Some(at_ns), true);
        at_ns
    }

    /// Reports a step once all its timers are in the stream.
    pub(crate) fn report(&mut self, at_ns: u64, last_sequence: u64) {
        if std::mem::take(&mut self.is_moving) {
            // The owner may have stopped waiting.
            let _ = self.steps.try_send(TimeStep { at_ns, last_sequence });
        }
    }
}
