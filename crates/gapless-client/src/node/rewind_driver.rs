//! Fills large gaps of a feed over TCP; without an answer, messages are requested as usual.

use super::feed_receiver::FeedReceiver;
use super::rewind::{Rewind, RewindError, RewindRequest};
use crate::feed_sessions::Feed;
use gapless_wire::soup::Field;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::AsFd;
use std::net::SocketAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RewindPort {
    pub server: SocketAddr,
    pub username: Field<6>,
    pub password: Field<10>,
}

pub(super) struct RewindDriver {
    port: Option<RewindPort>,
    rewind: Option<(Rewind, Feed)>,
    next_attempt_ns: u64,
    progress_ns: u64,
}

/// The packets of the live feed must be read too.
const POURED_BYTES: usize = 64 << 10;
const ATTEMPT_INTERVAL_NS: u64 = 200_000_000;
/// Requests accompany a rewind that brings no new frames for so long.
const PATIENCE_NS: u64 = 50_000_000;
/// A rewind that brings no new frames for so long is given up.
const SILENCE_NS_MAX: u64 = 3_000_000_000;

impl RewindDriver {
    pub const fn new(port: Option<RewindPort>) -> Self {
        Self { port, rewind: None, next_attempt_ns: 0, progress_ns: 0 }
    }

    /// Whether missing frames arrive, so that no requests are needed.
    pub fn is_flowing(&self, now_ns: u64) -> bool {
        let is_accepted = self.rewind.as_ref().is_some_and(|(rewind, _)| rewind.is_accepted());
        is_accepted && now_ns.saturating_sub(self.progress_ns) < PATIENCE_NS
    }

    /// Starts, continues or ends a rewind. Call it when `receiver` has no ready frame, so that no more is taken from
    /// the connection than is read.
    #[inline]
    pub fn turn(&mut self, receiver: &mut FeedReceiver, now_ns: u64) {
        let Some(port) = &self.port else { return };
        if self.rewind.is_none() {
            if now_ns < self.next_attempt_ns || !receiver.wants_rewind() {
                return;
            }
            let Some(feed) = receiver.feed().copied().filter(|feed| feed.holds(receiver.next_sequence())) else {
                return;
            };
            let request = RewindRequest {
                username: port.username,
                password: port.password,
                feed_session: feed.name,
                number: feed.number_of(receiver.next_sequence()),
            };
            match Rewind::open(port.server, &request, now_ns) {
                Ok(rewind) => self.rewind = Some((rewind, feed)),
                Err(error) => return self.give_up(&error, now_ns),
            }
            self.progress_ns = now_ns;
        }
        match self.fill_receiver(receiver, now_ns) {
            Ok(()) if now_ns.saturating_sub(self.progress_ns) > SILENCE_NS_MAX => {
                self.give_up(&"it brings nothing any more", now_ns);
            }
            Ok(()) => {}
            Err(error) => self.give_up(&error, now_ns),
        }
    }

    fn fill_receiver(&mut self, receiver: &mut FeedReceiver, now_ns: u64) -> Result<(), RewindError> {
        let Some((rewind, feed)) = &mut self.rewind else { return Ok(()) };
        let mut poured = 0;
        while poured < POURED_BYTES {
            if rewind.advance()? {
                // The live feed or the answer to a request may have been faster.
                let sequence = feed.sequence_of(rewind.number());
                if sequence.is_none_or(|sequence| sequence >= receiver.next_sequence()) {
                    if !receiver.take_frame(rewind.message()) {
                        return Err(RewindError::OutOfPlace("a frame that is damaged, or another one than is due"));
                    }
                    self.progress_ns = now_ns;
                }
                poured += rewind.message().len();
            } else if rewind.has_ended() || !rewind.receive(now_ns)? {
                break;
            }
        }
        rewind.tick(now_ns)?;
        if rewind.has_ended() || receiver.missing() == 0 {
            tracing::debug!(next = receiver.next_sequence(), "rewound");
            if let Some((rewind, _)) = self.rewind.take() {
                rewind.log_out();
            }
        }
        Ok(())
    }

    #[cold]
    fn give_up(&mut self, why: &dyn std::fmt::Display, now_ns: u64) {
        tracing::debug!(%why, "the rewind is given up; what is missing is asked for by packets");
        self.rewind = None;
        self.next_attempt_ns = now_ns + ATTEMPT_INTERVAL_NS;
    }

    pub fn stop(&mut self) {
        self.rewind = None;
    }

    /// Readable when bytes arrive.
    pub fn poll_fd(&self) -> Option<PollFd<'_>> {
        self.rewind.as_ref().map(|(rewind, _)| PollFd::from_borrowed_fd(rewind.as_fd(), PollFlags::IN))
    }
}
