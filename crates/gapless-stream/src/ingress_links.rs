//! Connections of an `Ingress`: its options, mailboxes, counters, and the state shared with other threads while it
//! runs.

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

/// Limits on frames from the publishers' rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressOptions {
    /// Frames from one ring in one poll.
    pub frames_per_poll_max: usize,
    /// Memory for unfinished messages, bytes; a single one is always admitted, idle ones are evicted.
    pub fragments_bytes_max: usize,
    /// Longest message with all headers, bytes; at most half of the window.
    pub message_bytes_max: usize,
    pub throttle: Option<Throttle>,
}

impl Default for IngressOptions {
    fn default() -> Self {
        Self { frames_per_poll_max: 64, fragments_bytes_max: 64 << 20, message_bytes_max: 1 << 20, throttle: None }
    }
}

/// State shared with other threads.
pub struct IngressShared {
    /// Stops the input: cleanly, or after a failure elsewhere.
    pub stopped: AtomicBool,
    /// Set once the agent has seen `stopped`: it appends nothing more.
    pub halted: AtomicBool,
    /// Publishers' messages wait until the stream is resumed.
    pub is_stream_halted: Arc<AtomicBool>,
    pub feeds: SharedFeeds,
    /// Outcome of each [`SequencerRequest::Control`].
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
    #[derive(Debug)]
    pub struct IngressCounters {
        /// Last sequence.
        last_sequence: "sequencer.last_sequence",
        /// Duplicate frames.
        frames_repeated: "sequencer.frames_repeated",
        /// Refused frames, including malformed ones and timers without room.
        frames_refused: "sequencer.frames_refused",
        /// Connected publishers.
        publishers: "sequencer.publishers",
        /// Open sessions.
        sessions: "sequencer.sessions",
        /// Requests to a client to send less.
        throttled: "sequencer.throttled",
        /// Idle unfinished messages that were evicted; their publishers resend them.
        messages_evicted: "sequencer.messages_evicted",
        /// Sequence of the transaction whose handler runs ahead of the stream; else 0.
        executing_sequence: "sequencer.executing_sequence",
        /// Session of the last command that ran ahead of the stream; 0 for a timer.
        executing_session: "sequencer.executing_session",
        /// Number in its session of the last command that ran ahead of the stream, or the timer.
        executing_number: "sequencer.executing_number",
    }
}

impl IngressCounters {
    /// Marks the start of a handler. If the process dies before [`IngressCounters::end_execution`], the counters name
    /// the command.
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

pub struct IngressLinks {
    /// Events of publishers, from the acceptor.
    pub publishers: Mailbox<PublisherEvent>,
    /// To the service.
    pub service: Mailbox<ResponderMessage>,
    /// Requests of the service.
    pub requests: Mailbox<SequencerRequest>,
    /// Threads to wake after frames were appended.
    pub downstream: Vec<Waker>,
    pub counters: IngressCounters,
}
