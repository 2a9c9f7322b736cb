//! The publishers of an `Ingress`: connecting them, how much each may send now, and removing one whose ring is
//! unusable.

use super::Ingress;
use crate::messages::{PublisherEvent, QueryMessage, ResponderMessage};
use gapless_client::throttle::TokenBucket;
use gapless_log::RingReader;
use gapless_transport::link::ConnectionId;
use gapless_wire::Frame;
use gapless_wire::control::RefusalCode;
use gapless_wire::prefetch::FramesAhead;
use std::sync::Arc;

pub(super) struct ConnectedPublisher {
    pub connection: ConnectionId,
    pub reader: RingReader,
    /// Both checksums of its frames are verified.
    pub is_checked: bool,
    pub frames_ahead: FramesAhead,
    /// Session of a message that waits for room in the window.
    pub complete: Option<u64>,
    pub bucket: Option<TokenBucket>,
    /// The publisher knows that it is throttled.
    pub throttle_reported: bool,
    /// Publisher gone; the ring is drained, then dropped.
    pub closed: bool,
    /// Set while frames wait until the publisher reopens a session: it was told that this member does not lead, or is
    /// told then, monotonic ns.
    pub next_redirect_ns: Option<u64>,
    /// This member has followed another since, and no longer owns earlier sessions.
    pub was_detached: bool,
    /// Removed after this poll.
    pub done: bool,
    /// Its queries know by it that the publisher is still there.
    life: Arc<()>,
}

impl ConnectedPublisher {
    pub(super) fn is_gone(&self) -> bool {
        self.closed || self.reader.is_writer_closed()
    }

    #[cold]
    pub(super) fn query(&self, frame: &Frame<'_>) -> ResponderMessage {
        ResponderMessage::Query(Box::new(QueryMessage::new(frame, self.connection, Arc::downgrade(&self.life))))
    }
}

pub(super) enum TurnResult {
    Taken(usize),
    Waits(usize),
    /// Ends the turns of all publishers in this poll.
    WindowFull(usize),
    Corrupt(String),
    /// The ring cannot be used after this frame.
    Malformed(&'static str, u64),
}

impl Ingress {
    #[cold]
    pub(super) fn take_publisher_events(&mut self, event: PublisherEvent) {
        match event {
            PublisherEvent::Opened { connection, reader, is_checked } => {
                self.publishers.push(ConnectedPublisher {
                    connection,
                    reader,
                    is_checked,
                    frames_ahead: FramesAhead::default(),
                    complete: None,
                    bucket: self.options.throttle.map(TokenBucket::new),
                    throttle_reported: false,
                    closed: false,
                    next_redirect_ns: None,
                    was_detached: false,
                    done: false,
                    life: Arc::new(()),
                });
                self.count_publishers();
            }
            PublisherEvent::Closed { connection } => {
                if let Some(publisher) = self.publishers.iter_mut().find(|each| each.connection == connection) {
                    publisher.closed = true;
                }
            }
        }
    }

    pub(super) fn count_publishers(&self) {
        self.links.counters.publishers.set(self.publishers.len() as u64);
    }

    #[inline]
    pub(super) fn allowance(&mut self, number: usize) -> Option<usize> {
        let publisher = &mut self.publishers[number];
        let Some(bucket) = &publisher.bucket else { return Some(self.options.frames_per_poll_max) };
        let available = bucket.available(self.now.monotonic_ns);
        if available > 0 {
            publisher.throttle_reported = false;
            return Some(self.options.frames_per_poll_max.min(available as usize));
        }
        if !publisher.throttle_reported && matches!(publisher.reader.next_length(), Ok(Some(_))) {
            publisher.throttle_reported = true;
            let detail = self.now.epoch_ns + bucket.next_ns().saturating_sub(self.now.monotonic_ns);
            let (connection, code) = (publisher.connection, RefusalCode::Throttled);
            self.links.counters.throttled.add(1);
            self.notify_service(ResponderMessage::Refuse { connection, session: 0, session_seq: 0, code, detail });
        }
        None
    }

    /// The notice names the `session`, since a relay's connection carries many.
    #[cold]
    pub(super) fn drop_corrupt(&mut self, number: usize, reason: &str, session: u64) {
        let publisher = &mut self.publishers[number];
        publisher.done = true;
        let connection = publisher.connection;
        self.links.counters.frames_refused.add(1);
        tracing::warn!(connection = connection.0, reason, "a publisher's ring is corrupt; it is dropped");
        let code = RefusalCode::Malformed;
        self.notify_service(ResponderMessage::Refuse { connection, session, session_seq: 0, code, detail: 0 });
    }
}
