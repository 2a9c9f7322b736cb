//! [`Book`]: the service, a fold of the stream without file, clock or random number.

use crate::messages::{Import, NotTaken, Status, StatusOf, Take};
use crate::transfer::{Reason, Transfer};
use gapless::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Limit of bad lines of an import.
const REFUSALS_MAX: usize = 10_000;

#[derive(Default, Serialize, Deserialize, State)]
pub struct Book {
    /// Hundredths.
    balances: BTreeMap<String, u64>,
    ids: BTreeSet<u64>,
    deposited: u128,
    imports: BTreeMap<String, Import>,
}

#[gapless::service]
impl Book {
    /// A line that is out of order has no effect.
    #[command]
    fn take(&mut self, Take { file, line, checksum, content }: Take) -> Result<(), NotTaken> {
        let (last, refused) = self.imports.get(&file).map_or((1, 0), |import| (import.line, import.refusals.len()));
        if line != last + 1 {
            return Err(NotTaken::OutOfOrder { due: last + 1, line });
        }
        if refused == REFUSALS_MAX {
            return Err(NotTaken::TooManyBadLines(REFUSALS_MAX as u64));
        }
        let outcome = content.and_then(|transfer| self.book(transfer));
        let import = self.imports.entry(file).or_default();
        (import.line, import.checksum) = (line, checksum);
        import.refusals.extend(outcome.err().map(|reason| (line, reason)));
        Ok(())
    }

    #[query]
    fn status(&self, StatusOf(file): StatusOf) -> Status {
        let balances = self.balances.iter().map(|(account, balance)| format!("{account} {balance}\n"));
        let bookings = balances.chain(self.ids.iter().map(|id| format!("{id}\n")));
        Status {
            import: self.imports.get(&file).cloned().unwrap_or_default(),
            accounts: self.balances.len() as u64,
            deposited: self.deposited,
            balances: self.balances.values().copied().map(u128::from).sum(),
            checksum: bookings.fold(0, |checksum, line| crc32c::crc32c_append(checksum, line.as_bytes())),
        }
    }
}

impl Book {
    fn book(&mut self, Transfer { id, from, to, amount }: Transfer) -> Result<(), Reason> {
        if from.as_ref() == Some(&to) {
            return Err(Reason::SameAccount);
        }
        if self.ids.contains(&id) {
            return Err(Reason::IdDuplicate);
        }
        if let Some(from) = &from {
            let balance = self.balances.get(from).ok_or(Reason::SenderUnknown)?;
            if *balance < amount {
                return Err(Reason::FundsInsufficient);
            }
            if !self.balances.contains_key(&to) {
                return Err(Reason::ReceiverUnknown);
            }
        }
        let before = self.balances.get(&to).copied().unwrap_or(0);
        let after = before.checked_add(amount).ok_or(Reason::BalanceOverflow)?;
        // Only now the state changes.
        self.balances.insert(to, after);
        match from {
            Some(from) => _ = self.balances.entry(from).and_modify(|balance| *balance -= amount),
            None => self.deposited += u128::from(amount),
        }
        self.ids.insert(id);
        Ok(())
    }
}
