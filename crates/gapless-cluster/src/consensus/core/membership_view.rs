//! [`MembershipView`]: one member's knowledge of the membership, for members that may know less. Roles and quorums come
//! from the log alone.
//!
//! ```text
//!   0  u8   version, 1
//!   1  u64  index of the last applied entry
//!   9  …    members
//! ```

use super::Consensus;
use crate::consensus::fields::{FieldError, Fields, put_u64};
use crate::consensus::members::{Members, put_members};
use crate::consensus::types::MemberId;

const VERSION: u8 = 1;

/// Membership as of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembershipView {
    pub index: u64,
    /// Members of the cluster; never empty.
    pub members: Members,
}

impl MembershipView {
    /// Whether `member` was removed; final, because numbers are never reused.
    #[must_use]
    pub fn has_removed(&self, member: MemberId) -> bool {
        !self.members.contains(member) && member.get() <= self.members.highest_number()
    }

    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        put_u64(&mut bytes, self.index);
        put_members(&mut bytes, &self.members);
        bytes
    }

    /// `None` if the bytes are not a view.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        let mut take = || {
            fields.version(VERSION)?;
            let view = Self { index: fields.number("index")?, members: fields.members()? };
            fields.end()?;
            if view.members.is_empty() { Err(FieldError::Value { what: "members" }) } else { Ok(view) }
        };
        take().ok()
    }
}

impl Consensus {
    /// Members in force, and the index at which they took effect at the latest; `None` while unknown.
    #[must_use]
    pub fn membership_view(&self) -> Option<MembershipView> {
        let members = self.members();
        let index = self.raw.raft.raft_log.applied;
        (!members.is_empty()).then(|| MembershipView { index, members: members.clone() })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::consensus::details::{JoiningMember, MemberDetails};

    #[test]
    fn view_names_removed_members() {
        let id = |number| MemberId::new(number).unwrap();
        let joining = Some(JoiningMember { replaces: Some(id(2)) });
        let details = MemberDetails { member: id(5), addresses: vec!["a.example:1".to_owned()], joining };
        let members = Members {
            voters: vec![id(1), id(2)],
            learners: vec![id(5)],
            details: vec![details],
            numbers_used: 7,
            ..Members::default()
        };
        members.check().unwrap();
        let view = MembershipView { index: 9, members };
        let bytes = view.to_bytes();
        assert_eq!(MembershipView::from_bytes(&bytes), Some(view.clone()));
        for length in 0..bytes.len() {
            assert_eq!(MembershipView::from_bytes(&bytes[..length]), None, "length {length}");
        }
        let removed: Vec<_> = (1..=9).filter(|number| view.has_removed(id(*number))).collect();
        assert_eq!(removed, [3, 4, 6, 7]);
    }
}
