//! Expected output of the example `ledger`, computed without any of its code.

#![allow(clippy::unwrap_used, reason = "this is a test")]

use std::collections::{BTreeMap, HashSet};

const REASONS: [&str; 18] = [
    "line too long",
    "empty line",
    "not UTF-8",
    "bad quoting",
    "not five columns",
    "malformed id",
    "malformed account",
    "no receiver",
    "malformed amount",
    "negative amount",
    "zero amount",
    "amount too large",
    "sender is receiver",
    "duplicate id",
    "unknown sender",
    "unknown receiver",
    "insufficient funds",
    "balance too large",
];

pub fn expected_report(name: &str, content: &[u8]) -> String {
    let mut balances = BTreeMap::<String, i128>::new();
    let mut ids = HashSet::<u64>::new();
    let (mut deposited, mut accepted) = (0_i128, 0_u64);
    let mut refused = Vec::<(usize, &str)>::new();
    let mut report = String::new();
    let mut lines: Vec<&[u8]> = content.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    for (index, line) in lines.iter().enumerate().skip(1) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match read(line).and_then(|(id, from, to, amount)| {
            if from == to {
                return Err("sender is receiver");
            }
            if ids.contains(&id) {
                return Err("duplicate id");
            }
            if !from.is_empty() {
                let balance = balances.get(&from).ok_or("unknown sender")?;
                if *balance < amount {
                    return Err("insufficient funds");
                }
                if !balances.contains_key(&to) {
                    return Err("unknown receiver");
                }
            }
            if balances.get(&to).unwrap_or(&0) + amount > i128::from(u64::MAX) {
                return Err("balance too large");
            }
            ids.insert(id);
            *balances.entry(to).or_default() += amount;
            match balances.get_mut(&from) {
                Some(balance) => *balance -= amount,
                None => deposited += amount,
            }
            Ok(())
        }) {
            Ok(()) => accepted += 1,
            Err(reason) => {
                refused.push((index + 1, reason));
                report += &format!("line {}: {reason}: {}\n", index + 1, printable(line));
            }
        }
    }
    let taken = lines.len() - 1;
    report += &format!("{name}: {taken} lines taken, {accepted} accepted, {} refused\n", refused.len());
    for reason in REASONS {
        let count = refused.iter().filter(|(_, other)| *other == reason).count();
        if count > 0 {
            report += &format!("{count:>8} x {reason}\n");
        }
    }
    let sum: i128 = balances.values().sum();
    report += &format!(
        "the ledger: {} accounts hold {}.{:02}; {}.{:02} was deposited\n",
        balances.len(),
        sum / 100,
        sum % 100,
        deposited / 100,
        deposited % 100
    );
    report + &format!("checksum of its bookings: {:08x}\n", crc32c(bookings(&balances, &ids).as_bytes()))
}

fn bookings(balances: &BTreeMap<String, i128>, ids: &HashSet<u64>) -> String {
    let mut text = String::new();
    for (account, balance) in balances {
        text += &format!("{account} {balance}\n");
    }
    let mut ids: Vec<u64> = ids.iter().copied().collect();
    ids.sort_unstable();
    for id in ids {
        text += &format!("{id}\n");
    }
    text
}

fn read(line: &[u8]) -> Result<(u64, String, String, i128), &'static str> {
    if line.len() > 4096 {
        return Err("line too long");
    }
    if line.is_empty() {
        return Err("empty line");
    }
    let text = String::from_utf8(line.to_vec()).map_err(|_| "not UTF-8")?;
    let columns = columns(&text).ok_or("bad quoting")?;
    if columns.len() != 5 {
        return Err("not five columns");
    }
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let id = columns[0].parse::<u64>().ok().filter(|id| *id > 0 && digits(&columns[0])).ok_or("malformed id")?;
    for account in &columns[1..3] {
        let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if account.len() > 16 || !account.chars().all(is_good) {
            return Err("malformed account");
        }
    }
    if columns[2].is_empty() {
        return Err("no receiver");
    }
    let amount = &columns[3];
    let unsigned = amount.strip_prefix('-').unwrap_or(amount);
    let parts: Vec<&str> = unsigned.split('.').collect();
    let is_good = match parts[..] {
        [whole] => digits(whole),
        [whole, decimals] => digits(whole) && digits(decimals) && decimals.len() <= 2,
        _ => false,
    };
    if !is_good {
        return Err("malformed amount");
    }
    if unsigned != amount {
        return Err("negative amount");
    }
    let whole: i128 = parts[0].parse().map_err(|_| "amount too large")?;
    let decimals: i128 = match parts.get(1) {
        None => 0,
        Some(one) if one.len() == 1 => one.parse::<i128>().unwrap() * 10,
        Some(two) => two.parse().unwrap(),
    };
    match whole.checked_mul(100).map(|hundredths| hundredths + decimals) {
        Some(0) => Err("zero amount"),
        Some(hundredths) if hundredths <= i128::from(u64::MAX) => {
            Ok((id, columns[1].clone(), columns[2].clone(), hundredths))
        }
        _ => Err("amount too large"),
    }
}

fn columns(text: &str) -> Option<Vec<String>> {
    enum At {
        Begin,
        Plain,
        Quoted,
        QuoteInQuoted,
    }
    let mut columns = vec![String::new()];
    let mut at = At::Begin;
    for c in text.chars() {
        let column = columns.last_mut().unwrap();
        at = match (at, c) {
            (At::Begin | At::Plain | At::QuoteInQuoted, ',') => {
                columns.push(String::new());
                At::Begin
            }
            (At::Begin, '"') => At::Quoted,
            (At::Plain, '"') => return None,
            (At::Quoted, '"') => At::QuoteInQuoted,
            (At::QuoteInQuoted, '"') | (At::Quoted, _) => {
                column.push(c);
                At::Quoted
            }
            (At::QuoteInQuoted, _) => return None,
            (At::Begin | At::Plain, _) => {
                column.push(c);
                At::Plain
            }
        };
    }
    (!matches!(at, At::Quoted)).then_some(columns)
}

fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(400)]).replace(char::is_control, "\u{fffd}");
    if text.chars().count() > 80 { text.chars().take(80).chain(['…']).collect() } else { text }
}

fn crc32c(bytes: &[u8]) -> u32 {
    let mut register = u32::MAX;
    for byte in bytes {
        register ^= u32::from(*byte);
        for _ in 0..8 {
            register = (register >> 1) ^ if register & 1 == 1 { 0x82f6_3b78 } else { 0 };
        }
    }
    !register
}
