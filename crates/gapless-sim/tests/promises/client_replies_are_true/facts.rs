//! [`Facts`]: the promises about each command and notice, and the check that the service kept them.

use super::book::Pages;
use std::collections::BTreeMap;

/// A statement to the client about a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAnswer {
    /// No statement: it was executed once or not at all.
    Nothing,
    /// Executed at this position.
    Done(u64),
    /// Executed or refused, now or later, exactly once.
    WillBe,
    /// Without effect, for good.
    Never,
}

#[derive(Clone, Copy, Debug)]
pub struct Fact {
    pub is_refused: bool,
    pub said: ClientAnswer,
}

/// All commands, by identifier.
#[derive(Default)]
pub struct Facts {
    all: BTreeMap<u64, Fact>,
    /// Number of statements of each kind: a run shows nothing about kinds that never occurred.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Facts {
    /// Registers a command before it is sent.
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

    /// Records a resend, after which an earlier "never arrived" no longer holds.
    pub fn sent_again(&mut self, id: u64) {
        let fact = self.all.get_mut(&id).unwrap();
        if fact.said == ClientAnswer::Never && !fact.is_refused {
            fact.said = ClientAnswer::Nothing;
        }
    }

    /// Records a statement, which must agree with the earlier ones.
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

    /// Checks that the service did as stated, and executed nothing twice.
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
