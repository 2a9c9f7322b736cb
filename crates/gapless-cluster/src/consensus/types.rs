//! Members, batches and places: the words that the rest of the core speaks in. Values only.

use super::details::{Joining, MemberDetails};
use raft::eraftpb::ConfState;
use std::fmt;
use std::num::NonZeroU64;

/// The most members that a cluster may have, in all roles together.
pub const MEMBERS_MAX: usize = 64;

/// Indexes, terms and sequences are at most this, so that one more is always a number, too.
pub const NUMBER_MAX: u64 = u64::MAX >> 2;

/// A member's name; never 0, and never used again for another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(NonZeroU64);

impl MemberId {
    /// The member of this number; `None` for 0 and beyond [`NUMBER_MAX`].
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) if number.get() <= NUMBER_MAX => Some(Self(number)),
            _ => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What an entry says about the stream: 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The first frame's sequence.
    pub first_sequence: u64,
    /// The last frame's sequence; `first_sequence − 1` for an entry without frames.
    pub end_sequence: u64,
    /// The [`crate::consensus::Chain`]'s value behind the last frame.
    pub hash: u64,
}

impl Batch {
    /// Length of its bytes.
    pub const LENGTH: usize = 24;

    /// The batch without frames behind a stream's `sequence`.
    #[must_use]
    pub const fn empty_behind(sequence: u64, hash: u64) -> Self {
        Self { first_sequence: sequence + 1, end_sequence: sequence, hash }
    }

    /// Whether it has no frames.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.end_sequence < self.first_sequence
    }

    /// How many frames it has.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        (self.end_sequence + 1).saturating_sub(self.first_sequence)
    }

    /// Its bytes, little-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.end_sequence.to_le_bytes());
        bytes[16..].copy_from_slice(&self.hash.to_le_bytes());
        bytes
    }

    /// The batch of these bytes; `None` for another length, or sequences that no batch has.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LENGTH] = bytes.try_into().ok()?;
        let (words, _) = bytes.as_chunks::<8>();
        let [first_sequence, end_sequence, hash] = [0, 1, 2].map(|at: usize| u64::from_le_bytes(words[at]));
        let batch = Self { first_sequence, end_sequence, hash };
        let is_valid = first_sequence >= 1 && end_sequence <= NUMBER_MAX && first_sequence <= end_sequence + 1;
        is_valid.then_some(batch)
    }
}

/// A place in the stream and in the log: what a snapshot is (decision 24, 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The entry's index.
    pub index: u64,
    /// The entry's term.
    pub term: u64,
    /// The last frame's sequence that the entry and those before it cover.
    pub sequence: u64,
    /// The chain's value there.
    pub hash: u64,
}

/// Who is a member, in which role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Those who vote.
    pub voters: Vec<MemberId>,
    /// While a change is under way: those who voted before it, whose majority is needed, too.
    pub voters_outgoing: Vec<MemberId>,
    /// Those who store and do not vote.
    pub learners: Vec<MemberId>,
    /// Outgoing voters that become learners when the change is complete.
    pub learners_next: Vec<MemberId>,
    /// Whether the leader completes the change by itself.
    pub auto_leave: bool,
    /// Which of all these are witnesses (decision 9).
    pub witnesses: Vec<MemberId>,
    /// What else is agreed on about them, in the order of their numbers; nothing about those that no change has added.
    pub details: Vec<MemberDetails>,
    /// The highest number that a member ever had, where that is higher than those of these members; else 0.
    pub numbers_used: u64,
}

/// Why some members are not a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembersError {
    /// Nobody votes.
    #[error("a cluster needs a voter, the list of voters is empty")]
    NoVoter,
    /// Too many.
    #[error("a cluster has at most {MEMBERS_MAX} members, {found} are listed")]
    TooMany {
        /// How many there are.
        found: usize,
    },
    /// The same member twice in a role, or in two that exclude each other.
    #[error("member {0} is listed twice, or as voter and learner at once")]
    Twice(MemberId),
    /// A learner-to-be that is no outgoing voter, or a witness that is no member.
    #[error("member {0} is to become a learner or is a witness, and is not among those who could be")]
    Nowhere(MemberId),
    /// Details of somebody who is no member, or that cannot be, or not in their order.
    #[error("what is said about member {0} cannot be: its address, its joining, or that it is said at all")]
    Details(MemberId),
    /// The highest number is not the highest.
    #[error("number {0} is said to be used up, and is not higher than those of the members")]
    NumbersUsed(u64),
    /// A change that completes by itself where none is under way.
    #[error("the change of members is to complete itself, and none is under way")]
    NotJoint,
}

impl Members {
    /// Voters alone.
    #[must_use]
    pub fn of_voters(voters: &[MemberId]) -> Self {
        Self { voters: voters.to_vec(), ..Self::default() }
    }

    /// Whether `member` is in any role.
    #[must_use]
    pub fn contains(&self, member: MemberId) -> bool {
        self.lists().iter().any(|list| list.contains(&member))
    }

    /// Whether `member` votes, in the old or in the new set.
    #[must_use]
    pub fn votes(&self, member: MemberId) -> bool {
        self.voters.contains(&member) || self.voters_outgoing.contains(&member)
    }

    /// Everybody, once, by number.
    #[must_use]
    pub fn all(&self) -> Vec<MemberId> {
        let mut all: Vec<_> = self.lists().into_iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether nobody is listed: a member that has not been told yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.voters.is_empty()
    }

    /// The same with each list in order.
    pub(crate) fn sorted(mut self) -> Self {
        let lists = [&mut self.voters, &mut self.voters_outgoing, &mut self.learners, &mut self.learners_next];
        lists.into_iter().chain([&mut self.witnesses]).for_each(|list| list.sort_unstable());
        self.details.sort_unstable_by_key(|each| each.member);
        self
    }

    const fn lists(&self) -> [&Vec<MemberId>; 4] {
        [&self.voters, &self.voters_outgoing, &self.learners, &self.learners_next]
    }

    /// Checks everything that raft-rs would panic about.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), MembersError> {
        if self.voters.is_empty() {
            return Err(MembersError::NoVoter);
        }
        for list in self.lists().into_iter().chain([&self.witnesses]) {
            if list.len() > MEMBERS_MAX {
                return Err(MembersError::TooMany { found: list.len() });
            }
            let twice = list.iter().enumerate().find(|(at, member)| list[..*at].contains(member));
            if let Some((_, member)) = twice {
                return Err(MembersError::Twice(*member));
            }
        }
        let all = self.all();
        if all.len() > MEMBERS_MAX {
            return Err(MembersError::TooMany { found: all.len() });
        }
        if let Some(member) = self.learners.iter().find(|member| self.votes(**member)) {
            return Err(MembersError::Twice(*member));
        }
        for member in &self.learners_next {
            if self.voters.contains(member) || self.learners.contains(member) {
                return Err(MembersError::Twice(*member));
            }
            if !self.voters_outgoing.contains(member) {
                return Err(MembersError::Nowhere(*member));
            }
        }
        if let Some(member) = self.witnesses.iter().find(|member| !all.contains(member)) {
            return Err(MembersError::Nowhere(*member));
        }
        let is_wrong = |each: &MemberDetails| {
            let may_join = each.joining.is_none_or(|joining| {
                let replaces_one = joining.replaces.is_none_or(|old| all.contains(&old));
                self.learners.contains(&each.member) && replaces_one
            });
            !each.is_valid() || !may_join || !all.contains(&each.member)
        };
        let unordered = self.details.windows(2).find(|pair| pair[0].member >= pair[1].member).map(|pair| &pair[1]);
        if let Some(each) = unordered.or_else(|| self.details.iter().find(|each| is_wrong(each))) {
            return Err(MembersError::Details(each.member));
        }
        let highest = all.last().map_or(0, |member| member.get());
        if self.numbers_used != 0 && (self.numbers_used <= highest || self.numbers_used > NUMBER_MAX) {
            return Err(MembersError::NumbersUsed(self.numbers_used));
        }
        if self.auto_leave && self.voters_outgoing.is_empty() {
            return Err(MembersError::NotJoint);
        }
        Ok(())
    }

    pub(crate) fn to_conf_state(&self) -> ConfState {
        let numbers = |list: &[MemberId]| list.iter().map(|member| member.get()).collect();
        let mut state = ConfState::default();
        state.set_voters(numbers(&self.voters));
        state.set_voters_outgoing(numbers(&self.voters_outgoing));
        state.set_learners(numbers(&self.learners));
        state.set_learners_next(numbers(&self.learners_next));
        state.auto_leave = self.auto_leave;
        state
    }

    /// The highest number that a member ever had. A lower one is never given again.
    #[must_use]
    pub fn highest_number(&self) -> u64 {
        self.all().last().map_or(0, |member| member.get()).max(self.numbers_used)
    }

    /// What is agreed on about `member` beside its role.
    #[must_use]
    pub fn details_of(&self, member: MemberId) -> Option<&MemberDetails> {
        self.details.iter().find(|each| each.member == member)
    }

    /// The learner that is to become a voter, and how; one at most is added by [`crate::member`].
    #[must_use]
    pub fn joining(&self) -> Option<(MemberId, Joining)> {
        self.details.iter().find_map(|each| Some((each.member, each.joining?)))
    }

    /// The members of raft's `state`; what raft does not know of stays as it is here, as far as it is about members of
    /// that state. Sorted, so that equal members are equal values.
    pub(crate) fn with_conf_state(&self, state: &ConfState) -> Self {
        let members = |numbers: &[u64]| {
            let mut list: Vec<_> = numbers.iter().filter_map(|number| MemberId::new(*number)).collect();
            list.sort_unstable();
            list
        };
        let mut members = Self {
            voters: members(state.get_voters()),
            voters_outgoing: members(state.get_voters_outgoing()),
            learners: members(state.get_learners()),
            learners_next: members(state.get_learners_next()),
            auto_leave: state.auto_leave,
            ..Self::default()
        };
        let all = members.all();
        members.witnesses = self.witnesses.iter().copied().filter(|member| all.contains(member)).collect();
        members.witnesses.sort_unstable();
        members.witnesses.dedup();
        members.details = self.details.iter().filter(|each| all.contains(&each.member)).cloned().collect();
        for each in &mut members.details {
            // Who votes has joined.
            each.joining = each.joining.filter(|_| members.learners.contains(&each.member));
            let replaced = each.joining.as_mut().map(|joining| &mut joining.replaces);
            replaced.into_iter().for_each(|replaces| *replaces = replaces.filter(|member| all.contains(member)));
        }
        let highest = self.highest_number();
        members.numbers_used = if highest > members.highest_number() { highest } else { 0 };
        members
    }
}
