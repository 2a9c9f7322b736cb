//! An [`Ingress`] as a cluster's member, called between its polls. As follower it appends the leader's frames and
//! stamps none, and keeps the sequencer's state current, so leading starts at once. Nothing here releases.

use super::publishers::TurnResult;
use super::{Ingress, checked};
use crate::StreamError;
use crate::messages::{ResponderMessage, SequencerRequest};
use crate::sequencer::{Decision, Sequencer, decide_query};
use crate::stream_time::StreamTime;
use gapless_agent::Now;
use gapless_client::control_messages::{ControlOutcome, ControlStatus};
use gapless_log::LogError;
use gapless_wire::descriptor::KIND_OFFSET;
use gapless_wire::frame::peek_sessions;
use gapless_wire::prefetch::FramesAhead;
use gapless_wire::{Frame, HEADER_LENGTH, Kind, aligned_length};
use std::sync::Arc;

#[derive(Debug)]
pub(super) enum IngressRole {
    Leading,
    Following {
        /// Addresses of the leader, one a line, empty if unknown.
        leader: Option<Arc<str>>,
        /// Publishers wait until then for the next leader instead of being sent from member to member.
        awaited_until_ns: u64,
        is_mid_message: bool,
    },
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnsentRoleChanges {
    deposed: bool,
    /// Sequence after which this member leads.
    leads_after: Option<u64>,
}

/// Interval of repeating the redirect to a publisher that stays, ns: an answer that finds no room is lost.
const REDIRECT_INTERVAL_NS: u64 = 100_000_000;
/// Time for which a member without a leader keeps its publishers waiting for the next one, ns; then they try other
/// members.
const LEADER_AWAITED_NS: u64 = 200_000_000;

impl Ingress {
    #[inline]
    #[must_use]
    pub const fn is_following(&self) -> bool {
        matches!(self.role, IngressRole::Following { .. })
    }

    /// Redirects publishers even while leading, for want of a service.
    pub const fn redirect_all(&mut self) {
        self.serves = false;
    }

    #[must_use]
    pub const fn sequencer(&self) -> &Sequencer {
        &self.sequencer
    }

    /// Last appended sequence, published or not.
    #[must_use]
    pub const fn last_sequence(&self) -> u64 {
        self.window.last_sequence()
    }

    /// Stream time, which the leader sends to its followers.
    #[must_use]
    pub const fn time(&self) -> &StreamTime {
        &self.time
    }

    /// Takes over the leader's time; `false` if invalid.
    pub fn observe_time(&mut self, stream_ns: u64, now: Now) -> bool {
        !self.is_following() || self.time.observe(stream_ns, now)
    }

    /// Takes frames from now on and stamps them with `term`; sequenced time continues. Redirected publishers must
    /// reopen their sessions.
    ///
    /// # Errors
    /// [`StreamError::Follow`] if `term` is below that of the last frame, or that frame is not the last of its message.
    pub fn lead(&mut self, term: u64) -> Result<(), StreamError> {
        if term < self.sequencer.term() {
            return Err(self.follow_error(format!("its next leader cannot have term {term}")));
        }
        if matches!(self.role, IngressRole::Following { is_mid_message: true, .. }) {
            return Err(self.follow_error("in the middle of a message, where nobody can lead".to_owned()));
        }
        self.sequencer.begin_term(term);
        // Timers may have fired since the service set them, and this member does not know which.
        self.sequencer.forget_own_timers();
        self.unsent.leads_after = Some(self.window.last_sequence());
        self.time.lead_after(self.sequencer.last_timestamp_ns());
        if let Some(speculation) = &mut self.speculation {
            speculation.transactions.lead(term, self.window.last_sequence());
        }
        self.role = IngressRole::Leading;
        // Publishers that waited for a leader have to open their sessions here, or have already.
        self.redirect_now();
        Ok(())
    }

    fn redirect_now(&mut self) {
        self.publishers.iter_mut().filter_map(|each| each.next_redirect_ns.as_mut()).for_each(|next_ns| *next_ns = 0);
    }

    /// Stops taking frames and appending its own: no timer fires, no session expires. Publishers are redirected to
    /// `leader` (addresses, one a line; empty if unknown), and wait for a moment if `None`. They resend frames that
    /// were not appended.
    pub fn follow(&mut self, leader: Option<&str>) {
        let until_ns = self.now.monotonic_ns + LEADER_AWAITED_NS;
        match &mut self.role {
            IngressRole::Following { leader: known, .. } if known.as_deref() == leader => return,
            IngressRole::Following { leader: known, awaited_until_ns, .. } => {
                *known = leader.map(Into::into);
                *awaited_until_ns = until_ns;
            }
            IngressRole::Leading => {
                let leader = leader.map(Into::into);
                self.role = IngressRole::Following { leader, awaited_until_ns: until_ns, is_mid_message: false };
                if let Some(speculation) = &mut self.speculation {
                    speculation.transactions.follow(self.window.last_sequence());
                }
                self.fragments.forget_all();
                self.deferred.forget_all();
                self.sequencer.detach_all();
                self.sequencer.end_term();
                self.unsent = UnsentRoleChanges { deposed: true, leads_after: None };
                self.expired.clear();
                for publisher in &mut self.publishers {
                    publisher.complete = None;
                    publisher.frames_ahead = FramesAhead::default();
                    publisher.was_detached = true;
                    // Publishers that wait for frames appended here are redirected, too: those frames may be truncated.
                    publisher.next_redirect_ns = Some(0);
                }
            }
        }
        self.redirect_now();
    }

    /// Appends whole, padded frames, back to back, with valid checksums, as a leader has stamped them. Returns the
    /// number of bytes taken, fewer while the window is full. Readers see them after [`Ingress::publish`].
    ///
    /// # Errors
    /// [`StreamError::Follow`] if this member leads, or a frame does not continue the stream by sequence, time or term;
    /// [`StreamError::Log`] for a frame that is too long. Frames before the faulty one were taken.
    pub fn append_followed(&mut self, frames: &[u8]) -> Result<usize, StreamError> {
        if !self.is_following() {
            return Err(self.follow_error("frames of a leader come while this member leads".to_owned()));
        }
        let (mut position, mut frames_ahead) = (0, FramesAhead::default());
        while position < frames.len() {
            let frame = Frame::parse(&frames[position..]).map_err(|error| self.follow_error(error.to_string()))?;
            let (length, padded) = (frame.length(), aligned_length(frame.length()));
            let Some(bytes) = frames.get(position..position + padded) else {
                return Err(self.follow_error(format!("frame {} is cut in its padding", frame.sequence())));
            };
            if let Some(reason) = self.continuation_error(&frame) {
                return Err(self.follow_error(reason));
            }
            frames_ahead.step(|sessions| self.sequencer.prefetch(peek_sessions(&frames[position..], sessions)));
            let claim = match self.window.claim(length) {
                Ok(claim) => claim,
                Err(LogError::Full { .. }) => break,
                Err(error) => return Err(error.into()),
            };
            claim.copy_from_slice(bytes);
            // No checksum covers the padding.
            claim[length..].fill(0);
            self.window.commit(length, frame.sequence());
            self.sequencer.observe(&frame);
            if frame.kind() == Kind::Mark {
                self.publish_feeds();
            }
            if let IngressRole::Following { is_mid_message, .. } = &mut self.role {
                *is_mid_message = !frame.fragment().is_last();
            }
            position += padded;
        }
        Ok(position)
    }

    #[inline]
    fn continuation_error(&self, frame: &Frame<'_>) -> Option<String> {
        let (due, sequence) = (self.window.last_sequence() + 1, frame.sequence());
        let is_later = frame.timestamp_ns() > self.sequencer.last_timestamp_ns();
        if sequence == due && is_later && frame.term() >= self.sequencer.term() {
            return None;
        }
        let (term, timestamp_ns) = (frame.term(), frame.timestamp_ns());
        let before_ns = self.sequencer.last_timestamp_ns();
        Some(format!("frame {sequence} of term {term} at {timestamp_ns} ns does not continue it at {before_ns} ns"))
    }

    /// Truncates unreleased frames after `sequence`; `sequencer` must be the state there
    /// ([`rebuild`](crate::sequencer_recovery::rebuild)). The service is asked for its timers, which are not in the
    /// stream, when this member leads ([`ResponderMessage::Leads`]). The space of published frames becomes free only
    /// after every cursor of appended frames has polled, and rewound if necessary.
    ///
    /// # Errors
    /// [`StreamError::Follow`] if this member leads, or `sequencer` is at another sequence;
    /// [`LogError::TruncatesReleased`].
    pub fn truncate_after(&mut self, sequence: u64, sequencer: Sequencer) -> Result<(), StreamError> {
        let stands_at = sequencer.last_sequence();
        if !self.is_following() || stands_at != sequence || sequence > self.window.last_sequence() {
            let role = if self.is_following() { "follows" } else { "leads" };
            let reason = format!("it cannot be cut behind {sequence} by who {role}, with a sequencer at {stands_at}");
            return Err(self.follow_error(reason));
        }
        self.window.truncate_after(sequence)?;
        if let Some(state_writer) = &mut self.state_writer {
            state_writer.discard_unreleased(sequence);
        }
        self.sequencer = sequencer;
        if let IngressRole::Following { is_mid_message, .. } = &mut self.role {
            *is_mid_message = false;
        }
        self.publish_feeds();
        let counters = &self.links.counters;
        counters.last_sequence.set(sequence);
        counters.sessions.set(self.sequencer.session_count() as u64);
        Ok(())
    }

    #[inline]
    pub(super) const fn has_unsent(&self) -> bool {
        self.unsent.deposed || self.unsent.leads_after.is_some()
    }

    #[inline]
    pub(super) fn send_unsent(&mut self) {
        let UnsentRoleChanges { deposed, leads_after } = self.unsent;
        if self.has_unsent() && self.links.service.has_room(2) {
            self.unsent = UnsentRoleChanges::default();
            if deposed {
                self.notify_service(ResponderMessage::Deposed);
            }
            if let Some(last_sequence) = leads_after {
                self.notify_service(ResponderMessage::Leads { last_sequence });
            }
        }
    }

    #[cold]
    fn follow_error(&self, reason: String) -> StreamError {
        StreamError::Follow { last_sequence: self.window.last_sequence(), term: self.sequencer.term(), reason }
    }

    /// The state covers whole messages only; a follower writes it at a clean stop (`ends`) only if every frame is
    /// released.
    pub(super) fn is_state_whole(&self, ends: bool) -> bool {
        match self.role {
            IngressRole::Leading => true,
            IngressRole::Following { is_mid_message, .. } => {
                !is_mid_message && (!ends || self.window.window().released_sequence() == self.window.last_sequence())
            }
        }
    }

    #[inline]
    pub(super) fn write_state_if_due(&mut self) {
        let (sequence, now_ns) = (self.window.last_sequence(), self.now.monotonic_ns);
        if self.state_writer.as_ref().is_some_and(|state_writer| state_writer.is_due(sequence, now_ns))
            && self.is_state_whole(false)
        {
            self.write_state();
        }
    }

    /// Ignores the service's timers: it is asked for them when this member leads.
    pub(super) fn execute_as_follower(&mut self) -> usize {
        let mut work = 0;
        if let Some(request) = self.request_between_feeds.take() {
            self.requests.push_back(request);
        }
        while let Some(request) = self.requests.pop_front().or_else(|| self.links.requests.pop()) {
            work += 1;
            match request {
                SequencerRequest::SetTimer { .. } | SequencerRequest::CancelTimer { .. } => {}
                SequencerRequest::Throttle(throttle) => self.throttle(throttle),
                SequencerRequest::Control { number, .. } => {
                    let (status, sequence) = (ControlStatus::Follower, self.sequencer.last_sequence());
                    // The control server limits waiting requests: a full mailbox means that it has ended.
                    let _ = self.shared.outcomes.push(ControlOutcome { number, status, sequence });
                }
                SequencerRequest::Halt { .. }
                | SequencerRequest::Resume
                | SequencerRequest::BeginFeed { .. }
                | SequencerRequest::ServiceVersion { .. }
                | SequencerRequest::FaultRules(_)
                | SequencerRequest::MoveTime { .. }
                | SequencerRequest::EndFeed => {
                    tracing::warn!(?request, "only a leader does this; it is not done");
                }
            }
        }
        work
    }

    #[cold]
    pub(super) fn redirect(&mut self, number: usize) -> Result<TurnResult, StreamError> {
        // The publisher causes at most one message to the service, even if its ring is unusable.
        if !self.links.service.has_room(1) {
            return Ok(TurnResult::Taken(0));
        }
        let taken = match self.take_queries(number) {
            Ok(taken) => taken,
            Err(unusable) => return Ok(unusable),
        };
        if let IngressRole::Following { leader: None, awaited_until_ns, .. } = self.role
            && self.now.monotonic_ns < awaited_until_ns
        {
            // Frames sent stay in the ring: if this member leads next, they are taken from there.
            let has_query = self.has_query(number);
            let publisher = &mut self.publishers[number];
            let has_frame = publisher.reader.next_length().is_ok_and(|next| next.is_some());
            if publisher.next_redirect_ns.is_some() || has_frame && !has_query {
                publisher.next_redirect_ns = Some(awaited_until_ns);
            }
            return Ok(TurnResult::Taken(taken));
        }
        let mut dropped = 0;
        while dropped < self.options.frames_per_poll_max {
            let publisher = &mut self.publishers[number];
            let length = match publisher.reader.next_length() {
                Ok(Some(length)) => length,
                Ok(None) => break,
                Err(error) => return Ok(TurnResult::Corrupt(error.to_string())),
            };
            let mut header = [0; HEADER_LENGTH];
            publisher.reader.copy(&mut header);
            let may_open = self.serves && matches!(self.role, IngressRole::Leading);
            if may_open && header[KIND_OFFSET] == Kind::SessionOpen as u8 {
                publisher.next_redirect_ns = None;
                return self.take_from(number);
            }
            if self.serves && header[KIND_OFFSET] == Kind::Query as u8 {
                break;
            }
            publisher.reader.advance(length);
            dropped += 1;
        }
        let publisher = &mut self.publishers[number];
        if dropped > 0 {
            self.links.counters.frames_refused.add(dropped as u64);
            publisher.next_redirect_ns.get_or_insert(0);
        }
        let now_ns = self.now.monotonic_ns;
        let connection = publisher.connection;
        if publisher.next_redirect_ns.is_some_and(|next_ns| now_ns >= next_ns) {
            publisher.next_redirect_ns = Some(now_ns + REDIRECT_INTERVAL_NS);
            let leader = match &self.role {
                IngressRole::Following { leader: Some(leader), .. } => Arc::clone(leader),
                IngressRole::Following { .. } | IngressRole::Leading => "".into(),
            };
            self.notify_service(ResponderMessage::NotLeader { connection, leader });
        }
        Ok(TurnResult::Taken(taken + dropped))
    }

    /// Whether the next frame is a query that waits for the throttle or for room.
    fn has_query(&mut self, number: usize) -> bool {
        let reader = &mut self.publishers[number].reader;
        if !self.serves || !matches!(reader.next_length(), Ok(Some(_))) {
            return false;
        }
        let mut header = [0; HEADER_LENGTH];
        reader.copy(&mut header);
        header[KIND_OFFSET] == Kind::Query as u8
    }

    /// Takes the queries at the head of a ring, as many as its throttle allows; the service of any member answers them
    /// from its released state. Leaves room for a redirect.
    fn take_queries(&mut self, number: usize) -> Result<usize, TurnResult> {
        let (mut taken, mut bytes) = (0, Vec::new());
        if !self.serves || !self.links.service.has_room(2) {
            return Ok(0);
        }
        let Some(taken_max) = self.allowance(number) else { return Ok(0) };
        while taken < taken_max && self.links.service.has_room(2) {
            let publisher = &mut self.publishers[number];
            // The caller finds an unusable ring.
            let Ok(Some(length)) = publisher.reader.next_length() else { break };
            let mut header = [0; HEADER_LENGTH];
            publisher.reader.copy(&mut header);
            if header[KIND_OFFSET] != Kind::Query as u8 {
                break;
            }
            let limit = self.window.frame_length_max();
            if length > limit {
                let reason = format!("a query of {length} bytes is longer than the stream's limit of {limit}");
                return Err(TurnResult::Corrupt(reason));
            }
            bytes.resize(aligned_length(length), 0);
            publisher.reader.copy(&mut bytes);
            let frame =
                checked(&bytes, publisher.is_checked).map_err(|error| TurnResult::Corrupt(error.to_string()))?;
            if frame.length() != length || frame.kind() != Kind::Query {
                return Err(TurnResult::Corrupt("a frame changed while it was read".to_owned()));
            }
            if let Decision::Malformed(reason) = decide_query(&frame) {
                return Err(TurnResult::Malformed(reason, frame.session()));
            }
            publisher.reader.advance(length);
            let query = publisher.query(&frame);
            self.notify_service(query);
            taken += 1;
        }
        Ok(taken)
    }

    /// Redirects a publisher if `decision` concerns a session that it opened before this member followed another
    /// leader, and has not reopened since: it has reopened only another session, and must reopen all. Returns whether
    /// it was redirected.
    #[cold]
    pub(super) fn redirect_if_detached(&mut self, decision: Decision, session: u64, number: usize) -> bool {
        let publisher = &mut self.publishers[number];
        let is_detached =
            decision == Decision::SessionUnknown && publisher.was_detached && self.sequencer.is_detached(session);
        if is_detached {
            publisher.next_redirect_ns = Some(0);
        }
        is_detached
    }

    #[inline]
    pub(super) fn take_turn(&mut self, number: usize) -> Result<TurnResult, StreamError> {
        if self.is_following() || !self.serves || self.publishers[number].next_redirect_ns.is_some() {
            return self.redirect(number);
        }
        self.take_from(number)
    }
}
