//! [`NodeLink`]: connection of a node with its sequencer, in both directions. One implementation for each transport.

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
    /// Longest message with the headers and padding of its frames, bytes.
    pub message_bytes_max: usize,
    pub released_sequence: u64,
    /// Sequence at which the node begins to read.
    pub position: u64,
    /// Feed session of that position, if the link knows it.
    pub feed: Option<Feed>,
}

/// Position at which a node begins to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    First,
    Sequence(u64),
    /// After all existing frames.
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
    /// The stream was faster: the next frames must be read elsewhere.
    Lapped,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkReads {
    pub frames: usize,
    /// The stream was faster: the next frames must be read elsewhere.
    pub is_lapped: bool,
}

/// Connection of a node with its sequencer. It is up or down; while it is down, [`NodeLink::connect`] must be called
/// until it is up. No method blocks, except [`NodeLink::wait`].
pub trait NodeLink: Send {
    /// Tries to connect to a stream that contains `seen`, and to read from `start`. `None`: not yet, retry.
    ///
    /// # Errors
    /// Errors that a retry cannot fix: another stream, another history, a refusal.
    fn connect(&mut self, start: Start, seen: SeenFrame, now_ns: u64) -> Result<Option<ConnectionInfo>, ClientError>;

    /// Sends a frame, padded. `false` if there is no room now.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`], and fatal errors of the link.
    fn send(&mut self, frame: &[u8]) -> Result<bool, ClientError>;

    /// Makes sent frames visible to the sequencer.
    ///
    /// # Errors
    /// As for [`NodeLink::send`].
    fn flush(&mut self) -> Result<(), ClientError>;

    /// Passes the sequencer's answers since the last call to `take`, a frame at a time.
    ///
    /// # Errors
    /// As for [`NodeLink::send`].
    fn answers(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError>;

    /// Receives packets, for a node that cannot read now and waits for [`NodeLink::answers`]. A frame that does not fit
    /// counts as lost.
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

    /// Passes the next frames of the stream, in order, to `take`: as many as one look brings, at most `limit`. A reader
    /// waiting for one message gets it without a second look.
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

    /// Notes the node's progress, which a later [`NodeLink::tick`] reports to the sequencer's process.
    fn note(&mut self, progress: ProgressReport) {
        let _ = progress;
    }

    /// Handles the answer of a member that does not lead. `leaders` are addresses of the leader, one a line, or empty.
    /// A link that knows other members moves to one of them; otherwise it stays, and the node asks here again.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`] if it moves.
    fn on_not_leader(&mut self, leaders: &str) -> Result<(), ClientError> {
        let _ = leaders;
        Ok(())
    }

    /// Does the work that is due by the clock: heartbeats, requests, noticing that the other side is gone.
    ///
    /// # Errors
    /// As for [`NodeLink::send`].
    fn tick(&mut self, now_ns: u64) -> Result<(), ClientError>;

    /// Sleeps until data arrives, or for `timeout`.
    ///
    /// # Errors
    /// An error of the operating system.
    fn wait(&mut self, timeout: Duration) -> Result<(), ClientError>;

    /// Adds the descriptors that become readable when data arrives, for a caller that waits for other events as well.
    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        let _ = descriptors;
    }

    /// Reason why the last attempt to connect failed, if known; a network link only knows that no answer has come.
    fn connect_failure(&self) -> Option<String> {
        None
    }

    /// Reason why the connected peer makes no progress, if known: its process is stopped. A silent network breaks the
    /// connection instead.
    fn standstill(&self) -> Option<String> {
        None
    }

    /// The other side, for messages.
    fn peer(&self) -> String;
}
