//! Expected answers of the bank, by a fold of its journal that is independent of its aggregates.

use super::model::{Account, BankCommand, BankEvent, NotTransferred, Overdrawn, Transferred};
use super::tellers::{ACCOUNTS, CommandContent, KnownOutcomes, bus_of};
use gapless::cqrs::{Aggregate as _, CommandError, TypeKey};
use gapless::message::Message as _;
use gapless_bus_checker::reported_outcomes::LABEL;
use gapless_bus_checker::{Decision, Event, History, OutcomeCounts};
use gapless_testkit::wait::until_some;
use std::collections::BTreeMap;
use std::path::PathBuf;

pub type Balances = BTreeMap<u64, u64>;

/// The bank's default limit of remembered identifiers.
pub const IDENTIFIERS_MAX: usize = 1_000_000;

pub fn check_outcomes(history: &History, known: &KnownOutcomes) -> Result<(OutcomeCounts, Balances), String> {
    history.check(IDENTIFIERS_MAX)?;
    if let Some(problem) = &known.problem {
        return Err(problem.clone());
    }
    let counts = known.outcomes.check(history)?;
    Ok((counts, check(history, &known.commands)?))
}

pub fn compare(sockets: &[PathBuf], balances: &Balances) -> Result<(), String> {
    let bus = until_some("the bank accepts a connection", || bus_of(sockets));
    for id in 0..ACCOUNTS {
        let found = bus.call(Account::command(&id, &BankCommand::Withdraw(u64::MAX)));
        let expected = match balances.get(&id) {
            Some(balance) => CommandError::Refused(Overdrawn { balance: *balance }),
            None => CommandError::NotFound,
        };
        if found != Err(expected.clone()) {
            return Err(format!("account {id} says {found:?}, and its events say {expected:?}"));
        }
    }
    Ok(())
}

/// The error is the first unexpected answer or impossible event.
pub fn check(history: &History, commands: &BTreeMap<u64, CommandContent>) -> Result<Balances, String> {
    let mut balances = Balances::new();
    for transaction in history.transactions() {
        let sequence = transaction.sequence;
        let Decision::Answered { answer, events, .. } = &transaction.decision else {
            return Err(format!("transaction {sequence} has failed: {:?}", transaction.decision));
        };
        let label = transaction.header(LABEL).and_then(|label| label.try_into().ok()).map(u64::from_le_bytes);
        let command = label.and_then(|label| commands.get(&label));
        let wrong = |what: String| format!("transaction {sequence}, of {command:?}: {what}, its answer is {answer:?}");
        if answer.sequence != sequence {
            continue;
        }
        let expected = command.map(|command| expected(command, &balances));
        let found = (answer.outcome, &answer.rest[..]);
        if expected.as_ref().is_some_and(|(outcome, rest)| (*outcome, &rest[..]) != found) {
            return Err(wrong(format!("{expected:?} is due")));
        }
        for event in events {
            apply(event, &mut balances).map_err(wrong)?;
        }
    }
    Ok(balances)
}

fn apply(event: &Event, balances: &mut Balances) -> Result<(), String> {
    let id = event.id[..].try_into().map(u64::from_be_bytes).map_err(|_| format!("{:?} is no account", event.id))?;
    if event.aggregate != TypeKey::of(Account::NAME).0 || event.event != TypeKey::of(BankEvent::TYPE_NAME).0 {
        return Err(format!("{event:?} is no event of an account"));
    }
    let happened = BankEvent::decode_as(event.version.into(), &event.payload).map_err(|error| error.to_string())?;
    let balance = match (&happened, balances.get(&id)) {
        (BankEvent::Opened, None) => Some(0),
        (BankEvent::Deposited(amount), Some(balance)) => balance.checked_add(*amount),
        (BankEvent::Withdrawn(amount), Some(balance)) => balance.checked_sub(*amount),
        (BankEvent::Noted(_), Some(balance)) => Some(*balance),
        _ => None,
    };
    let balance = balance.ok_or_else(|| format!("{happened:?} of account {id}, which is {:?}", balances.get(&id)))?;
    balances.insert(id, balance);
    Ok(())
}

fn expected(command: &CommandContent, balances: &Balances) -> (u8, Vec<u8>) {
    const ACCEPTED: u8 = 0;
    const REFUSED: u8 = 1;
    const NOT_FOUND: u8 = 2;
    const EXISTS: u8 = 3;
    match command {
        CommandContent::Account(id, command) => match (command, balances.get(id)) {
            (BankCommand::Open, None) => (ACCEPTED, Vec::new()),
            (BankCommand::Open, Some(_)) => (EXISTS, Vec::new()),
            (_, None) => (NOT_FOUND, Vec::new()),
            (BankCommand::Withdraw(amount), Some(balance)) if amount > balance => {
                (REFUSED, encoded(&Overdrawn { balance: *balance }))
            }
            _ => (ACCEPTED, Vec::new()),
        },
        CommandContent::Transfer(transfer) => {
            let (from, to) = (balances.get(&transfer.from), balances.get(&transfer.to));
            match (from, to) {
                (Some(balance), _) if *balance < transfer.amount => {
                    (REFUSED, encoded(&NotTransferred { overdrawn: Some(Overdrawn { balance: *balance }) }))
                }
                (None, _) | (_, None) => (REFUSED, encoded(&NotTransferred { overdrawn: None })),
                (Some(balance), Some(_)) if transfer.from == transfer.to => {
                    (ACCEPTED, encoded(&Transferred { left: *balance }))
                }
                (Some(balance), Some(_)) => (ACCEPTED, encoded(&Transferred { left: balance - transfer.amount })),
            }
        }
    }
}

fn encoded(message: &impl gapless::Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).unwrap();
    bytes
}
