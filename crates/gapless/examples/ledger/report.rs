use crate::messages::Totals;
use crate::reason::Reason;
use crate::transfer::{Amount, with_commas};
use crate::transfer_file::{Failure, open, shown};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

pub fn write(path: &Path, refusals: &[(u64, Reason)], totals: &Totals) -> Result<String, Failure> {
    let mut report = String::new();
    let mut lines = open(path)?;
    for (line, reason) in refusals {
        while lines.number() < *line && lines.next()? {}
        writeln!(report, "line {line}: {reason}: {}", shown(lines.text()))?;
    }
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let [taken, accepted, refused, accounts] =
        [totals.accepted + totals.refused, totals.accepted, totals.refused, totals.accounts]
            .map(|number| with_commas(number.into()));
    writeln!(report, "{name}: {taken} lines taken, {accepted} accepted, {refused} refused")?;
    let mut by_reason = BTreeMap::<Reason, u64>::new();
    for (_, reason) in refusals {
        *by_reason.entry(*reason).or_default() += 1;
    }
    for (reason, count) in by_reason {
        writeln!(report, "  {reason:<20}{count:>8}")?;
    }
    let (balances, deposited) = (Amount(totals.balances), Amount(totals.deposited));
    writeln!(report, "the ledger: {accounts} accounts hold {balances}; {deposited} was deposited")?;
    writeln!(report, "its fingerprint: {:016x}", totals.fingerprint)?;
    Ok(report)
}
