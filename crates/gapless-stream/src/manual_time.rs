//! [`ManualTime`]: the time of a stream that stands still until its owner moves it, for tests of timers.
//!
//! It stops at each timer on its way, so that one that is set by another fires at its own time, too.

use gapless_agent::Now;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// A step of a stream's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeStep {
    /// The time of the stream, ns since the epoch. Timers that were due by then are in the stream.
    pub at_ns: u64,
    /// The last frame of the stream.
    pub last_sequence: u64,
}

/// The sequencer's end.
pub struct ManualTime {
    /// Set at the first reading.
    now_ns: Option<u64>,
    is_moving: bool,
    steps: SyncSender<TimeStep>,
}

impl ManualTime {
    /// A time that stands still, and the receiver of its steps. Each follows one
    /// [`SequencerRequest::MoveTime`](crate::messages::SequencerRequest::MoveTime), of which one is under way at most.
    #[must_use]
    pub fn new() -> (Self, Receiver<TimeStep>) {
        let (steps, receiver) = sync_channel(1);
        (Self { now_ns: None, is_moving: false, steps }, receiver)
    }

    /// The time of the stream, which begins at that of its clock.
    pub(crate) fn read(&mut self, now: Now) -> Now {
        Now { epoch_ns: *self.now_ns.get_or_insert(now.epoch_ns), ..now }
    }

    /// Moves on to `to_ns`, but not over the next timer, and not back behind the last frame, whose time is `last_ns`: each frame is
    /// later than the one before. The time then.
    pub(crate) fn step(&mut self, to_ns: u64, last_ns: u64, next_timer_ns: Option<u64>) -> u64 {
        let now_ns = self.now_ns.unwrap_or_default().max(last_ns);
        let at_ns = next_timer_ns.unwrap_or(u64::MAX).min(to_ns).max(now_ns);
        (self.now_ns, self.is_moving) = (Some(at_ns), true);
        at_ns
    }

    /// Reports a step whose timers are all in the stream.
    pub(crate) fn report(&mut self, at_ns: u64, last_sequence: u64) {
        if std::mem::take(&mut self.is_moving) {
            // An owner that waits no more has its reasons.
            let _ = self.steps.try_send(TimeStep { at_ns, last_sequence });
        }
    }
}
