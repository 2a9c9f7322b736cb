//! `ReportedOutcomes`: outcomes reported to callers, checked against a history.

use crate::history::History;
use crate::transaction::{Decision, Transaction};
use std::collections::BTreeMap;

/// Header with a unique label, 8 bytes, little-endian.
pub const LABEL: &str = "label";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedOutcome {
    Unknown,
    Accepted {
        sequence: u64,
        events: u32,
        /// 0 for a command of a handler.
        version: u64,
    },
    /// In any way, without an effect.
    Refused,
}

#[derive(Clone, Debug, Default)]
pub struct ReportedOutcomes {
    commands: BTreeMap<u64, (ReportedOutcome, Option<u128>)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    pub accepted: usize,
    pub refused: usize,
    pub done_unknown: usize,
    pub undone_unknown: usize,
}

impl ReportedOutcomes {
    /// Call it before the command is sent.
    ///
    /// # Panics
    /// If the label is in use.
    pub fn record_sent(&mut self, label: u64, identifier: Option<u128>) {
        let before = self.commands.insert(label, (ReportedOutcome::Unknown, identifier));
        assert!(before.is_none(), "there are two commands with the label {label}");
    }

    /// Records the outcome reported to the caller.
    ///
    /// # Errors
    /// Another outcome was reported before.
    ///
    /// # Panics
    /// If no command has this label.
    pub fn report(&mut self, label: u64, outcome: ReportedOutcome) -> Result<(), String> {
        let (known, _) = self.commands.get_mut(&label).expect("a label of a command that was sent");
        if *known != ReportedOutcome::Unknown && *known != outcome {
            return Err(format!("the caller of {label} was told {known:?}, and now {outcome:?}"));
        }
        *known = outcome;
        Ok(())
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// No accepted command is lost, none is duplicated, refused ones have had no effect, and the history has no other
    /// commands.
    ///
    /// # Errors
    /// The violated invariant, in words.
    pub fn check(&self, history: &History) -> Result<OutcomeCounts, String> {
        let mut done = BTreeMap::<u64, &Transaction>::new();
        for transaction in history.transactions() {
            let Some(label) = transaction.header(LABEL).and_then(|label| label.try_into().ok()).map(u64::from_le_bytes)
            else {
                if transaction.events().is_empty() {
                    continue;
                }
                return Err(format!("transaction {} is of a command that nobody has sent", transaction.sequence));
            };
            let Some((_, identifier)) = self.commands.get(&label) else {
                return Err(format!("transaction {} is of {label}, which nobody has sent", transaction.sequence));
            };
            if let Some(identity) = transaction.identity()
                && *identifier != Some(identity.identifier)
            {
                return Err(format!("transaction {} is of {label}, under {identity:?}", transaction.sequence));
            }
            if !is_accepted(transaction) {
                continue;
            }
            if let Some(first) = done.insert(label, transaction) {
                let (first, second) = (first.sequence, transaction.sequence);
                return Err(format!("command {label} has had its effect twice: {first} and {second}"));
            }
        }
        let mut counts = OutcomeCounts::default();
        for (label, (outcome, _)) in &self.commands {
            let found = match outcome {
                // Without events and identifier the transaction has no label.
                ReportedOutcome::Accepted { sequence, events: 0, .. } => {
                    history.at(*sequence).filter(|transaction| is_accepted(transaction))
                }
                _ => done.get(label).copied(),
            };
            match (outcome, found) {
                (ReportedOutcome::Accepted { sequence, .. }, None) => {
                    return Err(format!("command {label} was accepted at {sequence}, and is lost"));
                }
                (ReportedOutcome::Accepted { sequence, events, version }, Some(transaction)) => {
                    let Decision::Answered { answer, .. } = &transaction.decision else {
                        unreachable!("it has events")
                    };
                    let found = (transaction.sequence, answer.events, answer.aggregate_version);
                    if found != (*sequence, *events, *version) {
                        return Err(format!(
                            "command {label} was told {outcome:?}, and its transaction says {found:?}"
                        ));
                    }
                    counts.accepted += 1;
                }
                (ReportedOutcome::Refused, Some(transaction)) => {
                    return Err(format!("command {label} was refused, and is transaction {}", transaction.sequence));
                }
                (ReportedOutcome::Refused, None) => counts.refused += 1,
                (ReportedOutcome::Unknown, Some(_)) => counts.done_unknown += 1,
                (ReportedOutcome::Unknown, None) => counts.undone_unknown += 1,
            }
        }
        Ok(counts)
    }
}

fn is_accepted(transaction: &Transaction) -> bool {
    match &transaction.decision {
        Decision::Answered { answer, .. } => answer.outcome == 0 && answer.sequence == transaction.sequence,
        Decision::Failed { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::tests::{accepted, labelled, refused};

    const ACCEPTED: ReportedOutcome = ReportedOutcome::Accepted { sequence: 5, events: 1, version: 1 };

    fn reported(outcome: ReportedOutcome) -> ReportedOutcomes {
        let mut reported = ReportedOutcomes::default();
        reported.record_sent(7, None);
        reported.report(7, outcome).unwrap();
        reported
    }

    #[test]
    fn reported_outcomes_match() {
        let done = History::of(vec![labelled(accepted(5, 1), 7)]);
        let nothing = History::of(vec![refused(5)]);
        assert_eq!(reported(ACCEPTED).check(&done).unwrap().accepted, 1);
        assert_eq!(reported(ReportedOutcome::Refused).check(&nothing).unwrap().refused, 1);
        assert_eq!(reported(ReportedOutcome::Unknown).check(&done).unwrap().done_unknown, 1);
        assert_eq!(reported(ReportedOutcome::Unknown).check(&nothing).unwrap().undone_unknown, 1);
    }

    #[test]
    fn lost_and_duplicate_commands_fail() {
        let done = History::of(vec![labelled(accepted(5, 1), 7)]);
        let twice = History::of(vec![labelled(accepted(5, 1), 7), labelled(accepted(6, 2), 7)]);
        let elsewhere = History::of(vec![labelled(accepted(6, 1), 7)]);
        for (reported, history, expected) in [
            (reported(ACCEPTED), &History::of(vec![refused(5)]), "is lost"),
            (reported(ACCEPTED), &twice, "twice"),
            (reported(ReportedOutcome::Unknown), &twice, "twice"),
            (reported(ACCEPTED), &elsewhere, "its transaction says"),
            (reported(ReportedOutcome::Refused), &done, "was refused, and is transaction 5"),
            (ReportedOutcomes::default(), &done, "nobody has sent"),
            (ReportedOutcomes::default(), &History::of(vec![accepted(5, 1)]), "nobody has sent"),
        ] {
            let error = reported.check(history).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let mut one = reported(ACCEPTED);
        assert!(one.report(7, ReportedOutcome::Refused).unwrap_err().contains("and now Refused"));
    }
}
