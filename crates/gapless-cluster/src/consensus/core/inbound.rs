//! Checks of received messages against this log before raft-rs sees them: raft-rs panics at an impossible message.

use super::Consensus;
use super::history::LogDivergence;
use super::rejoining::is_end_message;
use crate::consensus::raft_form::{batch_in, position_of};
use crate::consensus::types::{Batch, LogPosition, MemberId};
use crate::consensus::wire::frames_of;
use gapless_wire::chain::Chain;
use gapless_wire::{Frame, FrameError, aligned_length};
use raft::eraftpb::{Message, MessageType};
use raft::{ProgressState, StateRole};

/// Refusal of a message: counted, and treated like a loss in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    #[error("a message for member {0} came here")]
    Receiver(u64),
    /// The message names another sender than the member on its connection.
    #[error("a message claims to be from member {claimed} and came from {found}")]
    Sender { claimed: u64, found: MemberId },
    /// An answer or a question from a sender that is not a member.
    #[error("a message came from {0}, who is not a member")]
    NotMember(MemberId),
    /// A type that members do not send, or that only a leader may send now.
    #[error("a message of a type came that may not come now")]
    Type,
    /// A message that contradicts this member's log.
    #[error("a message contradicts the log: {0}")]
    Contradiction(&'static str),
    /// The leader has a different entry where two members cannot differ.
    #[error("an entry is another one than the leader's: it has other frames in the same term, or is committed here")]
    OtherEntry(LogDivergence),
    /// A log position is being persisted, or the last poll's effects are missing; the sender retries.
    #[error("a message came while another change of the log is being made")]
    Busy,
}

/// Mismatch of an append's frames with its entries; the message must be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The entries do not follow this member's log.
    #[error(transparent)]
    Entries(#[from] StepError),
    /// Bytes that are not a frame, or a wrong checksum.
    #[error("frame {expected_sequence}: {source}")]
    Frame { expected_sequence: u64, source: FrameError },
    /// A gap or a repetition in the sequences.
    #[error("frame {expected_sequence} is expected, {found_sequence} came")]
    Sequence { expected_sequence: u64, found_sequence: u64 },
    /// A frame's term differs from its entry's.
    #[error("frame {sequence} is of term {found_term}, its entry of term {expected_term}")]
    Term { sequence: u64, expected_term: u64, found_term: u64 },
    /// The chain's value after the frames differs from the leader's.
    #[error(
        "the frames up to {end_sequence} are not the leader's: the chain is {found:#018x}, {expected:#018x} is expected"
    )]
    Hash { end_sequence: u64, expected: u64, found: u64 },
    /// More bytes than the entries cover.
    #[error("{left_bytes} bytes follow the last frame {end_sequence} that the entries cover")]
    Rest { left_bytes: usize, end_sequence: u64 },
}

impl Consensus {
    /// Checks the frames of an append: all frames of its entries with their padding, contiguous, with right checksums,
    /// terms and chain. Call it before [`Consensus::step`]. Returns the sequences to append if the poll after the step
    /// asks for their records; `None` if nothing changes here (raft-rs answers nevertheless).
    ///
    /// # Errors
    /// Drop the whole message; it counts as refused.
    pub fn verify_append(&mut self, message: &Message, frames: &[u8]) -> Result<Option<(u64, u64)>, AppendError> {
        let checked = self.check_frames(message, frames);
        self.refused_messages += u64::from(checked.is_err());
        checked
    }

    fn check_frames(&self, message: &Message, frames: &[u8]) -> Result<Option<(u64, u64)>, AppendError> {
        let Some(base) = self.check_append(message)? else { return Ok(None) };
        let mut chain = Chain::at(base.hash);
        let (mut rest, mut end_sequence) = (frames, base.sequence);
        for entry in message.get_entries() {
            let Some(batch) = batch_in(entry) else { continue };
            for sequence in batch.first_sequence..=batch.end_sequence {
                let wrong = |source| AppendError::Frame { expected_sequence: sequence, source };
                let frame = Frame::parse(rest).map_err(wrong)?;
                frame.verify().map_err(wrong)?;
                check_frame(&frame, sequence, entry.term)?;
                chain.extend(&frame);
                let needed_bytes = aligned_length(frame.length());
                let found_bytes = rest.len();
                rest = rest.get(needed_bytes..).ok_or(wrong(FrameError::Truncated { needed_bytes, found_bytes }))?;
            }
            end_sequence = batch.end_sequence;
            if chain.value() != batch.hash {
                let (expected, found) = (batch.hash, chain.value());
                return Err(AppendError::Hash { end_sequence, expected, found });
            }
        }
        if !rest.is_empty() {
            return Err(AppendError::Rest { left_bytes: rest.len(), end_sequence });
        }
        Ok(frames_of(message))
    }

    /// Returns the log position that an append's entries follow, if raft-rs will look at them.
    fn check_append(&self, message: &Message) -> Result<Option<LogPosition>, StepError> {
        let log = &self.raw.raft.raft_log;
        let is_looked_at = message.get_msg_type() == MessageType::MsgAppend
            && message.term >= self.raw.raft.term
            && message.index >= log.committed
            && log.match_term(message.index, message.log_term);
        if !is_looked_at {
            return Ok(None);
        }
        if !log.unstable_entries().is_empty() {
            return Err(StepError::Busy);
        }
        let base = self
            .storage()
            .position_at(message.index)
            .ok_or(StepError::Contradiction("it follows a forgotten entry"))?;
        let mut end = base;
        for (entry, index) in message.get_entries().iter().zip(message.index + 1..) {
            if entry.index != index || entry.term < end.term || entry.term > message.term {
                return Err(StepError::Contradiction("its entries do not follow each other"));
            }
            let batch = batch_in(entry).unwrap_or(Batch::empty_after(end.sequence, end.hash));
            if batch.first_sequence != end.sequence + 1 {
                return Err(StepError::Contradiction("its entries leave a gap in the stream"));
            }
            if log.match_term(index, entry.term)
                && self.storage().batch_at(index).is_some_and(|kept| kept != batch)
                && let Some(other) = self.storage().position_at(index)
            {
                return Err(StepError::OtherEntry(LogDivergence { same: Some(end), other }));
            }
            end = LogPosition { index, term: entry.term, sequence: batch.end_sequence, hash: batch.hash };
        }
        Ok(Some(base))
    }

    /// Processes a message from the connection of `from`. For an append, call [`Consensus::verify_append`] before and
    /// [`Consensus::poll`] after it. A leader's messages and vote requests are also accepted from unknown members: this
    /// log may end before the change that added them (Ongaro's thesis, 4.2.3).
    ///
    /// # Errors
    /// The message was refused and counted; nothing else is to be done.
    pub fn step(&mut self, from: MemberId, message: Message) -> Result<(), StepError> {
        self.has_updates = true;
        let taken = self.check_message(from, &message).and_then(|()| self.take_message(message));
        self.refused_messages += u64::from(taken.is_err());
        taken
    }

    fn check_message(&self, from: MemberId, message: &Message) -> Result<(), StepError> {
        if message.to != self.id.get() {
            return Err(StepError::Receiver(message.to));
        }
        if message.from != from.get() || from == self.id {
            return Err(StepError::Sender { claimed: message.from, found: from });
        }
        if self.restoring.is_some() {
            return Err(StepError::Busy);
        }
        let raft = &self.raw.raft;
        let last = raft.raft_log.last_index();
        let is_member = raft.prs().get(message.from).is_some();
        match message.get_msg_type() {
            MessageType::MsgAppend => self.check_append(message).map(drop),
            // The leader may believe that a rejoining member still has the entries it lost.
            MessageType::MsgHeartbeat if message.term >= raft.term && message.commit > last && !self.is_rejoining() => {
                Err(StepError::Contradiction("more is committed than this member has"))
            }
            MessageType::MsgHeartbeat | MessageType::MsgSnapshot => Ok(()),
            MessageType::MsgRequestVote | MessageType::MsgRequestPreVote => Ok(()),
            _ if !is_member => Err(StepError::NotMember(from)),
            MessageType::MsgAppendResponse if raft.state == StateRole::Leader && message.term == raft.term => {
                let is_possible = message.reject || message.index <= last;
                is_possible.then_some(()).ok_or(StepError::Contradiction("a member has more than its leader"))
            }
            // Reads at the leader are not offered: this is a question about the end of a log.
            MessageType::MsgReadIndex => {
                let is_right = raft.state == StateRole::Leader && is_end_message(message);
                is_right.then_some(()).ok_or(StepError::Type)
            }
            MessageType::MsgTimeoutNow => {
                let is_leader = raft.leader_id == message.from && raft.term == message.term;
                (is_leader && self.may_campaign() && !self.is_rejoining()).then_some(()).ok_or(StepError::Type)
            }
            MessageType::MsgReadIndexResp => {
                let is_right = message.term == raft.term && message.get_entries().len() == 1 && is_end_message(message);
                is_right.then_some(()).ok_or(StepError::Type)
            }
            MessageType::MsgAppendResponse
            | MessageType::MsgRequestVoteResponse
            | MessageType::MsgRequestPreVoteResponse
            | MessageType::MsgHeartbeatResponse => Ok(()),
            _ => Err(StepError::Type),
        }
    }

    fn take_message(&mut self, mut message: Message) -> Result<(), StepError> {
        let log = &self.raw.raft.raft_log;
        if message.get_msg_type() == MessageType::MsgHeartbeat && message.commit > log.last_index() {
            message.commit = log.committed;
        }
        if message.get_msg_type() == MessageType::MsgSnapshot && self.is_beyond_log(&message) {
            return self.take_position(&message);
        }
        if is_end_message(&message) {
            self.handle_end_message(&message);
        } else if let Some(message) = self.count_vote(message) {
            let (from, kind) = (message.from, message.get_msg_type());
            let before = self.matched(from);
            let _ = self.raw.step(message);
            if kind == MessageType::MsgAppendResponse && self.matched(from) > before {
                self.resume_from_position(from);
            }
        }
        self.set_timeout();
        Ok(())
    }

    fn matched(&self, member: u64) -> u64 {
        self.raw.raft.prs().get(member).map_or(0, |progress| progress.matched)
    }

    /// Frees a member that reached its first offered log position after it was offered another: raft-rs would wait for
    /// the second.
    fn resume_from_position(&mut self, member: u64) {
        let raft = &mut self.raw.raft;
        if raft.state != StateRole::Leader {
            return;
        }
        let Some(progress) = raft.mut_prs().get_mut(member) else { return };
        if progress.state == ProgressState::Snapshot && progress.matched < progress.pending_snapshot {
            progress.snapshot_failure();
            progress.become_probe();
            raft.send_append(member);
        }
    }

    /// Raft-rs needs no fetch for a log position within this log.
    fn is_beyond_log(&self, message: &Message) -> bool {
        let log = &self.raw.raft.raft_log;
        let metadata = message.get_snapshot().get_metadata();
        message.term >= self.raw.raft.term
            && metadata.index >= log.committed
            && !log.match_term(metadata.index, metadata.term)
    }

    /// Holds a log position back from raft-rs until its frames are here; to raft-rs it is a slow message. Until then
    /// this member votes with its present log.
    fn take_position(&mut self, message: &Message) -> Result<(), StepError> {
        let (position, members) = position_of(message.get_snapshot()).ok_or(StepError::Type)?;
        if members.check().is_err() || !members.contains(self.id) {
            return Err(StepError::Contradiction("a log position without members, or without this one"));
        }
        if position.index <= self.raw.raft.raft_log.committed || position.sequence < self.released_sequence {
            return Err(StepError::Contradiction("a log position before what is committed here"));
        }
        if self.fetching.is_none() {
            self.fetching = Some((position, members));
            self.fetch_is_new = true;
        }
        Ok(())
    }

    /// Reports that all frames up to the log position of [`crate::consensus::PositionFetch`] are here and its hash is
    /// right. `common_sequence` ends the common prefix of this member's own frames and the fetched ones; the next poll
    /// cuts and appends the rest. Returns false without a leader: call it again later. Returns true also if the log
    /// reached the position by itself; then no poll mentions it.
    pub fn fetched(&mut self, position: LogPosition, common_sequence: u64) -> bool {
        self.has_updates = true;
        let Some((expected, members)) = self.fetching.clone() else { return true };
        assert_eq!(expected, position, "another log position was to be fetched");
        let raft = &self.raw.raft;
        let is_settled =
            raft.raft_log.unstable_entries().is_empty() && !self.has_lost_lead() && self.restoring.is_none();
        if raft.state != StateRole::Follower || raft.leader_id == 0 || !is_settled {
            return false;
        }
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgSnapshot);
        message.to = self.id.get();
        // Committed entries stay committed, so the present leader vouches for them.
        message.from = raft.leader_id;
        message.term = raft.term;
        message.set_snapshot(crate::consensus::raft_form::snapshot_of(&position, &members));
        self.fetching = None;
        self.common_sequence = common_sequence;
        let _ = self.raw.step(message);
        self.set_timeout();
        true
    }

    /// Gives the fetch up; the leader will offer another log position.
    pub fn fetch_failed(&mut self) {
        self.has_updates = true;
        self.fetching = None;
        self.fetch_is_new = false;
    }
}

fn check_frame(frame: &Frame<'_>, sequence: u64, term: u64) -> Result<(), AppendError> {
    if frame.sequence() != sequence {
        return Err(AppendError::Sequence { expected_sequence: sequence, found_sequence: frame.sequence() });
    }
    if frame.term() != term {
        return Err(AppendError::Term { sequence, expected_term: term, found_term: frame.term() });
    }
    Ok(())
}
