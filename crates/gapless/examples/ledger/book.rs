//! [`Book`]: the service, a fold of the stream without file, clock or random number.

use crate::fnv;
use crate::messages::{
    NotTaken, Progress, ProgressOf, REFUSALS_PER_PAGE, Refusals, RefusalsFrom, Take, Totals, TotalsOf,
};
use crate::reason::Reason;
use crate::transfer::{AccountName, Transfer};
use gapless::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Limit of bad lines of an import.
pub const REFUSALS_MAX: usize = 10_000;

#[derive(Default, Serialize, Deserialize, State)]
pub struct Book {
    /// Hundredths.
    balances: BTreeMap<AccountName, u64>,
    ids: BTreeSet<u64>,
    deposited: u128,
    imports: BTreeMap<u128, Import>,
}

#[derive(Serialize, Deserialize, State)]
struct Import {
    line: u64,
    fingerprint: u64,
    accepted: u64,
    refusals: Vec<(u64, Reason)>,
}

impl Default for Import {
    fn default() -> Self {
        // Line 1 is the header.
        Self { line: 1, fingerprint: 0, accepted: 0, refusals: Vec::new() }
    }
}

#[gapless::service]
impl Book {
    /// A line that is out of order has no effect.
    #[command]
    fn take(&mut self, take: Take) -> Result<(), NotTaken> {
        let (last, refused) = self.imports.get(&take.import).map_or((1, 0), |own| (own.line, own.refusals.len()));
        if take.line != last + 1 {
            return Err(NotTaken::OutOfOrder { due: last + 1, line: take.line });
        }
        if refused == REFUSALS_MAX {
            return Err(NotTaken::TooManyBadLines(REFUSALS_MAX as u64));
        }
        let outcome = take.content.and_then(|transfer| self.book(&transfer));
        let import = self.imports.entry(take.import).or_default();
        import.line = take.line;
        import.fingerprint = take.fingerprint;
        match outcome {
            Ok(()) => import.accepted += 1,
            Err(reason) => import.refusals.push((take.line, reason)),
        }
        Ok(())
    }

    #[query]
    fn progress(&self, ProgressOf { import }: ProgressOf) -> Progress {
        let (line, fingerprint) = self.imports.get(&import).map_or((1, 0), |own| (own.line, own.fingerprint));
        Progress { line, fingerprint }
    }

    #[query]
    fn refusals(&self, RefusalsFrom { import, index }: RefusalsFrom) -> Refusals {
        let refusals = self.imports.get(&import).map_or(&[][..], |import| &import.refusals);
        Refusals(refusals.iter().skip(index as usize).take(REFUSALS_PER_PAGE).copied().collect())
    }

    #[query]
    fn totals(&self, TotalsOf { import }: TotalsOf) -> Totals {
        let import = self.imports.get(&import);
        Totals {
            accepted: import.map_or(0, |import| import.accepted),
            refused: import.map_or(0, |import| import.refusals.len() as u64),
            accounts: self.balances.len() as u64,
            deposited: self.deposited,
            balances: self.balances.values().copied().map(u128::from).sum(),
            fingerprint: self.fingerprint(),
        }
    }
}

impl Book {
    fn book(&mut self, transfer: &Transfer) -> Result<(), Reason> {
        let Transfer { id, from, to, amount } = *transfer;
        let is_deposit = from == AccountName::OUTSIDE;
        if from == to {
            return Err(Reason::SameAccount);
        }
        if self.ids.contains(&id) {
            return Err(Reason::IdDuplicate);
        }
        let left = if is_deposit {
            0
        } else {
            let balance = self.balances.get(&from).ok_or(Reason::SenderUnknown)?;
            balance.checked_sub(amount).ok_or(Reason::FundsInsufficient)?
        };
        let before = match self.balances.get(&to) {
            Some(balance) => *balance,
            None if is_deposit => 0,
            None => return Err(Reason::ReceiverUnknown),
        };
        let after = before.checked_add(amount).ok_or(Reason::BalanceOverflow)?;
        self.balances.insert(to, after);
        if is_deposit {
            self.deposited += u128::from(amount);
        } else {
            self.balances.insert(from, left);
        }
        self.ids.insert(id);
        Ok(())
    }

    /// Equal bookings have equal fingerprints, regardless of their history.
    fn fingerprint(&self) -> u64 {
        let balances = self
            .balances
            .iter()
            .fold(fnv::EMPTY, |hash, (name, balance)| fnv::extend(fnv::extend(hash, &name.0), &balance.to_le_bytes()));
        let ids = self.ids.iter().fold(balances, |hash, id| fnv::extend(hash, &id.to_le_bytes()));
        fnv::extend(ids, &self.deposited.to_le_bytes())
    }
}
