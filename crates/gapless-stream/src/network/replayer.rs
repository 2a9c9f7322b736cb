//! [`Replayer`]: the agent that answers MoldUDP64 requests: missed messages go to the node that asks alone, in a packet
//! like any other, from the window or the journal.

use crate::counters::counters;
use crate::{AgentRole, StreamError};
use gapless_agent::{Agent, AgentError, Now};
use gapless_client::ClientError;
use gapless_client::feed_sessions::SharedFeeds;
use gapless_client::replay_merge::{ReplayMerge, ReplayRead};
use gapless_transport::network::datagrams::{Datagrams, Peer};
use gapless_wire::mold::{PacketWriter, Request};
use rustix::fd::BorrowedFd;

counters! {
    /// The counters of the agent.
    pub struct ReplayerCounters {
        answered: "replayer.requests_answered",
        frames: "replayer.frames",
        /// Requests that were malformed, of other feed sessions, or for messages that are not there.
        refused: "replayer.requests_refused",
    }
}

/// The agent of the request port.
pub struct Replayer<S> {
    socket: S,
    /// Readers that were used last, the last one first: requests of one node follow each other.
    readers: Vec<ReplayMerge>,
    make_reader: Box<dyn Fn(u64) -> ReplayMerge + Send>,
    feeds: SharedFeeds,
    counters: ReplayerCounters,
    requests: Vec<(Peer, Request)>,
    packet: Vec<u8>,
    /// Polls until the socket is looked at again.
    polls_left: u32,
}

/// The socket is looked at in one of so many polls while nobody asks: each look is a system call, on a thread that
/// messages pass.
const POLLS_PER_LOOK: u32 = 16;

/// Readers kept; one stands in a mapped segment of the journal.
const READERS_MAX: usize = 8;

impl<S: Datagrams> Replayer<S> {
    /// An agent that answers the requests that come to `socket`, reading by the readers of `make_reader`.
    #[must_use]
    pub fn new(
        socket: S,
        make_reader: Box<dyn Fn(u64) -> ReplayMerge + Send>,
        feeds: SharedFeeds,
        packet_length_max: usize,
        counters: ReplayerCounters,
    ) -> Self {
        Self {
            socket,
            readers: Vec::new(),
            make_reader,
            feeds,
            counters,
            requests: Vec::new(),
            polls_left: 0,
            packet: vec![0; packet_length_max],
        }
    }

    fn answer(&mut self, to: Peer, request: Request) -> Result<(), StreamError> {
        let feed = self.feeds.lock().named(request.feed_session).copied();
        let first = feed.and_then(|feed| feed.sequence_of(request.sequence));
        let (Some(feed), Some(first), true) = (feed, first, request.count > 0) else {
            self.counters.refused.add(1);
            return Ok(());
        };
        let mut reader = match self.readers.iter().position(|reader| reader.sequence() == first) {
            Some(index) => self.readers.remove(index),
            None => (self.make_reader)(first),
        };
        let mut writer = PacketWriter::new(&mut self.packet, feed.name, request.sequence);
        let mut count = 0;
        let released_sequence = reader.released_sequence();
        let outcome = loop {
            if count == request.count || !feed.holds(first + u64::from(count)) {
                break Ok(());
            }
            match reader.read() {
                Ok(ReplayRead::Frame(frame)) if writer.push(frame.bytes()) => count += 1,
                // It begins the next packet.
                Ok(ReplayRead::Frame(frame)) => {
                    let length = frame.length();
                    reader.step_back(length);
                    break Ok(());
                }
                // Crossing over between window and journal looks empty once.
                Ok(ReplayRead::Empty) if first + u64::from(count) <= released_sequence => {}
                Ok(ReplayRead::Empty) | Err(ClientError::Lapped { .. }) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = outcome {
            // A request must not stop the stream: the journal's writer finds the journal's errors.
            tracing::error!(%error, "a request cannot be answered from the journal");
            self.counters.refused.add(1);
            return Ok(());
        }
        if count == 0 {
            self.counters.refused.add(1);
            return Ok(());
        }
        let length = writer.finish();
        // A packet that does not leave is asked for again.
        let _ = self.socket.send(to, &self.packet[..length], length);
        self.counters.answered.add(1);
        self.counters.frames.add(u64::from(count));
        self.readers.insert(0, reader);
        self.readers.truncate(READERS_MAX);
        Ok(())
    }
}

impl<S: Datagrams> Agent for Replayer<S> {
    fn name(&self) -> &str {
        AgentRole::Replayer.name()
    }

    fn poll(&mut self, _now: Now) -> Result<usize, AgentError> {
        if self.polls_left > 0 {
            self.polls_left -= 1;
            return Ok(0);
        }
        let mut requests = std::mem::take(&mut self.requests);
        let refused = &self.counters.refused;
        self.socket.receive(&mut |from, bytes| match Request::from_bytes(bytes) {
            Ok(request) => requests.push((from, request)),
            Err(_) => refused.add(1),
        })?;
        let work = requests.len();
        if work == 0 {
            self.polls_left = POLLS_PER_LOOK;
        }
        for (from, request) in requests.drain(..) {
            self.answer(from, request)?;
        }
        self.requests = requests;
        Ok(work)
    }

    fn arm(&mut self) {
        // The last poll before the thread sleeps looks.
        self.polls_left = 0;
    }

    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend(self.socket.fd());
    }
}
