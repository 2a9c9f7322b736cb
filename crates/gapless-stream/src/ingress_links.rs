//! The connections of an [`Ingress`](crate::Ingress): its options, its mailboxes, its counters, and the state that is
//! shared with other threads while it runs.

use crate::control_server::WAITING_MAX;
use crate::counters::counters;
use crate::messages::{PublisherEvent, ResponderMessage, SequencerRequest};
use gapless_agent::Waker;
use gapless_client::control_messages::ControlOutcome;
use gapless_client::feed_sessions::SharedFeeds;
use gapless_client::throttle::Throttle;
use gapless_transport::mailbox::Mailbox;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The quantities that the agent takes from each ring, and how much at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressOptions {
    /// Frames taken from one ring in one poll, before the others get their turn.
    pub frames_per_poll_max: usize,
    /// Memory for messages of which not every fragment is there, bytes. One is always let in; one that stands still
    /// makes room when another needs it.
    pub fragments_bytes_max: usize,
    /// The longest message with the headers of its fragments, bytes; at most half of the window.
    pub message_bytes_max: usize,
    /// How much each publisher may send.
    pub throttle: Option<Throttle>,
}

impl Default for IngressOptions {
    fn default() -> Self {
        Self { frames_per_poll_max: 64, fragments_bytes_max: 64 << 20, message_bytes_max: 1 << 20, throttle: None }
    }
}

/// The state that is shared with other threads while the agent runs.
pub struct IngressShared {
    /// Set to take no more input: a clean stop, or a failure elsewhere.
    pub stopped: AtomicBool,
    /// Set once the agent has seen `stopped`: nothing is appended any more.
    pub halted: AtomicBool,
    /// Whether the stream is halted: publishers' messages wait until it is resumed.
    pub is_stream_halted: Arc<AtomicBool>,
    /// The feed sessions, as far as they are appended.
    pub feeds: SharedFeeds,
    /// The fate of each [`SequencerRequest::Control`], for the control server that asked.
    pub outcomes: Mailbox<ControlOutcome>,
}

impl Default for IngressShared {
    fn default() -> Self {
        let (stopped, halted) = (AtomicBool::new(false), AtomicBool::new(false));
        let is_stream_halted = Arc::default();
        Self {
            stopped,
            halted,
            is_stream_halted,
            feeds: SharedFeeds::default(),
            outcomes: Mailbox::new(2 * WAITING_MAX),
        }
    }
}

counters! {
    /// The counters of the agent.
    #[derive(Debug)]
    pub struct IngressCounters {
        /// The last sequence given.
        last_sequence: "sequencer.last_sequence",
        /// Frames recognised as repeats.
        frames_repeated: "sequencer.frames_repeated",
        /// Frames refused, malformed ones and timers without room included.
        frames_refused: "sequencer.frames_refused",
        publishers: "sequencer.publishers",
        sessions: "sequencer.sessions",
        /// Times that a publisher was asked to send less.
        throttled: "sequencer.throttled",
        /// Unfinished messages that stood still and had to make room for others; their publishers send them again.
        messages_evicted: "sequencer.messages_evicted",
        /// While a handler runs ahead of the stream, the sequence that its transaction is to get; else 0.
        executing_sequence: "sequencer.executing_sequence",
        /// Of the last one that ran so: the session of its command; 0 of a timer.
        executing_session: "sequencer.executing_session",
        /// Its number there, or the timer.
        executing_number: "sequencer.executing_number",
    }
}

impl IngressCounters {
    /// A process that ends before [`IngressCounters::end_execution`] leaves behind at what.
    #[inline]
    pub(crate) fn begin_execution(&self, sequence: u64, session: u64, number: u64) {
        self.executing_session.set(session);
        self.executing_number.set(number);
        self.executing_sequence.set(sequence);
    }

    #[inline]
    pub(crate) fn end_execution(&self) {
        self.executing_sequence.set(0);
    }
}

/// Everything the agent is connected to.
pub struct IngressLinks {
    /// From the acceptor.
    pub publishers: Mailbox<PublisherEvent>,
    /// To the service.
    pub service: Mailbox<ResponderMessage>,
    /// From the service.
    pub requests: Mailbox<SequencerRequest>,
    /// Threads to wake when frames were appended.
    pub downstream: Vec<Waker>,
    pub counters: IngressCounters,
}
