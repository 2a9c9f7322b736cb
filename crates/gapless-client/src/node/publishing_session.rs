//! The publishing half of a node, without I/O. It keeps messages until they come back in the stream, and returns the
//! next frame to send; resending only moves that number back.

mod absent;
mod closing;

use self::absent::AbsentMessages;
use self::closing::{CloseState, StraySession};
use super::resend_buffer::ResendBuffer;
use super::stall_detector::StallDetector;
use crate::ClientError;
use crate::throttle::{Throttle, TokenBucket};
use gapless_wire::control::{SessionOpen, SessionOpened};
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, Kind, MessageParts, aligned_length};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublisherOptions {
    /// The same token finds the same session again, also in a restarted process.
    pub token: u128,
    /// Whether several processes publish the same messages under the same numbers.
    pub shared: bool,
    /// Messages published and not seen in the stream.
    pub window_messages: u32,
    /// Memory for these messages, bytes.
    pub kept_bytes_max: usize,
    pub throttle: Option<Throttle>,
    /// Time after which a message is resent on a lossy link, ns; doubled while nothing comes back, up to 64-fold. On a
    /// reliable link, a relay may still lose frames: then only the last frame is resent, the answer names the missing
    /// ones, and the time grows up to 4,096-fold.
    pub resend_interval_ns: u64,
}

pub(crate) struct PublishingSession {
    options: PublisherOptions,
    session: Option<u64>,
    unacknowledged: ResendBuffer,
    next_to_send: u64,
    accepted: u64,
    /// Whether the sequencer knows that this connection publishes to the session.
    is_attached: bool,
    was_opened: bool,
    open_sent_ns: Option<u64>,
    bucket: Option<TokenBucket>,
    progress_ns: u64,
    resend_interval_ns: u64,
    resent: u64,
    probed_ns: u64,
    stall: StallDetector,
    end: CloseState,
    /// Own session whose close was seen; answers about it arrive late.
    ended: u64,
    stray: Option<StraySession>,
    /// Includes the number of the first message in flight.
    lost: Option<(u64, u64)>,
    absent: Option<AbsentMessages>,
}

const RESEND_BACKOFF_MAX: u64 = 64;
const PROBE_INTERVAL_NS: u64 = 1_000_000;

impl PublishingSession {
    pub fn new(options: PublisherOptions) -> Self {
        Self {
            options,
            session: None,
            unacknowledged: ResendBuffer::new(options.kept_bytes_max, 1),
            next_to_send: 1,
            accepted: 0,
            is_attached: false,
            was_opened: false,
            open_sent_ns: None,
            bucket: options.throttle.map(TokenBucket::new),
            progress_ns: 0,
            resend_interval_ns: options.resend_interval_ns,
            resent: 0,
            probed_ns: 0,
            stall: StallDetector::new(options.resend_interval_ns),
            end: CloseState::Open,
            ended: 0,
            stray: None,
            lost: None,
            absent: None,
        }
    }

    pub const fn session(&self) -> Option<u64> {
        self.session
    }

    pub const fn token(&self) -> u128 {
        self.options.token
    }

    /// Whether messages can be published, as far as the session is concerned.
    pub const fn is_open(&self) -> bool {
        self.session.is_some() && self.was_opened
    }

    /// The session's messages can be recognised from now on. Only the sequencer's answer gives the next number.
    pub fn session_seen(&mut self, session: u64) {
        if !self.is_open() && self.end == CloseState::Open {
            self.session = Some(session);
        }
    }

    /// The session's close is kept like a message, but not counted.
    pub fn in_flight(&self) -> usize {
        self.unacknowledged.messages().saturating_sub(usize::from(self.end == CloseState::Requested))
    }

    pub const fn resent(&self) -> u64 {
        self.resent
    }

    pub fn next_number(&self) -> u64 {
        self.unacknowledged.next_number()
    }

    /// Last number up to which the stream is known to have every frame of the session.
    pub const fn acknowledged(&self) -> u64 {
        self.unacknowledged.first_number() - 1
    }

    /// Splits a payload that does not fit a frame of `frame_length_max`. Returns the number of the last frame.
    #[inline]
    pub fn publish(
        &mut self,
        header: FrameHeader,
        (length_max, frame_length_max): (usize, usize),
        now_ns: u64,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, ClientError>,
    ) -> Result<u64, ClientError> {
        let is_open = self.was_opened && self.end == CloseState::Open;
        let Some(session) = self.session.filter(|_| is_open) else { return Err(ClientError::NotOpen) };
        if self.unacknowledged.messages() >= self.options.window_messages as usize {
            let window_messages = self.options.window_messages;
            return Err(ClientError::WindowFull { session, window_messages });
        }
        if let Some(bucket) = &self.bucket
            && bucket.available(now_ns) == 0
        {
            return Err(ClientError::Throttled { wait_ns: bucket.next_ns().saturating_sub(now_ns) });
        }
        if HEADER_LENGTH + length_max > frame_length_max {
            return self.publish_long(
                FrameHeader { session, ..header },
                (length_max, frame_length_max),
                now_ns,
                encode,
            );
        }
        let number = self.unacknowledged.next_number();
        let Some(claim) = self.unacknowledged.claim(HEADER_LENGTH + length_max) else {
            return Err(ClientError::KeptFull { bytes_max: self.options.kept_bytes_max });
        };
        let mut writer = FrameWriter::new(claim);
        let payload_length = encode(&mut writer.payload_mut()[..length_max])?;
        let length = writer.finish(&FrameHeader { session, session_seq: number, ..header }, payload_length);
        if self.unacknowledged.is_empty() {
            self.progress_ns = now_ns;
        }
        self.unacknowledged.commit(aligned_length(length), true);
        self.skip_sending(number);
        if let Some(bucket) = &mut self.bucket {
            bucket.take(1, now_ns);
        }
        Ok(number)
    }

    #[cold]
    fn publish_long(
        &mut self,
        header: FrameHeader,
        (length_max, frame_length_max): (usize, usize),
        now_ns: u64,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, ClientError>,
    ) -> Result<u64, ClientError> {
        let mut payload = vec![0; length_max];
        let payload_length = encode(&mut payload)?;
        payload.truncate(payload_length);
        let part_length = frame_length_max - HEADER_LENGTH;
        let parts = MessageParts::new(&payload, part_length);
        let count = parts.count();
        if count > usize::from(u16::MAX) {
            let limit_bytes = usize::from(u16::MAX) * part_length;
            return Err(ClientError::TooLong { length_bytes: payload.len(), limit_bytes });
        }
        // All parts or none.
        let needed = payload.len() + count * (HEADER_LENGTH + 8);
        if self.unacknowledged.claim(needed).is_none() {
            return Err(ClientError::KeptFull { bytes_max: self.options.kept_bytes_max });
        }
        if self.unacknowledged.is_empty() {
            self.progress_ns = now_ns;
        }
        let mut number = 0;
        for (fragment, part) in parts.iter() {
            number = self.unacknowledged.next_number();
            let claim = self.unacknowledged.claim(HEADER_LENGTH + part.len()).expect("there is room for all of them");
            let mut writer = FrameWriter::new(claim);
            writer.payload_mut()[..part.len()].copy_from_slice(part);
            let length = writer.finish(&FrameHeader { session_seq: number, fragment, ..header }, part.len());
            self.unacknowledged.commit(aligned_length(length), fragment.is_last());
            self.skip_sending(number);
        }
        if let Some(bucket) = &mut self.bucket {
            bucket.take(count as u64, now_ns);
        }
        Ok(number)
    }

    /// Another instance has published the messages already.
    #[inline]
    fn skip_sending(&mut self, number: u64) {
        if number <= self.accepted && self.next_to_send == number {
            self.next_to_send = number + 1;
        }
    }

    pub fn set_next_derived(&mut self, number: u64) {
        self.unacknowledged.restart(number);
        self.next_to_send = number;
    }

    /// Skips numbers that the stream has, unless earlier frames are kept.
    pub fn skip(&mut self, frames: u64) -> bool {
        let last = self.unacknowledged.next_number() + frames - 1;
        let is_there = self.unacknowledged.is_empty() && last <= self.accepted;
        if is_there {
            self.set_next_derived(last + 1);
        }
        is_there
    }

    /// Room for a few messages.
    pub fn has_room_for_derived(&self) -> bool {
        self.unacknowledged.messages() < self.options.window_messages as usize / 2
            && self.unacknowledged.bytes() < self.options.kept_bytes_max as u64 / 2
    }

    /// The next probe is due an interval later.
    pub const fn take_due_probe(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns.saturating_sub(self.probed_ns) >= PROBE_INTERVAL_NS;
        if is_due {
            self.probed_ns = now_ns;
        }
        is_due
    }

    /// `None` if it is not kept. The answer to its resending gives the last number that the sequencer has.
    pub fn last_sent(&self) -> Option<&[u8]> {
        let number = self.next_to_send.checked_sub(1)?;
        (self.is_attached && number >= self.unacknowledged.first_number()).then(|| self.unacknowledged.get(number))
    }

    /// Handles a reconnect: the session must be reopened.
    pub fn connected(&mut self) {
        self.is_attached = false;
        self.open_sent_ns = None;
    }

    /// Whether the sequencer knows that this connection publishes to the session.
    pub const fn is_attached(&self) -> bool {
        self.is_attached
    }

    /// Returns the open with its session: 0 for any session of the token, also a new one.
    pub fn due_open(&self, now_ns: u64) -> Option<(SessionOpen, u64)> {
        let session = match self.end {
            CloseState::Open => 0,
            // The session may be closed already, and a new one is not wanted.
            CloseState::Requested => self.session?,
            CloseState::Closed => return None,
        };
        let is_due = self.open_sent_ns.is_none_or(|sent_ns| now_ns.saturating_sub(sent_ns) >= self.resend_interval_ns);
        let open = SessionOpen {
            token: self.options.token,
            window_messages: self.options.window_messages,
            shared: self.options.shared,
            notices_seen: 0,
        };
        (!self.is_attached && is_due).then_some((open, session))
    }

    pub const fn open_sent(&mut self, now_ns: u64) {
        self.open_sent_ns = Some(now_ns);
    }

    /// `None` while the session is not open.
    #[inline]
    pub fn next_frame(&self) -> Option<&[u8]> {
        let is_there = self.is_attached && self.next_to_send < self.unacknowledged.next_number();
        is_there.then(|| self.unacknowledged.get(self.next_to_send))
    }

    /// Notes that the frame of [`PublishingSession::next_frame`] was sent.
    #[inline]
    pub const fn sent(&mut self) {
        self.next_to_send += 1;
    }

    /// Handles the sequencer's answer to an open.
    pub fn opened(&mut self, session: u64, opened: &SessionOpened, now_ns: u64) -> Result<(), ClientError> {
        let next = opened.next_session_seq;
        if self.is_attached && self.session == Some(session) {
            // The answer was duplicated or late; the session has moved on since.
            return Ok(());
        }
        if session <= self.ended {
            return Ok(());
        }
        if self.end != CloseState::Open && self.session != Some(session) {
            self.stray = Some(StraySession { session, next_session_seq: next });
            if self.end == CloseState::Closed {
                self.close_stray(now_ns);
            }
            return Ok(());
        }
        self.is_attached = true;
        self.progress_ns = now_ns;
        self.resend_interval_ns = self.options.resend_interval_ns;
        match self.session {
            Some(known) if known == session && (self.was_opened || self.end != CloseState::Open) => {
                // Another instance may be ahead of this one, but the stream never lags it.
                if next < self.unacknowledged.first_number() && !self.options.shared {
                    return Err(ClientError::SessionLost {
                        session,
                        expected: self.unacknowledged.first_number(),
                        found: next,
                    });
                }
                self.accepted = self.accepted.max(next - 1);
                self.next_to_send = next.clamp(self.unacknowledged.first_number(), self.unacknowledged.next_number());
            }
            Some(known) if !self.unacknowledged.is_empty() => {
                let expected = self.unacknowledged.first_number();
                return Err(ClientError::SessionLost { session: known, expected, found: next });
            }
            _ => {
                self.session = Some(session);
                self.was_opened = true;
                if !self.options.shared {
                    self.unacknowledged.restart(next);
                }
                self.accepted = next - 1;
                self.next_to_send = next.clamp(self.unacknowledged.first_number(), self.unacknowledged.next_number());
            }
        }
        Ok(())
    }

    /// Handles an own frame in the stream.
    #[inline]
    pub fn frame_returned(&mut self, session_seq: u64, now_ns: u64) {
        self.accepted = self.accepted.max(session_seq);
        if self.unacknowledged.forget_through(session_seq) > 0 {
            self.progress_ns = now_ns;
            self.resend_interval_ns = self.options.resend_interval_ns;
        }
        if self.next_to_send <= session_seq {
            self.next_to_send = self.unacknowledged.first_number();
        }
    }

    /// The sequencer has every frame up to `session_seq`.
    pub fn note_accepted(&mut self, session_seq: u64, now_ns: u64) {
        self.accepted = self.accepted.max(session_seq);
        self.progress_ns = now_ns;
        if self.options.shared {
            // Derived messages need not be seen, because they can be recreated.
            self.unacknowledged.forget_through(session_seq);
        }
        self.next_to_send = self.next_to_send.max(session_seq + 1).min(self.unacknowledged.next_number());
    }

    /// Resends from `session_seq`.
    pub fn note_missing(&mut self, session_seq: u64, now_ns: u64) {
        self.accepted = self.accepted.max(session_seq.saturating_sub(1));
        if !self.options.shared || self.note_requested(session_seq) {
            self.send_from(session_seq, now_ns);
        }
    }

    /// The sequencer does not know the session, or not this connection of it.
    pub fn note_unknown(&mut self) {
        self.is_attached = false;
    }

    /// Resends frames that the sequencer should have had by now, on a lossy link.
    pub fn resend_overdue(&mut self, now_ns: u64) {
        let waiting = self.next_to_send.saturating_sub(self.accepted + 1);
        if !self.is_attached || waiting == 0 || self.unacknowledged.is_empty() {
            return;
        }
        if now_ns.saturating_sub(self.progress_ns) >= self.resend_interval_ns {
            self.resend_interval_ns =
                (self.resend_interval_ns * 2).min(self.options.resend_interval_ns * RESEND_BACKOFF_MAX);
            self.send_from(self.accepted + 1, now_ns);
        }
    }

    /// Whether frames are in flight, so that [`PublishingSession::take_due_question`] is worth its time.
    #[inline]
    pub fn take_clock_check(&mut self) -> bool {
        let any_waits = self.is_attached && self.next_to_send > self.accepted + 1 && !self.unacknowledged.is_empty();
        any_waits && self.stall.take_clock_check()
    }

    /// Whether nothing has come back for so long that the sequencer must be asked for its state; the next question is
    /// due later than this one was.
    pub fn take_due_question(&mut self, now_ns: u64) -> bool {
        self.stall.take_due_question(self.accepted, now_ns)
    }

    pub const fn note_asked(&mut self) {
        self.resent += 1;
    }

    /// The time is worth checking after a sleep.
    pub const fn note_slept(&mut self) {
        self.stall.note_slept();
    }

    /// The stream takes nothing from this publisher for `wait_ns`.
    pub fn hold(&mut self, wait_ns: u64, now_ns: u64) {
        self.stall.hold(wait_ns, now_ns);
    }

    /// Notes that the stream may take messages again, after a halt or between two feed sessions. A hold lasts on.
    pub const fn release(&mut self) {
        self.absent = None;
        self.stall.release();
    }

    fn send_from(&mut self, session_seq: u64, now_ns: u64) {
        let from = session_seq.clamp(self.unacknowledged.first_number(), self.unacknowledged.next_number());
        self.resent += self.next_to_send.saturating_sub(from);
        self.next_to_send = self.next_to_send.min(from);
        self.progress_ns = now_ns;
    }

    pub fn timer_header() -> FrameHeader {
        FrameHeader { kind: Kind::TimerRequest, ..FrameHeader::default() }
    }
}

#[cfg(test)]
mod tests;
