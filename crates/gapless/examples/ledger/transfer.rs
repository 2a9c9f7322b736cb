use crate::reason::Reason;
use gapless::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;

pub const HEADER: &str = "id,from,to,amount,note";
const COLUMNS: usize = 5;

/// 1 to 16 letters, digits, dots, hyphens and underscores, padded with zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, State)]
pub struct AccountName(pub [u8; 16]);

impl AccountName {
    /// The other side of a deposit.
    pub const OUTSIDE: Self = Self([0; 16]);

    fn parse(text: &str) -> Result<Self, Reason> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let mut name = [0; 16];
        match name.get_mut(..text.len()) {
            Some(room) if text.bytes().all(allowed) => room.copy_from_slice(text.as_bytes()),
            _ => return Err(Reason::AccountMalformed),
        }
        Ok(Self(name))
    }
}

/// Hundredths, shown with two decimals and commas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount(pub u128);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", with_commas(self.0 / 100), self.0 % 100)
    }
}

pub fn with_commas(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, State)]
pub struct Transfer {
    pub id: u64,
    /// [`AccountName::OUTSIDE`] for a deposit, which opens its account if it is new.
    pub from: AccountName,
    pub to: AccountName,
    pub amount: u64,
}

impl Transfer {
    /// `line` has no line end. The error is the first fault from the left.
    pub fn parse(line: &[u8]) -> Result<Self, Reason> {
        if line.is_empty() {
            return Err(Reason::LineEmpty);
        }
        let line = std::str::from_utf8(line).map_err(|_| Reason::NotUtf8)?;
        let fields = split(line)?;
        let [id, from, to, amount, _note] = match fields.as_slice() {
            fields if fields.len() < COLUMNS => return Err(Reason::ColumnsMissing),
            fields => <&[String; COLUMNS]>::try_from(fields).map_err(|_| Reason::ColumnsSurplus)?,
        };
        let id = if is_digits(id) { id.parse().unwrap_or(0) } else { 0 };
        if id == 0 {
            return Err(Reason::IdMalformed);
        }
        let (from, to) = (AccountName::parse(from)?, AccountName::parse(to)?);
        if to == AccountName::OUTSIDE {
            return Err(Reason::ReceiverMissing);
        }
        Ok(Self { id, from, to, amount: parse_amount(amount)? })
    }
}

/// A column may be quoted as a whole, with quotes in it doubled.
fn split(line: &str) -> Result<Vec<String>, Reason> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let mut field = String::new();
        if let Some(mut quoted) = rest.strip_prefix('"') {
            rest = loop {
                let (text, behind) = quoted.split_once('"').ok_or(Reason::Quoting)?;
                field.push_str(text);
                let Some(more) = behind.strip_prefix('"') else { break behind };
                field.push('"');
                quoted = more;
            };
        } else {
            let (text, behind) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
            if text.contains('"') {
                return Err(Reason::Quoting);
            }
            field.push_str(text);
            rest = behind;
        }
        fields.push(field);
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None if rest.is_empty() => return Ok(fields),
            None => return Err(Reason::Quoting),
        }
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses "12", "12.3" or "12.34", in hundredths.
fn parse_amount(text: &str) -> Result<u64, Reason> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
    if !is_digits(whole) || !is_digits(decimals) || decimals.len() > 2 {
        return Err(Reason::AmountMalformed);
    }
    if is_negative {
        return Err(Reason::AmountNegative);
    }
    let hundredths = format!("{whole}{decimals:0<2}").parse().map_err(|_| Reason::AmountOverflow)?;
    if hundredths == 0 { Err(Reason::AmountZero) } else { Ok(hundredths) }
}
