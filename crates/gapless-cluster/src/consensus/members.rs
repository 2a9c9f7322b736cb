//! [`Members`]: the members of a cluster, and their roles.

use super::MemberId;
use super::details::{JoiningMember, MemberDetails, put_details, take_details};
use super::fields::{FieldError, Fields, put_list, put_u64};
use super::types::{CONSENSUS_MEMBERS_MAX, NUMBER_MAX};
use raft::eraftpb::ConfState;

/// Members of a cluster, and their roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    pub voters: Vec<MemberId>,
    /// Voters before the change in progress, whose majority is needed, too.
    pub voters_outgoing: Vec<MemberId>,
    /// Store frames, do not vote.
    pub learners: Vec<MemberId>,
    /// Outgoing voters that become learners.
    pub learners_next: Vec<MemberId>,
    /// The leader completes the change automatically.
    pub auto_leave: bool,
    /// Witnesses among all these (decision 9).
    pub witnesses: Vec<MemberId>,
    /// Ordered by number; members of the first start have none.
    pub details: Vec<MemberDetails>,
    /// Highest number ever used, if above those of the present members; else 0.
    pub numbers_used: u64,
}

/// Broken rule of a list of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembersError {
    #[error("a cluster needs a voter, the list of voters is empty")]
    NoVoter,
    #[error("a cluster has at most {CONSENSUS_MEMBERS_MAX} members, {found} are listed")]
    TooMany { found: usize },
    /// A member is listed twice in a role, or in two exclusive roles.
    #[error("member {0} is listed twice, or as voter and learner at once")]
    Twice(MemberId),
    /// A future learner that is no outgoing voter, or a witness that is no member.
    #[error("member {0} is to become a learner or is a witness, and is not among those who could be")]
    Nowhere(MemberId),
    /// Details of a non-member, invalid, or out of order.
    #[error("what is said about member {0} cannot be: its address, its joining, or that it is said at all")]
    Details(MemberId),
    /// `numbers_used` is not higher than the members' numbers.
    #[error("number {0} is said to be used up, and is not higher than those of the members")]
    NumbersUsed(u64),
    /// `auto_leave` is set while no change is in progress.
    #[error("the change of members is to complete itself, and none is under way")]
    NotJoint,
}

impl Members {
    /// Cluster of voters alone.
    #[must_use]
    pub fn of_voters(voters: &[MemberId]) -> Self {
        Self { voters: voters.to_vec(), ..Self::default() }
    }

    /// Whether `member` has any role.
    #[must_use]
    pub fn contains(&self, member: MemberId) -> bool {
        self.lists().iter().any(|list| list.contains(&member))
    }

    /// Whether `member` votes, in the old or the new configuration.
    #[must_use]
    pub fn is_voter(&self, member: MemberId) -> bool {
        self.voters.contains(&member) || self.voters_outgoing.contains(&member)
    }

    /// Every member once, ordered by number.
    #[must_use]
    pub fn all(&self) -> Vec<MemberId> {
        let mut all: Vec<_> = self.lists().into_iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// True while the member does not know the cluster.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.voters.is_empty()
    }

    pub(crate) fn sorted(mut self) -> Self {
        let lists = [&mut self.voters, &mut self.voters_outgoing, &mut self.learners, &mut self.learners_next];
        lists.into_iter().chain([&mut self.witnesses]).for_each(|list| list.sort_unstable());
        self.details.sort_unstable_by_key(|each| each.member);
        self
    }

    const fn lists(&self) -> [&Vec<MemberId>; 4] {
        [&self.voters, &self.voters_outgoing, &self.learners, &self.learners_next]
    }

    /// Checks every rule whose violation makes raft-rs panic.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn check(&self) -> Result<(), MembersError> {
        if self.voters.is_empty() {
            return Err(MembersError::NoVoter);
        }
        for list in self.lists().into_iter().chain([&self.witnesses]) {
            if list.len() > CONSENSUS_MEMBERS_MAX {
                return Err(MembersError::TooMany { found: list.len() });
            }
            let twice = list.iter().enumerate().find(|(at, member)| list[..*at].contains(member));
            if let Some((_, member)) = twice {
                return Err(MembersError::Twice(*member));
            }
        }
        let all = self.all();
        if all.len() > CONSENSUS_MEMBERS_MAX {
            return Err(MembersError::TooMany { found: all.len() });
        }
        if let Some(member) = self.learners.iter().find(|member| self.is_voter(**member)) {
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

    /// Highest number ever used; lower ones are never reused.
    #[must_use]
    pub fn highest_number(&self) -> u64 {
        self.all().last().map_or(0, |member| member.get()).max(self.numbers_used)
    }

    #[must_use]
    pub fn details_of(&self, member: MemberId) -> Option<&MemberDetails> {
        self.details.iter().find(|each| each.member == member)
    }

    /// Learner that is to become a voter; [`crate::member`] adds at most one.
    #[must_use]
    pub fn joining(&self) -> Option<(MemberId, JoiningMember)> {
        self.details.iter().find_map(|each| Some((each.member, each.joining?)))
    }

    /// Keeps the parts that raft does not know. Sorted, so that equal members are equal values.
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
            each.joining = each.joining.filter(|_| members.learners.contains(&each.member));
            let replaced = each.joining.as_mut().map(|joining| &mut joining.replaces);
            replaced.into_iter().for_each(|replaces| *replaces = replaces.filter(|member| all.contains(member)));
        }
        let highest = self.highest_number();
        members.numbers_used = if highest > members.highest_number() { highest } else { 0 };
        members
    }
}

const AUTO_LEAVE_FLAG: u8 = 1;

const MORE_FLAG: u8 = 2;

pub(crate) fn put_members(bytes: &mut Vec<u8>, members: &Members) {
    put_list(bytes, &members.voters);
    put_list(bytes, &members.voters_outgoing);
    put_list(bytes, &members.learners);
    put_list(bytes, &members.learners_next);
    let has_more = members.numbers_used != 0 || !members.details.is_empty();
    bytes.push(if members.auto_leave { AUTO_LEAVE_FLAG } else { 0 } | if has_more { MORE_FLAG } else { 0 });
    put_list(bytes, &members.witnesses);
    if has_more {
        put_u64(bytes, members.numbers_used);
        put_details(bytes, &members.details);
    }
}

impl Fields<'_> {
    /// Sorted, so that equal members have equal bytes.
    fn ordered(&mut self, name: &'static str) -> Result<Vec<MemberId>, FieldError> {
        let list = self.list(name)?;
        if list.is_sorted() { Ok(list) } else { Err(FieldError::Value { what: name }) }
    }

    /// Members that pass [`Members::check`], or an empty list.
    pub(crate) fn members(&mut self) -> Result<Members, FieldError> {
        let mut members = Members {
            voters: self.ordered("voters")?,
            voters_outgoing: self.ordered("outgoing voters")?,
            learners: self.ordered("learners")?,
            learners_next: self.ordered("next learners")?,
            ..Members::default()
        };
        let flags = self.u8("flags of members")?;
        if flags & !(AUTO_LEAVE_FLAG | MORE_FLAG) != 0 {
            return Err(FieldError::Value { what: "flags of members" });
        }
        members.auto_leave = flags & AUTO_LEAVE_FLAG != 0;
        members.witnesses = self.ordered("witnesses")?;
        if flags & MORE_FLAG != 0 {
            members.numbers_used = self.number("highest number of a member")?;
            members.details = take_details(self)?;
            if members.numbers_used == 0 && members.details.is_empty() {
                return Err(FieldError::Value { what: "details of members" });
            }
        }
        if members != Members::default() && members.check().is_err() {
            return Err(FieldError::Value { what: "members" });
        }
        Ok(members)
    }
}
