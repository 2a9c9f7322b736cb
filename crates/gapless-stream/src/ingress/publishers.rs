//! The publishers of an [`Ingress`]: which they are, how much each may send now, and the removal of one whose ring is
//! of no more use.

use super::Ingress;
use crate::messages::{PublisherEvent, ResponderMessage};
use gapless_client::throttle::TokenBucket;
use gapless_log::RingReader;
use gapless_transport::link::ConnectionId;
use gapless_wire::control::RefusalCode;
use gapless_wire::prefetch::FramesAhead;

pub(super) struct ConnectedPublisher {
    pub connection: ConnectionId,
    pub reader: RingReader,
    /// Whether this process has checked both checksums of the ring's frames.
    pub is_checked: bool,
    pub frames_ahead: FramesAhead,
    /// The session of a message that is complete and waits for room in the window.
    pub complete: Option<u64>,
    pub bucket: Option<TokenBucket>,
    /// It was notified that it is throttled, and has not been served since.
    pub throttle_reported: bool,
    /// Gone: its ring is drained, then dropped.
    pub closed: bool,
    /// Nothing of it is taken until it opens a session anew: it was notified that this member does not lead, or will be
    /// at this time, monotonic ns.
    pub away_told_next_ns: Option<u64>,
    /// This member has followed another since it came: sessions that it opened before are not its any more.
    pub was_detached: bool,
    /// To be dropped after this poll.
    pub done: bool,
}

impl ConnectedPublisher {
    /// Whether nothing comes any more but the frames in its ring.
    pub(super) fn has_gone(&self) -> bool {
        self.closed || self.reader.is_writer_closed()
    }
}

/// The fate of a publisher's turn.
pub(super) enum Turn {
    /// So many frames were taken.
    Taken(usize),
    /// So many were; the next has to wait, for its publisher's rate or for memory.
    Waits(usize),
    /// The window or the service's mailbox is full: nobody's turn until the service moves on.
    WindowFull(usize),
    /// The ring is of no more use.
    Spoiled(String),
    /// Nor is it after a frame of this session that no publisher may send.
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
                    away_told_next_ns: None,
                    was_detached: false,
                    done: false,
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

    /// How many frames a publisher may send now; `None` if it has to wait.
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
            self.tell(ResponderMessage::Refuse { connection, session: 0, session_seq: 0, code, detail });
        }
        None
    }

    /// Its publisher is notified, with the `session` that it was for: through a relay it may be one of many.
    #[cold]
    pub(super) fn drop_spoiled(&mut self, number: usize, reason: &str, session: u64) {
        let publisher = &mut self.publishers[number];
        publisher.done = true;
        let connection = publisher.connection;
        self.links.counters.frames_refused.add(1);
        tracing::warn!(connection = connection.0, reason, "a publisher's ring is corrupt; it is dropped");
        let code = RefusalCode::Malformed;
        self.tell(ResponderMessage::Refuse { connection, session, session_seq: 0, code, detail: 0 });
    }
}
