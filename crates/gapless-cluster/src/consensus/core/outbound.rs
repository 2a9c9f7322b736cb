//! Outgoing work: the conversion of raft-rs's `Ready` to [`Effects`].

use super::Consensus;
use crate::consensus::change::MembershipChange;
use crate::consensus::effects::{ConsensusRecord, Effects, MemberRole, OutgoingMessage, PositionFetch, RoleChange};
use crate::consensus::raft_form::position_of;
use crate::consensus::record::{HardState, RecordContent};
use crate::consensus::types::MemberId;
use crate::consensus::wire::{frames_of, is_sent};
use gapless_agent::fault::mutant;
use raft::eraftpb::{Entry, EntryType, Message, MessageType};
use raft::{Ready, StateRole};

impl Consensus {
    /// Whether a poll may have effects.
    #[must_use]
    pub const fn has_updates(&self) -> bool {
        self.has_updates
    }

    /// Collects the effects: after each append that was stepped, otherwise once a turn.
    ///
    /// # Panics
    /// If committed entries would have to be cut, which would break the promise of durability.
    pub fn poll(&mut self, effects: &mut Effects) {
        effects.clear();
        self.has_updates = false;
        if self.is_first_poll {
            // The first record of a journal is a checkpoint; after a restart that checkpoint covers everything read.
            self.is_first_poll = false;
            self.put_checkpoint(effects);
            effects.must_sync = true;
        }
        let lost_lead = self.has_lost_lead();
        while self.raw.has_ready() {
            let ready = self.raw.ready();
            self.take_ready(ready, lost_lead, effects);
        }
        if lost_lead && effects.truncate_after.is_none() && effects.restored.is_none() {
            // No other member knows of frames that were appended here and never proposed.
            let end = self.end().sequence;
            self.cut(end, effects);
        }
        self.set_timeout();
        if std::mem::take(&mut self.acknowledged_is_due) {
            effects.records.extend(self.raw.raft.mut_store().take_acknowledged());
        }
        effects.number = self.last_number;
        let applied = self.raw.raft.raft_log.applied;
        let position = self.storage().position_at(applied).unwrap_or(self.storage().start());
        if self.restoring.is_none() {
            self.release(position.sequence, effects);
        }
        self.report_role(effects);
        self.report_fetch(effects);
        effects.messages.append(&mut self.leaving);
        // Members ignore messages of an earlier leadership, whose frames may be cut.
        let term = if self.raw.raft.state == StateRole::Leader { self.raw.raft.term } else { 0 };
        effects.messages.retain(|outgoing| outgoing.frames.is_none() || outgoing.message.term == term);
        drop_superseded(&mut effects.messages);
        if mutant("commit_without_quorum") && self.is_leader() {
            let persisted = self.storage().position_at(self.raw.raft.raft_log.persisted);
            persisted.into_iter().for_each(|position| self.release(position.sequence, effects));
        }
    }

    pub(super) fn has_lost_lead(&self) -> bool {
        let is_leader_of = |last: &RoleChange| self.is_leader() && last.term == self.raw.raft.term;
        self.last_role.as_ref().is_some_and(|last| last.role == MemberRole::Leader && !is_leader_of(last))
    }

    fn take_ready(&mut self, mut ready: Ready, lost_lead: bool, effects: &mut Effects) {
        let number = ready.number();
        self.last_number = number;
        if let Some(state) = ready.hs() {
            self.take_hard_state(state.term, state.vote, state.commit, number, effects);
        }
        if !ready.snapshot().is_empty() {
            self.take_snapshot(&ready, number, effects);
        }
        self.take_entries(ready.take_entries(), lost_lead, effects);
        let now = ready.take_messages();
        self.send(now, self.vote_number);
        let mut later = ready.take_persisted_messages();
        // A heartbeat response is independent of this log and must not wait for a slow device, or the leader would
        // consider the member dead. Its term is made durable before.
        let is_answer = |message: &mut Message| message.get_msg_type() == MessageType::MsgHeartbeatResponse;
        let answers: Vec<_> = later.extract_if(.., is_answer).collect();
        self.send(answers, self.vote_number);
        let behind = if mutant("acknowledge_before_journal") { 0 } else { number };
        self.send(later, behind);
        let committed = ready.take_committed_entries();
        self.raw.advance_append_async(ready);
        self.apply(&committed, effects);
    }

    fn take_hard_state(&mut self, term: u64, vote: u64, commit: u64, number: u64, effects: &mut Effects) {
        let before = self.storage().hard_state();
        let vote = if mutant("forget_vote") { None } else { MemberId::new(vote) };
        let state = HardState { term, vote, commit };
        self.raw.raft.mut_store().set_hard_state(state);
        // A commit index alone is worth no record: the next record of an entry carries it.
        if (before.term, before.vote) != (term, vote) {
            let after_sequence = self.end().sequence;
            let payload = RecordContent::HardState(state).to_bytes();
            effects.ballot = Some(payload.clone());
            effects.records.push(ConsensusRecord { after_sequence, is_checkpoint: false, payload });
            self.vote_number = number;
        }
    }

    fn take_entries(&mut self, entries: Vec<Entry>, lost_lead: bool, effects: &mut Effects) {
        let Some(first) = entries.first() else { return };
        if std::mem::take(&mut self.is_appended_on_fast_path) {
            let end = self.end().index;
            assert_eq!(
                entries.last().map(|last| last.index),
                Some(end),
                "what the fast path appended is what was stepped"
            );
            return;
        }
        let before = first.index - 1;
        if before < self.end().index {
            let committed = self.released_sequence;
            let sequence =
                self.storage().position_at(before).expect("entries are replaced behind the log's start").sequence;
            assert!(sequence >= committed, "frames behind {sequence} are to be cut, {committed} are committed");
            self.raw.raft.mut_store().truncate_after(before);
            if !mutant("skip_truncation") {
                self.cut(sequence, effects);
            }
        } else if lost_lead && effects.truncate_after.is_none() && effects.restored.is_none() && !self.are_own(first) {
            self.cut(self.end().sequence, effects);
        }
        let commit = self.storage().hard_state().commit;
        for entry in entries {
            let record = self.raw.raft.mut_store().push(entry);
            let after_sequence = record.batch.end_sequence;
            let payload = RecordContent::Entry(record, commit).to_bytes();
            effects.records.push(ConsensusRecord { after_sequence, is_checkpoint: false, payload });
        }
        effects.records.extend(self.raw.raft.mut_store().take_acknowledged());
    }

    /// Entries proposed here before the lead was lost: their frames are appended already.
    fn are_own(&self, first: &Entry) -> bool {
        self.last_role.is_some_and(|last| last.role == MemberRole::Leader && last.term == first.term)
    }

    /// The cut removes records that must be kept; a checkpoint holds them all, including those of this poll.
    fn cut(&mut self, after_sequence: u64, effects: &mut Effects) {
        assert!(effects.truncate_after.is_none(), "one poll cuts once");
        effects.truncate_after = Some(after_sequence);
        effects.records.clear();
        self.put_checkpoint(effects);
    }

    fn put_checkpoint(&self, effects: &mut Effects) {
        let after_sequence = self.end().sequence;
        effects.records.push(ConsensusRecord { after_sequence, is_checkpoint: true, payload: self.checkpoint() });
    }

    fn take_snapshot(&mut self, ready: &Ready, number: u64, effects: &mut Effects) {
        let (position, members) = position_of(ready.snapshot()).expect("the core made this snapshot");
        let common = self.common_sequence.min(position.sequence);
        let end = self.end();
        if end.sequence > common {
            assert!(common >= self.released_sequence, "frames behind {common} are to be cut, more are committed");
            // Cut frames contradict committed ones, so no quorum counts on them. Equal frames stay until the log
            // position is in the journal.
            let mut kept_index = end.index;
            while self.storage().position_at(kept_index).is_some_and(|found| found.sequence > common) {
                kept_index -= 1;
            }
            let sequence =
                self.storage().position_at(kept_index).map_or(self.released_sequence, |found| found.sequence);
            self.raw.raft.mut_store().truncate_after(kept_index);
            self.cut(sequence, effects);
        }
        self.raw.raft.mut_store().restore(position, members.clone());
        self.put_checkpoint(effects);
        effects.restored = Some(position);
        effects.members = Some(members);
        self.restoring = Some((number, position));
    }

    pub(super) fn send(&mut self, mut messages: Vec<Message>, after_number: u64) {
        self.mark_votes(&mut messages);
        let outgoing = |message: Message| {
            let to = MemberId::new(message.to).filter(|_| is_sent(&message))?;
            Some(OutgoingMessage { to, frames: frames_of(&message), message })
        };
        let outgoing = messages.into_iter().filter_map(outgoing);
        if after_number <= self.persisted_number {
            self.leaving.extend(outgoing);
        } else {
            let outgoing: Vec<_> = outgoing.collect();
            if !outgoing.is_empty() {
                self.awaiting_persistence.push_back((after_number, outgoing));
            }
        }
    }

    fn apply(&mut self, committed: &[Entry], effects: &mut Effects) {
        let Some(last) = committed.last() else { return };
        for entry in committed {
            if entry.get_entry_type() != EntryType::EntryNormal {
                self.apply_change(entry, effects);
            }
        }
        self.forget_committed_in_flight(last.index);
        self.raw.advance_apply_to(last.index);
        self.raw.raft.mut_store().set_commit(last.index);
        self.raw.raft.mut_store().applied_to(last.index);
        let is_leader = self.raw.raft.state == StateRole::Leader;
        if is_leader && !self.members().is_voter(self.id) {
            // Raft-rs leaves the removal to its caller, and requires a leader to be a member. This member still
            // answers, so that others learn of the commit.
            let term = self.raw.raft.term;
            self.raw.raft.become_follower(term, raft::INVALID_ID);
        }
    }

    fn apply_change(&mut self, entry: &Entry, effects: &mut Effects) {
        let change = MembershipChange::from_entry_data(entry.get_data());
        // A change that does not fit the members is ignored, on every member alike.
        let Ok(state) = self.raw.apply_conf_change(&change.to_raft()) else { return };
        let mut members = self.members().clone();
        change.apply_to(&mut members);
        let members = members.with_conf_state(&state);
        self.raw.raft.mut_store().set_members(entry.index, members.clone());
        self.put_commit(entry.index, effects);
        effects.members = Some(members);
    }

    /// Records the commit of a membership change. From then on others may count on the new members alone: a member that
    /// forgot it could wait for a removed one for ever.
    fn put_commit(&self, index: u64, effects: &mut Effects) {
        let hard_state = self.storage().hard_state();
        let state = HardState { commit: hard_state.commit.max(index), ..hard_state };
        let payload = RecordContent::HardState(state).to_bytes();
        effects.records.push(ConsensusRecord { after_sequence: self.end().sequence, is_checkpoint: false, payload });
        effects.must_sync = true;
    }

    fn release(&mut self, sequence: u64, effects: &mut Effects) {
        if sequence > self.released_sequence {
            self.released_sequence = sequence;
            effects.released = Some(sequence);
        }
    }

    fn report_role(&mut self, effects: &mut Effects) {
        let raft = &self.raw.raft;
        let role = RoleChange { role: self.role(), term: raft.term, leader: MemberId::new(raft.leader_id) };
        if self.last_role == Some(role) {
            return;
        }
        if role.role != MemberRole::Leader {
            // Whether proposals in flight are committed, the next leader decides.
            self.forget_in_flight();
        }
        self.last_role = Some(role);
        effects.role = Some(role);
    }

    fn report_fetch(&mut self, effects: &mut Effects) {
        if !std::mem::take(&mut self.fetch_is_new) {
            return;
        }
        let applied = self.raw.raft.raft_log.applied;
        let base = self.storage().position_at(applied).expect("what was applied last is kept, or the start");
        let leader = self.leader();
        let (Some((position, members)), Some(leader)) = (&self.fetching, leader) else {
            // The offering leader has lost the lead; another one will offer.
            self.fetching = None;
            return;
        };
        effects.fetch = Some(PositionFetch { position: *position, members: members.clone(), base, leader });
    }

    /// Reports that the polls up to this number are persisted: frames and records as durable as the tier promises,
    /// terms and votes on the device. Acknowledgements leave with the next poll.
    ///
    /// # Panics
    /// If no poll had this number.
    pub fn persisted(&mut self, number: u64) {
        assert!(number <= self.last_number, "poll {number} is persisted, the last one was {}", self.last_number);
        if number <= self.persisted_number {
            return;
        }
        self.has_updates = true;
        self.persisted_number = number;
        self.raw.on_persist_ready(number);
        while let Some((_, mut messages)) = self.awaiting_persistence.pop_front_if(|(behind, _)| *behind <= number) {
            self.leaving.append(&mut messages);
        }
        if let Some((_, position)) = self.restoring.take_if(|(behind, _)| *behind <= number) {
            self.raw.advance_apply_to(position.index);
            self.raw.raft.mut_store().applied_to(position.index);
        }
        self.check_caught_up();
        self.set_timeout();
    }
}

pub(super) fn drop_superseded(messages: &mut Vec<OutgoingMessage>) {
    if messages.len() < 2 || !messages.iter().any(OutgoingMessage::is_commit_only) {
        return;
    }
    let mut at = 0;
    while at < messages.len() {
        let to = messages[at].to;
        let later = |other: &OutgoingMessage| other.to == to && other.is_append();
        if messages[at].is_commit_only() && messages[at + 1..].iter().any(later) {
            messages.remove(at);
        } else {
            at += 1;
        }
    }
}
