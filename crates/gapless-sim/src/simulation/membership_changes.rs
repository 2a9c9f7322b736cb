//! An operator adds, removes or replaces members of a [`Simulation`]; requests are repeated until done.

use super::Simulation;
use crate::checker::Violation;
use crate::network::address_of;
use crate::options::MS;
use crate::system_under_test::SystemUnderTest;
use gapless_cluster::config::MemberKind;
use gapless_cluster::consensus::{MemberId, Members};
use gapless_cluster::member::requests::{AdminCommand, NewMember};

const MACHINES_MAX: usize = 9;
const ASKED_AGAIN_NS: u64 = 100 * MS;

pub(crate) struct PendingChange {
    what: RequestedChange,
    next_ns: u64,
}

#[derive(Debug)]
enum RequestedChange {
    Add(NewMember),
    Remove(MemberId),
}

impl RequestedChange {
    fn is_done(&self, members: &Members) -> bool {
        let has_settled = members.voters_outgoing.is_empty() && members.joining().is_none();
        has_settled
            && match self {
                Self::Add(new) => {
                    let is_gone = |old| !members.contains(old);
                    members.contains(new.member) && new.replaces.is_none_or(is_gone)
                }
                Self::Remove(member) => !members.contains(*member),
            }
    }
}

impl<A: SystemUnderTest> Simulation<'_, A> {
    fn leader(&self) -> Option<(usize, Members)> {
        let leading = self.machines.iter().enumerate().filter_map(|(at, each)| Some((each.leading_term()?, at)));
        let (_, at) = leading.max()?;
        Some((at, self.machines[at].status()?.members))
    }

    /// Does nothing while one is pending.
    pub(crate) fn begin_change(&mut self) -> Result<(), Violation> {
        let Some((leader, members)) = self.leader().filter(|_| self.change.is_none()) else { return Ok(()) };
        let full = members.voters.iter().filter(|voter| !members.witnesses.contains(voter)).count();
        let others: Vec<_> =
            members.all().into_iter().filter(|member| member.get() != self.machines[leader].number).collect();
        let may_go = full > 1 && members.voters.len() > 2 && !others.is_empty();
        let has_room = self.machines.len() < MACHINES_MAX;
        let goes = if may_go { Some(self.random.pick(&others)) } else { None };
        let what = match (self.random.below(5), goes) {
            (0 | 1, Some(goes)) => RequestedChange::Remove(goes),
            (2, Some(_)) if has_room => self.added(MemberKind::Full, goes)?,
            (3, _) if has_room => self.added(MemberKind::Learner, None)?,
            _ if has_room => self.added(MemberKind::Full, None)?,
            _ => return Ok(()),
        };
        let goes = match &what {
            RequestedChange::Remove(member) => Some(*member),
            RequestedChange::Add(new) => new.replaces,
        };
        if let Some(goes) = goes {
            self.machines[goes.get() as usize - 1].is_leaving = true;
        }
        self.log(format_args!("the members are to change: {what:?}"));
        self.change = Some(PendingChange { what, next_ns: 0 });
        Ok(())
    }

    fn added(&mut self, kind: MemberKind, replaces: Option<MemberId>) -> Result<RequestedChange, Violation> {
        let number = self.add_machine(kind)?;
        let member = MemberId::new(number).ok_or("a number is not 0")?;
        Ok(RequestedChange::Add(NewMember { member, addresses: vec![address_of(number).to_string()], kind, replaces }))
    }

    pub(crate) fn continue_change(&mut self) {
        let Some((leader, members)) = self.leader().filter(|_| self.change.is_some()) else { return };
        let Some(change) = self.change.as_mut().filter(|change| self.now_ns >= change.next_ns) else { return };
        if change.what.is_done(&members) {
            self.tally.changes += 1;
            self.change = None;
            self.log(format_args!("the members have changed"));
            return;
        }
        change.next_ns = self.now_ns + ASKED_AGAIN_NS;
        let own = self.machines[leader].number;
        let goes = match &change.what {
            RequestedChange::Remove(member) => Some(*member),
            RequestedChange::Add(new) => new.replaces.filter(|_| !members.contains(new.member)),
        };
        let wish = match &change.what {
            // A leader does not remove itself.
            _ if goes.is_some_and(|goes| goes.get() == own) => {
                let other =
                    members.voters.iter().find(|voter| voter.get() != own && !members.witnesses.contains(voter));
                let Some(other) = other else { return };
                AdminCommand::Transfer(*other)
            }
            RequestedChange::Remove(member) => AdminCommand::Remove(*member),
            RequestedChange::Add(new) => AdminCommand::Add(new.clone()),
        };
        if let Some(member) = self.machines[leader].running() {
            // The members show the effects.
            let _ = member.shared().post(wish);
        }
    }
}
