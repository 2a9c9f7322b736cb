//! Entries in memory, bounded, in the form that raft-rs reads. A member that needs forgotten ones gets a
//! [`LogPosition`].

use super::effects::ConsensusRecord;
use super::members::Members;
use super::raft_form::{batch_in, snapshot_of};
use super::record::{Checkpoint, EntryRecord, HardState, RecordContent};
use super::types::{Batch, LogPosition, MemberId};
use super::wire::ENTRIES_MAX;
use crate::link::log_state::Acknowledgement;
use raft::eraftpb::{Entry, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, StorageError, eraftpb};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

struct KeptEntry {
    entry: Entry,
    batch: Batch,
}

/// Log of a member, written by [`crate::consensus::Consensus`] alone.
pub struct Storage {
    start: LogPosition,
    entries: VecDeque<KeptEntry>,
    /// Members from each index on, the first ones for `start`.
    members: VecDeque<(u64, Members)>,
    hard_state: HardState,
    applied: u64,
    entries_kept_max: usize,
    message_frames_max: u64,
    /// First sequence of the leader's window; see `lagging`.
    lagging_before: u64,
    /// Entry up to which a lagging member is given entries now.
    lagging_until: Option<u64>,
    /// Known acknowledgements of other members, and whether the records lack any.
    acknowledged: BTreeMap<MemberId, Acknowledgement>,
    acknowledged_is_new: bool,
    /// A lagging member was refused entries, or has entries to be sent.
    has_lagging: Cell<bool>,
}

impl Storage {
    pub(super) fn new(state: Checkpoint, entries_kept_max: usize, message_frames_max: u64) -> Self {
        let kept = |record: &EntryRecord| KeptEntry { entry: record.to_raft(), batch: record.batch };
        Self {
            start: state.start,
            entries: state.entries.iter().map(kept).collect(),
            members: VecDeque::from([(state.start.index, state.members)]),
            hard_state: state.hard_state,
            applied: state.start.index,
            entries_kept_max,
            message_frames_max,
            acknowledged: state.acknowledged.into_iter().collect(),
            acknowledged_is_new: false,
            lagging_before: 0,
            lagging_until: None,
            has_lagging: Cell::new(false),
        }
    }

    pub(super) fn set_lagging_before(&mut self, first_sequence: u64) {
        self.lagging_before = first_sequence;
    }

    pub(super) fn remember(&mut self, acknowledgements: &[(MemberId, Acknowledgement)]) {
        self.acknowledged_is_new |= merge(&mut self.acknowledged, acknowledgements);
    }

    pub(super) const fn acknowledged(&self) -> &BTreeMap<MemberId, Acknowledgement> {
        &self.acknowledged
    }

    /// `None` if a record holds them already.
    pub(super) fn take_acknowledged(&mut self) -> Option<ConsensusRecord> {
        if !std::mem::take(&mut self.acknowledged_is_new) || self.acknowledged.is_empty() {
            return None;
        }
        let list = self.acknowledged.iter().map(|(member, acknowledged)| (*member, *acknowledged)).collect();
        let payload = RecordContent::Acknowledged(list).to_bytes();
        Some(ConsensusRecord { after_sequence: self.end().sequence, is_checkpoint: false, payload })
    }

    fn forget_acknowledged(&mut self) {
        let members = &self.members.back().expect("there is always one").1;
        self.acknowledged.retain(|member, _| members.contains(*member));
    }

    pub(super) fn allow_lagging_until(&mut self, index: Option<u64>) {
        self.lagging_until = index;
    }

    pub(super) fn has_lagging(&self) -> bool {
        self.has_lagging.get()
    }

    pub(super) fn set_lagging(&self, has_lagging: bool) {
        self.has_lagging.set(has_lagging);
    }

    pub(super) fn is_lagging_at(&self, index: u64) -> bool {
        self.position_at(index - 1).is_some_and(|position| position.sequence + 1 < self.lagging_before)
    }

    #[must_use]
    pub const fn start(&self) -> LogPosition {
        self.start
    }

    /// End of the last entry.
    #[must_use]
    pub fn end(&self) -> LogPosition {
        self.position_at(self.last()).expect("the last entry is there")
    }

    /// End of this entry; `None` if forgotten or not there yet.
    #[must_use]
    pub fn position_at(&self, index: u64) -> Option<LogPosition> {
        if index == self.start.index {
            return Some(self.start);
        }
        let kept = self.kept(index)?;
        let Batch { end_sequence, hash, .. } = kept.batch;
        Some(LogPosition { index, term: kept.entry.term, sequence: end_sequence, hash })
    }

    pub(super) fn batch_at(&self, index: u64) -> Option<Batch> {
        self.kept(index).map(|kept| kept.batch)
    }

    fn kept(&self, index: u64) -> Option<&KeptEntry> {
        self.entries.get(index.checked_sub(self.start.index + 1)? as usize)
    }

    fn last(&self) -> u64 {
        self.start.index + self.entries.len() as u64
    }

    pub(super) fn members(&self) -> &Members {
        &self.members.back().expect("there is always one").1
    }

    pub(super) fn set_hard_state(&mut self, state: HardState) {
        self.hard_state = state;
    }

    pub(super) const fn hard_state(&self) -> HardState {
        self.hard_state
    }

    pub(super) fn set_commit(&mut self, commit: u64) {
        self.hard_state.commit = self.hard_state.commit.max(commit);
    }

    pub(super) fn truncate_after(&mut self, index: u64) {
        assert!(index >= self.applied, "entry {index} is cut, {} are applied", self.applied);
        self.entries.truncate((index - self.start.index) as usize);
    }

    pub(super) fn push(&mut self, entry: Entry) -> EntryRecord {
        let end = self.end();
        assert_eq!(entry.index, end.index + 1, "entries follow each other");
        let batch = batch_in(&entry).unwrap_or(Batch::empty_after(end.sequence, end.hash));
        assert_eq!(batch.first_sequence, end.sequence + 1, "entry {} leaves a gap in the stream", entry.index);
        let record = EntryRecord::from_raft(&entry, batch);
        self.entries.push_back(KeptEntry { entry, batch });
        record
    }

    pub(super) fn restore(&mut self, position: LogPosition, members: Members) {
        self.entries.clear();
        self.start = position;
        self.members = VecDeque::from([(position.index, members)]);
        self.applied = position.index;
        self.set_commit(position.index);
        self.forget_acknowledged();
    }

    pub(super) fn set_members(&mut self, index: u64, members: Members) {
        self.members.push_back((index, members));
        self.forget_acknowledged();
    }

    pub(super) fn applied_to(&mut self, index: u64) {
        self.applied = self.applied.max(index);
        while self.entries.len() > self.entries_kept_max && self.start.index < self.applied {
            self.forget_oldest();
        }
        self.forget_members();
    }

    pub(super) fn forget_before(&mut self, first_sequence: u64) {
        let is_gone = |kept: &KeptEntry| !kept.batch.is_empty() && kept.batch.first_sequence < first_sequence;
        let Some(newest) = self.entries.iter().rposition(is_gone) else { return };
        let newest_index = self.start.index + newest as u64 + 1;
        while self.start.index < newest_index.min(self.applied) {
            self.forget_oldest();
        }
        self.forget_members();
    }

    fn forget_oldest(&mut self) {
        self.start = self.position_at(self.start.index + 1).expect("an applied entry is there");
        self.entries.pop_front();
    }

    fn forget_members(&mut self) {
        while self.members.get(1).is_some_and(|(from, _)| *from <= self.start.index) {
            self.members.pop_front();
        }
    }

    pub(super) fn applied_position(&self) -> Option<(LogPosition, Members)> {
        Some((self.position_at(self.applied)?, self.members().clone()))
    }

    pub(super) fn applied_position_until(&self, sequence: u64) -> Option<LogPosition> {
        let mut positions = (self.start.index..=self.applied).rev().map_while(|index| self.position_at(index));
        positions.find(|position| position.sequence <= sequence)
    }

    pub(super) fn change_bytes(&self) -> usize {
        let is_change = |kept: &&KeptEntry| kept.entry.get_entry_type() != eraftpb::EntryType::EntryNormal;
        self.entries.iter().filter(is_change).map(|kept| kept.entry.get_data().len()).sum()
    }

    pub(super) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            hard_state: self.hard_state,
            start: self.start,
            members: self.members[0].1.clone(),
            entries: self.entries.iter().map(|kept| EntryRecord::from_raft(&kept.entry, kept.batch)).collect(),
            acknowledged: self.acknowledged.iter().map(|(member, acknowledged)| (*member, *acknowledged)).collect(),
        }
    }
}

impl raft::Storage for Storage {
    fn initial_state(&self) -> raft::Result<RaftState> {
        let HardState { term, vote, commit } = self.hard_state;
        let vote = vote.map_or(0, MemberId::get);
        let state = eraftpb::HardState { term, vote, commit, ..Default::default() };
        Ok(RaftState::new(state, self.members().to_conf_state()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        length_max: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low <= self.start.index {
            return Err(Error::Store(StorageError::Compacted));
        }
        if high > self.last() + 1 {
            return Err(Error::Store(StorageError::Unavailable));
        }
        let mut high = high;
        if context.can_async() && self.is_lagging_at(low) {
            match self.lagging_until {
                Some(until) if until >= low => high = high.min(until + 1),
                _ => {
                    self.has_lagging.set(true);
                    return Err(Error::Store(StorageError::LogTemporarilyUnavailable));
                }
            }
        }
        let from = (low - self.start.index - 1) as usize;
        let range = self.entries.range(from..from + (high - low) as usize);
        // Only entries of a message are limited, by the length of their frames, which raft-rs does not know.
        let _ = length_max;
        if !context.can_async() {
            return Ok(range.map(|kept| kept.entry.clone()).collect());
        }
        let mut frames = 0;
        let fits = |kept: &&KeptEntry| {
            let is_first = frames == 0;
            frames += kept.batch.frames().max(1);
            is_first || frames <= self.message_frames_max
        };
        Ok(range.take_while(fits).take(ENTRIES_MAX).map(|kept| kept.entry.clone()).collect())
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index < self.start.index {
            return Err(Error::Store(StorageError::Compacted));
        }
        self.position_at(index).map(|position| position.term).ok_or(Error::Store(StorageError::Unavailable))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.start.index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    fn snapshot(&self, request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        let position = self.position_at(self.applied).filter(|position| position.index >= request_index.max(1));
        let position = position.ok_or(Error::Store(StorageError::SnapshotTemporarilyUnavailable))?;
        Ok(snapshot_of(&position, self.members()))
    }
}

/// Keeps the newer acknowledgements; returns whether there were any.
pub(super) fn merge(
    known: &mut BTreeMap<MemberId, Acknowledgement>,
    acknowledgements: &[(MemberId, Acknowledgement)],
) -> bool {
    let mut is_new = false;
    for (member, acknowledged) in acknowledgements {
        let known = known.entry(*member).or_default();
        is_new |= acknowledged > known;
        *known = (*known).max(*acknowledged);
    }
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;
    use raft::Storage as _;

    #[test]
    fn entries_are_dropped_with_frames() {
        let batch = |first_sequence, end_sequence| Batch { first_sequence, end_sequence, hash: end_sequence };
        let entry = |index, batch| EntryRecord { index, term: 1, batch, change: None };
        let start = LogPosition { index: 1, term: 1, sequence: 0, hash: 0 };
        let entries =
            vec![entry(2, batch(1, 4)), entry(3, batch(5, 4)), entry(4, batch(5, 9)), entry(5, batch(10, 12))];
        let state = Checkpoint {
            hard_state: HardState::default(),
            start,
            members: Members::default(),
            entries,
            acknowledged: Vec::new(),
        };
        for (applied, first_sequence, index, sequence) in [
            (5, 1, 1, 0),
            (5, 2, 2, 4),
            (5, 5, 2, 4),
            (5, 6, 4, 9),
            (5, 10, 4, 9),
            (5, 13, 5, 12),
            (3, 13, 3, 4),
            (1, 13, 1, 0),
        ] {
            let mut storage = Storage::new(state.clone(), 100, 100);
            storage.applied_to(applied);
            storage.forget_before(first_sequence);
            let what = format!("{applied} applied, frames from {first_sequence} on");
            assert_eq!((storage.start().index, storage.start().sequence), (index, sequence), "{what}");
            assert_eq!(storage.first_index(), Ok(index + 1), "{what}");
            assert_eq!(storage.end().index, 5, "{what}");
        }
    }
}
