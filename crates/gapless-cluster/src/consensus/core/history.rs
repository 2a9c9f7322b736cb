//! [`LogHistory`]: summaries of logs that members exchange to detect a directory that was replaced by an older copy, or
//! exchanged. Raft assumes that an acknowledgement stays true and that committed entries are equal everywhere; in a
//! directory that was tampered with, neither holds.
//!
//! - **Released frames that differ.** Each member sends the others its newest applied log positions, with the chain's
//!   value there. A member that differs from its leader has released frames that the cluster does not have, or lacks
//!   frames that it has: it stops. So does a member that has applied more than its leader's log holds, because a leader
//!   has every entry that was ever committed.
//! - **Less than acknowledged.** A leader announces the acknowledgements of each member, and every member keeps them in
//!   its records ([`Acknowledgement`]) asynchronously. A member reports the state of its log at each handshake
//!   ([`LogState`]). A member that has less than it acknowledged is refused, unless it lost power at a tier that does
//!   not sync: see `rejoining`.
//!
//! ```text
//!   0  u8   version, 1
//!   1  u8   flags: 1 its sender leads, 2 an answer
//!   2  u64  its sender's term
//!  10  u64  index of the last entry of its log
//!  18  u8   log positions, 64 at most, then each: u64 index, term, sequence, hash; falling in their indexes
//!   …  u8   acknowledgements, 64 at most, then each: u64 member, index
//! ```
//! All numbers little-endian.

use super::Consensus;
use crate::consensus::fields::{FieldError, Fields, put_acknowledged, put_position, put_u64};
use crate::consensus::types::{LogPosition, MemberId};
use crate::link::log_state::{Acknowledgement, LogState};
use gapless_agent::fault::mutant;
use raft::StateRole;

const POSITIONS_MAX: usize = 64;
const VERSION: u8 = 1;
const LEADS_FLAG: u8 = 1;
const ANSWER_FLAG: u8 = 2;

/// Summary of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogHistory {
    /// The sender leads.
    pub is_leader: bool,
    /// Answers a history that differed.
    pub is_answer: bool,
    pub term: u64,
    /// Index of the sender's last entry.
    pub last_index: u64,
    /// Applied log positions by falling index.
    pub positions: Vec<LogPosition>,
    /// From a leader: acknowledged index of each member in its term.
    pub acknowledged: Vec<(MemberId, u64)>,
}

/// Point of divergence of two logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogDivergence {
    /// Newest known equal log position.
    pub same: Option<LogPosition>,
    /// Oldest known differing log position of this member.
    pub other: LogPosition,
}

impl LogHistory {
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let flags = if self.is_leader { LEADS_FLAG } else { 0 } | if self.is_answer { ANSWER_FLAG } else { 0 };
        let mut bytes = vec![VERSION, flags];
        put_u64(&mut bytes, self.term);
        put_u64(&mut bytes, self.last_index);
        bytes.push(self.positions.len() as u8);
        self.positions.iter().for_each(|position| put_position(&mut bytes, position));
        put_acknowledged(&mut bytes, self.acknowledged.iter().map(|(member, index)| [member.get(), *index]));
        bytes
    }

    /// `None` if the bytes are not a history.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        let mut take = || {
            fields.version(VERSION)?;
            let flags = fields.u8("flags")?;
            let (term, last_index) = (fields.number("term")?, fields.number("last index")?);
            let count = usize::from(fields.u8("number of log positions")?);
            if flags & !(LEADS_FLAG | ANSWER_FLAG) != 0 || count > POSITIONS_MAX {
                return Err(FieldError::Value { what: "flags or number of log positions" });
            }
            let positions = (0..count).map(|_| fields.position()).collect::<Result<Vec<_>, _>>()?;
            let count = fields.count("number of acknowledgements")?;
            let each = |_| Ok((fields.member("member")?, fields.number("index")?));
            let acknowledged = (0..count).map(each).collect::<Result<Vec<_>, FieldError>>()?;
            fields.end()?;
            let falls =
                positions.windows(2).all(|pair| pair[0].index > pair[1].index && pair[0].sequence >= pair[1].sequence);
            let is_in_log = positions.first().is_none_or(|newest| newest.index <= last_index);
            let (is_leader, is_answer) = (flags & LEADS_FLAG != 0, flags & ANSWER_FLAG != 0);
            let history = Self { is_leader, is_answer, term, last_index, positions, acknowledged };
            if falls && is_in_log { Ok(history) } else { Err(FieldError::Value { what: "order of log positions" }) }
        };
        take().ok()
    }
}

impl Consensus {
    /// State of this log, as far as it is persisted.
    #[must_use]
    pub fn log_state(&self) -> LogState {
        let (term, last_index) = (self.storage().hard_state().term, self.raw.raft.raft_log.persisted);
        LogState { term, last_index, is_rejoining: self.is_rejoining() }
    }

    /// History for the periodic exchange: log positions at doubling distances from the newest one.
    #[must_use]
    pub fn history(&self) -> LogHistory {
        let applied = self.raw.raft.raft_log.applied;
        let distances = std::iter::once(0).chain((0..POSITIONS_MAX as u32 - 2).map(|power| 1 << power));
        let known = self.storage().start().index..=applied;
        let indexes =
            distances.map_while(|distance| applied.checked_sub(distance)).filter(|index| known.contains(index));
        LogHistory { acknowledged: self.current_acknowledgements(), ..self.history_at(indexes, false) }
    }

    /// This member's log positions at the indexes of a history that differs.
    #[must_use]
    pub fn history_in_answer_to(&self, other: &LogHistory) -> LogHistory {
        let applied = self.raw.raft.raft_log.applied;
        let indexes = other.positions.iter().map(|position| position.index).filter(|index| *index <= applied);
        self.history_at(indexes, true)
    }

    fn history_at(&self, indexes: impl Iterator<Item = u64>, is_answer: bool) -> LogHistory {
        LogHistory {
            is_leader: self.is_leader(),
            is_answer,
            term: self.raw.raft.term,
            last_index: self.raw.raft.raft_log.last_index(),
            positions: indexes.filter_map(|index| self.storage().position_at(index)).collect(),
            acknowledged: Vec::new(),
        }
    }

    fn current_acknowledgements(&self) -> Vec<(MemberId, u64)> {
        let raft = &self.raw.raft;
        if !self.is_leader() {
            return Vec::new();
        }
        let index = |number: u64, matched| if number == self.id.get() { raft.raft_log.persisted } else { matched };
        let all = raft.prs().iter().map(|(number, found)| (*number, index(*number, found.matched)));
        let mut all: Vec<_> = all
            .filter(|(_, index)| *index > 0)
            .filter_map(|(number, index)| Some((MemberId::new(number)?, index)))
            .collect();
        all.sort_unstable();
        all
    }

    /// Log position at this index.
    #[must_use]
    pub fn position_at(&self, index: u64) -> Option<LogPosition> {
        self.storage().position_at(index)
    }

    /// Whether the sender is this member's leader, or the leader that it is about to follow.
    #[must_use]
    pub fn is_led_by(&self, history: &LogHistory) -> bool {
        let raft = &self.raw.raft;
        history.is_leader
            && (history.term > raft.term || (history.term == raft.term && raft.state != StateRole::Leader))
    }

    /// Whether a history covers any applied log position here; if not, compare again later.
    #[must_use]
    pub fn can_compare(&self, history: &LogHistory) -> bool {
        let known = self.storage().start().index..=self.raw.raft.raft_log.applied;
        history.positions.iter().any(|position| known.contains(&position.index))
    }

    /// Divergence of this member's applied log positions from another log.
    #[must_use]
    pub fn divergence(&self, history: &LogHistory) -> Option<LogDivergence> {
        let (same, other) = self.compared(history);
        other.filter(|_| !mutant("released_frames_may_differ")).map(|other| LogDivergence { same, other })
    }

    fn compared(&self, history: &LogHistory) -> (Option<LogPosition>, Option<LogPosition>) {
        let applied = self.raw.raft.raft_log.applied;
        let (mut same, mut other) = (None, None);
        for theirs in history.positions.iter().filter(|position| position.index <= applied) {
            match self.storage().position_at(theirs.index) {
                Some(own) if own == *theirs => same = same.or(Some(own)),
                Some(own) => other = Some(own),
                None => {}
            }
        }
        (same, other)
    }

    /// Applied log positions here beyond the leader's log. Call it as soon as the history is received: later the
    /// leader's log is longer.
    #[must_use]
    pub fn excess_over_leader(&self, history: &LogHistory) -> Option<LogDivergence> {
        let (start, applied) = (self.storage().start(), self.raw.raft.raft_log.applied);
        if !self.is_led_by(history) || history.last_index >= applied || mutant("released_frames_may_differ") {
            return None;
        }
        let (same, _) = self.compared(history);
        let other = self.storage().position_at(history.last_index + 1).unwrap_or(start);
        Some(LogDivergence { same, other })
    }

    /// End of this log if it leads and a member of its term or an older one has applied more, although a leader has
    /// every committed entry. Call it as soon as the history is received.
    #[must_use]
    pub fn missing_applied_entries(&self, history: &LogHistory) -> Option<LogDivergence> {
        let newest = history.positions.first()?;
        let end = self.end();
        let lacks_applied = self.is_leader() && history.term <= self.raw.raft.term && newest.index > end.index;
        if !lacks_applied || mutant("released_frames_may_differ") {
            return None;
        }
        let (same, _) = self.compared(history);
        Some(LogDivergence { same, other: LogPosition { index: end.index + 1, sequence: end.sequence + 1, ..end } })
    }

    /// Stores acknowledgements that a leader reports. They are recorded with the next entry, or a heartbeat later.
    pub fn remember(&mut self, history: &LogHistory) {
        let members = self.members();
        let term = history.term;
        if !history.is_leader || term < self.raw.raft.term {
            return;
        }
        let acknowledged =
            history.acknowledged.iter().filter(|(member, _)| *member != self.id && members.contains(*member));
        let acknowledged: Vec<_> =
            acknowledged.map(|(member, index)| (*member, Acknowledgement { term, index: *index })).collect();
        self.raw.raft.mut_store().remember(&acknowledged);
    }

    /// Like [`Consensus::remember`], for this leader's own knowledge.
    pub fn remember_own(&mut self) {
        let history = LogHistory {
            is_leader: self.is_leader(),
            term: self.raw.raft.term,
            acknowledged: self.current_acknowledgements(),
            ..LogHistory::default()
        };
        self.remember(&history);
    }

    /// Known acknowledgements of the other members.
    pub fn acknowledged(&self) -> impl Iterator<Item = (MemberId, Acknowledgement)> {
        self.storage().acknowledged().iter().map(|(member, acknowledged)| (*member, *acknowledged))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn history_round_trips() {
        let position = |index| LogPosition { index, term: 3, sequence: 2 * index, hash: u64::MAX - index };
        let id = |number| MemberId::new(number).unwrap();
        let history = LogHistory {
            is_leader: true,
            is_answer: true,
            term: 7,
            last_index: 90,
            positions: vec![position(80), position(79), position(5)],
            acknowledged: vec![(id(1), 88), (id(3), 70)],
        };
        let bytes = history.to_bytes();
        assert_eq!(LogHistory::from_bytes(&bytes), Some(history.clone()));
        for length in 0..bytes.len() {
            assert_eq!(LogHistory::from_bytes(&bytes[..length]), None, "length {length}");
        }
        for (at, value) in [(0, 2), (1, 4), (9, 0xFF), (18, 65)] {
            let mut wrong = bytes.clone();
            wrong[at] = value;
            assert_eq!(LogHistory::from_bytes(&wrong), None, "byte {at}");
        }
        let rising = LogHistory { positions: vec![position(5), position(6)], ..history };
        assert_eq!(LogHistory::from_bytes(&rising.to_bytes()), None);
    }
}
