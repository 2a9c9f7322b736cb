//! Replication and membership as decisions 4, 9 and 24 describe them, small enough that every order of events is tried.
//!
//! As in the shipped code: term and vote are durable before a message leaves. A process's death takes nothing from the
//! journal, but entries that are appended and not journaled are lost. A member acknowledges entries that it has
//! journaled and compared. Members change when the change is released, several at once through joint quorums that a
//! separate entry leaves, and a record carries the commit index that was known. Links keep the order, and lose the
//! messages that the receiver's death or a newer message finds in them.
//!
//! Simpler than the code: an append carries the leader's whole log, so nothing searches for the first difference;
//! refusals are not sent; a batch is its (term, number), which stands for its hash. Left out, because it only forbids
//! steps: timeouts, pre-vote, check-quorum and leases (any voter may campaign at any time, which also covers a transfer
//! of leadership).

pub mod member;
pub mod properties;

use member::{Change, Entry, Id, Member, Members, Message, Role, Set};
use stateright::{Model, Property};

/// In the cluster or not yet.
pub const MEMBERS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    AcknowledgeBeforeJournal,
    ForgetVote,
    CommitWithoutQuorum,
    SkipTruncation,
    VoteForShorterLog,
    /// Several members at once, with one quorum at a time.
    SingleQuorumChange,
    ForgetCommit,
    VoteAfterPowerCut,
}

/// Limits of events for the whole cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub voters: Set,
    /// Of members that are alike, one campaigns first.
    pub first: Set,
    pub witnesses: Set,
    pub changes: Vec<Change>,
    pub term_max: u8,
    pub batches: u8,
    pub restarts: u8,
    pub power_cuts: u8,
    pub in_flight_max: usize,
    pub mutant: Option<Mutant>,
}

impl Cluster {
    pub fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    pub fn first_members(&self) -> Members {
        Members { voters: self.voters, outgoing: Set::NONE }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Observations {
    pub leaders: Vec<Set>,
    /// Each with the lowest term of its release.
    pub released: Vec<(Entry, u8)>,
    pub released_differently: bool,
    pub released_was_cut: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub members: Vec<Member>,
    /// At sender times [`MEMBERS`] plus receiver; a newer message replaces an older one.
    pub links: Vec<Option<Message>>,
    pub batches: u8,
    pub changes: u8,
    pub restarts: u8,
    pub power_cuts: u8,
    pub seen: Observations,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// After its timeout, on request, or because the leader is dead.
    Campaign(Id),
    Ask(Id, Id),
    Replicate(Id, Id),
    Acknowledge(Id, Id),
    Deliver(Id, Id),
    Journal(Id),
    Publish(Id),
    ChangeMembers(Id),
    LeaveJoint(Id),
    Restart(Id),
    /// With this much of the journal on the device.
    PowerCut(Id, u8),
}

impl State {
    fn link(&mut self, from: Id, to: Id) -> &mut Option<Message> {
        &mut self.links[from as usize * MEMBERS + to as usize]
    }

    fn is_free(&self, from: Id, to: Id) -> bool {
        self.links[from as usize * MEMBERS + to as usize].is_none()
    }

    fn in_flight(&self) -> usize {
        self.links.iter().flatten().count()
    }

    /// Merges states that differ without effect.
    fn drop_irrelevant(&mut self, cluster: &Cluster) {
        for (at, link) in self.links.iter_mut().enumerate() {
            let to = &self.members[at % MEMBERS];
            if link.as_ref().is_some_and(|message| to.is_indifferent_to((at / MEMBERS) as Id, message)) {
                *link = None;
            }
        }
        if self.restarts == cluster.restarts && self.power_cuts == cluster.power_cuts {
            self.members.iter_mut().for_each(|member| member.kept_commit = 0);
        }
    }

    fn lose_links_to(&mut self, member: Id) {
        (0..MEMBERS as Id).for_each(|from| *self.link(from, member) = None);
    }
}

impl Model for Cluster {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            members: vec![Member::default(); MEMBERS],
            links: vec![None; MEMBERS * MEMBERS],
            batches: 0,
            changes: 0,
            restarts: 0,
            power_cuts: 0,
            seen: Observations { leaders: vec![Set::NONE; self.term_max as usize + 1], ..Observations::default() },
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let is_first = state.members.iter().all(|member| member.term == 0);
        let has_room = state.in_flight() < self.in_flight_max;
        for (id, member) in (0..).zip(&state.members) {
            if member.may_campaign(self, id) && (!is_first || self.first.has(id)) {
                steps.push(Step::Campaign(id));
            }
            if member.journaled < member.log.len() as u8 {
                steps.push(Step::Journal(id));
            }
            if member.role == Role::Leader {
                let has_published = matches!(member.log.last(), Some(Entry::Batch { by, .. }) if *by == id);
                if state.batches < self.batches && !self.witnesses.has(id) && !has_published {
                    steps.push(Step::Publish(id));
                }
                if self.changes.get(state.changes as usize).is_some_and(|change| member.may_change(self, *change)) {
                    steps.push(Step::ChangeMembers(id));
                }
                if member.may_leave_joint(self) {
                    steps.push(Step::LeaveJoint(id));
                }
            }
            if state.restarts < self.restarts {
                steps.push(Step::Restart(id));
            }
            if state.power_cuts < self.power_cuts {
                steps.extend((0..member.journaled).map(|kept| Step::PowerCut(id, kept)));
            }
            for to in (0..MEMBERS as Id).filter(|to| *to != id) {
                if !state.is_free(id, to) {
                    steps.push(Step::Deliver(id, to));
                }
                let is_worth = |message: &Message| !state.members[to as usize].is_indifferent_to(id, message);
                if !has_room && state.is_free(id, to) {
                    continue;
                }
                if member.may_ask(self, to) && is_worth(&member.question()) {
                    steps.push(Step::Ask(id, to));
                }
                if member.role == Role::Leader && is_worth(&member.append_message()) {
                    steps.push(Step::Replicate(id, to));
                }
                if member.leader == Some(to) && is_worth(&member.acknowledge(self)) {
                    steps.push(Step::Acknowledge(id, to));
                }
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        let at = |id: Id| (state.members[id as usize].clone(), id);
        let (mut member, id) = match step {
            Step::Campaign(id) | Step::Journal(id) | Step::Publish(id) | Step::ChangeMembers(id) => at(id),
            Step::LeaveJoint(id) | Step::Restart(id) | Step::PowerCut(id, _) => at(id),
            Step::Ask(id, _) | Step::Replicate(id, _) | Step::Acknowledge(id, _) => at(id),
            Step::Deliver(_, id) => at(id),
        };
        let mut sent = None;
        match step {
            Step::Campaign(_) => member.campaign(self, id),
            Step::Journal(_) => member.journal(self, id),
            Step::Publish(_) => {
                state.batches += 1;
                member.append(Entry::Batch { term: member.term, by: id });
            }
            Step::ChangeMembers(_) => {
                member.change(self, self.changes[state.changes as usize]);
                state.changes += 1;
            }
            Step::LeaveJoint(_) => member.leave_joint(self),
            Step::Restart(_) => {
                state.restarts += 1;
                member.restart(self);
                state.lose_links_to(id);
            }
            Step::PowerCut(_, kept) => {
                state.power_cuts += 1;
                member.power_cut(self, kept);
                state.lose_links_to(id);
            }
            Step::Ask(_, to) => sent = Some((to, member.question())),
            Step::Replicate(_, to) => sent = Some((to, member.append_message())),
            Step::Acknowledge(_, to) => sent = Some((to, member.acknowledge(self))),
            Step::Deliver(from, _) => {
                let message = state.link(from, id).take()?;
                if let Some(left) = member.receive(self, id, from, message, &mut sent) {
                    state.seen.released_was_cut |= left < member.told;
                }
            }
        }
        if let Some((to, message)) = sent {
            *state.link(id, to) = Some(message);
        }
        member.release(self);
        state.members[id as usize] = member;
        state.see(id);
        state.drop_irrelevant(self);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all(self)
    }
}
