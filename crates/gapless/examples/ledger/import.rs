//! [`Import`]: sends a file's lines to the ledger, in order. The ledger stores the number of the last line in the same
//! step in which it books that line, so the run after a killed one asks for the number and continues after it.

use crate::fnv;
use crate::lines::Lines;
use crate::messages::{NotTaken, Progress, ProgressOf, REFUSALS_PER_PAGE, Refusals, RefusalsFrom, Take, TotalsOf};
use crate::progress::ProgressLine;
use crate::reason::Reason;
use crate::transfer::{Transfer, with_commas};
use crate::transfer_file::Failure;
use gapless::Running;
use gapless::prelude::*;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const IN_FLIGHT_MAX: usize = 64;

pub struct Import<'a> {
    path: PathBuf,
    key: u128,
    lines: Lines,
    host: &'a Running,
    client: blocking::Client,
    in_flight: VecDeque<blocking::Started<Take>>,
    lines_per_second: Option<u32>,
}

impl<'a> Import<'a> {
    /// Connects to the ledger and goes to the line after the last one taken.
    pub fn resume(
        host: &'a Running,
        path: &Path,
        lines: Lines,
        lines_per_second: Option<u32>,
    ) -> Result<(Self, u64), Failure> {
        // The same file name is the same import in every run.
        let key = fnv::wide(path.file_name().unwrap_or(path.as_os_str()).as_encoded_bytes());
        let (client, in_flight) = (host.blocking_client()?, VecDeque::new());
        let mut import = Self { path: path.to_owned(), key, lines, host, client, in_flight, lines_per_second };
        let Progress { line, fingerprint } = import.client.query(ProgressOf { import: key })?;
        while import.lines.number() < line {
            if !import.lines.next()? {
                break;
            }
        }
        if line > 1 && (import.lines.number(), import.lines.fingerprint()) != (line, fingerprint) {
            return Err(format!(
                "{} is not what it was when its first {} lines were taken, so nothing is taken from it now; lines may \
                 be added at its end, but other transfers belong into a file with another name",
                path.display(),
                with_commas(line.into())
            )
            .into());
        }
        Ok((import, line))
    }

    pub fn run(&mut self, stop: &AtomicBool, progress: &mut ProgressLine) -> Result<bool, Failure> {
        let began = Instant::now();
        let (mut sent, mut is_ended) = (0, false);
        loop {
            let is_stopped = stop.load(Ordering::Relaxed);
            while !is_ended && !is_stopped && self.in_flight.len() < IN_FLIGHT_MAX && self.is_due(sent, began) {
                is_ended = !self.lines.next()?;
                if !is_ended {
                    self.send_line();
                    sent += 1;
                }
            }
            progress.show(self.lines.number() - self.in_flight.len() as u64, self.lines.bytes_read());
            match self.in_flight.pop_front() {
                Some(first) => first.wait().map_err(|error| self.failure(error))?,
                None if is_ended || is_stopped => {
                    progress.clear();
                    return Ok(is_ended);
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    pub const fn line(&self) -> u64 {
        self.lines.number()
    }

    fn is_due(&self, sent: u32, began: Instant) -> bool {
        self.lines_per_second.is_none_or(|rate| began.elapsed() >= Duration::from_secs(1) * sent / rate)
    }

    fn send_line(&mut self) {
        let lines = &self.lines;
        let content = if lines.is_too_long() { Err(Reason::LineTooLong) } else { Transfer::parse(lines.text()) };
        let take = Take { import: self.key, line: lines.number(), fingerprint: lines.fingerprint(), content };
        self.in_flight.push_back(self.client.start(take));
    }

    fn failure(&self, error: CallError<NotTaken>) -> Failure {
        let reason = match error {
            CallError::Refused(refusal) => refusal.to_string(),
            error => self.host.status().failure.unwrap_or_else(|| error.to_string()),
        };
        format!("the ledger takes no more of {}: {reason}", self.path.display()).into()
    }

    /// Report on the import and the ledger, from the ledger's state and the file alone, so the number of runs does not
    /// matter.
    pub fn report(&self) -> Result<String, Failure> {
        let mut refusals = Vec::new();
        loop {
            let index = refusals.len() as u64;
            let Refusals(page) = self.client.query(RefusalsFrom { import: self.key, index })?;
            let is_last = page.len() < REFUSALS_PER_PAGE;
            refusals.extend(page);
            if is_last {
                break;
            }
        }
        let totals = self.client.query(TotalsOf { import: self.key })?;
        crate::report::write(&self.path, &refusals, &totals)
    }
}
