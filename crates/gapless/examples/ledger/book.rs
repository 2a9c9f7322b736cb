//! [`Book`]: the service, a fold of the stream without file, clock or random number.

use crate::fnv;
use crate::messages::{self, Fields, Progress, Take, Totals};
use crate::reason::Reason;
use crate::transfer::{AccountName, Transfer};
use gapless::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Limit of bad lines of an import.
pub const REFUSALS_MAX: usize = 100_000;

#[derive(Default)]
pub struct Book {
    /// Hundredths.
    balances: BTreeMap<AccountName, u64>,
    ids: BTreeSet<u64>,
    deposited: u128,
    imports: BTreeMap<u128, Import>,
}

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

impl Service for Book {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers
            .on_bytes(messages::PROGRESS.schema, Self::progress)
            .on_bytes(messages::TAKE.schema, Self::take)
            .on_bytes(messages::REFUSALS.schema, Self::refusals)
            .on_bytes(messages::TOTALS.schema, Self::totals);
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        let count = |state: &mut Vec<u8>, length: usize| state.extend_from_slice(&(length as u64).to_le_bytes());
        count(state, self.balances.len());
        for (name, balance) in &self.balances {
            state.extend_from_slice(&name.0);
            state.extend_from_slice(&balance.to_le_bytes());
        }
        count(state, self.ids.len());
        for id in &self.ids {
            state.extend_from_slice(&id.to_le_bytes());
        }
        state.extend_from_slice(&self.deposited.to_le_bytes());
        count(state, self.imports.len());
        for (key, import) in &self.imports {
            state.extend_from_slice(&key.to_le_bytes());
            for number in [import.line, import.fingerprint, import.accepted, import.refusals.len() as u64] {
                state.extend_from_slice(&number.to_le_bytes());
            }
            for (line, reason) in &import.refusals {
                state.extend_from_slice(&line.to_le_bytes());
                state.push(reason.code());
            }
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        *self = Self::from_snapshot(&mut Fields(state)).ok_or("the ledger's state is cut short or malformed")?;
        Ok(())
    }
}

impl Book {
    fn progress(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let Import { line, fingerprint, .. } = *self.imports.get(&import_of(payload)?).unwrap_or(&Import::default());
        context.reply_with(messages::PROGRESS, &Progress { line, fingerprint }.to_bytes())
    }

    /// A line that is out of order has no effect.
    fn take(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let take = Take::from_bytes(payload).ok_or("malformed line")?;
        let (last, refused) = self.imports.get(&take.import).map_or((1, 0), |own| (own.line, own.refusals.len()));
        if take.line != last + 1 {
            return Err(format!("line {} was due, not line {}", last + 1, take.line).into());
        }
        if refused == REFUSALS_MAX {
            return Err(format!("{REFUSALS_MAX} lines of this file were refused; is it the right one?").into());
        }
        let outcome = take.content.and_then(|transfer| self.book(&transfer));
        let import = self.imports.entry(take.import).or_default();
        import.line = take.line;
        import.fingerprint = take.fingerprint;
        match outcome {
            Ok(()) => import.accepted += 1,
            Err(reason) => import.refusals.push((take.line, reason)),
        }
        context.reply_with(messages::TAKE, &[outcome.map_or_else(Reason::code, |()| 0)])
    }

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

    fn refusals(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let mut fields = Fields(payload);
        let (key, index) = (fields.u128().ok_or("malformed question")?, fields.u64().ok_or("malformed question")?);
        let refusals = self.imports.get(&key).map_or(&[][..], |import| &import.refusals);
        let page = refusals.iter().skip(index as usize).take(messages::REFUSALS_PER_PAGE);
        let page: Vec<u8> =
            page.flat_map(|(line, reason)| [&line.to_le_bytes()[..], &[reason.code()]].concat()).collect();
        context.reply_with(messages::REFUSALS, &page)
    }

    fn totals(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let import = self.imports.get(&import_of(payload)?);
        let totals = Totals {
            accepted: import.map_or(0, |import| import.accepted),
            refused: import.map_or(0, |import| import.refusals.len() as u64),
            accounts: self.balances.len() as u64,
            deposited: self.deposited,
            balances: self.balances.values().copied().map(u128::from).sum(),
            fingerprint: self.fingerprint(),
        };
        context.reply_with(messages::TOTALS, &totals.to_bytes())
    }

    /// Equal states have equal fingerprints, regardless of their history.
    fn fingerprint(&self) -> u64 {
        let mut state = Vec::new();
        self.snapshot(&mut state);
        fnv::extend(fnv::EMPTY, &state)
    }

    fn from_snapshot(fields: &mut Fields<'_>) -> Option<Self> {
        let mut book = Self::default();
        for _ in 0..fields.u64()? {
            book.balances.insert(AccountName(fields.take()?), fields.u64()?);
        }
        for _ in 0..fields.u64()? {
            book.ids.insert(fields.u64()?);
        }
        book.deposited = fields.u128()?;
        for _ in 0..fields.u64()? {
            let key = fields.u128()?;
            let (line, fingerprint, accepted) = (fields.u64()?, fields.u64()?, fields.u64()?);
            let mut import = Import { line, fingerprint, accepted, refusals: Vec::new() };
            for _ in 0..fields.u64()? {
                import.refusals.push((fields.u64()?, Reason::from_code(fields.u8()?)?));
            }
            book.imports.insert(key, import);
        }
        fields.end(book)
    }
}

fn import_of(payload: &[u8]) -> Result<u128, Reject> {
    payload.try_into().map(u128::from_le_bytes).map_err(|_| "malformed question".into())
}
