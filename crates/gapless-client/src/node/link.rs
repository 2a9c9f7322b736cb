//! `NodeLink`: connection of a node with its sequencer, in both directions.

use crate::ClientError;
use crate::feed_sessions::Feed;
use crate::node_progress::ProgressReport;
use gapless_log::StreamIdentity;
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::Frame;
use gapless_wire::upstream::{POSITION_FIRST, POSITION_LIVE};
use rustix::fd::BorrowedFd;
use std::time::Duration;

/// State announced by a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionInfo {
    pub identity: StreamIdentity,
    /// Longest frame, bytes.
    pub frame_length_max: usize,
    /// Headers and padding of the frames included.
    pub message_bytes_max: usize,
    pub released_sequence: u64,
    /// Sequence at which the node begins to read.
    pub position: u64,
    /// `None` if the link does not know it.
    pub feed: Option<Feed>,
}

/// Position at which a node begins to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    First,
    Sequence(u64),
    /// Skips all existing frames.
    Live,
}

impl Start {
    /// First sequence to read, if the stream has released `released_sequence`.
    #[must_use]
    pub const fn position(self, released_sequence: u64) -> u64 {
        match self {
            Self::First => 1,
            Self::Sequence(sequence) => {
                if sequence == 0 {
                    1
                } else {
                    sequence
                }
            }
            Self::Live => released_sequence + 1,
        }
    }

    #[must_use]
    pub(super) const fn wire_position(self) -> u64 {
        match self {
            Self::First => POSITION_FIRST,
            Self::Sequence(0) => 1,
            Self::Sequence(POSITION_LIVE) => POSITION_LIVE - 1,
            Self::Sequence(sequence) => sequence,
            Self::Live => POSITION_LIVE,
        }
    }
}

pub enum LinkRead<'a> {
    Frame(Frame<'a>),
    Empty,
    /// The next frames must be read elsewhere.
    Lapped,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkReads {
    pub frames: usize,
    /// The next frames must be read elsewhere.
    pub is_lapped: bool,
}

/// Connection of a node with its sequencer. While it is down, [`NodeLink::connect`] must be called. No method blocks,
/// except [`NodeLink::wait`].
pub trait NodeLink: Send {
    /// Tries to connect to a stream that contains `seen`, and to read from `start`. `None`: retry.
    ///
    /// # Errors
    /// Errors that a retry cannot fix: another stream, another history, a refusal.
    fn connect(&mut self, start: Start, seen: SeenFrame, now_ns: u64) -> Result<Option<ConnectionInfo>, ClientError>;

    /// Sends a padded frame; `false` if there is no room now.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`], and fatal errors of the link.
    fn send(&mut self, frame: &[u8]) -> Result<bool, ClientError>;

    /// Makes sent frames visible to the sequencer.
    ///
    /// # Errors
    /// As for [`NodeLink::send`].
    fn flush(&mut self) -> Result<(), ClientError>;

    /// Passes the answers since the last call to `take`, a frame at a time.
    ///
    /// # Errors
    /// As for [`NodeLink::send`].
    fn answers(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError>;

    /// Receives packets, for a node that cannot read now; a frame that does not fit counts as lost.
    ///
    /// # Errors
    /// As for [`NodeLink::send`].
    fn take_in(&mut self, now_ns: u64) -> Result<(), ClientError> {
        let _ = now_ns;
        Ok(())
    }

    /// Next frame of the stream, in order.
    ///
    /// # Errors
    /// As for [`NodeLink::send`]; [`ClientError::Lapped`] if the frame is no longer kept.
    fn read(&mut self, now_ns: u64) -> Result<LinkRead<'_>, ClientError>;

    /// Passes the next frames, in order, to `take`: as many as one look brings, at most `limit`.
    ///
    /// # Errors
    /// As for [`NodeLink::read`], and those of `take`, after which the link cannot be used.
    #[inline]
    fn read_each(
        &mut self,
        limit: usize,
        now_ns: u64,
        take: &mut impl FnMut(&Frame<'_>) -> Result<(), ClientError>,
    ) -> Result<LinkReads, ClientError>
    where
        Self: Sized,
    {
        let mut reads = LinkReads::default();
        while reads.frames < limit {
            match self.read(now_ns)? {
                LinkRead::Frame(frame) => take(&frame)?,
                LinkRead::Empty => break,
                LinkRead::Lapped => {
                    reads.is_lapped = true;
                    break;
                }
            }
            reads.frames += 1;
        }
        Ok(reads)
    }

    /// Last released sequence that the link knows of.
    fn released_sequence(&self) -> u64;

    /// Whether sent frames can be lost.
    fn loses(&self) -> bool;

    /// Whether [`NodeLink::read`] and [`NodeLink::tick`] need the time; otherwise it is 0.
    fn is_timed(&self) -> bool {
        self.loses()
    }

    /// A later [`NodeLink::tick`] reports it to the sequencer's process.
    fn note(&mut self, progress: ProgressReport) {
        let _ = progress;
    }

    /// Handles the answer of a member that does not lead. `leaders` are addresses of the leader, one a line, or empty.
    /// A link that knows other members moves to one of them; otherwise the node asks here again.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`] if it moves.
    fn on_not_leader(&mut self, leaders: &str) -> Result<(), ClientError> {
        let _ = leaders;
        Ok(())
    }

    /// Heartbeats, requests, noticing that the other side is gone.
    ///
    /// # Errors
    /// As for [`NodeLink::send`].
    fn tick(&mut self, now_ns: u64) -> Result<(), ClientError>;

    /// Sleeps until data arrives, or for `timeout`.
    ///
    /// # Errors
    /// An error of the operating system.
    fn wait(&mut self, timeout: Duration) -> Result<(), ClientError>;

    /// Adds descriptors that become readable when data arrives, for a caller that also waits for other events.
    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        let _ = descriptors;
    }

    /// `None` over networks, where only the lack of an answer is known.
    fn connect_failure(&self) -> Option<String> {
        None
    }

    /// Reason why the connected peer makes no progress, if known: its process is stopped.
    fn standstill(&self) -> Option<String> {
        None
    }

    /// The other side, for messages.
    fn peer(&self) -> String;
}
