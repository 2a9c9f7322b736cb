//! Properties of every state, and events that must happen in some: an idle model keeps every promise.

use super::member::{Entry, Id, Message, Role, Set};
use super::{Cluster, State};
use stateright::Property;
use std::collections::BTreeSet;

pub const ONE_LEADER: &str = "at most one member leads in a term";
pub const SAME_RELEASED: &str = "what is released is the same everywhere";
pub const RELEASED_STAYS: &str = "nothing that is released is cut";
pub const ACKNOWLEDGED_KEPT: &str = "who leads has what was released before";

pub const LED: &str = "a member leads";
pub const TWO_TERMS: &str = "batches of two terms are released";
pub const LOST: &str = "a batch that nobody released is nowhere any more: its member was cut back, or died";
pub const CAUGHT_UP: &str = "a power cut takes journaled entries, and its member is brought up to date";
pub const WITNESS_HANDED_OVER: &str = "a witness has led, and a batch is released after it";
pub const CHANGED: &str = "every change of members is complete, and a batch of the new ones is released";
pub const JOINT: &str = "quorums of old and new members are asked";

impl State {
    pub(super) fn see(&mut self, id: Id) {
        let member = &self.members[id as usize];
        if member.role == Role::Leader {
            let leaders = &mut self.seen.leaders[member.term as usize];
            *leaders = leaders.with(id);
        }
        self.seen.released_was_cut |= member.told as usize > member.log.len();
        for (position, entry) in member.log[..member.released as usize].iter().enumerate() {
            match self.seen.released.get_mut(position) {
                Some((first, _)) if first != entry => self.seen.released_differently = true,
                Some((_, term)) => *term = (*term).min(member.term),
                None => self.seen.released.push((*entry, member.term)),
            }
        }
    }

    fn leaders(&self) -> impl Iterator<Item = &super::Member> {
        self.members.iter().filter(|member| member.role == Role::Leader)
    }

    fn batches_left(&self) -> usize {
        let sent = self.links.iter().filter_map(|link| match link {
            Some(Message::Append { log, .. }) => Some(log),
            _ => None,
        });
        let logs = self.members.iter().map(|member| &member.log).chain(sent);
        let batches =
            logs.flat_map(|log| log.iter().enumerate()).filter(|(_, entry)| matches!(entry, Entry::Batch { .. }));
        batches.collect::<BTreeSet<_>>().len()
    }

    fn batch_terms(&self) -> Set {
        let terms = self.seen.released.iter().filter_map(|(entry, _)| match entry {
            Entry::Batch { term, .. } => Some(*term),
            _ => None,
        });
        terms.fold(Set::NONE, Set::with)
    }
}

fn acknowledged_is_kept(state: &State) -> bool {
    state.leaders().all(|leader| {
        let before = state.seen.released.iter().enumerate().filter(|(_, (_, term))| *term < leader.term);
        before.clone().all(|(position, (entry, _))| leader.log.get(position) == Some(entry))
    })
}

fn witness_handed_over(cluster: &Cluster, state: &State) -> bool {
    let first = (0..).zip(&state.seen.leaders).find_map(|(term, leaders): (u8, _)| {
        let is_witness = (0..super::MEMBERS as Id).any(|id| leaders.has(id) && cluster.witnesses.has(id));
        is_witness.then_some(term)
    });
    first.is_some_and(|first| (first + 1..=cluster.term_max).any(|term| state.batch_terms().has(term)))
}

fn changed(cluster: &Cluster, state: &State) -> bool {
    let released = &state.seen.released;
    let last = released.iter().rposition(|(entry, _)| matches!(entry, Entry::Members { .. }));
    let Some(last) = last else { return false };
    let (Entry::Members { members, .. }, wanted) = (released[last].0, cluster.changes.last()) else { return false };
    let is_complete = members.outgoing == Set::NONE && wanted.is_some_and(|wanted| wanted.voters == members.voters);
    is_complete && released[last..].iter().any(|(entry, _)| matches!(entry, Entry::Batch { .. }))
}

pub(super) fn all(cluster: &Cluster) -> Vec<Property<Cluster>> {
    let mut all = vec![
        Property::<Cluster>::always(ONE_LEADER, |_, state| state.seen.leaders.iter().all(|who| who.count() <= 1)),
        Property::<Cluster>::always(SAME_RELEASED, |_, state| !state.seen.released_differently),
        Property::<Cluster>::always(RELEASED_STAYS, |_, state| !state.seen.released_was_cut),
        Property::<Cluster>::always(ACKNOWLEDGED_KEPT, |_, state| acknowledged_is_kept(state)),
        Property::<Cluster>::sometimes(LED, |_, state| state.leaders().next().is_some()),
    ];
    if cluster.batches >= 2 && cluster.term_max >= 2 {
        all.push(Property::<Cluster>::sometimes(TWO_TERMS, |_, state| state.batch_terms().count() >= 2));
    }
    if cluster.batches > 0 && (cluster.term_max >= 2 || cluster.restarts > 0) {
        all.push(Property::<Cluster>::sometimes(LOST, |_, state| state.batches_left() < state.batches as usize));
    }
    if cluster.power_cuts > 0 {
        all.push(Property::<Cluster>::sometimes(CAUGHT_UP, |_, state| {
            state.power_cuts > 0 && state.members.iter().all(|member| !member.must_catch_up)
        }));
    }
    if cluster.witnesses != Set::NONE {
        all.push(Property::<Cluster>::sometimes(WITNESS_HANDED_OVER, witness_handed_over));
    }
    if !cluster.changes.is_empty() {
        all.push(Property::<Cluster>::sometimes(CHANGED, changed));
    }
    let before = std::iter::once(cluster.voters).chain(cluster.changes.iter().map(|change| change.voters));
    if before.zip(&cluster.changes).any(|(before, change)| before.difference(change.voters) > 1) {
        all.push(Property::<Cluster>::sometimes(JOINT, |_, state| {
            let is_joint = |entry: &(Entry, u8)| match entry.0 {
                Entry::Members { members, .. } => members.outgoing != Set::NONE,
                _ => false,
            };
            state.seen.released.iter().any(is_joint)
        }));
    }
    all
}
