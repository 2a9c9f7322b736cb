//! The sequencer's own frames: requests of the service or the stream's owner, due timers, expired sessions.

use super::Ingress;
use crate::StreamError;
use crate::messages::SequencerRequest;
use gapless_client::throttle::{Throttle, TokenBucket};
use gapless_log::LogError;
use gapless_wire::control::TimerFired;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::mark::Mark;
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, Kind, mark};
use std::sync::atomic::Ordering;

impl Ingress {
    /// `None` while the window is full.
    pub(super) fn append_own(&mut self, kind: Kind, session: u64, payload: &[u8]) -> Result<Option<u64>, StreamError> {
        let length = HEADER_LENGTH + payload.len();
        let claim = match self.window.claim(length) {
            Ok(claim) => claim,
            Err(LogError::Full { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (sequence, timestamp_ns) = self.sequencer.stamp(self.now.epoch_ns);
        let mut writer = FrameWriter::new(claim);
        writer.payload_mut()[..payload.len()].copy_from_slice(payload);
        let term = self.sequencer.term();
        let header = FrameHeader { kind, sequence, timestamp_ns, session, term, ..FrameHeader::default() };
        writer.finish(&header, payload.len());
        self.window.commit(length, sequence);
        Ok(Some(sequence))
    }

    pub(super) fn append_due(&mut self) -> Result<usize, StreamError> {
        let mut work = 0;
        while let Some(request) = self.links.requests.pop() {
            self.requests.push_back(request);
        }
        while let Some(request) = self.requests.pop_front() {
            if !self.execute_request(&request)? {
                self.requests.push_front(request);
                return Ok(work);
            }
            work += 1;
        }
        if self.sequencer.is_between_feeds() {
            return Ok(work);
        }
        while let Some(timer) = self.sequencer.due_timer(self.now.epoch_ns) {
            if self.speculation.is_some() && timer.owner == 0 {
                if !self.append_timer_transaction(timer)? {
                    break;
                }
                work += 1;
                continue;
            }
            let payload = TimerFired { timer: timer.timer, deadline_ns: timer.deadline_ns }.to_bytes();
            if self.append_own(Kind::Timer, timer.owner, &payload)?.is_none() {
                break;
            }
            self.sequencer.take_timer(timer);
            work += 1;
        }
        // Found earlier, without room for the close, they may have been refreshed since.
        let found = self.sequencer.look_for_expired_sessions(self.now.epoch_ns);
        if !found.is_empty() {
            self.expired = found;
        }
        while let Some(session) = self.expired.last().copied() {
            if !self.sequencer.is_expired(session, self.now.epoch_ns) {
                self.expired.pop();
                continue;
            }
            if self.append_own(Kind::SessionClose, session, &[])?.is_none() {
                break;
            }
            self.expired.pop();
            self.sequencer.close_expired(session);
            self.fragments.forget(session);
            if self.deferred.forget(session)
                && let Some(speculation) = &mut self.speculation
            {
                speculation.transactions.gone(session);
            }
            self.note_passed(Kind::SessionClose, session, 0);
            work += 1;
        }
        Ok(work)
    }

    /// `false` while the window is full.
    pub(super) fn execute_request(&mut self, request: &SequencerRequest) -> Result<bool, StreamError> {
        match request {
            SequencerRequest::SetTimer { timer, deadline_ns } => self.sequencer.set_timer(*timer, *deadline_ns),
            SequencerRequest::CancelTimer { timer, deadline_ns } => self.sequencer.cancel_timer(*timer, *deadline_ns),
            SequencerRequest::Throttle(throttle) => self.throttle(*throttle),
            SequencerRequest::MoveTime { to_ns } => {
                if let Some(time) = &mut self.manual_time {
                    let (last_ns, timer_ns) = (self.sequencer.last_timestamp_ns(), self.sequencer.next_deadline_ns());
                    self.now.epoch_ns = time.step(*to_ns, last_ns, timer_ns);
                }
            }
            SequencerRequest::Halt { .. } | SequencerRequest::Resume if self.sequencer.is_between_feeds() => {
                self.request_between_feeds = Some(request.clone());
            }
            SequencerRequest::Halt { reason } if !self.sequencer.is_halted() => {
                return self.append_mark(Mark::Halted { reason });
            }
            SequencerRequest::Resume if self.sequencer.is_halted() => return self.append_mark(Mark::Resumed),
            SequencerRequest::EndFeed => {
                if let Some(feed_session) = self.sequencer.feed_session() {
                    return self.append_mark(Mark::FeedEnded { feed_session });
                }
            }
            SequencerRequest::ServiceVersion { version } => {
                let is_appended = self.append_mark(Mark::ServiceVersion { version: *version })?;
                if let Some(speculation) = self.speculation.as_mut().filter(|_| is_appended) {
                    speculation.become_version(*version);
                }
                return Ok(is_appended);
            }
            SequencerRequest::FaultRules(rules) if !self.sequencer.has_fault_rules() => {
                return self.append_mark(Mark::FaultRules(*rules));
            }
            SequencerRequest::BeginFeed { name } => return self.begin_feed(*name),
            SequencerRequest::Control { number, command } => return self.execute_control(*number, command),
            SequencerRequest::Halt { .. } | SequencerRequest::Resume | SequencerRequest::FaultRules(_) => {}
        }
        Ok(true)
    }

    pub(super) fn throttle(&mut self, throttle: Option<Throttle>) {
        self.options.throttle = throttle;
        for publisher in &mut self.publishers {
            publisher.bucket = throttle.map(TokenBucket::new);
        }
    }

    /// Requests made between the two follow directly. `false` while the window is full.
    pub(super) fn begin_feed(&mut self, name: FeedSession) -> Result<bool, StreamError> {
        if let Some(feed_session) = self.sequencer.feed_session()
            && !self.append_mark(Mark::FeedEnded { feed_session })?
        {
            return Ok(false);
        }
        let is_begun = self.append_mark(Mark::FeedBegan { feed_session: name })?;
        if is_begun && let Some(request) = self.request_between_feeds.take() {
            self.requests.push_front(request);
        }
        Ok(is_begun)
    }

    /// `false` while the window is full.
    pub(super) fn append_mark(&mut self, mark: Mark<'_>) -> Result<bool, StreamError> {
        let mut payload = [0; mark::LENGTH_MAX];
        let length = mark.write_to(&mut payload);
        let Some(sequence) = self.append_own(Kind::Mark, 0, &payload[..length])? else { return Ok(false) };
        self.sequencer.note(sequence, mark);
        self.publish_feeds();
        Ok(true)
    }

    pub(super) fn publish_feeds(&self) {
        self.shared.feeds.lock().clone_from(self.sequencer.feeds());
        // Relaxed: read by status requests only; orders nothing.
        self.shared.is_stream_halted.store(self.sequencer.is_halted(), Ordering::Relaxed);
    }
}
