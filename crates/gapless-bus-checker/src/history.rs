//! `History`: transactions of a journal, and their invariants.

use crate::transaction::{Answer, Decision, Event, Identity, Transaction};
use gapless_journal::JournalReader;
use gapless_wire::descriptor::TRANSACTION_FLAG;
use gapless_wire::{Frame, Kind};
use std::collections::BTreeMap;
use std::path::Path;

const ACCEPTED: u8 = 0;

pub type AggregateKey = (u32, Vec<u8>);

#[derive(Clone, Debug, Default)]
pub struct History {
    transactions: Vec<Transaction>,
    /// 0 before the first.
    last_sequence: u64,
    last_time_ns: u64,
    bytes: Vec<u8>,
    begun: Option<(u64, u64)>,
}

impl History {
    /// The journal must have no writer. An incomplete transaction at its end is ignored.
    ///
    /// # Errors
    /// The journal or the bytes of a transaction are invalid.
    pub fn read(journal: &Path) -> Result<Self, String> {
        let reader = JournalReader::open(journal).map_err(|error| error.to_string())?;
        let first = reader.first_sequence();
        let mut history = Self { last_sequence: first - 1, ..Self::default() };
        let mut replay = reader.replay(first).map_err(|error| error.to_string())?;
        while let Some(frame) = replay.next_frame().map_err(|error| error.to_string())? {
            history.take(&frame)?;
        }
        Ok(history)
    }

    /// Appends the next frame.
    ///
    /// # Errors
    /// The frame is not the next one, or completes an invalid transaction.
    pub fn take(&mut self, frame: &Frame<'_>) -> Result<(), String> {
        let (sequence, time_ns) = (frame.sequence(), frame.timestamp_ns());
        if sequence != self.last_sequence + 1 || time_ns <= self.last_time_ns {
            let (before, before_ns) = (self.last_sequence, self.last_time_ns);
            return Err(format!("frame {sequence} of {time_ns} ns stands behind {before} of {before_ns} ns"));
        }
        (self.last_sequence, self.last_time_ns) = (sequence, time_ns);
        let fragment = frame.fragment();
        let is_of_transaction = frame.kind() == Kind::Command && frame.flags() & TRANSACTION_FLAG != 0;
        if !is_of_transaction || fragment.index == 0 {
            if self.begun.take().is_some() {
                return Err(format!("frame {sequence} interrupts a transaction"));
            }
            self.bytes.clear();
        }
        if !is_of_transaction {
            return match frame.kind() {
                Kind::Command => Err(format!("frame {sequence} is a command and no transaction")),
                kind @ (Kind::Reply | Kind::Notice | Kind::Query | Kind::Answer) => {
                    Err(format!("frame {sequence} is of kind {kind:?}, which has no place in a stream"))
                }
                _ => Ok(()),
            };
        }
        let (first_sequence, first_ns) = *self.begun.get_or_insert((sequence, time_ns));
        if first_sequence + u64::from(fragment.index) != sequence {
            return Err(format!("frame {sequence} is part {} of the transaction {first_sequence}", fragment.index));
        }
        self.bytes.extend_from_slice(frame.payload());
        if fragment.is_last() {
            let decision =
                Decision::read(&self.bytes).map_err(|reason| format!("transaction {first_sequence}: {reason}"))?;
            self.begun = None;
            self.transactions.push(Transaction {
                sequence: first_sequence,
                last_sequence: sequence,
                time_ns: first_ns,
                session: frame.session(),
                number: frame.session_seq(),
                decision,
            });
        }
        Ok(())
    }

    #[must_use]
    pub fn transactions(&self) -> &[Transaction] {
        &self.transactions
    }

    #[must_use]
    pub fn at(&self, sequence: u64) -> Option<&Transaction> {
        let found = self.transactions.binary_search_by_key(&sequence, |transaction| transaction.sequence);
        found.ok().map(|at| &self.transactions[at])
    }

    #[must_use]
    pub fn aggregates(&self) -> BTreeMap<AggregateKey, Vec<&Event>> {
        let mut aggregates = BTreeMap::<_, Vec<_>>::new();
        for transaction in &self.transactions {
            for event in transaction.events().iter().filter(|event| event.aggregate != 0) {
                aggregates.entry((event.aggregate, event.id.clone())).or_default().push(event);
            }
        }
        aggregates
    }

    /// Checks the invariants of any history:
    ///
    /// - session numbers are unique and increasing,
    /// - an answer states the number and position of its events, and only accepted commands have events,
    /// - the version of an aggregate is the number of its events,
    /// - identifiers are unique among the last `identifiers_max`,
    /// - a repeated command gets its first answer again.
    ///
    /// # Errors
    /// The violated invariant, in words.
    pub fn check(&self, identifiers_max: usize) -> Result<(), String> {
        let mut numbers = BTreeMap::new();
        let mut versions = BTreeMap::<(u32, &[u8]), u64>::new();
        let mut identities = BTreeMap::<u128, (usize, Identity, u64)>::new();
        let mut identified = 0;
        for transaction in &self.transactions {
            let sequence = transaction.sequence;
            let (session, number) = (transaction.session, transaction.number);
            if let Some(before) = numbers.insert(session, number)
                && before >= number
            {
                return Err(format!("transaction {sequence} is number {number} of session {session}, behind {before}"));
            }
            let Decision::Answered { answer, identity, events, .. } = &transaction.decision else { continue };
            for event in events.iter().filter(|event| event.aggregate != 0) {
                *versions.entry((event.aggregate, &event.id)).or_default() += 1;
            }
            if answer.sequence != sequence {
                self.is_repeated(transaction, answer)?;
                continue;
            }
            if answer.events as usize != events.len() || answer.outcome != ACCEPTED && !events.is_empty() {
                let count = events.len();
                return Err(format!("transaction {sequence} has {count} events, and its answer is {answer:?}"));
            }
            if let [first, ..] = &events[..]
                && answer.aggregate_version != 0
            {
                let version = versions.get(&(first.aggregate, &first.id[..])).copied().unwrap_or(0);
                if version != answer.aggregate_version {
                    let said = answer.aggregate_version;
                    return Err(format!("transaction {sequence} is said to be version {said}, and is {version}"));
                }
            }
            if let Some(identity) = identity {
                identified += 1;
                let known = identities.insert(identity.identifier, (identified, *identity, sequence));
                if let Some((at, before, first)) = known.filter(|(at, ..)| identified - at < identifiers_max) {
                    let distance = identified - at;
                    return Err(format!(
                        "transactions {first} and {sequence} have the same identifier, {distance} identifiers apart: {before:?}, {identity:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn is_repeated(&self, transaction: &Transaction, answer: &Answer) -> Result<(), String> {
        let sequence = transaction.sequence;
        if !transaction.events().is_empty() || transaction.identity().is_some() {
            return Err(format!(
                "transaction {sequence} has an effect, and an answer of transaction {}",
                answer.sequence
            ));
        }
        match self.at(answer.sequence).map(|first| (&first.decision, first.identity())) {
            Some((Decision::Answered { answer: first, .. }, Some(_))) if first == answer => Ok(()),
            Some((decision, _)) => {
                Err(format!("transaction {sequence} repeats the answer {answer:?}, and that was {decision:?}"))
            }
            None => Err(format!("transaction {sequence} repeats an answer of {}, which is none", answer.sequence)),
        }
    }
}

impl Transaction {
    #[must_use]
    pub fn events(&self) -> &[Event] {
        match &self.decision {
            Decision::Answered { events, .. } => events,
            Decision::Failed { .. } => &[],
        }
    }

    /// `None` for a repeat.
    #[must_use]
    pub const fn identity(&self) -> Option<Identity> {
        match &self.decision {
            Decision::Answered { identity, .. } => *identity,
            Decision::Failed { .. } => None,
        }
    }

    /// Layout of each: u16 length, name, u32 length, value.
    #[must_use]
    pub fn header(&self, wanted: &str) -> Option<&[u8]> {
        let Decision::Answered { metadata, .. } = &self.decision else { return None };
        let mut rest = &metadata[..];
        loop {
            let (length, after) = rest.split_first_chunk::<2>()?;
            let (name, after) = after.split_at_checked(u16::from_le_bytes(*length).into())?;
            let (length, after) = after.split_first_chunk::<4>()?;
            let (value, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            if name == wanted.as_bytes() {
                return Some(value);
            }
            rest = after;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::reported_outcomes::LABEL;

    impl History {
        pub(crate) fn of(transactions: Vec<Transaction>) -> Self {
            Self { transactions, ..Self::default() }
        }
    }

    pub(crate) fn accepted(sequence: u64, aggregate_version: u64) -> Transaction {
        let event = Event { event: 2, version: 1, aggregate: 1, id: vec![9], tags: Vec::new(), payload: Vec::new() };
        let answer = Answer { outcome: ACCEPTED, sequence, aggregate_version, events: 1, rest: Vec::new() };
        let decision = Decision::Answered { answer, identity: None, metadata: Vec::new(), events: vec![event] };
        Transaction { sequence, last_sequence: sequence, time_ns: sequence, session: 1, number: sequence, decision }
    }

    pub(crate) fn refused(sequence: u64) -> Transaction {
        let mut transaction = accepted(sequence, 0);
        let Decision::Answered { answer, events, .. } = &mut transaction.decision else { unreachable!() };
        (answer.outcome, answer.events) = (1, 0);
        events.clear();
        transaction
    }

    pub(crate) fn labelled(mut transaction: Transaction, label: u64) -> Transaction {
        let Decision::Answered { metadata, .. } = &mut transaction.decision else { unreachable!() };
        metadata.extend_from_slice(&(LABEL.len() as u16).to_le_bytes());
        metadata.extend_from_slice(LABEL.as_bytes());
        metadata.extend_from_slice(&8_u32.to_le_bytes());
        metadata.extend_from_slice(&label.to_le_bytes());
        transaction
    }

    fn changed(
        mut transaction: Transaction,
        change: impl FnOnce(&mut Answer, &mut Option<Identity>, &mut Vec<Event>),
    ) -> Transaction {
        let Decision::Answered { answer, identity, events, .. } = &mut transaction.decision else { unreachable!() };
        change(answer, identity, events);
        transaction
    }

    fn identified(transaction: Transaction, identifier: u128) -> Transaction {
        changed(transaction, |_, identity, _| *identity = Some(Identity { identifier, hash: 3 }))
    }

    fn repeat(sequence: u64, of: u64) -> Transaction {
        changed(accepted(sequence, 1), |answer, _, events| {
            answer.sequence = of;
            events.clear();
        })
    }

    #[test]
    fn valid_history_passes() {
        let history = History::of(vec![identified(accepted(3, 1), 8), refused(5), repeat(6, 3), accepted(7, 2)]);
        assert_eq!(history.check(10), Ok(()));
        assert_eq!(history.aggregates()[&(1, vec![9])].len(), 2);
        let forgotten = [identified(accepted(3, 1), 8), identified(accepted(4, 2), 9), identified(accepted(5, 3), 8)];
        assert_eq!(History::of(forgotten.to_vec()).check(1), Ok(()));
        assert!(History::of(forgotten.to_vec()).check(2).is_ok() && History::of(forgotten.to_vec()).check(3).is_err());
    }

    #[test]
    fn violations_are_found() {
        let number = |number| Transaction { number, ..refused(9) };
        for (transactions, expected) in [
            (vec![accepted(3, 1), accepted(5, 3)], "is said to be version 3, and is 2"),
            (vec![number(4), number(4)], "is number 4 of session 1, behind 4"),
            (vec![changed(accepted(3, 1), |answer, _, _| answer.events = 2)], "has 1 events"),
            (vec![changed(accepted(3, 1), |answer, _, _| answer.outcome = 1)], "has 1 events"),
            (vec![identified(accepted(3, 1), 8), identified(accepted(4, 2), 8)], "the same identifier"),
            (vec![accepted(3, 1), repeat(4, 3)], "repeats the answer"),
            (vec![repeat(4, 3)], "which is none"),
            (vec![identified(accepted(3, 1), 8), identified(repeat(4, 3), 9)], "has an effect"),
        ] {
            let error = History::of(transactions).check(10).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
