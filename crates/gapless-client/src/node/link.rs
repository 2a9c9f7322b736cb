//! [`NodeLink`]: the connection of a node with its sequencer, in both directions. One implementation for each transport.

use crate::ClientError;
use crate::feed_sessions::Feed;
use crate::node_progress::Progress;
use gapless_log::StreamIdentity;
use gapless_transport::seen::Seen;
use gapless_wire::Frame;
use gapless_wire::upstream::{POSITION_FIRST, POSITION_LIVE};
use rustix::fd::BorrowedFd;
use std::time::Duration;

/// The state that a new connection announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The stream and its life.
    pub identity: StreamIdentity,
    /// The longest frame, bytes.
    pub frame_length_max: usize,
    /// The longest message with the headers and padding of its frames, bytes.
    pub message_bytes_max: usize,
    /// How far the stream was.
    pub released_sequence: u64,
    /// Where the node begins to read.
    pub position: u64,
    /// The feed session that holds the position, as far as the link knows it.
    pub feed: Option<Feed>,
}

/// Where a node begins to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the first frame of the stream.
    First,
    /// At this sequence.
    Sequence(u64),
    /// After everything that is there.
    Live,
}

impl Start {
    /// The sequence that is read first, the stream having released `released_sequence`.
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

    /// The position that a hello asks for.
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

/// The findings of a look at the stream.
pub enum LinkRead<'a> {
    /// The next frame.
    Frame(Frame<'a>),
    /// Nothing new.
    Empty,
    /// The stream was faster: the next frames come from elsewhere.
    Lapped,
}

/// The result of reading many frames at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkReads {
    /// So many were handed out.
    pub frames: usize,
    /// The stream was faster: the next frames come from elsewhere.
    pub is_lapped: bool,
}

/// The connection of a node with its sequencer. It is up or down; down means that [`NodeLink::connect`] is to be called
/// until it is up again. Nothing here blocks, except [`NodeLink::wait`].
pub trait NodeLink: Send {
    /// Tries to make a connection, to read from `start` on, to a stream that contains what was `seen`. `None`: not yet, try
    /// again.
    ///
    /// # Errors
    /// Errors that another attempt does not mend: another stream, another history of it, a refusal.
    fn connect(&mut self, start: Start, seen: Seen, now_ns: u64) -> Result<Option<Connected>, ClientError>;

    /// Sends a frame, padded. `false` if there is no room now.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`], and errors that make the link useless.
    fn send(&mut self, frame: &[u8]) -> Result<bool, ClientError>;

    /// Lets the sequencer see what was sent.
    ///
    /// # Errors
    /// As for [`NodeLink::send`].
    fn flush(&mut self) -> Result<(), ClientError>;

    /// Gives `take` the sequencer's answers since the last call, a frame at a time.
    ///
    /// # Errors
    /// As for [`NodeLink::send`].
    fn answers(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError>;

    /// Takes in received packets, for a node that cannot read now and waits for [`NodeLink::answers`]. A frame that
    /// does not fit is as good as lost.
    ///
    /// # Errors
    /// As for [`NodeLink::send`].
    fn take_in(&mut self, now_ns: u64) -> Result<(), ClientError> {
        let _ = now_ns;
        Ok(())
    }

    /// The next frame of the stream, in order.
    ///
    /// # Errors
    /// As for [`NodeLink::send`]; [`ClientError::Lapped`] if it is nowhere any more.
    fn read(&mut self, now_ns: u64) -> Result<LinkRead<'_>, ClientError>;

    /// Hands the next frames of the stream, in order, to `take`: as many as one look brings, at most `limit`. A
    /// reader that waits for one message has it without another look.
    ///
    /// # Errors
    /// As for [`NodeLink::read`], and those of `take`, which leave the link of no more use.
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

    /// How far the stream is, as far as the link knows.
    fn released_sequence(&self) -> u64;

    /// Whether what is sent may be lost on its way.
    fn loses(&self) -> bool;

    /// Whether [`NodeLink::read`] and [`NodeLink::tick`] need to know what time it is; else it is 0.
    fn is_timed(&self) -> bool {
        self.loses()
    }

    /// Where the node stands; said to the sequencer's process by a later [`NodeLink::tick`].
    fn note(&mut self, progress: Progress) {
        let _ = progress;
    }

    /// The member that was reached does not lead; `leaders` names where the leader can be reached, an address a line, or is
    /// empty. A link that knows other members goes to one of them; else it stays, and the node asks here again.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`] if it goes.
    fn turned_away(&mut self, leaders: &str) -> Result<(), ClientError> {
        let _ = leaders;
        Ok(())
    }

    /// Does the work that the clock makes due: heartbeats, requests, noticing that the other side is gone.
    ///
    /// # Errors
    /// As for [`NodeLink::send`].
    fn tick(&mut self, now_ns: u64) -> Result<(), ClientError>;

    /// Sleeps until something comes, or `timeout`.
    ///
    /// # Errors
    /// The operating system's.
    fn wait(&mut self, timeout: Duration) -> Result<(), ClientError>;

    /// Adds the descriptors that become readable when something comes, for a caller that waits for other things as well.
    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        let _ = descriptors;
    }

    /// Why the last attempt to connect came to nothing, as far as the link knows; a network says nothing but that nobody has
    /// answered.
    fn connect_failure(&self) -> Option<String> {
        None
    }

    /// That the other side, which it is connected to, does nothing whatever comes, and why, as far as the link knows: its process is
    /// stopped. A network that is silent breaks the connection instead.
    fn standstill(&self) -> Option<String> {
        None
    }

    /// The other side, for messages.
    fn peer(&self) -> String;
}
