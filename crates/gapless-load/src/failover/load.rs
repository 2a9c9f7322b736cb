//! Clients send numbered commands at a rate to the current leader, timed from the scheduled time. No client spins: each
//! sleeps until a reply comes or a command is due.

use super::failed;
use super::ledger::{NOTE, NOTE_LENGTH, NUMBER_MAX, words};
use crate::Result;
use gapless::prelude::*;
use gapless_client::ClientError;
use gapless_measure::reporting::{check_interrupted, is_set};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Sessions of each client, and commands in flight of each session.
pub const SESSIONS: usize = 4;
const WINDOW: u32 = 64;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Limit of one search for the leader; in between a client checks for an interrupt.
const ATTEMPT: Duration = Duration::from_secs(1);

/// Times are ns since the load began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandRecord {
    pub due_ns: u64,
    pub sent_ns: u64,
    /// First reply; 0 without one.
    pub replied_ns: u64,
    /// Count of the owner's numbers, from the reply.
    pub count: u64,
}

#[derive(Debug, Default)]
pub struct ClientRecords {
    pub records: Vec<CommandRecord>,
    /// Replies that wrongly claimed to be the first, or differed from it.
    pub doubled: u64,
    /// Duplicate replies, expected after a resend.
    pub repeated: u64,
    pub reconnected: u64,
}

impl ClientRecords {
    pub fn unanswered(&self) -> u64 {
        self.records.iter().filter(|record| record.replied_ns == 0).count() as u64
    }
}

pub struct FailoverClient<'a> {
    client: PolledClient,
    sessions: Vec<SessionKey>,
    owner: u64,
    seen: ClientRecords,
    unanswered: u64,
    interrupted: &'a AtomicBool,
}

fn stream_failed(error: &ClientError) -> crate::BenchError {
    failed(error.to_string())
}

fn retry_for<T>(
    interrupted: &AtomicBool,
    mut attempt: impl FnMut() -> std::result::Result<T, ClientError>,
) -> Result<T> {
    let since = Instant::now();
    loop {
        fail_if_interrupted(interrupted)?;
        match attempt() {
            Ok(done) => return Ok(done),
            Err(error) if since.elapsed() > TIMEOUT => return Err(stream_failed(&error)),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn fail_if_interrupted(interrupted: &AtomicBool) -> Result<()> {
    check_interrupted(super::NAME, interrupted)
}

impl<'a> FailoverClient<'a> {
    pub fn new(sockets: &[PathBuf], owner: u64, interrupted: &'a AtomicBool) -> Result<Self> {
        let options = ClientOptions { timeout: ATTEMPT, ..ClientOptions::default() };
        let mut client = retry_for(interrupted, || PolledClient::connect_any(sockets, options.clone()))?;
        let tokens = (0..SESSIONS).map(|_| random_token());
        let sessions = tokens.map(|token| retry_for(interrupted, || client.open_session(token, WINDOW)));
        let sessions = sessions.collect::<Result<_>>()?;
        Ok(Self { client, sessions, owner, seen: ClientRecords::default(), unanswered: 0, interrupted })
    }

    /// `false` without room.
    fn send(&mut self, due_ns: u64, begin: Instant) -> Result<bool> {
        let number = self.seen.records.len() as u64 + 1;
        if number > NUMBER_MAX {
            return Err(failed(format!("{NUMBER_MAX} commands are the most that a run may have")));
        }
        let first = number as usize % SESSIONS;
        let in_turn = (first..first + SESSIONS).map(|at| self.sessions[at % SESSIONS]);
        let Some(session) = in_turn.into_iter().find(|session| self.client.can_send(*session)) else {
            return Ok(false);
        };
        let owner = self.owner;
        let encode = |buffer: &mut [u8]| {
            buffer[..8].copy_from_slice(&owner.to_le_bytes());
            buffer[8..16].copy_from_slice(&number.to_le_bytes());
            buffer[16..].fill(0);
            Ok(NOTE_LENGTH)
        };
        // Before sending: the reply may be there when the call returns.
        let sent_ns = elapsed_ns(begin);
        if self.client.enqueue(session, NOTE, NOTE_LENGTH, encode).is_err() {
            // The ring is full. A broken connection is noticed when replies are taken.
            return Ok(false);
        }
        self.seen.records.push(CommandRecord { due_ns, sent_ns, ..CommandRecord::default() });
        self.unanswered += 1;
        Ok(true)
    }

    /// Sleeps up to `timeout`; reconnects to the next leader if the connection is lost.
    fn take(&mut self, timeout: Duration, begin: Instant) -> Result<()> {
        let (seen, unanswered, owner) = (&mut self.seen, &mut self.unanswered, self.owner);
        let mut strange = None;
        let polled = self.client.poll(1024, |incoming| match incoming {
            Incoming::Reply { reply, first, .. } => {
                let found = words(reply.payload).filter(|_| reply.refusal.is_none());
                let Some([of, number, count]) = found else {
                    strange = Some(format!("a command was refused: {:?}", reply.refusal));
                    return;
                };
                let record = number.checked_sub(1).and_then(|at| seen.records.get_mut(at as usize));
                let Some(record) = record.filter(|_| of == owner) else {
                    strange = Some(format!("a reply to number {number} of client {of}, which was not sent"));
                    return;
                };
                if record.replied_ns == 0 {
                    *record = CommandRecord { replied_ns: elapsed_ns(begin), count, ..*record };
                    *unanswered -= 1;
                } else if first || record.count != count {
                    seen.doubled += 1;
                } else {
                    seen.repeated += 1;
                }
            }
            Incoming::SessionLost { .. } => strange = Some("a session is lost".to_owned()),
            Incoming::Opened { .. } | Incoming::Notice { .. } => {}
        });
        if let Some(strange) = strange {
            return Err(failed(strange));
        }
        match polled.and_then(|count| if count == 0 { self.client.wait(timeout) } else { Ok(()) }) {
            Err(ClientError::Disconnected { .. }) => {
                self.seen.reconnected += 1;
                retry_for(self.interrupted, || self.client.reconnect())
            }
            other => other.map_err(|error| stream_failed(&error)),
        }
    }

    /// Sends as fast as replies come; waits for all of them.
    pub fn fill(self, count: u64) -> Result<ClientRecords> {
        self.push(|sent| sent >= count)
    }

    /// Sends as fast as replies come; waits for all of them.
    pub fn flood(self, stop: &AtomicBool) -> Result<ClientRecords> {
        self.push(|_| stop.load(Ordering::Relaxed))
    }

    /// `is_over` gets the number sent.
    fn push(mut self, is_over: impl Fn(u64) -> bool) -> Result<ClientRecords> {
        let (begin, mut progress) = (Instant::now(), (0, Instant::now()));
        while self.unanswered > 0 || !is_over(self.seen.records.len() as u64) {
            fail_if_interrupted(self.interrupted)?;
            while !is_over(self.seen.records.len() as u64) && self.send(elapsed_ns(begin), begin)? {}
            self.take(Duration::from_millis(20), begin)?;
            let sent = self.seen.records.len() as u64;
            let answered = sent - self.unanswered;
            if answered > progress.0 {
                progress = (answered, Instant::now());
            }
            if progress.1.elapsed() > TIMEOUT {
                return Err(failed(format!("{answered} of {sent} commands are answered, and no more")));
            }
        }
        Ok(self.seen)
    }

    /// Sends each `interval_ns` from `offset_ns` on until `stop`, and waits for missing replies.
    pub fn run(
        mut self,
        begin: Instant,
        (interval_ns, offset_ns): (u64, u64),
        stop: &AtomicBool,
    ) -> Result<ClientRecords> {
        let due_at = |number: u64| offset_ns + number * interval_ns;
        let mut stopped: Option<(u64, Instant)> = None;
        loop {
            let now_ns = elapsed_ns(begin);
            if is_set(self.interrupted) {
                return Ok(self.seen);
            }
            if stopped.is_none() && stop.load(Ordering::Relaxed) {
                // Commands due until now are still sent: the load is open.
                stopped = Some((now_ns, Instant::now()));
            }
            let until_ns = stopped.map_or(now_ns, |(until_ns, _)| until_ns);
            let mut due_ns = due_at(self.seen.records.len() as u64);
            while due_ns <= until_ns && self.send(due_ns, begin)? {
                due_ns = due_at(self.seen.records.len() as u64);
            }
            if let Some((_, since)) = stopped {
                let is_done = due_ns > until_ns && self.unanswered == 0;
                if is_done || since.elapsed() > TIMEOUT {
                    return Ok(self.seen);
                }
            }
            // Without room, only a reply makes some, and that ends the sleep.
            let sleep_ns = if due_ns <= until_ns { 1_000_000 } else { due_ns.saturating_sub(elapsed_ns(begin)) };
            let sleep_ns = sleep_ns.clamp(20_000, 5_000_000);
            match self.take(Duration::from_nanos(sleep_ns), begin) {
                // Observations up to an interrupt count.
                Err(_) if is_set(self.interrupted) => return Ok(self.seen),
                taken => taken?,
            };
        }
    }
}

/// Nanoseconds, never 0.
pub fn elapsed_ns(begin: Instant) -> u64 {
    crate::time_sources::elapsed_ns(begin).max(1)
}
