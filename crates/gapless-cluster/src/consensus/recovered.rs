//! [`RecoveredState`]: the state that a restarted member reads from its journal.

use super::MembershipChange;
use super::change::ChangeStep;
use super::details::MemberDetails;
use super::members::Members;
use super::options::ENTRIES_KEPT;
use super::record::{Checkpoint, EntryRecord, HardState, RecordContent, RecordError};
use super::storage::Storage;
use super::types::{Batch, LogPosition, MemberId};
use crate::link::log_state::Acknowledgement;
use raft::{Config, RawNode};
use std::collections::BTreeMap;

/// Together with uncommitted entries they fit a checkpoint; a member that needs older ones is offered a log position.
const COMMITTED_KEPT_MAX: usize = ENTRIES_KEPT;

/// Inconsistent records of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    #[error("the record after sequence {after_sequence} cannot be read: {source}")]
    Record { after_sequence: u64, source: RecordError },
    /// A record's checkpoint mark does not match its content.
    #[error("the record after sequence {after_sequence} is not of the kind that its frame says")]
    Kind { after_sequence: u64 },
    /// The first record is not a checkpoint.
    #[error("the journal's first record, after sequence {after_sequence}, is not a checkpoint: segments are missing")]
    NoCheckpoint { after_sequence: u64 },
    /// An entry does not follow its predecessor.
    #[error("entry {index} after sequence {after_sequence} does not follow the one before it in index, term or frames")]
    Gap { index: u64, after_sequence: u64 },
    #[error("entry {index} would replace one that is committed; entries up to {commit} are")]
    Committed { index: u64, commit: u64 },
    /// The checkpoint in the temporary file is older than the journal.
    #[error(
        "it is an older copy of itself, of term {term} and with entries up to {commit} committed; the journal beside it says \
         term {journal_term} and {journal_commit}"
    )]
    OlderPending { term: u64, commit: u64, journal_term: u64, journal_commit: u64 },
    /// Frames are missing before an entry's record: the journal has lost some in the middle.
    #[error("entry {index} covers frames up to {end_sequence}, the journal has them up to {found_sequence}")]
    FramesMissing { index: u64, end_sequence: u64, found_sequence: u64 },
}

/// State from a journal's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveredState {
    pub(super) state: Option<Checkpoint>,
    pub(super) rejoin: Option<RejoinState>,
}

impl RecoveredState {
    /// State at the first start.
    #[must_use]
    pub const fn empty() -> Self {
        Self { state: None, rejoin: None }
    }

    /// Marks a member that may lack entries that it acknowledged: power loss at a tier without sync.
    ///
    /// # Panics
    /// If its term is older than at the loss: terms and votes are always synced.
    #[must_use]
    pub fn rejoining(self, rejoin: RejoinState) -> Self {
        let term = self.hard_state().term;
        assert!(term >= rejoin.term, "term {term} comes before term {}, which the member had at the loss", rejoin.term);
        Self { rejoin: Some(rejoin), ..self }
    }

    /// Reads a journal's records in order: sequence of the last frame before each, its checkpoint mark, its payload.
    /// The checkpoint of a cut's temporary file (see [`crate::consensus::Effects::truncate_after`]) comes last.
    /// `last_sequence` is the journal's last frame.
    ///
    /// # Errors
    /// Any inconsistency; nothing is guessed.
    pub fn from_records<'a>(
        records: impl IntoIterator<Item = (u64, bool, &'a [u8])>,
        last_sequence: u64,
    ) -> Result<Self, RecoveryError> {
        let mut state: Option<Checkpoint> = None;
        for (after_sequence, is_checkpoint, payload) in records {
            let content = RecordContent::from_bytes(payload)
                .map_err(|source| RecoveryError::Record { after_sequence, source })?;
            if is_checkpoint != matches!(content, RecordContent::Checkpoint(_)) {
                return Err(RecoveryError::Kind { after_sequence });
            }
            match (content, &mut state) {
                (RecordContent::Checkpoint(checkpoint), state) => {
                    *state = Some(chained(*checkpoint, after_sequence)?);
                }
                (_, None) => return Err(RecoveryError::NoCheckpoint { after_sequence }),
                (RecordContent::HardState(found), Some(state)) => state.take_hard_state(found),
                (RecordContent::Acknowledged(list), Some(state)) => state.take_acknowledged(&list),
                (RecordContent::Entry(entry, commit), Some(state)) => {
                    state.take_entry(entry, after_sequence)?;
                    state.hard_state.commit = state.hard_state.commit.max(commit);
                    // A segment may hold a million entries after its checkpoint.
                    if state.entries.len() >= 2 * COMMITTED_KEPT_MAX {
                        state.forget_committed();
                    }
                }
            }
        }
        if let Some(state) = &mut state {
            let end = state.end();
            if end.sequence > last_sequence {
                return Err(RecoveryError::FramesMissing {
                    index: end.index,
                    end_sequence: end.sequence,
                    found_sequence: last_sequence,
                });
            }
            // A record's commit index may exceed the entries written after it and torn off.
            state.hard_state.commit = state.hard_state.commit.clamp(state.start.index, end.index);
            state.forget_committed();
        }
        Ok(Self { state, rejoin: None })
    }

    /// Cut frames after this sequence before the start: no other member knows of them.
    #[must_use]
    pub fn truncate_after(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.end().sequence)
    }

    /// The whole state as one record, to be written to a temporary file before the cut after
    /// [`RecoveredState::truncate_after`], which also removes records. The first poll returns it for the journal.
    /// `None` before the first start.
    #[must_use]
    pub fn checkpoint(&self) -> Option<Vec<u8>> {
        self.state.clone().map(|state| RecordContent::Checkpoint(Box::new(state)).to_bytes())
    }

    /// Checkpoint with `member` as the whole cluster: all its entries are committed, and no number is reused. `None`
    /// before the first start.
    #[must_use]
    pub fn single_member_checkpoint(&self, member: MemberId, addresses: &[String]) -> Option<Vec<u8>> {
        let state = self.state.as_ref()?;
        let end = state.end();
        let changed = state.entries.iter().filter_map(|entry| entry.change.as_ref()).flat_map(|change| &change.steps);
        let changed = changed.map(|step| match step {
            ChangeStep::Voter(member) | ChangeStep::Learner(member) | ChangeStep::Remove(member) => member.get(),
        });
        let highest = changed.fold(state.members.highest_number(), u64::max);
        let details = vec![MemberDetails { member, addresses: addresses.to_vec(), joining: None }];
        let members = Members {
            details,
            numbers_used: if highest > member.get() { highest } else { 0 },
            ..Members::of_voters(&[member])
        };
        let hard_state = HardState { term: state.hard_state.term, vote: None, commit: end.index };
        let (entries, acknowledged) = (Vec::new(), Vec::new());
        let checkpoint = Checkpoint { hard_state, start: end, members, entries, acknowledged };
        Some(RecordContent::Checkpoint(Box::new(checkpoint)).to_bytes())
    }

    /// Known acknowledgements of other members.
    #[must_use]
    pub fn acknowledged(&self) -> Vec<(MemberId, Acknowledgement)> {
        self.state.as_ref().map(|state| state.acknowledged.clone()).unwrap_or_default()
    }

    /// Checks that the temporary file's checkpoint holds everything in these records, except cut entries. The records
    /// themselves are not checked.
    ///
    /// # Errors
    /// If it is older than the records.
    pub fn check_pending<'a>(
        records: impl IntoIterator<Item = (u64, bool, &'a [u8])>,
        pending_checkpoint: &[u8],
    ) -> Result<(), RecoveryError> {
        let Ok(RecordContent::Checkpoint(pending)) = RecordContent::from_bytes(pending_checkpoint) else {
            return Ok(());
        };
        let Ok(Self { state: Some(journal), .. }) = Self::from_records(records, u64::MAX) else { return Ok(()) };
        let (its, known) = (pending.hard_state, journal.hard_state);
        if its.term >= known.term && its.commit >= known.commit {
            return Ok(());
        }
        Err(RecoveryError::OlderPending {
            term: its.term,
            commit: its.commit,
            journal_term: known.term,
            journal_commit: known.commit,
        })
    }

    /// End of the log, from which the chain continues.
    #[must_use]
    pub fn end(&self) -> Option<LogPosition> {
        self.state.as_ref().map(Checkpoint::end)
    }

    /// Notes that `sequence` was released, so its entry and all before are committed; entries without frames after it
    /// may be.
    pub fn note_committed(&mut self, sequence: u64) {
        let Some(state) = &mut self.state else { return };
        let begins_before = |entry: &&EntryRecord| {
            let Batch { first_sequence, end_sequence, .. } = entry.batch;
            first_sequence <= end_sequence.min(sequence)
        };
        let released = state.entries.iter().rev().find(begins_before);
        if let Some(entry) = released {
            state.hard_state.commit = state.hard_state.commit.max(entry.index);
        }
    }

    /// Known to be committed up to here.
    #[must_use]
    pub fn committed_sequence(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.position_at(state.hard_state.commit).sequence)
    }

    /// Notes the last durable [`crate::consensus::Effects::ballot`]. It may be newer than the journal, after a loss of
    /// power, or older, after a crash between the two writes.
    ///
    /// # Errors
    /// If the bytes are not a ballot.
    pub fn note_vote(&mut self, ballot: &[u8]) -> Result<(), RecoveryError> {
        let after_sequence = self.truncate_after();
        let content =
            RecordContent::from_bytes(ballot).map_err(|source| RecoveryError::Record { after_sequence, source })?;
        let RecordContent::HardState(found) = content else { return Err(RecoveryError::Kind { after_sequence }) };
        let Some(Checkpoint { hard_state, .. }) = &mut self.state else { return Ok(()) };
        if found.term > hard_state.term || (found.term == hard_state.term && hard_state.vote.is_none()) {
            (hard_state.term, hard_state.vote) = (found.term, found.vote);
        }
        Ok(())
    }

    /// Zeros before the first start.
    #[must_use]
    pub fn hard_state(&self) -> HardState {
        self.state.as_ref().map(|state| state.hard_state).unwrap_or_default()
    }

    /// Members at the start of the log; none before the first start.
    #[must_use]
    pub fn members(&self) -> Members {
        self.state.as_ref().map(|state| state.members.clone()).unwrap_or_default()
    }
}

/// Errors unless its entries are contiguous and its frames are there.
fn chained(mut checkpoint: Checkpoint, after_sequence: u64) -> Result<Checkpoint, RecoveryError> {
    for entry in std::mem::take(&mut checkpoint.entries) {
        checkpoint.take_entry(entry, after_sequence)?;
    }
    if checkpoint.start.sequence > after_sequence {
        return Err(RecoveryError::FramesMissing {
            index: checkpoint.start.index,
            end_sequence: checkpoint.start.sequence,
            found_sequence: after_sequence,
        });
    }
    Ok(checkpoint)
}

impl Checkpoint {
    /// End of the last entry.
    #[must_use]
    pub fn end(&self) -> LogPosition {
        self.position_at(u64::MAX)
    }

    fn position_at(&self, index: u64) -> LogPosition {
        let count = index.saturating_sub(self.start.index).min(self.entries.len() as u64) as usize;
        match count.checked_sub(1).map(|at| &self.entries[at]) {
            Some(EntryRecord { index, term, batch, .. }) => {
                LogPosition { index: *index, term: *term, sequence: batch.end_sequence, hash: batch.hash }
            }
            None => self.start,
        }
    }

    fn forget_committed(&mut self) {
        let committed = self.hard_state.commit.saturating_sub(self.start.index).min(self.entries.len() as u64) as usize;
        let count = self.entries.len().saturating_sub(COMMITTED_KEPT_MAX).min(committed);
        let start = self.position_at(self.start.index + count as u64);
        for change in self.entries.drain(..count).filter_map(|entry| entry.change) {
            self.members = members_after(&change, &self.members);
        }
        self.start = start;
    }

    fn take_acknowledged(&mut self, list: &[(MemberId, Acknowledgement)]) {
        let mut known: BTreeMap<_, _> = self.acknowledged.drain(..).collect();
        super::storage::merge(&mut known, list);
        self.acknowledged = known.into_iter().collect();
    }

    fn take_hard_state(&mut self, found: HardState) {
        self.hard_state =
            HardState { term: found.term, vote: found.vote, commit: self.hard_state.commit.max(found.commit) };
    }

    fn take_entry(&mut self, entry: EntryRecord, after_sequence: u64) -> Result<(), RecoveryError> {
        let index = entry.index;
        let gap = RecoveryError::Gap { index, after_sequence };
        let before = index.checked_sub(self.start.index + 1).ok_or(gap)?;
        if before > self.entries.len() as u64 {
            return Err(gap);
        }
        let replaced = self.entries.get(before as usize);
        if replaced.is_some_and(|old| *old != entry) && index <= self.hard_state.commit {
            return Err(RecoveryError::Committed { index, commit: self.hard_state.commit });
        }
        let position = self.position_at(index - 1);
        let is_next = entry.batch.first_sequence == position.sequence + 1
            && entry.term >= position.term
            && (!entry.batch.is_empty() || entry.batch.hash == position.hash);
        if !is_next {
            return Err(gap);
        }
        let end_sequence = entry.batch.end_sequence;
        if end_sequence > after_sequence {
            return Err(RecoveryError::FramesMissing { index, end_sequence, found_sequence: after_sequence });
        }
        self.entries.truncate(before as usize);
        self.entries.push(entry);
        Ok(())
    }
}

/// Bound of the entries that a rejoining member may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejoinState {
    /// Last term in which it acknowledged anything.
    pub term: u64,
    /// Unique identifier of this start of the member.
    pub start: u64,
}

/// Unchanged if `change` does not fit; a running member applies it the same way.
fn members_after(change: &MembershipChange, members: &Members) -> Members {
    let start = LogPosition { index: 0, term: 0, sequence: 0, hash: 0 };
    let state = Checkpoint {
        hard_state: HardState::default(),
        start,
        members: members.clone(),
        entries: Vec::new(),
        acknowledged: Vec::new(),
    };
    let config = Config { id: u64::MAX, ..Config::default() };
    let logger = slog::Logger::root(slog::Discard, slog::o!());
    let raw = RawNode::new(&config, Storage::new(state, 1, 1), &logger);
    let applied = raw.and_then(|mut raw| raw.apply_conf_change(&change.to_raft()));
    let Ok(conf_state) = applied else { return members.clone() };
    let mut changed = members.clone();
    change.apply_to(&mut changed);
    changed.with_conf_state(&conf_state)
}

#[cfg(test)]
mod tests {
    use super::super::change::MembershipChange;
    use super::*;
    use gapless_testkit::random::rounds;

    #[test]
    fn newer_ballot_counts() {
        let state = |term, vote| HardState { term, vote: MemberId::new(vote), commit: 1 };
        let position = LogPosition { index: 1, term: 1, sequence: 0, hash: 0 };
        for (journal, ballot, expected) in [
            (state(5, 2), state(6, 3), state(6, 3)),
            (state(5, 2), state(6, 0), state(6, 0)),
            (state(5, 0), state(5, 3), state(5, 3)),
            (state(5, 2), state(5, 0), state(5, 2)),
            (state(5, 2), state(4, 1), state(5, 2)),
        ] {
            let checkpoint = Checkpoint {
                hard_state: journal,
                start: position,
                members: Members::default(),
                entries: Vec::new(),
                acknowledged: Vec::new(),
            };
            let mut recovered = RecoveredState { state: Some(checkpoint), ..RecoveredState::default() };
            recovered.note_vote(&RecordContent::HardState(HardState { commit: 9, ..ballot }).to_bytes()).unwrap();
            assert_eq!(recovered.hard_state(), expected, "{journal:?} and {ballot:?}");
        }
        assert!(RecoveredState::empty().note_vote(b"nonsense").is_err());
        assert!(RecoveredState::empty().note_vote(&RecordContent::HardState(state(1, 1)).to_bytes()).is_ok());
    }

    #[test]
    fn old_checkpoint_is_refused() {
        let checkpoint = |term, commit| {
            let hard_state = HardState { term, vote: None, commit };
            let start = LogPosition { index: commit, term: 1, sequence: 0, hash: 0 };
            let (members, entries, acknowledged) = (Members::default(), Vec::new(), Vec::new());
            RecordContent::Checkpoint(Box::new(Checkpoint { hard_state, start, members, entries, acknowledged }))
                .to_bytes()
        };
        let journal = checkpoint(5, 7);
        let check = |pending: &[u8]| RecoveredState::check_pending([(0, true, &journal[..])], pending);
        for (term, commit) in [(5, 7), (6, 7), (5, 9)] {
            assert_eq!(check(&checkpoint(term, commit)), Ok(()));
        }
        for (term, commit) in [(4, 7), (5, 6), (6, 6), (4, 9)] {
            assert!(
                matches!(check(&checkpoint(term, commit)), Err(RecoveryError::OlderPending { .. })),
                "{term}, {commit}"
            );
        }
    }

    #[test]
    fn kept_entries_fit_a_checkpoint() {
        let count = rounds(1_000_000, 100_000);
        let last_change = count - count / 10;
        let member = |number| MemberId::new(number).unwrap();
        let position = LogPosition { index: 1, term: 1, sequence: 0, hash: 0 };
        let hard_state = HardState { term: 1, vote: None, commit: 1 };
        let members = Members::of_voters(&[member(1), member(2)]);
        let first = Checkpoint { hard_state, start: position, members, entries: Vec::new(), acknowledged: Vec::new() };
        let learner = MembershipChange::of(ChangeStep::Learner(member(3)));
        let steps = vec![ChangeStep::Remove(member(1)), ChangeStep::Remove(member(2))];
        let strange = MembershipChange { steps, ..MembershipChange::default() };
        let entry = |index: u64| {
            let change = [(500, &learner), (last_change, &strange)].into_iter().find(|(at, _)| *at == index);
            let sequence = index - 1 - u64::from(index >= 500) - u64::from(index >= last_change);
            let is_change = change.is_some();
            let batch =
                Batch { first_sequence: sequence + u64::from(is_change), end_sequence: sequence, hash: sequence };
            EntryRecord { index, term: 1, batch, change: change.map(|(_, change)| change.clone()) }
        };
        for left in [0, 10, COMMITTED_KEPT_MAX as u64] {
            let begin = (0, true, RecordContent::Checkpoint(Box::new(first.clone())).to_bytes());
            let entries = (2..=count).map(|index| {
                let entry = entry(index);
                let after_sequence = entry.batch.end_sequence;
                let payload = RecordContent::Entry(entry, index.saturating_sub(left).max(1)).to_bytes();
                (after_sequence, false, payload)
            });
            let records: Vec<_> = std::iter::once(begin).chain(entries).collect();
            let borrowed =
                records.iter().map(|(behind, is_checkpoint, payload)| (*behind, *is_checkpoint, &payload[..]));
            let recovered = RecoveredState::from_records(borrowed, count).unwrap();
            let state = recovered.state.clone().unwrap();
            assert_eq!((state.end().index, state.hard_state.commit), (count, count - left));
            assert_eq!(state.entries.len(), COMMITTED_KEPT_MAX.max(left as usize));
            assert_eq!(state.start, first_position(&entry(state.start.index)));
            assert_eq!(state.entries[0], entry(state.start.index + 1));
            assert_eq!(state.members.voters, [member(1), member(2)]);
            assert_eq!(state.members.learners, [member(3)]);
            let bytes = recovered.checkpoint().unwrap();
            assert_eq!(RecordContent::from_bytes(&bytes), Ok(RecordContent::Checkpoint(Box::new(state))));
        }
    }

    fn first_position(entry: &EntryRecord) -> LogPosition {
        let Batch { end_sequence, hash, .. } = entry.batch;
        LogPosition { index: entry.index, term: entry.term, sequence: end_sequence, hash }
    }

    #[test]
    fn release_commits_its_entry() {
        let batch = |first_sequence, end_sequence| Batch { first_sequence, end_sequence, hash: 0 };
        let entry = |index, batch| EntryRecord { index, term: index, batch, change: None };
        let begin = LogPosition { index: 1, term: 1, sequence: 0, hash: 0 };
        let empty = |index, sequence| entry(index, batch(sequence + 1, sequence));
        let entries = vec![empty(2, 0), entry(3, batch(1, 4)), empty(4, 4), entry(5, batch(5, 9)), empty(6, 9)];
        let hard_state = HardState { term: 6, vote: None, commit: 1 };
        let state =
            Checkpoint { hard_state, start: begin, members: Members::default(), entries, acknowledged: Vec::new() };
        for (released, commit) in [(0, 1), (1, 3), (4, 3), (5, 5), (9, 5)] {
            let mut recovered = RecoveredState { state: Some(state.clone()), rejoin: None };
            recovered.note_committed(released);
            assert_eq!(recovered.hard_state().commit, commit, "frames up to {released} are released");
        }
    }
}
