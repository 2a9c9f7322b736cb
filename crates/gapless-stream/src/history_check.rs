//! [`HistoryCheck`]: compares a stream with the history of a peer. A stream restored from an older copy cannot know by
//! itself that frames are lost.

use gapless_client::replay_merge::{ReplayMerge, ReplayRead};
use gapless_log::Window;
use gapless_transport::seen_frame::SeenFrame;
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    Ends { released_sequence: u64 },
    OtherTime { timestamp_ns: u64 },
}

impl std::fmt::Display for Contradiction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ends { released_sequence } => write!(f, "the stream ends at sequence {released_sequence}"),
            Self::OtherTime { timestamp_ns } => write!(f, "the stream's frame with it is of {timestamp_ns} ns"),
        }
    }
}

/// The released part of a stream, from the first kept frame.
#[derive(Clone)]
pub struct HistoryCheck {
    window: Window,
    journal: Option<PathBuf>,
    /// Other processes may have released more (a following member, a relay).
    may_lag: bool,
}

impl HistoryCheck {
    /// A check; with `may_lag` a peer that has seen more is no contradiction.
    #[must_use]
    pub const fn new(window: Window, journal: Option<PathBuf>, may_lag: bool) -> Self {
        Self { window, journal, may_lag }
    }

    #[must_use]
    pub fn released_sequence(&self) -> u64 {
        self.window.released_sequence()
    }

    /// `None` also if the frames to show one are no longer kept. Reads the journal for frames that have left the
    /// window.
    #[must_use]
    pub fn contradiction(&self, seen: SeenFrame) -> Option<Contradiction> {
        if seen.sequence == 0 || seen.identity != self.window.identity() {
            return None;
        }
        let released_sequence = self.window.released_sequence();
        if seen.sequence > released_sequence {
            return (!self.may_lag).then_some(Contradiction::Ends { released_sequence });
        }
        let mut reader = ReplayMerge::new(self.window.clone(), self.journal.clone(), seen.sequence);
        match reader.read() {
            Ok(ReplayRead::Frame(frame)) if frame.timestamp_ns() != seen.timestamp_ns => {
                Some(Contradiction::OtherTime { timestamp_ns: frame.timestamp_ns() })
            }
            // Frames that are no longer kept, or cannot be read, contradict no peer.
            _ => None,
        }
    }
}
