//! Changes of members: the type, its bytes, and raft's form of it, which is never decoded from foreign bytes.

use super::details::{MemberDetails, put_details, take_details};
use super::fields::{FieldError, Fields, put_list, put_u64};
use super::members::Members;
use super::types::{MEMBERS_MAX, MemberId};
use protobuf::Message as _;
use raft::eraftpb::{ConfChangeSingle, ConfChangeTransition, ConfChangeType, ConfChangeV2};

/// How a change takes effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transition {
    /// A single step directly; several through a joint configuration that the leader leaves by itself.
    #[default]
    Auto,
    /// Always through a joint configuration, which the leader leaves by itself.
    Joint,
    /// Through a joint configuration that stays until the empty change is proposed.
    JointUntilTold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeStep {
    /// The member becomes a voter: a new member, or a learner that is promoted.
    Voter(MemberId),
    /// The member becomes a learner: a new member, or a voter that is demoted.
    Learner(MemberId),
    /// The member leaves the cluster.
    Remove(MemberId),
}

/// A change of members. The empty change leaves a joint configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub transition: Transition,
    /// At most [`MEMBERS_MAX`].
    pub steps: Vec<ChangeStep>,
    /// Which of the added members are witnesses.
    pub witnesses: Vec<MemberId>,
    /// Details of members that belong to the cluster after the change, in the order of their numbers. They replace
    /// earlier details of the same member.
    pub details: Vec<MemberDetails>,
}

/// Combined with the transition's byte: details follow.
const DETAILS_FLAG: u8 = 0x80;

impl Change {
    /// A change of one step.
    #[must_use]
    pub fn of(step: ChangeStep) -> Self {
        Self { steps: vec![step], ..Self::default() }
    }

    /// Replaces the member `old` by `new`, through a joint configuration.
    #[must_use]
    pub fn replace(old: MemberId, new: MemberId) -> Self {
        Self { steps: vec![ChangeStep::Voter(new), ChangeStep::Remove(old)], ..Self::default() }
    }

    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        let transition = match self.transition {
            Transition::Auto => 0,
            Transition::Joint => 1,
            Transition::JointUntilTold => 2,
        };
        bytes.push(transition | if self.details.is_empty() { 0 } else { DETAILS_FLAG });
        bytes.push(self.steps.len() as u8);
        for step in &self.steps {
            let (kind, member) = match step {
                ChangeStep::Voter(member) => (0, member),
                ChangeStep::Remove(member) => (1, member),
                ChangeStep::Learner(member) => (2, member),
            };
            bytes.push(kind);
            put_u64(bytes, member.get());
        }
        put_list(bytes, &self.witnesses);
        if !self.details.is_empty() {
            put_details(bytes, &self.details);
        }
    }

    /// Updates in `members` what raft does not know.
    pub(super) fn tell(&self, members: &mut Members) {
        members.witnesses.extend_from_slice(&self.witnesses);
        for details in &self.details {
            members.details.retain(|each| each.member != details.member);
            members.details.push(details.clone());
        }
        members.details.sort_unstable_by_key(|each| each.member);
    }

    pub(super) fn take(fields: &mut Fields<'_>) -> Result<Self, FieldError> {
        let first = fields.u8("transition")?;
        let transition = match first & !DETAILS_FLAG {
            0 => Transition::Auto,
            1 => Transition::Joint,
            2 => Transition::JointUntilTold,
            _ => return Err(FieldError::Value { what: "transition" }),
        };
        let count = usize::from(fields.u8("number of steps")?);
        if count > MEMBERS_MAX {
            return Err(FieldError::Value { what: "number of steps" });
        }
        let step = |_| {
            let kind = fields.u8("step")?;
            let member = fields.member("changed member")?;
            match kind {
                0 => Ok(ChangeStep::Voter(member)),
                1 => Ok(ChangeStep::Remove(member)),
                2 => Ok(ChangeStep::Learner(member)),
                _ => Err(FieldError::Value { what: "step" }),
            }
        };
        let steps = (0..count).map(step).collect::<Result<_, _>>()?;
        let witnesses = fields.list("witnesses")?;
        let has_details = first & DETAILS_FLAG != 0;
        let details = if has_details { take_details(fields)? } else { Vec::new() };
        if has_details && details.is_empty() {
            return Err(FieldError::Value { what: "number of details" });
        }
        Ok(Self { transition, steps, witnesses, details })
    }

    pub(super) fn to_raft(&self) -> ConfChangeV2 {
        let mut change = ConfChangeV2::default();
        change.set_transition(match self.transition {
            Transition::Auto => ConfChangeTransition::Auto,
            Transition::Joint => ConfChangeTransition::Implicit,
            Transition::JointUntilTold => ConfChangeTransition::Explicit,
        });
        for step in &self.steps {
            let (kind, member) = match step {
                ChangeStep::Voter(member) => (ConfChangeType::AddNode, member),
                ChangeStep::Remove(member) => (ConfChangeType::RemoveNode, member),
                ChangeStep::Learner(member) => (ConfChangeType::AddLearnerNode, member),
            };
            let mut single = ConfChangeSingle::default();
            single.set_change_type(kind);
            single.node_id = member.get();
            change.mut_changes().push(single);
        }
        if !self.witnesses.is_empty() || !self.details.is_empty() {
            let mut context = Vec::new();
            put_list(&mut context, &self.witnesses);
            put_details(&mut context, &self.details);
            change.set_context(context.into());
        }
        change
    }

    fn from_raft(change: &ConfChangeV2) -> Option<Self> {
        let transition = match change.get_transition() {
            ConfChangeTransition::Auto => Transition::Auto,
            ConfChangeTransition::Implicit => Transition::Joint,
            ConfChangeTransition::Explicit => Transition::JointUntilTold,
        };
        let step = |single: &ConfChangeSingle| {
            let member = MemberId::new(single.node_id)?;
            Some(match single.get_change_type() {
                ConfChangeType::AddNode => ChangeStep::Voter(member),
                ConfChangeType::RemoveNode => ChangeStep::Remove(member),
                ConfChangeType::AddLearnerNode => ChangeStep::Learner(member),
            })
        };
        let steps = change.get_changes().iter().map(step).collect::<Option<_>>()?;
        let (witnesses, details) = match change.get_context() {
            [] => (Vec::new(), Vec::new()),
            context => {
                let mut fields = Fields::new(context);
                (fields.list("witnesses").ok()?, take_details(&mut fields).ok()?)
            }
        };
        Some(Self { transition, steps, witnesses, details })
    }

    /// The data of raft's entry for this change.
    pub(super) fn to_entry_data(&self) -> Vec<u8> {
        self.to_raft().write_to_bytes().expect("writing into memory cannot fail")
    }

    /// The change of a raft entry that this process encoded.
    ///
    /// # Panics
    /// If the entry was encoded elsewhere: entries from peers and journals are built from checked fields.
    pub(super) fn from_entry_data(data: &[u8]) -> Self {
        let change = ConfChangeV2::parse_from_bytes(data).ok();
        change.as_ref().and_then(Self::from_raft).expect("an entry's change was encoded by this process")
    }
}
