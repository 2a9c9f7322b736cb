//! Messages between the program and the ledger, byte by byte. All numbers little-endian.
//!
//! ```text
//! Progress     import u128                          →  line u64, fingerprint u64
//! Take         import u128, line u64, fingerprint   →  reason u8; 0 for an accepted line
//!              u64, reason u8, padding [u8; 7],
//!              id u64, amount u64, from [u8; 16],
//!              to [u8; 16]
//! Refusals     import u128, index u64               →  for each from that index on, at most
//!                                                      4,096: line u64, reason u8
//! Totals       import u128                          →  accepted u64, refused u64, accounts u64,
//!                                                      deposited u128, balances u128, fingerprint u64
//! ```
//! An *import* is the import of one file; its number is the fingerprint of the file's name.

use crate::reason::Reason;
use crate::transfer::{AccountName, Transfer};
use gapless::prelude::{Encoding, MessageType};

pub const PROGRESS: MessageType = message(1);
pub const TAKE: MessageType = message(2);
pub const REFUSALS: MessageType = message(3);
pub const TOTALS: MessageType = message(4);

/// Limit of refusals in one answer.
pub const REFUSALS_PER_PAGE: usize = 4096;

const fn message(template: u32) -> MessageType {
    MessageType { schema: 20 << 16 | template, encoding: Encoding::Opaque }
}

pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub fn u128(&mut self) -> Option<u128> {
        self.take().map(u128::from_le_bytes)
    }

    pub fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Last line taken; 1, the header, before any.
    pub line: u64,
    pub fingerprint: u64,
}

impl Progress {
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.line.to_le_bytes());
        bytes[8..].copy_from_slice(&self.fingerprint.to_le_bytes());
        bytes
    }

    pub fn from_bytes(payload: &[u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        let progress = Self { line: fields.u64()?, fingerprint: fields.u64()? };
        fields.end(progress)
    }
}

/// An invalid line is sent, too: its refusal is as durable as a booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    pub import: u128,
    pub line: u64,
    pub fingerprint: u64,
    pub content: Result<Transfer, Reason>,
}

impl Take {
    pub const LENGTH: usize = 88;

    pub fn write_to(&self, payload: &mut [u8]) {
        let nothing = Transfer { id: 0, from: AccountName::OUTSIDE, to: AccountName::OUTSIDE, amount: 0 };
        let (code, transfer) = match self.content {
            Ok(transfer) => (0, transfer),
            Err(reason) => (reason.code(), nothing),
        };
        payload[..16].copy_from_slice(&self.import.to_le_bytes());
        payload[16..24].copy_from_slice(&self.line.to_le_bytes());
        payload[24..32].copy_from_slice(&self.fingerprint.to_le_bytes());
        payload[32..40].copy_from_slice(&u64::from(code).to_le_bytes());
        payload[40..48].copy_from_slice(&transfer.id.to_le_bytes());
        payload[48..56].copy_from_slice(&transfer.amount.to_le_bytes());
        payload[56..72].copy_from_slice(&transfer.from.0);
        payload[72..88].copy_from_slice(&transfer.to.0);
    }

    pub fn from_bytes(payload: &[u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        let (import, line, fingerprint) = (fields.u128()?, fields.u64()?, fields.u64()?);
        let [code, padding @ ..] = fields.take::<8>()?;
        let (id, amount) = (fields.u64()?, fields.u64()?);
        let transfer = Transfer { id, from: AccountName(fields.take()?), to: AccountName(fields.take()?), amount };
        let content = if code == 0 { Ok(transfer) } else { Err(Reason::from_code(code)?) };
        (padding == [0; 7]).then_some(())?;
        fields.end(Self { import, line, fingerprint, content })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    pub accepted: u64,
    pub refused: u64,
    pub accounts: u64,
    pub deposited: u128,
    pub balances: u128,
    pub fingerprint: u64,
}

impl Totals {
    pub fn to_bytes(self) -> Vec<u8> {
        let numbers = [self.accepted, self.refused, self.accounts].map(u64::to_le_bytes).concat();
        let sums = [self.deposited, self.balances].map(u128::to_le_bytes).concat();
        [numbers, sums, self.fingerprint.to_le_bytes().to_vec()].concat()
    }

    pub fn from_bytes(payload: &[u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        let totals = Self {
            accepted: fields.u64()?,
            refused: fields.u64()?,
            accounts: fields.u64()?,
            deposited: fields.u128()?,
            balances: fields.u128()?,
            fingerprint: fields.u64()?,
        };
        fields.end(totals)
    }
}
