use crate::transfer_file::LINE_LENGTH_MAX;
use gapless::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, State)]
pub struct Transfer {
    pub id: u64,
    /// `None` for a deposit, which opens its account if it is new.
    pub from: Option<String>,
    pub to: String,
    /// Hundredths.
    pub amount: u64,
}

impl Transfer {
    /// `line` has no line end. The error is the first fault from the left.
    pub fn parse(line: &[u8]) -> Result<Self, Reason> {
        match line.len() {
            0 => return Err(Reason::LineEmpty),
            1..=LINE_LENGTH_MAX => {}
            _ => return Err(Reason::LineTooLong),
        }
        let columns = columns(str::from_utf8(line).map_err(|_| Reason::NotUtf8)?)?;
        let [id, from, to, amount, _note] = columns.try_into().map_err(|_| Reason::ColumnsCount)?;
        let id = id.parse().ok().filter(|number| is_digits(&id) && *number > 0).ok_or(Reason::IdMalformed)?;
        if !is_account(&from) || !is_account(&to) {
            return Err(Reason::AccountMalformed);
        }
        if to.is_empty() {
            return Err(Reason::ReceiverMissing);
        }
        Ok(Self { id, from: (!from.is_empty()).then_some(from), to, amount: parse_amount(&amount)? })
    }
}

/// Columns of a line. A column may be quoted as a whole, with quotes in it doubled.
fn columns(line: &str) -> Result<Vec<String>, Reason> {
    let mut is_quoted = false;
    let is_end = |character| {
        is_quoted ^= character == '"';
        character == ',' && !is_quoted
    };
    line.split(is_end).map(unquote).collect()
}

fn unquote(column: &str) -> Result<String, Reason> {
    if !column.contains('"') {
        return Ok(column.to_owned());
    }
    let text = column.strip_prefix('"').and_then(|text| text.strip_suffix('"')).ok_or(Reason::Quoting)?;
    let is_doubled = !text.split("\"\"").any(|part| part.contains('"'));
    is_doubled.then(|| text.replace("\"\"", "\"")).ok_or(Reason::Quoting)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_account(text: &str) -> bool {
    text.len() <= 16 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

/// Parses "12", "12.3" or "12.34", in hundredths.
fn parse_amount(text: &str) -> Result<u64, Reason> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
    if !is_digits(whole) || !is_digits(decimals) || decimals.len() > 2 {
        return Err(Reason::AmountMalformed);
    }
    if text.starts_with('-') {
        return Err(Reason::AmountNegative);
    }
    match format!("{whole}{decimals:0<2}").parse() {
        Ok(0) => Err(Reason::AmountZero),
        hundredths => hundredths.map_err(|_| Reason::AmountOverflow),
    }
}

/// Fault of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, State, thiserror::Error)]
pub enum Reason {
    #[error("line too long")]
    LineTooLong,
    #[error("empty line")]
    LineEmpty,
    #[error("not UTF-8")]
    NotUtf8,
    #[error("bad quoting")]
    Quoting,
    #[error("not five columns")]
    ColumnsCount,
    #[error("malformed id")]
    IdMalformed,
    #[error("malformed account")]
    AccountMalformed,
    #[error("no receiver")]
    ReceiverMissing,
    #[error("malformed amount")]
    AmountMalformed,
    #[error("negative amount")]
    AmountNegative,
    #[error("zero amount")]
    AmountZero,
    #[error("amount too large")]
    AmountOverflow,
    #[error("sender is receiver")]
    SameAccount,
    #[error("duplicate id")]
    IdDuplicate,
    #[error("unknown sender")]
    SenderUnknown,
    #[error("unknown receiver")]
    ReceiverUnknown,
    #[error("insufficient funds")]
    FundsInsufficient,
    #[error("balance too large")]
    BalanceOverflow,
}
