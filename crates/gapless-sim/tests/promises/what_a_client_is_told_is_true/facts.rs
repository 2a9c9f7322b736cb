//! [`Facts`]: the promises about each command and notice, and whether the service has kept them.

use super::book::Pages;
use std::collections::BTreeMap;

/// The statements about a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing: it may have been done once, or not.
    Nothing,
    /// It has been done, at this place among all.
    Done(u64),
    /// It will have been done or refused, once.
    WillBe,
    /// It has no effect.
    Never,
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    pub is_refused: bool,
    pub said: Said,
}

/// By the identifiers of commands.
#[derive(Default)]
pub struct Facts {
    all: BTreeMap<u64, Fact>,
    /// How often each statement was made: a run shows nothing about statements that never occurred.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Facts {
    /// A command that is about to be sent.
    pub fn begin(&mut self, is_refused: bool) -> u64 {
        let id = self.all.len() as u64 + 1;
        self.all.insert(id, Fact { is_refused, said: Said::Nothing });
        id
    }

    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub fn is_refused(&self, id: u64) -> bool {
        self.all[&id].is_refused
    }

    /// It goes once more: that it never arrived holds no longer.
    pub fn sent_again(&mut self, id: u64) {
        let fact = self.all.get_mut(&id).unwrap();
        if fact.said == Said::Never && !fact.is_refused {
            fact.said = Said::Nothing;
        }
    }

    /// A new statement must agree with the earlier ones.
    pub fn say(&mut self, id: u64, said: Said) {
        let fact = self.all.get_mut(&id).unwrap();
        fact.said = match (fact.said, said) {
            (Said::Nothing, said) => said,
            (before, Said::Nothing) => before,
            (Said::WillBe, Said::Done(place)) => Said::Done(place),
            (Said::WillBe, Said::Never) if fact.is_refused => Said::Never,
            (before @ (Said::Done(_) | Said::Never), Said::WillBe) if before != Said::Never || fact.is_refused => {
                before
            }
            (before, said) if before == said => said,
            (before, said) => panic!("command {id}: {before:?} was said, and now {said:?}"),
        };
    }

    /// Whether the service has done what was said, and nothing twice.
    pub fn hold(&self, pages: &Pages) {
        let mut places: BTreeMap<u64, u64> = BTreeMap::new();
        for (place, id) in (1..).zip(&pages.done) {
            let before = places.insert(*id, place);
            assert_eq!(before, None, "command {id} was done twice, at {place} too");
        }
        for (id, Fact { is_refused, said }) in &self.all {
            let place = places.get(id).copied();
            let holds = match said {
                Said::Nothing => true,
                Said::Done(said) => place == Some(*said),
                Said::WillBe => place.is_some() || *is_refused,
                Said::Never => place.is_none(),
            };
            assert!(holds, "command {id}: {said:?} was said; it was done at {place:?}");
        }
    }
}
