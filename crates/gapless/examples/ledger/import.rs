//! [`ImportRun`]: sends a file's lines to the ledger, in order. The ledger stores the number of the last line in the same
//! step in which it books that line, so the run after a killed one asks for the number and continues after it.

use crate::messages::{Import, StatusOf, Take};
use crate::transfer::{Reason, Transfer};
use crate::transfer_file::{Failure, TransferFile};
use gapless::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const IN_FLIGHT_MAX: usize = 64;
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

pub struct ImportRun {
    pub file: TransferFile,
    /// The same file name is the same import in every run.
    name: String,
    client: blocking::Client,
}

impl ImportRun {
    /// Goes to the line after the last one taken.
    pub fn resume(mut file: TransferFile, client: blocking::Client) -> Result<Self, Failure> {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Import { line, checksum, .. } = client.query(StatusOf(name.clone()))?.import;
        while file.number < line && file.next()? {}
        if (file.number, file.checksum) != (line, checksum) {
            let path = file.path.display();
            return Err(format!("{path} has changed in its first {line} lines; it may only grow at its end").into());
        }
        Ok(Self { file, name, client })
    }

    /// Returns whether it has reached the end of the file, and not been stopped before.
    pub fn send(&mut self, stop: &AtomicBool, lines_per_second: Option<u32>) -> Result<bool, Failure> {
        let (mut in_flight, mut shown_at) = (Vec::new(), Instant::now());
        loop {
            let is_stopped = stop.load(Ordering::Relaxed);
            let is_over = is_stopped || !self.file.next()?;
            if !is_over {
                let TransferFile { line, number, checksum, .. } = &self.file;
                let (file, content) = (self.name.clone(), Transfer::parse(line));
                in_flight.push(self.client.start(Take { file, line: *number, checksum: *checksum, content }));
            }
            let is_progress_due = shown_at.elapsed() >= PROGRESS_INTERVAL;
            if is_over || is_progress_due || in_flight.len() == IN_FLIGHT_MAX {
                for take in in_flight.drain(..) {
                    take.wait().map_err(|error| error.refusal().map_or_else(Failure::from, Failure::from))?;
                }
            }
            if is_over {
                return Ok(!is_stopped);
            }
            if is_progress_due {
                // On a terminal, the next text is longer and replaces this one.
                let end = if stderr().is_terminal() { '\r' } else { '\n' };
                // Standard error may be closed.
                _ = write!(stderr(), "line {} taken{end}", self.file.number);
                shown_at = Instant::now();
            }
            if let Some(rate) = lines_per_second {
                std::thread::sleep(Duration::from_secs(1) / rate);
            }
        }
    }

    /// Report on the import and the ledger, from the ledger's state and the file alone, so the number of runs does not
    /// matter.
    pub fn report(&self) -> Result<String, Failure> {
        let status = self.client.query(StatusOf(self.name.clone()))?;
        let Import { line, refusals, .. } = status.import;
        let mut file = TransferFile::open(&self.file.path)?;
        let (mut report, mut by_reason) = (String::new(), BTreeMap::<Reason, u64>::new());
        for (line, reason) in &refusals {
            while file.number < *line && file.next()? {}
            writeln!(report, "line {line}: {reason}: {}", file.shown_line())?;
            *by_reason.entry(*reason).or_default() += 1;
        }
        let (taken, refused) = (line - 1, refusals.len() as u64);
        writeln!(report, "{}: {taken} lines taken, {} accepted, {refused} refused", self.name, taken - refused)?;
        for (reason, count) in by_reason {
            writeln!(report, "{count:>8} x {reason}")?;
        }
        let (balances, deposited) = (decimal(status.balances), decimal(status.deposited));
        writeln!(report, "the ledger: {} accounts hold {balances}; {deposited} was deposited", status.accounts)?;
        writeln!(report, "checksum of its bookings: {:08x}", status.checksum)?;
        Ok(report)
    }
}

fn decimal(hundredths: u128) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}
