//! `MemberCore`: a member without its links, so that received messages can be processed in place.

pub mod divergence;
pub(super) mod history;
pub mod membership;
mod retention_watermark;
pub(super) mod time;

use super::advertised_endpoints::AdvertisedEndpoints;
use super::catch_up::{CatchUp, PieceOutcome};
use super::frame_fetch::{FetchError, parse_header};
use super::journal_readers::JournalReaders;
use super::member_journal::MemberJournal;
use super::requests::{AdminCommand, AdminOutcome, MemberRequest};
use super::shared::MemberShared;
use super::snapshot_transfer::{SnapshotTransfers, TransferContext};
use super::voting::Voting;
use super::{MESSAGE_BYTES_MAX, MemberStatus};
use crate::ClusterError;
use crate::consensus::{
    Batch, Chain, Consensus, Effects, LogHistory, MemberId, MemberRole, OutgoingMessage, ProposeError, RoleChange, wire,
};
use crate::link::log_state::LogState;
use crate::link::{Links, MessageContent, ReceivedMessage};
use divergence::DivergenceCheck;
use gapless_agent::fault::crash_point;
use gapless_agent::{Agent, Now, Waker};
use gapless_client::stream_layout::StreamLayout;
use gapless_log::{Releaser, StreamIdentity};
use gapless_stream::messages::SequencerRequest;
use gapless_stream::retention_watermark::RetentionWatermark;
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::{Ingress, StreamError, sequencer_recovery};
use gapless_transport::catch_up_budget::CatchUpBudget;
use gapless_transport::mailbox::Mailbox;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::mark::FaultRules;
use gapless_wire::{Frame, aligned_length};
use history::HistoryComparison;
use membership::Membership;
use time::AnnouncedTime;

const WARNING_INTERVAL_NS: u64 = 1_000_000_000;
/// A longer message is an entry by itself.
pub(super) const ENTRY_BYTES_MAX: usize = MESSAGE_BYTES_MAX / 4;

pub(super) struct MemberCore {
    pub member: MemberId,
    pub membership: Membership,
    pub voting: Voting,
    pub endpoints: AdvertisedEndpoints,
    pub ingress: Ingress,
    pub journal: MemberJournal,
    pub releaser: Releaser,
    pub consensus: Consensus,
    /// `None` while they are being carried out.
    pub effects: Option<Box<Effects>>,
    pub outbox: Vec<OutgoingMessage>,
    /// The last append is in window and log, and can be answered once journaled.
    pub has_answer: bool,
    pub catch_up: CatchUp,
    /// Readers of this member's journal for members that lag or fetch.
    pub readers: JournalReaders,
    pub catch_up_budget: CatchUpBudget,
    pub snapshot_transfers: SnapshotTransfers,
    pub divergence: DivergenceCheck,
    pub histories: HistoryComparison,
    pub stream: ReplicatedStream,
    /// Chain after the last proposed frame.
    pub chain: Chain,
    pub proposed_sequence: u64,
    /// Frames that may be journaled and are not yet.
    pub proposed_bytes: usize,
    /// May be released up to here; then is released.
    pub releasable_sequence: u64,
    pub released_sequence: u64,
    /// First frame of the journal, as reported to consensus.
    pub first_sequence: u64,
    pub role: RoleChange,
    pub reported_role: RoleChange,
    pub dropped_full: u64,
    pub next_warning_ns: u64,
    pub next_status_ns: u64,
    pub announced_time: AnnouncedTime,
    /// On a witness: limit of deletion.
    pub retention_watermark: Option<RetentionWatermark>,
    pub next_watermark_ns: u64,
    pub now: Now,
}

const NO_ROLE: RoleChange = RoleChange { role: MemberRole::Follower, term: 0, leader: None };

/// Constant for the member's life.
pub(in crate::member) struct ReplicatedStream {
    pub layout: StreamLayout,
    pub identity: StreamIdentity,
    pub rules: SequencerRules,
    /// First feed session of the stream.
    pub feed_session: FeedSession,
    /// A service's stream has no feed session, and a witness does not know the kind of the stream.
    pub begins_feeds: bool,
    /// Rules that the stream did not have at its start.
    pub fault_rules: Option<FaultRules>,
    pub requests: Mailbox<SequencerRequest>,
    pub downstream: Vec<Waker>,
    /// Far less than a window holds; a long message may exceed it.
    pub entry_bytes_max: usize,
}

pub(in crate::member) struct MemberCoreParts {
    pub member: MemberId,
    pub voting: Voting,
    pub endpoints: AdvertisedEndpoints,
    pub ingress: Ingress,
    pub journal: MemberJournal,
    pub releaser: Releaser,
    pub consensus: Consensus,
    pub transfer_context: TransferContext,
    pub divergence: DivergenceCheck,
    pub stream: ReplicatedStream,
    /// Known to be committed.
    pub committed: u64,
    pub retention_watermark: Option<RetentionWatermark>,
}

impl MemberCore {
    pub(in crate::member) fn new(parts: MemberCoreParts) -> Self {
        Self {
            member: parts.member,
            membership: Membership { is_changed: true, ..Membership::default() },
            voting: parts.voting,
            endpoints: parts.endpoints,
            ingress: parts.ingress,
            journal: parts.journal,
            releaser: parts.releaser,
            consensus: parts.consensus,
            effects: None,
            outbox: Vec::new(),
            has_answer: false,
            catch_up: CatchUp::default(),
            readers: JournalReaders::new(parts.stream.layout.journal()),
            catch_up_budget: CatchUpBudget::default(),
            snapshot_transfers: SnapshotTransfers::new(parts.transfer_context),
            histories: HistoryComparison::default(),
            divergence: parts.divergence,
            stream: parts.stream,
            chain: Chain::at(0),
            proposed_sequence: parts.committed,
            proposed_bytes: 0,
            releasable_sequence: parts.committed,
            released_sequence: parts.committed,
            first_sequence: 1,
            role: NO_ROLE,
            reported_role: NO_ROLE,
            dropped_full: 0,
            next_warning_ns: 0,
            next_status_ns: 0,
            announced_time: AnnouncedTime::default(),
            retention_watermark: parts.retention_watermark,
            next_watermark_ns: 0,
            now: Now::default(),
        }
    }

    /// Processes another member's message; returns the history for an immediate answer.
    pub fn receive(&mut self, received: &ReceivedMessage<'_>) -> Result<Option<LogHistory>, ClusterError> {
        match received.content {
            MessageContent::History => {
                Ok(MemberId::new(received.from).and_then(|from| self.receive_history(from, received.consensus)))
            }
            _ if self.histories.is_stopping() => Ok(None),
            _ => self.receive_other(received).map(|()| None),
        }
    }

    fn receive_other(&mut self, received: &ReceivedMessage<'_>) -> Result<(), ClusterError> {
        let Some(from) = MemberId::new(received.from) else { return Ok(()) };
        if self.voting.is_new() {
            self.voting.note_message(received.from);
        }
        match received.content {
            // Takes no part yet; others resend important messages.
            MessageContent::Consensus if self.voting.is_new() => {}
            MessageContent::Consensus => self.receive_consensus(from, received.consensus, received.frames)?,
            MessageContent::CatchUpRequest => self.catch_up.queue_request(from, received.consensus),
            MessageContent::Members => self.receive_members(received.consensus),
            MessageContent::DivergenceCheck => {
                if !self.divergence.receive(self.member, from, self.role.leader, received.consensus) {
                    self.warn(from, &"its message about divergence cannot be read");
                }
            }
            MessageContent::Endpoints => self.take_endpoints(from, received.consensus),
            MessageContent::Time => self.receive_time(from, received.consensus),
            MessageContent::RetentionWatermark => self.receive_retention_watermark(from, received.consensus),
            MessageContent::History => {}
            MessageContent::CatchUpFrames => self.take_fetched(from, received.consensus, received.frames)?,
            MessageContent::SnapshotTransferRequest => {
                if let Err(error) = self.snapshot_transfers.queue_request(from, received.consensus) {
                    self.warn(from, &error);
                }
            }
            MessageContent::SnapshotTransfer => {
                let taken = self.snapshot_transfers.receive_answer(from, received.consensus, received.frames)?;
                self.transfer_taken(from, taken);
            }
        }
        Ok(())
    }

    fn receive_consensus(&mut self, from: MemberId, bytes: &[u8], frames: &[u8]) -> Result<(), ClusterError> {
        let message = match wire::decode(bytes) {
            Ok(message) => message,
            Err(error) => {
                self.warn(from, &error);
                return Ok(());
            }
        };
        if self.has_answer {
            // A second message in the same turn: one answer is enough.
            self.has_answer = false;
            self.advance(&[])?;
        }
        // Counts as lost: the leader resends it.
        if !self.has_room(from, frames.len()) {
            self.dropped_full += 1;
            return Ok(());
        }
        match self.consensus.verify_append(&message, frames) {
            Ok(Some(_)) => self.histories.note_appended(),
            Ok(None) => {}
            Err(error) => {
                self.warn(from, &error);
                if message.from == from.get() {
                    self.note_append_mismatch(from, &message, error);
                }
                return Ok(());
            }
        }
        if let Err(error) = self.consensus.step(from, message) {
            tracing::debug!(%from, %error, "a message was refused");
            return Ok(());
        }
        if self.journal.is_durable_at_once() && self.consensus.append_on_fast_path(self.journal.records()) {
            self.append(frames, self.consensus.end().sequence)?;
            self.has_answer = true;
            return Ok(());
        }
        if self.role.role == MemberRole::Leader && self.consensus.is_leader() {
            // A follower's answer, or a question: its release is done first.
            self.releasable_sequence = self.releasable_sequence.max(self.consensus.poll_released());
            return Ok(());
        }
        self.advance(frames)
    }

    fn take_endpoints(&mut self, from: MemberId, bytes: &[u8]) {
        if !self.endpoints.receive(from.get(), bytes) {
            self.warn(from, &"where publishers should find it is not a list of absolute paths");
        } else if self.role.role != MemberRole::Leader && self.role.leader == Some(from) {
            self.follow();
        }
    }

    /// Publishers wait while this member is about to lead.
    fn follow(&mut self) {
        let leader = self.role.leader.filter(|leader| *leader != self.member);
        self.ingress.follow(leader.map(|leader| self.endpoints.of(leader.get())));
    }

    /// Warns if the window is smaller than the sender's.
    fn has_room(&mut self, from: MemberId, length_bytes: usize) -> bool {
        match self.ingress.has_room(length_bytes) {
            Ok(has_room) => has_room,
            Err(error) => {
                self.warn(from, &format_args!("{error}; is stream.window smaller here than there?"));
                false
            }
        }
    }

    pub fn warn(&mut self, from: MemberId, error: &dyn std::fmt::Display) {
        if self.now.monotonic_ns >= self.next_warning_ns {
            self.next_warning_ns = self.now.monotonic_ns + WARNING_INTERVAL_NS;
            tracing::warn!(%from, %error, "what a member sends is not taken");
        }
    }

    /// Appends publishers' frames if this member leads and may propose; redirects the publishers if it follows.
    pub fn take_from_publishers(&mut self, now: Now) -> Result<usize, ClusterError> {
        let may_append = self.ingress.is_following() || self.consensus.can_propose().is_ok();
        if !may_append {
            self.catch_up_budget.note_live(0, self.now.monotonic_ns);
            return Ok(0);
        }
        let polled = self.ingress.poll(now);
        polled.map_err(|error| match error.downcast::<StreamError>() {
            Ok(error) => ClusterError::Stream(*error),
            Err(error) => ClusterError::System {
                action: "taking from publishers".to_owned(),
                source: std::io::Error::other(error.to_string()),
            },
        })
    }

    /// One entry, or several if the frames are long; returns whether anything was proposed.
    pub fn propose(&mut self) -> Result<bool, ClusterError> {
        let before = self.proposed_sequence;
        while !self.ingress.is_following() && self.ingress.last_sequence() > self.proposed_sequence {
            if self.consensus.can_propose().is_err() {
                break;
            }
            let frames = &self.journal.unjournaled()?[self.proposed_bytes..];
            let mut chain = self.chain;
            let (mut length, mut end) = (0, None);
            while length < frames.len() {
                let frame = Frame::parse(&frames[length..]).expect("the window holds whole frames");
                chain.extend(&frame);
                length += aligned_length(frame.length());
                if length > self.stream.entry_bytes_max && end.is_some() {
                    break;
                }
                // A message is proposed whole (decision 17).
                if frame.fragment().is_last() {
                    end = Some((frame.sequence(), length, chain));
                }
            }
            // The cursor reads on once everything it returned is journaled.
            let Some((end_sequence, length, chain)) = end else { break };
            let batch = Batch { first_sequence: self.proposed_sequence + 1, end_sequence, hash: chain.value() };
            crash_point("leader_before_proposing");
            match self.consensus.propose(batch, length as u64) {
                Ok(()) => crash_point("leader_after_proposing"),
                Err(ProposeError::Gap { expected_sequence }) => {
                    unreachable!("{batch:?} is proposed, {expected_sequence} is expected")
                }
                // Leadership is lost: the next leader's messages cut appended frames.
                Err(_) => break,
            }
            self.chain = chain;
            self.proposed_sequence = end_sequence;
            self.proposed_bytes += length;
            self.catch_up_budget.note_live(length, self.now.monotonic_ns);
        }
        Ok(self.proposed_sequence != before)
    }

    /// Answers a follower's appended frames once they are journaled.
    pub fn answer(&mut self) -> Result<(), ClusterError> {
        if std::mem::take(&mut self.has_answer) {
            self.journal_frames()?;
            self.consensus.take_answers(&mut self.outbox);
        }
        Ok(())
    }

    /// Carries out the effects of consensus, except sending and journaling; `frames` came with the message.
    pub fn advance(&mut self, frames: &[u8]) -> Result<(), ClusterError> {
        // Carrying out a poll's effects may have further effects.
        while self.consensus.has_updates() {
            let mut effects = self.effects.take().unwrap_or_default();
            self.consensus.poll(&mut effects);
            let number = effects.number;
            let done = if effects.is_empty() { Ok(()) } else { self.take_effects(&mut effects, frames) };
            // After the effects: a cut journals everything before it, and must not report this poll as persisted. Also
            // without anything to persist: answers wait for the number.
            self.journal.note_polled(number);
            self.effects = Some(effects);
            done?;
        }
        Ok(())
    }

    fn take_effects(&mut self, effects: &mut Effects, frames: &[u8]) -> Result<(), ClusterError> {
        if let Some(sequence) = effects.truncate_after {
            // Fetched frames are committed, and may reach further than the log.
            let sequence = sequence.max(self.releasable_sequence);
            if self.ingress.last_sequence() > sequence || self.journal.last_sequence() > sequence {
                let checkpoint = effects.records.remove(0);
                self.cut(sequence, &checkpoint.payload)?;
            } else if !self.ingress.is_following() {
                // No entry is cut, as at every orderly transfer: the checkpoint is a record like others, and publishers
                // need not wait for the device.
                self.ingress.follow(None);
            }
            if effects.restored.is_none() && self.catch_up.target().is_some() {
                // The fetched frames follow the frames that were cut.
                self.catch_up.end();
                self.consensus.fetch_failed();
            }
        }
        if let Some(position) = effects.restored {
            let catch_up = std::mem::take(&mut self.catch_up);
            let appended = self.append_all(catch_up.replacement_after(self.ingress.last_sequence()));
            self.catch_up = catch_up;
            appended?;
            // An earlier fetch may have reached further: its frames are committed, too.
            assert!(self.ingress.last_sequence() >= position.sequence, "what was fetched is appended");
        }
        let needed = effects.records.iter().map(|record| record.after_sequence).max().unwrap_or(0);
        if needed > self.ingress.last_sequence() {
            self.append(frames, needed)?;
        }
        self.journal.take(effects);
        self.outbox.append(&mut effects.messages);
        if let Some(released) = effects.released {
            self.releasable_sequence = self.releasable_sequence.max(released);
        }
        if let Some(role) = effects.role {
            self.change_role(role)?;
        }
        if effects.members.take().is_some() {
            self.membership.is_changed = true;
        }
        if let Some(fetch) = effects.fetch.take()
            && !self.snapshot_transfers.is_receiving()
        {
            self.catch_up.begin(&fetch, self.ingress.last_sequence(), self.now.monotonic_ns);
        }
        Ok(())
    }

    fn append(&mut self, frames: &[u8], last_sequence: u64) -> Result<(), ClusterError> {
        let due = self.ingress.last_sequence() + 1;
        let (mut start, mut end) = (0, 0);
        while end < frames.len() {
            let frame = Frame::parse(&frames[end..]).expect("verified before");
            if frame.sequence() > last_sequence {
                break;
            }
            end += aligned_length(frame.length());
            if frame.sequence() < due {
                start = end;
            }
        }
        self.append_all(&frames[start..end])?;
        let found = self.ingress.last_sequence();
        assert_eq!(found, last_sequence, "the message brings the frames of its entries");
        Ok(())
    }

    /// Appends frames for which there is room.
    pub fn append_all(&mut self, frames: &[u8]) -> Result<(), ClusterError> {
        let taken = self.ingress.append_followed(frames)?;
        assert_eq!(taken, frames.len(), "there was room");
        self.ingress.publish();
        self.proposed_bytes += taken;
        self.proposed_sequence = self.ingress.last_sequence();
        Ok(())
    }

    /// Journals proposed frames, or a leader's, and the records after them.
    pub fn journal_frames(&mut self) -> Result<(), ClusterError> {
        let has_frames = self.proposed_bytes > 0;
        if has_frames {
            self.crash_point("leader_before_journaling", "follower_before_journaling");
        }
        self.journal_or_checkpoint(None)?;
        if has_frames {
            self.crash_point("leader_before_acknowledging", "follower_before_acknowledging");
        }
        Ok(())
    }

    fn crash_point(&self, leader: &'static str, follower: &'static str) {
        crash_point(if self.ingress.is_following() { follower } else { leader });
    }

    /// Journals like [`MemberCore::journal_frames`]; with a `checkpoint`, that one goes into a new segment instead of
    /// the present consensus state.
    fn journal_or_checkpoint(&mut self, checkpoint: Option<&[u8]>) -> Result<(), ClusterError> {
        let (consensus, length_bytes) = (&self.consensus, std::mem::take(&mut self.proposed_bytes));
        let all = || checkpoint.map_or_else(|| consensus.checkpoint(), <[u8]>::to_vec);
        let durable = self.journal.keep(length_bytes, self.proposed_sequence, all)?;
        self.consensus.persisted(durable);
        Ok(())
    }

    /// Cuts frames that no leader has, and resets the sequencer to the cut.
    fn cut(&mut self, sequence: u64, checkpoint: &[u8]) -> Result<(), ClusterError> {
        // Consensus is past the cut, so a new segment must begin with its checkpoint.
        self.journal_or_checkpoint(Some(checkpoint))?;
        if !self.ingress.is_following() {
            self.ingress.follow(None);
        }
        if sequence < self.ingress.last_sequence() {
            tracing::info!(sequence, last_sequence = self.ingress.last_sequence(), "frames are cut that no quorum has");
            let sequencer =
                sequencer_recovery::rebuild(&self.stream.layout, self.stream.identity, self.stream.rules, sequence)?;
            self.ingress.truncate_after(sequence, sequencer)?;
        }
        self.readers.forget_all();
        self.journal.cut(sequence, checkpoint)?;
        self.proposed_sequence = sequence;
        self.proposed_bytes = 0;
        Ok(())
    }

    fn change_role(&mut self, role: RoleChange) -> Result<(), ClusterError> {
        let (before, leader) = (self.role, role.leader.map_or(0, MemberId::get));
        if before.role != role.role || before.leader != role.leader {
            tracing::info!(role = ?role.role, term = role.term, leader, "this member's role has changed");
        }
        self.role = role;
        self.readers.forget_all();
        if let Some(leader) = role.leader {
            self.catch_up.follow(leader);
            if !self.snapshot_transfers.follow(leader) {
                self.give_up_transfer();
            }
        }
        if role.role != MemberRole::Leader {
            if before.role == MemberRole::Leader {
                crash_point("ceasing_to_lead");
            }
            self.follow();
            return Ok(());
        }
        self.give_up_transfer();
        let end = self.consensus.end();
        assert_eq!(end.sequence, self.ingress.last_sequence(), "a leader begins where its log ends");
        self.chain = Chain::at(end.hash);
        self.proposed_sequence = end.sequence;
        if self.ingress.is_following() {
            crash_point("becoming_leader");
            let last_term = self.ingress.sequencer().term();
            self.ingress.lead(role.term)?;
            self.announced_time.begins_to_lead(role.term, last_term);
            if let Some(version) = self.divergence.first_version().filter(|_| end.sequence == 0) {
                // The mailbox is full only if it is not read.
                let _ = self.stream.requests.push(SequencerRequest::ServiceVersion { version });
            }
            if let Some(rules) = self.stream.fault_rules {
                let _ = self.stream.requests.push(SequencerRequest::FaultRules(rules));
            }
            if self.stream.begins_feeds && self.ingress.sequencer().feeds().newest().is_none() {
                // The mailbox is full only if it is not read.
                let _ = self.stream.requests.push(SequencerRequest::BeginFeed { name: self.stream.feed_session });
            }
        }
        Ok(())
    }

    /// Releases frames on a quorum; returns whether there are new ones.
    pub fn release(&mut self) -> bool {
        if self.releasable_sequence <= self.released_sequence {
            return false;
        }
        let sequence = self.releasable_sequence.min(self.ingress.last_sequence());
        if sequence <= self.released_sequence {
            return false;
        }
        let position = self.ingress.end_of(sequence).expect("what is not released is in the window");
        self.crash_point("leader_before_releasing", "follower_before_releasing");
        self.journal.set_released(sequence);
        self.releaser.release(position, sequence);
        self.crash_point("leader_after_releasing", "follower_after_releasing");
        self.released_sequence = sequence;
        self.stream.downstream.iter().for_each(Waker::wake);
        true
    }

    /// Fetches and serves frames of the journal.
    pub fn catch_up(&mut self, links: &mut Links) -> Result<(), ClusterError> {
        let first_sequence = self.journal.first_sequence();
        if first_sequence != self.first_sequence {
            self.first_sequence = first_sequence;
            self.consensus.forget_before(first_sequence);
        }
        let taken = self.snapshot_transfers.turn(links, &self.consensus, self.now)?;
        self.transfer_taken(self.member, taken);
        if self.snapshot_transfers.needs_newer() {
            self.ingress.write_state_soon();
        }
        self.readers.forget_idle(self.now.monotonic_ns);
        self.catch_up.serve(links, (&mut self.readers, &mut self.catch_up_budget), self.now.monotonic_ns);
        self.catch_up.ask(links, self.now.monotonic_ns);
        let Some((position, common_sequence)) = self.catch_up.complete() else { return Ok(()) };
        let replacement_bytes = self.catch_up.replacement_after(0).len();
        let leader = self.catch_up.leader().expect("something is fetched");
        if self.has_room(leader, replacement_bytes) && self.consensus.fetched(position, common_sequence) {
            crash_point("fetch_before_position");
            self.advance(&[])?;
            crash_point("fetch_after_position");
            self.catch_up.note_fetched();
            self.histories.note_fetched();
        }
        Ok(())
    }

    /// Handles the result of a part of a snapshot transfer; after an invalid part the leader must offer a log position
    /// again.
    fn transfer_taken(&mut self, from: MemberId, taken: Result<(), String>) {
        if let Err(reason) = taken {
            tracing::error!(%from, reason, "the state of the leader is not taken; it is asked for anew");
            self.give_up_transfer();
        }
    }

    fn give_up_transfer(&mut self) {
        if self.snapshot_transfers.is_receiving() {
            self.snapshot_transfers.give_up();
            self.consensus.fetch_failed();
        }
    }

    fn take_fetched(&mut self, from: MemberId, header: &[u8], frames: &[u8]) -> Result<(), ClusterError> {
        if self.snapshot_transfers.is_receiving() {
            let Some((first, _)) = parse_header(header) else { return Ok(()) };
            let taken = self.snapshot_transfers.take_frames(from, first, frames)?;
            self.transfer_taken(from, taken);
            return Ok(());
        }
        if !self.ingress.is_following() || !self.has_room(from, frames.len()) {
            // The piece is requested again later.
            return Ok(());
        }
        let last_sequence = self.ingress.last_sequence();
        let first = Frame::parse(frames).map_or(0, |frame| frame.sequence());
        let held = self.ingress.frames(first, last_sequence).unwrap_or_default();
        match self.catch_up.take(from, header, frames, (held, last_sequence, self.releasable_sequence)) {
            // Replacement frames are appended all at once, so the window must hold them.
            Ok(PieceOutcome::Kept) if self.ingress.has_room(self.catch_up.replacement_after(0).len()).is_ok() => Ok(()),
            Ok(PieceOutcome::NotHeld | PieceOutcome::TooMuch | PieceOutcome::Kept) => {
                self.catch_up.end();
                self.snapshot_transfers.begin(from, self.now.monotonic_ns)
            }
            Ok(PieceOutcome::Append(range)) => {
                crash_point("fetch_before_appending");
                self.append_all(&frames[range])?;
                crash_point("fetch_after_appending");
                // Everything up to the log position is committed; without this release a fetch could be no longer than
                // the window.
                self.releasable_sequence = self.releasable_sequence.max(self.ingress.last_sequence());
                Ok(())
            }
            Err(reason) => {
                self.warn(from, &reason);
                self.catch_up.end();
                self.consensus.fetch_failed();
                if matches!(reason, FetchError::OtherChain { .. }) {
                    self.note_fetch_mismatch(from);
                }
                Ok(())
            }
        }
    }

    /// Empty before this member takes part.
    pub fn log_state(&self) -> LogState {
        if self.voting.is_new() { LogState::default() } else { self.consensus.log_state() }
    }

    /// At a stop: to the voter with the most entries.
    pub fn hand_over(&mut self) {
        if !self.consensus.is_leader() {
            return;
        }
        let status = self.consensus.status();
        let voters = &self.consensus.members().voters;
        let best = status.peers.iter().filter(|peer| peer.is_active && voters.contains(&peer.member));
        if let Some(best) = best.max_by_key(|peer| peer.matched_index) {
            // Refused only if no leadership is left to transfer.
            let _ = self.consensus.transfer_to(best.member);
            crash_point("hand_over");
        }
    }

    pub fn is_handing_over(&self) -> bool {
        self.consensus.is_leader() && self.consensus.can_propose() == Err(ProposeError::HandingOver)
    }

    /// Carries out a request from outside, and answers it.
    pub fn execute(&mut self, request: MemberRequest) {
        let MemberRequest { command, answer } = request;
        let proposed = |outcome: Result<(), _>| outcome.map_or_else(AdminOutcome::Refused, |()| AdminOutcome::Begun);
        let changed = |outcome: Result<(), _>| outcome.map_or_else(AdminOutcome::NotChanged, |()| AdminOutcome::Begun);
        let outcome = match command {
            AdminCommand::Transfer(member) => proposed(self.consensus.transfer_to(member)),
            AdminCommand::Change(change) => proposed(self.consensus.propose_members(&change)),
            AdminCommand::Add(new) => changed(self.add_member(&new)),
            AdminCommand::Upgrade(version) => {
                self.upgrade(version).map_or_else(AdminOutcome::NotUpgraded, |()| AdminOutcome::Begun)
            }
            AdminCommand::Remove(member) => changed(self.remove_member(member)),
            AdminCommand::KeepState => {
                self.ingress.write_state_soon();
                AdminOutcome::Begun
            }
        };
        // The client may have disconnected.
        let _ = answer.send(outcome);
    }

    /// At intervals and after a change of the role.
    pub fn publish_status(&mut self, shared: &MemberShared, links: &Links) {
        if self.role == self.reported_role && self.now.monotonic_ns < self.next_status_ns {
            return;
        }
        self.reported_role = self.role;
        self.next_status_ns = self.now.monotonic_ns + super::shared::STATUS_INTERVAL_NS;
        shared.set_status(self.member_status(links));
    }

    pub(super) fn member_status(&self, links: &Links) -> MemberStatus {
        let peer = |number: u64| {
            let member = MemberId::new(number)?;
            Some((member, links.is_connected(number), links.statistics(number).unwrap_or_default()))
        };
        let refused = self.membership.refused.iter();
        MemberStatus {
            member: MemberId::new(links.identity().member).expect("a member has a number"),
            consensus: self.consensus.status(),
            members: self.consensus.members().clone(),
            links: links.peers().filter_map(peer).collect(),
            refused: refused.filter_map(|(member, why)| Some((MemberId::new(*member)?, why.clone()))).collect(),
            waits_for: self.voting.awaited().iter().filter_map(|member| MemberId::new(*member)).collect(),
            journaled_sequence: self.journal.last_sequence(),
            released_sequence: self.released_sequence,
            sessions: self.ingress.sequencer().session_count() as u64,
            dropped_full: self.dropped_full,
            fetching_to: self.snapshot_transfers.target().or_else(|| self.catch_up.target()),
            fetched: self.catch_up.fetched(),
            compared_sequence: self.divergence.compared_sequence(),
            divergent: self.histories.divergent().iter().map(|(member, divergence)| (*member, *divergence)).collect(),
            divergences: self.histories.divergences(),
            time_ahead_ns: self.ingress.time().ahead_ns(self.now),
            time_from_term: self.announced_time.from_term,
        }
    }
}
