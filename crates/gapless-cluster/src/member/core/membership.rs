//! Membership changes and promotions. A new member begins as a learner, so that no quorum waits for it; the leader
//! makes it a voter when it lags by little, and removes the member that it replaces in the same joint change.

use super::MemberCore;
use crate::config::{CLUSTER_MEMBERS_MAX, MemberKind};
use crate::consensus::details::{JoiningMember, MEMBER_ADDRESSES_MAX, MemberDetails, is_address};
use crate::consensus::{
    ChangeStep, ConsensusStatus, FollowerProgress, MemberId, MemberRole, Members, MembershipChange, MembershipView,
    ProposeError,
};
use crate::member::requests::{MembershipChangeError, NewMember};
use std::collections::BTreeMap;

/// Lag in frames up to which a joining learner is promoted, in addition to [`PROMOTION_LAG_ENTRIES_MAX`].
pub const PROMOTION_LAG_FRAMES_MAX: u64 = 65_536;
/// Lag in entries up to which a joining learner is promoted.
pub const PROMOTION_LAG_ENTRIES_MAX: u64 = 1024;
const CHECK_INTERVAL_NS: u64 = 20_000_000;

#[derive(Debug, Default)]
pub(in crate::member) struct Membership {
    /// The links do not follow the members yet.
    pub is_changed: bool,
    /// Another member's view of the members, from a later entry of the log.
    pub received_view: Option<MembershipView>,
    pub next_check_ns: u64,
    pub connected: Vec<MemberId>,
    /// Refused at their last connection, with the reason.
    pub refused: BTreeMap<u64, String>,
}

impl Membership {
    /// Whether links must follow.
    pub const fn has_updates(&self) -> bool {
        self.is_changed || self.received_view.is_some()
    }
}

fn plan_add(new: &NewMember, own: MemberId, members: &Members) -> Result<MembershipChange, MembershipChangeError> {
    check_no_change_pending(members)?;
    if let Some((joining, _)) = members.joining() {
        return Err(MembershipChangeError::IsJoining(joining));
    }
    let (member, highest) = (new.member, members.highest_number());
    if members.contains(member) {
        return Err(MembershipChangeError::Exists(member));
    }
    if member.get() <= highest {
        return Err(MembershipChangeError::NumberUsed { member, highest });
    }
    if members.all().len() >= CLUSTER_MEMBERS_MAX {
        return Err(MembershipChangeError::Full);
    }
    let wrong = new.addresses.iter().find(|address| !is_address(address)).cloned();
    if wrong.is_some() || !(1..=MEMBER_ADDRESSES_MAX).contains(&new.addresses.len()) {
        let found = wrong.unwrap_or_else(|| format!("{} addresses", new.addresses.len()));
        return Err(MembershipChangeError::Address { found });
    }
    if let Some(old) = new.replaces {
        if !new.kind.is_voter() {
            return Err(MembershipChangeError::LearnerReplaces);
        }
        if !members.contains(old) {
            return Err(MembershipChangeError::NotMember(old));
        }
        if old == own {
            return Err(MembershipChangeError::Leads(old));
        }
        check_full_member_stays(old, members, new.kind == MemberKind::Full)?;
    }
    let joining = new.kind.is_voter().then_some(JoiningMember { replaces: new.replaces });
    Ok(MembershipChange {
        steps: vec![ChangeStep::Learner(member)],
        witnesses: if new.kind == MemberKind::Witness { vec![member] } else { Vec::new() },
        details: vec![MemberDetails { member, addresses: new.addresses.clone(), joining }],
        ..MembershipChange::default()
    })
}

fn plan_remove(
    member: MemberId,
    own: MemberId,
    members: &Members,
    peers: &[FollowerProgress],
) -> Result<MembershipChange, MembershipChangeError> {
    check_no_change_pending(members)?;
    if !members.contains(member) {
        return Err(MembershipChangeError::NotMember(member));
    }
    if let Some((joining, _)) = members.joining().filter(|(joining, _)| *joining != member) {
        return Err(MembershipChangeError::IsJoining(joining));
    }
    if members.voters == [member] {
        return Err(MembershipChangeError::LastVoter(member));
    }
    if member == own {
        return Err(MembershipChangeError::Leads(member));
    }
    check_full_member_stays(member, members, false)?;
    if members.is_voter(member) {
        let left: Vec<_> = members.voters.iter().copied().filter(|voter| *voter != member).collect();
        check_enough_live(&members.voters, own, peers)?;
        check_enough_live(&left, own, peers)?;
    }
    Ok(MembershipChange::of(ChangeStep::Remove(member)))
}

#[derive(Debug, PartialEq, Eq)]
enum Promotion {
    Waits,
    Now(MembershipChange),
    /// The leader itself is to be replaced, and transfers leadership first.
    HandOver,
}

fn plan_promotion(own: MemberId, members: &Members, status: &ConsensusStatus) -> Promotion {
    let Some((member, JoiningMember { replaces })) = members.joining() else { return Promotion::Waits };
    if check_no_change_pending(members).is_err() {
        return Promotion::Waits;
    }
    let has_nearly_all = |peer: &&FollowerProgress| {
        let lag_entries = status.end.index.saturating_sub(peer.matched_index);
        let is_near = peer.lag_frames <= PROMOTION_LAG_FRAMES_MAX && lag_entries <= PROMOTION_LAG_ENTRIES_MAX;
        peer.member == member && peer.is_active && !peer.is_fetching && peer.matched_index > 0 && is_near
    };
    if !status.peers.iter().any(|peer| has_nearly_all(&peer)) {
        return Promotion::Waits;
    }
    if replaces == Some(own) {
        return Promotion::HandOver;
    }
    let mut voters: Vec<_> = members.voters.iter().copied().filter(|voter| Some(*voter) != replaces).collect();
    voters.push(member);
    if check_enough_live(&voters, own, &status.peers).is_err() {
        return Promotion::Waits;
    }
    let mut steps = vec![ChangeStep::Voter(member)];
    steps.extend(replaces.map(ChangeStep::Remove));
    Promotion::Now(MembershipChange { steps, ..MembershipChange::default() })
}

fn check_no_change_pending(members: &Members) -> Result<(), MembershipChangeError> {
    if members.voters_outgoing.is_empty() { Ok(()) } else { Err(MembershipChangeError::UnderWay) }
}

fn check_full_member_stays(goes: MemberId, members: &Members, full_comes: bool) -> Result<(), MembershipChangeError> {
    let is_full = |voter: &&MemberId| **voter != goes && !members.witnesses.contains(voter);
    let stays = full_comes || !members.is_voter(goes) || members.voters.iter().any(|voter| is_full(&voter));
    if stays { Ok(()) } else { Err(MembershipChangeError::LastFull(goes)) }
}

fn check_enough_live(
    voters: &[MemberId],
    own: MemberId,
    peers: &[FollowerProgress],
) -> Result<(), MembershipChangeError> {
    let is_live =
        |voter: &&MemberId| **voter == own || peers.iter().any(|peer| peer.member == **voter && peer.is_active);
    let (live, needed) = (voters.iter().filter(is_live).count(), voters.len() / 2 + 1);
    if live >= needed { Ok(()) } else { Err(MembershipChangeError::TooFewLive { voters: voters.len(), needed, live }) }
}

impl MemberCore {
    /// Adds a member, first as a learner.
    pub fn add_member(&mut self, new: &NewMember) -> Result<(), MembershipChangeError> {
        self.check_leads()?;
        let change = plan_add(new, self.member, self.consensus.members())?;
        self.propose_change(&change)?;
        tracing::info!(member = %new.member, addresses = ?new.addresses, kind = ?new.kind, "a member is added");
        Ok(())
    }

    pub fn remove_member(&mut self, member: MemberId) -> Result<(), MembershipChangeError> {
        self.check_leads()?;
        let peers = self.status_now().peers;
        let change = plan_remove(member, self.member, self.consensus.members(), &peers)?;
        self.propose_change(&change)?;
        tracing::info!(%member, "a member is removed");
        Ok(())
    }

    /// A disconnected member counts as inactive, although it answered a moment ago.
    fn status_now(&self) -> ConsensusStatus {
        let mut status = self.consensus.status();
        for peer in &mut status.peers {
            peer.is_active &= self.membership.connected.contains(&peer.member);
        }
        status
    }

    fn check_leads(&self) -> Result<(), MembershipChangeError> {
        if self.consensus.is_leader() {
            return Ok(());
        }
        let describe = |leader: MemberId| {
            let at = self.consensus.members().details_of(leader).and_then(|details| details.addresses.first());
            at.map_or_else(|| format!("member {leader}"), |at| format!("member {leader}, which is at {at}"))
        };
        Err(MembershipChangeError::NotLeader { leader: self.consensus.leader().map(describe) })
    }

    fn propose_change(&mut self, change: &MembershipChange) -> Result<(), MembershipChangeError> {
        match self.consensus.propose_members(change) {
            Err(ProposeError::Change) => Err(MembershipChangeError::UnderWay),
            outcome => Ok(outcome?),
        }
    }

    /// Replaces an older view.
    pub fn receive_members(&mut self, bytes: &[u8]) {
        let Some(view) = MembershipView::from_bytes(bytes) else { return };
        let is_news = self.consensus.membership_view().is_none_or(|own| own.index < view.index);
        if is_news {
            self.voting.apply_view(self.member, &view);
            self.membership.received_view = Some(view);
        }
    }

    /// Promotes the joining member when due.
    pub fn promote(&mut self) {
        let is_due = self.role.role == MemberRole::Leader && self.now.monotonic_ns >= self.membership.next_check_ns;
        if !is_due {
            return;
        }
        self.membership.next_check_ns = self.now.monotonic_ns + CHECK_INTERVAL_NS;
        if self.consensus.members().joining().is_none() || !self.consensus.is_leader() {
            return;
        }
        match plan_promotion(self.member, self.consensus.members(), &self.status_now()) {
            Promotion::Waits => {}
            // Refused while an earlier change is not applied; retried later.
            Promotion::Now(change) => match self.consensus.propose_members(&change) {
                Ok(()) => tracing::info!(?change.steps, "a member that joined becomes a voter"),
                Err(error) => tracing::debug!(%error, "a member that joined cannot become a voter now"),
            },
            Promotion::HandOver => self.hand_over(),
        }
    }
}

#[cfg(test)]
#[path = "membership_tests.rs"]
mod tests;
