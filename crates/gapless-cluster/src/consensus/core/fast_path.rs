//! Work around a poll, which costs as much as all other work for a message: a leader's appends, the release that an
//! answer allows, and a follower's answer to frames that continue its log. Each equals the output of the next poll,
//! which then leaves it out.

use super::Consensus;
use super::outbound::drop_superseded;
use crate::consensus::effects::{ConsensusRecord, MemberRole, OutgoingMessage};
use crate::consensus::record::RecordContent;
use crate::consensus::types::MemberId;
use gapless_agent::fault::mutant;
use raft::StateRole;
use raft::eraftpb::{EntryType, MessageType};

impl Consensus {
    /// Takes the appends of a leader's proposals before the poll: a leader replicates in parallel with its own
    /// journaling (Ongaro's thesis, 10.2.1). Takes nothing without the lead.
    pub fn take_appends(&mut self, messages: &mut Vec<OutgoingMessage>) {
        if self.raw.raft.msgs.is_empty() || !self.is_leader() || self.has_lost_lead() {
            return;
        }
        let leaving = std::mem::take(&mut self.raw.raft.msgs);
        self.send(leaving, self.vote_number);
        messages.append(&mut self.leaving);
        drop_superseded(messages);
    }

    /// Sequence up to which a leader may release, known as soon as an answer was stepped.
    pub fn poll_released(&mut self) -> u64 {
        let log = &self.raw.raft.raft_log;
        if self.is_leader() && self.restoring.is_none() && log.committed > log.applied {
            let index = log.committed.min(log.persisted);
            let sequence = self.storage().position_at(index).map_or(0, |position| position.sequence);
            self.released_sequence = self.released_sequence.max(sequence);
        }
        self.released_sequence
    }

    /// Stores the entries that an append has added to the end of a follower's log, and returns their records, but only
    /// if the step has no effect that a poll must report first: no cut, new term, vote, leader or fetch. Once frames
    /// and records are as durable as the tier requires, [`Consensus::take_answers`] returns the answer. The next step
    /// must come after a poll.
    pub fn append_on_fast_path(&mut self, records: &mut Vec<ConsensusRecord>) -> bool {
        if !self.continues_log() {
            return false;
        }
        let entries = self.raw.raft.raft_log.unstable_entries().to_vec();
        let commit = self.raw.raft.raft_log.committed;
        for entry in entries {
            let record = self.raw.raft.mut_store().push(entry);
            let after_sequence = record.batch.end_sequence;
            let payload = RecordContent::Entry(record, commit).to_bytes();
            records.push(ConsensusRecord { after_sequence, is_checkpoint: false, payload });
        }
        records.extend(self.raw.raft.mut_store().take_acknowledged());
        self.is_appended_on_fast_path = true;
        true
    }

    fn continues_log(&self) -> bool {
        let raft = &self.raw.raft;
        let (entries, end) = (raft.raft_log.unstable_entries(), self.end().index);
        let Some((first, last)) = entries.first().zip(entries.last()) else { return false };
        let [answer] = &raft.msgs[..] else { return false };
        let hard_state = self.storage().hard_state();
        raft.state == StateRole::Follower
            && first.index == end + 1
            && entries.iter().all(|entry| entry.get_entry_type() == EntryType::EntryNormal)
            && answer.get_msg_type() == MessageType::MsgAppendResponse
            && (answer.reject, answer.index, answer.term) == (false, last.index, raft.term)
            && (hard_state.term, hard_state.vote) == (raft.term, MemberId::new(raft.vote))
            && self.vote_number <= self.persisted_number
            && self.last_role.is_some_and(|last| {
                (last.role, last.term, last.leader) == (MemberRole::Follower, raft.term, MemberId::new(raft.leader_id))
            })
            && raft.raft_log.unstable_snapshot().is_none()
            && self.restoring.is_none()
            && self.fetching.is_none()
            && !self.is_first_poll
            && !self.is_rejoining()
            && !mutant("acknowledge_before_journal")
            && !mutant("forget_vote")
    }

    /// Takes the answers to the appends of [`Consensus::append_on_fast_path`] that were journaled since.
    pub fn take_answers(&mut self, messages: &mut Vec<OutgoingMessage>) {
        assert!(self.is_appended_on_fast_path, "there is something to answer");
        let answers = std::mem::take(&mut self.raw.raft.msgs);
        self.send(answers, self.vote_number);
        messages.append(&mut self.leaving);
    }
}
