use crate::account::{Account, AccountEvent};
use crate::tellers::first_deposit_of;
use gapless::cqrs::{Aggregate as _, AggregateId as _, EventReader, TypeKey};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

/// Checks that each command had its effect once, and that no money was made or lost.
pub fn audit(mut reader: EventReader) -> Result<(), Box<dyn Error>> {
    let mut balances = BTreeMap::<u64, i128>::new();
    let (mut paid_in, mut events, mut transfers) = (0_i128, 0_u64, 0);
    let mut identifiers = BTreeSet::new();
    while let Some(mut transaction) = reader.next_transaction()? {
        let identifier = transaction.identity().map(|identity| identity.identifier);
        if identifier.is_some_and(|identifier| !identifiers.insert(identifier)) {
            return Err(format!("the command {identifier:?} has had its effect twice").into());
        }
        let events_before = events;
        while let Some(event) = transaction.next_event()? {
            let account = u64::read(event.id).ok_or("an account has a number")?;
            let change = match event.decode::<Account>()? {
                // Obsolete events of older programs decode to `None`.
                None | Some(AccountEvent::Opened(_)) => 0,
                Some(AccountEvent::Deposited(amount)) => i128::from(amount),
                Some(AccountEvent::Withdrawn(amount) | AccountEvent::Closed(amount)) => -i128::from(amount),
            };
            *balances.entry(account).or_default() += change;
            paid_in += if identifier == Some(first_deposit_of(account)) { change } else { 0 };
            events += 1;
        }
        transfers += u64::from(events - events_before == 2);
    }
    let sum: i128 = balances.values().sum();
    if sum != paid_in || balances.values().any(|balance| *balance < 0) {
        return Err(format!("{paid_in} were paid in, {sum} are there").into());
    }
    println!("{transfers} transfers in {events} events: the sum is what was paid in, no account is overdrawn");
    Ok(())
}

pub fn statement(mut reader: EventReader, account: u64) -> Result<(), Box<dyn Error>> {
    while let Some(mut transaction) = reader.next_transaction()? {
        while let Some(event) = transaction.next_event()? {
            if event.aggregate == TypeKey::of(Account::NAME) && u64::read(event.id) == Some(account) {
                println!("{}  {:?}", event.position, event.decode::<Account>()?);
            }
        }
    }
    Ok(())
}
