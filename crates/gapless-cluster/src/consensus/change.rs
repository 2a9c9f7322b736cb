//! Membership changes, their bytes, and raft's form of them, which is never decoded from foreign bytes.

use super::details::{MemberDetails, put_details, take_details};
use super::fields::{FieldError, Fields, put_list, put_u64};
use super::members::Members;
use super::types::{CONSENSUS_MEMBERS_MAX, MemberId};
use protobuf::Message as _;
use raft::eraftpb::{ConfChangeSingle, ConfChangeTransition, ConfChangeType, ConfChangeV2};

/// Path of a change into force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transition {
    /// One step directly; several through a joint configuration that the leader leaves automatically.
    #[default]
    Auto,
    /// Through a joint configuration, which the leader leaves automatically.
    Joint,
    /// Through a joint configuration that stays until the empty change.
    JointExplicit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeStep {
    /// A new member, or a promoted learner.
    Voter(MemberId),
    /// A new member, or a demoted voter.
    Learner(MemberId),
    Remove(MemberId),
}

/// The empty change leaves a joint configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MembershipChange {
    pub transition: Transition,
    /// At most [`CONSENSUS_MEMBERS_MAX`].
    pub steps: Vec<ChangeStep>,
    /// Witnesses among the added members.
    pub witnesses: Vec<MemberId>,
    /// Details of members after the change, ordered by number; they replace earlier ones.
    pub details: Vec<MemberDetails>,
}

const DETAILS_FLAG: u8 = 0x80;

impl MembershipChange {
    #[must_use]
    pub fn of(step: ChangeStep) -> Self {
        Self { steps: vec![step], ..Self::default() }
    }

    /// Replaces `old` by `new` through a joint configuration.
    #[must_use]
    pub fn replace(old: MemberId, new: MemberId) -> Self {
        Self { steps: vec![ChangeStep::Voter(new), ChangeStep::Remove(old)], ..Self::default() }
    }

    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        let transition = match self.transition {
            Transition::Auto => 0,
            Transition::Joint => 1,
            Transition::JointExplicit => 2,
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

    pub(super) fn apply_to(&self, members: &mut Members) {
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
            2 => Transition::JointExplicit,
            _ => return Err(FieldError::Value { what: "transition" }),
        };
        let count = usize::from(fields.u8("number of steps")?);
        if count > CONSENSUS_MEMBERS_MAX {
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
            Transition::JointExplicit => ConfChangeTransition::Explicit,
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
            ConfChangeTransition::Explicit => Transition::JointExplicit,
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

    pub(super) fn to_entry_data(&self) -> Vec<u8> {
        self.to_raft().write_to_bytes().expect("writing into memory cannot fail")
    }

    /// Decodes the data of a raft entry that this process encoded.
    ///
    /// # Panics
    /// If the entry was encoded elsewhere: entries from peers and journals are built from checked fields.
    pub(super) fn from_entry_data(data: &[u8]) -> Self {
        let change = ConfChangeV2::parse_from_bytes(data).ok();
        change.as_ref().and_then(Self::from_raft).expect("an entry's change was encoded by this process")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> MemberId {
        MemberId::new(number).unwrap()
    }

    fn details(member: u64, address: &str) -> MemberDetails {
        MemberDetails { member: id(member), addresses: vec![address.to_owned()], joining: None }
    }

    fn bytes(change: &MembershipChange) -> Vec<u8> {
        let mut bytes = Vec::new();
        change.put(&mut bytes);
        bytes
    }

    fn taken(bytes: &[u8]) -> Result<MembershipChange, FieldError> {
        let mut fields = Fields::new(bytes);
        let change = MembershipChange::take(&mut fields)?;
        fields.end()?;
        Ok(change)
    }

    fn changes() -> Vec<MembershipChange> {
        let steps = vec![ChangeStep::Voter(id(4)), ChangeStep::Remove(id(1)), ChangeStep::Learner(id(5))];
        let with = |transition| MembershipChange { transition, steps: steps.clone(), ..MembershipChange::default() };
        let witnesses = MembershipChange { witnesses: vec![id(4)], ..with(Transition::Joint) };
        let details = vec![details(4, "db-4:9100"), details(5, "db-5:9100")];
        vec![
            MembershipChange::default(),
            with(Transition::Auto),
            with(Transition::JointExplicit),
            MembershipChange { details: details.clone(), ..with(Transition::Auto) },
            MembershipChange { details, ..witnesses.clone() },
            witnesses,
        ]
    }

    #[test]
    fn change_round_trips() {
        for change in changes() {
            assert_eq!(taken(&bytes(&change)).unwrap(), change);
            assert_eq!(MembershipChange::from_entry_data(&change.to_entry_data()), change);
        }
        let replaced = vec![ChangeStep::Voter(id(4)), ChangeStep::Remove(id(1))];
        assert_eq!(
            MembershipChange::replace(id(1), id(4)),
            MembershipChange { steps: replaced, ..MembershipChange::default() }
        );
        let one = ChangeStep::Learner(id(4));
        assert_eq!(MembershipChange::of(one), MembershipChange { steps: vec![one], ..MembershipChange::default() });
    }

    #[test]
    fn change_encoding_is_stable() {
        let member = |number: u8| [number, 0, 0, 0, 0, 0, 0, 0];
        let expected = [
            &[0x81, 3, 0][..],
            &member(4),
            &[1],
            &member(1),
            &[2],
            &member(5),
            &[1],
            &member(4),
            &[1],
            &member(4),
            &[0, 1, 9, 0],
            b"db-4:9100",
        ]
        .concat();
        let steps = vec![ChangeStep::Voter(id(4)), ChangeStep::Remove(id(1)), ChangeStep::Learner(id(5))];
        let (witnesses, details) = (vec![id(4)], vec![details(4, "db-4:9100")]);
        assert_eq!(bytes(&MembershipChange { transition: Transition::Joint, steps, witnesses, details }), expected);
        assert_eq!(bytes(&MembershipChange::default()), [0, 0, 0]);
    }

    #[test]
    fn invalid_change_is_refused() {
        let wrong = |bytes: &[u8]| match taken(bytes) {
            Err(FieldError::Value { what }) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!((wrong(&[3, 0, 0]), wrong(&[0x83, 0, 0])), ("transition", "transition"));
        assert_eq!(wrong(&[&[0, 1, 3][..], &[1, 0, 0, 0, 0, 0, 0, 0], &[0]].concat()), "step");
        assert_eq!(wrong(&[0x80, 0, 0, 0]), "number of details");
        let steps = |count: usize| MembershipChange {
            steps: vec![ChangeStep::Voter(id(1)); count],
            ..MembershipChange::default()
        };
        assert_eq!(taken(&bytes(&steps(CONSENSUS_MEMBERS_MAX))).unwrap().steps.len(), CONSENSUS_MEMBERS_MAX);
        assert_eq!(wrong(&bytes(&steps(CONSENSUS_MEMBERS_MAX + 1))), "number of steps");
    }

    #[test]
    fn newer_details_replace_older() {
        let mut members = Members::of_voters(&[id(1), id(2), id(4)]);
        members.details = vec![details(2, "db-2:9100"), details(4, "old:9100")];
        let (witnesses, told) = (vec![id(4)], vec![details(1, "db-1:9100"), details(4, "new:9100")]);
        MembershipChange { witnesses, details: told, ..MembershipChange::default() }.apply_to(&mut members);
        let expected = [details(1, "db-1:9100"), details(2, "db-2:9100"), details(4, "new:9100")];
        assert_eq!((members.witnesses, members.details), (vec![id(4)], expected.to_vec()));
    }
}
