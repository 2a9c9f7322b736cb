//! [`Facts`]: the promises about each command and notice, and their check.

use super::book::Pages;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAnswer {
    /// Executed once or not at all.
    Nothing,
    Done(u64),
    /// Executed or refused, now or later, exactly once.
    WillBe,
    /// No effect, for good.
    Never,
}

#[derive(Clone, Copy, Debug)]
pub struct Fact {
    pub is_refused: bool,
    pub said: ClientAnswer,
}

#[derive(Default)]
pub struct Facts {
    all: BTreeMap<u64, Fact>,
    /// A run shows nothing about kinds that never occurred.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Facts {
    pub fn begin(&mut self, is_refused: bool) -> u64 {
        let id = self.all.len() as u64 + 1;
        self.all.insert(id, Fact { is_refused, said: ClientAnswer::Nothing });
        id
    }

    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub fn is_refused(&self, id: u64) -> bool {
        self.all[&id].is_refused
    }

    /// An earlier "never arrived" no longer holds.
    pub fn sent_again(&mut self, id: u64) {
        let fact = self.all.get_mut(&id).unwrap();
        if fact.said == ClientAnswer::Never && !fact.is_refused {
            fact.said = ClientAnswer::Nothing;
        }
    }

    /// Must agree with earlier statements.
    pub fn say(&mut self, id: u64, said: ClientAnswer) {
        let fact = self.all.get_mut(&id).unwrap();
        fact.said = match (fact.said, said) {
            (ClientAnswer::Nothing, said) => said,
            (before, ClientAnswer::Nothing) => before,
            (ClientAnswer::WillBe, ClientAnswer::Done(place)) => ClientAnswer::Done(place),
            (ClientAnswer::WillBe, ClientAnswer::Never) if fact.is_refused => ClientAnswer::Never,
            (before @ (ClientAnswer::Done(_) | ClientAnswer::Never), ClientAnswer::WillBe)
                if before != ClientAnswer::Never || fact.is_refused =>
            {
                before
            }
            (before, said) if before == said => said,
            (before, said) => panic!("command {id}: stated {before:?}, and now {said:?}"),
        };
    }

    /// The service did as stated, and executed nothing twice.
    pub fn hold(&self, pages: &Pages) {
        let mut places: BTreeMap<u64, u64> = BTreeMap::new();
        for (place, id) in (1..).zip(&pages.done) {
            let before = places.insert(*id, place);
            assert_eq!(before, None, "command {id} was executed twice, again at {place}");
        }
        for (id, Fact { is_refused, said }) in &self.all {
            let place = places.get(id).copied();
            let holds = match said {
                ClientAnswer::Nothing => true,
                ClientAnswer::Done(said) => place == Some(*said),
                ClientAnswer::WillBe => place.is_some() || *is_refused,
                ClientAnswer::Never => place.is_none(),
            };
            assert!(holds, "command {id}: stated {said:?}, executed at {place:?}");
        }
    }
}
