//! [`HistoryCheck`]: whether a stream contains what a peer has seen of it. A stream whose directory was put back to an older copy
//! cannot know by itself that it has forgotten something; a peer that has seen more can.

use gapless_client::replay_merge::{ReplayMerge, ReplayRead};
use gapless_log::Window;
use gapless_transport::seen::Seen;
use std::path::PathBuf;

/// The stream's own values for the part that a peer has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// It ends before that.
    Ends {
        /// The last sequence that it has released.
        released_sequence: u64,
    },
    /// Its frame with that sequence has another time stamp, ns since the epoch.
    OtherTime {
        /// That of the stream.
        timestamp_ns: u64,
    },
}

impl std::fmt::Display for Contradiction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ends { released_sequence } => write!(f, "the stream ends at sequence {released_sequence}"),
            Self::OtherTime { timestamp_ns } => write!(f, "the stream's frame with it is of {timestamp_ns} ns"),
        }
    }
}

/// The released part of a stream, from its first frame that is still kept.
#[derive(Clone)]
pub struct HistoryCheck {
    window: Window,
    journal: Option<PathBuf>,
    /// Whether others may have released more: a member that follows, a relay.
    may_lag: bool,
}

impl HistoryCheck {
    /// That of the stream in `window` and, as far as it has one, in the directory `journal`. With `may_lag` it contradicts
    /// no peer that has seen more than is there.
    #[must_use]
    pub const fn new(window: Window, journal: Option<PathBuf>, may_lag: bool) -> Self {
        Self { window, journal, may_lag }
    }

    /// How far the stream is released.
    #[must_use]
    pub fn released_sequence(&self) -> u64 {
        self.window.released_sequence()
    }

    /// The contradiction to `seen`; `None` also where the stream no longer keeps the frames that could show it. Reads
    /// the journal if the window has gone on.
    #[must_use]
    pub fn contradiction(&self, seen: Seen) -> Option<Contradiction> {
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
            // Frames that are no longer kept, or cannot be read, contradict nobody.
            _ => None,
        }
    }
}
