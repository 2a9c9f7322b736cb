//! [`Import`]: sends a file's lines to the ledger, in order. The ledger stores the number of the last line in the same
//! step in which it books that line, so the run after a killed one asks for the number and continues after it.

use crate::fnv;
use crate::lines::Lines;
use crate::messages::{self, Fields, Progress, REFUSALS_PER_PAGE, Take, Totals};
use crate::progress::ProgressLine;
use crate::reason::Reason;
use crate::transfer::{Transfer, with_commas};
use crate::transfer_file::Failure;
use gapless::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const WINDOW_MESSAGES: u32 = 64;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

pub struct Import<'a> {
    path: PathBuf,
    key: u128,
    lines: Lines,
    host: &'a ServiceHost,
    client: PolledClient,
    session: SessionKey,
    lines_per_second: Option<u32>,
}

impl<'a> Import<'a> {
    /// Connects to the ledger and goes to the line after the last one taken.
    pub fn resume(
        host: &'a ServiceHost,
        path: &Path,
        lines: Lines,
        lines_per_second: Option<u32>,
    ) -> Result<(Self, u64), Failure> {
        let name = path.file_name().unwrap_or(path.as_os_str());
        // The same file name is the same import, and the same session, in every run.
        let key = fnv::wide(name.as_encoded_bytes());
        let mut client = host.connect(ClientOptions { timeout: ANSWER_TIMEOUT, ..ClientOptions::default() })?;
        let session = client.open_session(key, WINDOW_MESSAGES)?;
        let mut import = Self { path: path.to_owned(), key, lines, host, client, session, lines_per_second };
        let answer = import.ask(messages::PROGRESS, &key.to_le_bytes())?;
        let taken = Progress::from_bytes(&answer).ok_or("the ledger's answer is malformed")?;
        while import.lines.number() < taken.line {
            if !import.lines.next()? {
                break;
            }
        }
        if taken.line > 1 && (import.lines.number(), import.lines.fingerprint()) != (taken.line, taken.fingerprint) {
            return Err(format!(
                "{} is not what it was when its first {} lines were taken, so nothing is taken from it now; lines may \
                 be added at its end, but other transfers belong into a file with another name",
                path.display(),
                with_commas(taken.line.into())
            )
            .into());
        }
        Ok((import, taken.line))
    }

    pub fn run(&mut self, stop: &AtomicBool, progress: &mut ProgressLine) -> Result<bool, Failure> {
        let began = Instant::now();
        let (mut sent, mut is_ended) = (0, false);
        loop {
            let is_stopped = stop.load(Ordering::Relaxed);
            while !is_ended && !is_stopped && self.client.can_send(self.session) && self.is_due(sent, began) {
                is_ended = !self.lines.next()?;
                if !is_ended {
                    self.send_line()?;
                    sent += 1;
                }
            }
            let in_flight = self.client.in_flight(self.session);
            progress.show(self.lines.number() - u64::from(in_flight), self.lines.bytes_read());
            if in_flight == 0 && (is_ended || is_stopped) {
                progress.clear();
                return Ok(is_ended);
            }
            self.take_answers()?;
        }
    }

    pub const fn line(&self) -> u64 {
        self.lines.number()
    }

    fn is_due(&self, sent: u32, began: Instant) -> bool {
        self.lines_per_second.is_none_or(|rate| began.elapsed() >= Duration::from_secs(1) * sent / rate)
    }

    fn send_line(&mut self) -> Result<(), StreamError> {
        let lines = &self.lines;
        let content = if lines.is_too_long() { Err(Reason::LineTooLong) } else { Transfer::parse(lines.text()) };
        let take = Take { import: self.key, line: lines.number(), fingerprint: lines.fingerprint(), content };
        self.client.enqueue(self.session, messages::TAKE, Take::LENGTH, |payload| {
            take.write_to(payload);
            Ok(Take::LENGTH)
        })?;
        Ok(())
    }

    fn take_answers(&mut self) -> Result<(), Failure> {
        let mut objection = None;
        let polled = self.client.poll(usize::MAX, |incoming| match incoming {
            Incoming::Reply { reply, .. } => {
                objection = objection.take().or(reply.refusal.map(|refusal| refusal.text.to_owned()));
            }
            Incoming::SessionLost { .. } => objection = Some("the session is lost; run again to go on".to_owned()),
            Incoming::Opened { .. } | Incoming::Notice { .. } => {}
        });
        if let Some(objection) = objection {
            return Err(format!("the ledger takes no more of {}: {objection}", self.path.display()).into());
        }
        let moment = Duration::from_millis(if self.lines_per_second.is_some() { 1 } else { 50 });
        let waited = match polled {
            Ok(0) => self.client.wait(moment),
            other => other.map(|_| ()),
        };
        match (self.host.failure(), waited) {
            (Some(failure), _) => Err(failure.into()),
            (None, waited) => Ok(waited?),
        }
    }

    /// Questions are commands, too, and have their place in the order.
    fn ask(&mut self, question: MessageType, payload: &[u8]) -> Result<Vec<u8>, Failure> {
        match self.client.call(self.session, question, payload, ANSWER_TIMEOUT) {
            Ok(reply) => Ok(reply.payload),
            Err(error) => Err(self.host.failure().map_or_else(|| error.into(), Into::into)),
        }
    }

    fn refusals(&mut self) -> Result<Vec<(u64, Reason)>, Failure> {
        let mut refusals = Vec::new();
        loop {
            let index = (refusals.len() as u64).to_le_bytes();
            let answer = self.ask(messages::REFUSALS, &[&self.key.to_le_bytes()[..], &index].concat())?;
            let mut fields = Fields(&answer);
            while let (Some(line), Some(code)) = (fields.u64(), fields.u8()) {
                refusals.push((line, Reason::from_code(code).ok_or("the ledger's answer is malformed")?));
            }
            if answer.len() < REFUSALS_PER_PAGE * 9 {
                return Ok(refusals);
            }
        }
    }

    /// Report on the import and the ledger, from the ledger's state and the file alone, so the number of runs does not
    /// matter.
    pub fn report(&mut self) -> Result<String, Failure> {
        let refusals = self.refusals()?;
        let answer = self.ask(messages::TOTALS, &self.key.to_le_bytes())?;
        let totals = Totals::from_bytes(&answer).ok_or("the ledger's answer is malformed")?;
        crate::report::write(&self.path, &refusals, &totals)
    }
}
