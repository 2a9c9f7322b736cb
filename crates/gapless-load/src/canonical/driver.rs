//! The driver sends Cars, at a rate or as fast as possible, and takes the replies, in the service's process or in one
//! of its own. The clock includes encoding, reading the replies with both checksums, and noting values; these are
//! compared later.

use super::car::{LENGTH_MAX, SERIAL_NUMBER};
use super::failed;
use super::form::CarFunctions;
use super::processor::{ProcessorState, QUERY};
use crate::histogram::{IntervalRecorder, RecordedRun};
use crate::open_loop::{RateCheck, Schedule, WarmUp};
use crate::resources::{process_cpu_ns, thread_cpu_ns};
use crate::{BenchError, Result};
use gapless::prelude::*;
use gapless_agent::{Clock, PauseTracker, Pauses};
use gapless_client::ClientError;
use gapless_engine::Replica;
use gapless_log::LogError;
use gapless_wire::checksum::crc32c;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CanonicalLoad {
    pub count: u64,
    pub rate_per_s: Option<u64>,
    pub warm_up_ns: u64,
    pub empty_message: bool,
    pub sessions: u64,
    pub repeats_per_million: u32,
    /// Limit of messages without a reply.
    pub in_flight_max: u64,
    /// Messages sent between two polls for replies.
    pub burst_messages: u64,
}

impl CanonicalLoad {
    const fn session_window_messages(&self) -> u32 {
        let is_few = self.rate_per_s.is_some() && self.sessions <= FEW_SESSIONS;
        if is_few { SESSION_WINDOW_MESSAGES_FEW } else { SESSION_WINDOW_MESSAGES }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LoadOutcome {
    /// Less than requested only after an interrupt.
    pub sent: u64,
    pub replied: u64,
    pub repeats: u64,
    pub replies_again: u64,
    pub repeats_differing: u64,
    pub replies_wrong: u64,
    pub refused: Option<(u64, String)>,
    pub counted: u64,
    pub elapsed_ns: u64,
    #[serde(skip)]
    pub progress: Vec<(u64, u64)>,
    pub driver_cpu_ns: u64,
    /// CPU time of the driver's process in the counted section, ns.
    #[serde(skip)]
    pub process_cpu_ns: u64,
    /// Pauses of the driver while it waited, at a rate.
    #[serde(skip)]
    pub pauses: Option<Pauses>,
    /// Pauses of all threads of the service together.
    #[serde(skip)]
    pub service_pauses: Pauses,
    /// Pacing and warm-up, ns.
    #[serde(skip)]
    pub driven_ns: u64,
    pub counted_from_ns: u64,
    /// Latencies from the scheduled times, at a rate.
    pub latencies: RecordedRun,
    pub rate_reached: Option<bool>,
    pub warm_up_cut_short: bool,
    pub payload_bytes: u64,
    /// Change of the service's state.
    pub expected: ProcessorState,
}

#[derive(Debug, Default)]
pub struct DriverSignals {
    pub replied: AtomicU64,
    pub interrupted: AtomicBool,
}

const SESSION_WINDOW_MESSAGES: u32 = 16;
const SESSION_WINDOW_MESSAGES_FEW: u32 = 64;
/// Few sessions at a rate have larger windows, to catch up after a pause of the machine.
const FEW_SESSIONS: u64 = 16;
const REPLIES_PER_LOOK_MIN: usize = 64;
const SIGNAL_INTERVAL_MESSAGES: u64 = 1024;
const PROGRESS_NOTES_MAX: u64 = 1000;
const OPENED_WITHIN: Duration = Duration::from_secs(20);
const LOST_AFTER_NS: u64 = 10_000_000_000;

struct ReplyNotes {
    /// One per message; 0 without a reply.
    checksums: Vec<u32>,
    due_ns: Vec<u64>,
    replies_again: u64,
    repeats_differing: u64,
    refused: Option<(u64, String)>,
}

#[derive(Clone, Copy)]
struct CpuTime {
    thread_ns: u64,
    process_ns: u64,
}

impl CpuTime {
    fn now() -> Self {
        Self { thread_ns: thread_cpu_ns(), process_ns: process_cpu_ns() }
    }

    fn until_now(self, outcome: &mut LoadOutcome) {
        let now = Self::now();
        outcome.driver_cpu_ns = now.thread_ns - self.thread_ns;
        outcome.process_cpu_ns = now.process_ns - self.process_ns;
    }
}

/// More than can be in flight.
const DUE_SLOTS: usize = 1 << 17;

/// Runs `load` against a service with threads of its own.
///
/// # Errors
/// The service is gone, or the client fails.
pub fn drive(
    form: &CarFunctions,
    client: &mut PolledClient,
    load: &CanonicalLoad,
    clock: &Clock,
    signals: &DriverSignals,
    recorder_hook: &mut dyn FnMut(&mut IntervalRecorder),
    service_pauses: &dyn Fn() -> Pauses,
) -> Result<LoadOutcome> {
    drive_in_turns(form, client, load, clock, signals, recorder_hook, service_pauses, &mut || Ok(0))
}

/// Runs `load` against a service without threads; polls `replica` between any two polls of the client.
///
/// # Errors
/// The service is gone, or the client fails.
pub fn drive_by_hand(
    form: &CarFunctions,
    client: &mut PolledClient,
    load: &CanonicalLoad,
    clock: &Clock,
    signals: &DriverSignals,
    recorder_hook: &mut dyn FnMut(&mut IntervalRecorder),
    replica: &mut Replica,
) -> Result<LoadOutcome> {
    let mut turn = || replica.turn(clock.now()).map_err(failed);
    drive_in_turns(form, client, load, clock, signals, recorder_hook, &Pauses::default, &mut turn)
}

/// Calls `turn`, which returns the work done, between any two polls of the client: a service without threads works
/// there.
#[allow(clippy::too_many_arguments, reason = "what a driver is given, once")]
fn drive_in_turns(
    form: &CarFunctions,
    client: &mut PolledClient,
    load: &CanonicalLoad,
    clock: &Clock,
    signals: &DriverSignals,
    recorder_hook: &mut dyn FnMut(&mut IntervalRecorder),
    service_pauses: &dyn Fn() -> Pauses,
    turn: &mut dyn FnMut() -> Result<usize>,
) -> Result<LoadOutcome> {
    let keys = open_sessions(client, load.sessions, load.session_window_messages(), turn)?;
    let mut outcome = LoadOutcome { payload_bytes: form.length(serial_number(load, 0))?, ..LoadOutcome::default() };
    let mut notes = ReplyNotes {
        checksums: vec![0; usize::try_from(load.count).map_err(|_| too_many())?],
        due_ns: vec![0; if load.rate_per_s.is_some() { DUE_SLOTS } else { 1 }],
        replies_again: 0,
        repeats_differing: 0,
        refused: None,
    };
    match load.rate_per_s {
        Some(rate_per_s) => {
            let before = service_pauses();
            let run = DriveContext { form, client, load, keys: &keys, clock, signals };
            at_a_rate(run, rate_per_s, recorder_hook, &mut notes, &mut outcome, turn)?;
            outcome.service_pauses = service_pauses().since(before);
            drain(client, load, &mut notes, clock, &mut outcome, turn)?;
        }
        None => {
            let run = DriveContext { form, client, load, keys: &keys, clock, signals };
            as_fast_as_possible(run, &mut notes, &mut outcome, turn)?;
        }
    }
    outcome.replies_again = notes.replies_again;
    outcome.repeats_differing = notes.repeats_differing;
    outcome.refused = notes.refused.take();
    verify(form, load, &notes, &mut outcome, turn)?;
    Ok(outcome)
}

fn too_many() -> BenchError {
    BenchError::Option("more messages than this machine can count".to_owned())
}

fn serial_number(load: &CanonicalLoad, index: u64) -> Option<i32> {
    (!load.empty_message).then_some(SERIAL_NUMBER.wrapping_add(index as i32))
}

struct DriveContext<'a> {
    form: &'a CarFunctions,
    client: &'a mut PolledClient,
    load: &'a CanonicalLoad,
    keys: &'a [SessionKey],
    clock: &'a Clock,
    signals: &'a DriverSignals,
}

fn open_sessions(
    client: &mut PolledClient,
    sessions: u64,
    window_messages: u32,
    turn: &mut dyn FnMut() -> Result<usize>,
) -> Result<Vec<SessionKey>> {
    let mut keys = Vec::new();
    let mut opened = 0;
    let mut idle_since = Instant::now();
    while opened < sessions {
        while (keys.len() as u64) < sessions {
            match client.begin_session(random_token(), window_messages) {
                Ok(key) => keys.push(key),
                Err(ClientError::Log(LogError::Full { .. })) => break,
                Err(error) => return Err(failed(error)),
            }
        }
        let before = opened;
        client
            .poll(256, |incoming| opened += u64::from(matches!(incoming, Incoming::Opened { .. })))
            .map_err(failed)?;
        turn()?;
        if opened > before {
            idle_since = Instant::now();
        } else if idle_since.elapsed() > OPENED_WITHIN {
            return Err(failed(format!("{opened} of {sessions} sessions were opened in time")));
        }
    }
    Ok(keys)
}

/// `false` without room.
#[inline]
fn inject(
    form: &CarFunctions,
    client: &mut PolledClient,
    load: &CanonicalLoad,
    key: SessionKey,
    index: u64,
) -> Result<bool> {
    let written = client.enqueue(key, form.message, LENGTH_MAX, |buffer| {
        form.write(buffer, serial_number(load, index)).map_err(|error| ClientError::Encode(error.to_string()))
    });
    match written {
        Ok(_) => Ok(true),
        Err(ClientError::Log(LogError::Full { .. }) | ClientError::WindowFull { .. } | ClientError::NotOpen) => {
            Ok(false)
        }
        Err(error) => Err(failed(error)),
    }
}

struct Repeats {
    per_million: u64,
    owed: u64,
    sent: u64,
}

impl Repeats {
    /// Repeats, if due, alternately the last command (not answered yet) and the session's previous one (answered).
    #[inline]
    fn after(&mut self, client: &mut PolledClient, load: &CanonicalLoad, key: SessionKey, index: u64) -> Result<()> {
        self.owed += self.per_million;
        if self.owed < 1_000_000 {
            return Ok(());
        }
        let session_seq = index / load.sessions + 1;
        let wanted = if self.sent.is_multiple_of(2) { session_seq } else { session_seq.saturating_sub(1).max(1) };
        match client.repeat(key, wanted) {
            Ok(()) => {
                self.owed -= 1_000_000;
                self.sent += 1;
                Ok(())
            }
            // Still owed, until there is room.
            Err(ClientError::Log(LogError::Full { .. })) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}

impl ReplyNotes {
    /// Returns the index of the message; `None` for a further reply.
    #[inline]
    fn reply(&mut self, sessions: u64, incoming: &Incoming<'_>) -> Option<u64> {
        let Incoming::Reply { session, reply, first } = incoming else { return None };
        let index = (reply.session_seq - 1) * sessions + session.index() as u64;
        if let Some(refusal) = &reply.refusal {
            let refused = self.refused.get_or_insert_with(|| (0, refusal.text.to_owned()));
            refused.0 += 1;
        }
        let checksum = &mut self.checksums[index as usize];
        if *first {
            *checksum = reply.payload_crc;
            return Some(index);
        }
        self.replies_again += 1;
        self.repeats_differing += u64::from(*checksum != reply.payload_crc);
        None
    }
}

fn as_fast_as_possible(
    run: DriveContext<'_>,
    notes: &mut ReplyNotes,
    outcome: &mut LoadOutcome,
    turn: &mut dyn FnMut() -> Result<usize>,
) -> Result<()> {
    let DriveContext { form, client, load, keys, clock, signals } = run;
    let mut repeats = Repeats { per_million: u64::from(load.repeats_per_million), owed: 0, sent: 0 };
    let warm_up = WarmUp::new(load.warm_up_ns, load.count);
    let replies_per_look = REPLIES_PER_LOOK_MIN.max(load.burst_messages as usize);
    let (start_ns, begin_cpu) = (clock.monotonic_ns(), CpuTime::now());
    let (mut sent, mut replied, mut next_key) = (0, 0, 0);
    let mut count = load.count;
    let mut counted_from: Option<(u64, u64, CpuTime)> = None;
    outcome.progress.push((0, start_ns));
    let mut next_look = 0;
    let mut last_reply_ns = start_ns;
    while replied < count {
        let mut burst = 0;
        while sent < count && burst < load.burst_messages && sent - replied < load.in_flight_max {
            if !inject(form, client, load, keys[next_key], sent)? {
                break;
            }
            repeats.after(client, load, keys[next_key], sent)?;
            sent += 1;
            burst += 1;
            next_key = if next_key + 1 == keys.len() { 0 } else { next_key + 1 };
        }
        turn()?;
        let before = replied;
        client
            .poll(replies_per_look, |incoming| replied += u64::from(notes.reply(load.sessions, &incoming).is_some()))
            .map_err(failed)?;
        if replied >= next_look || replied == before {
            let now_ns = clock.monotonic_ns();
            if replied != before {
                last_reply_ns = now_ns;
                next_look = replied + SIGNAL_INTERVAL_MESSAGES;
            } else if now_ns - last_reply_ns > LOST_AFTER_NS {
                break;
            }
            signals.replied.store(replied, Ordering::Relaxed);
            if counted_from.is_none() && !warm_up.covers(replied, now_ns - start_ns) {
                counted_from = Some((clock.monotonic_ns(), replied, CpuTime::now()));
            }
            if replied >= outcome.progress.len() as u64 * load.count / PROGRESS_NOTES_MAX {
                outcome.progress.push((replied, now_ns));
            }
            if signals.interrupted.load(Ordering::Relaxed) {
                count = sent;
            }
        }
    }
    let end_ns = clock.monotonic_ns();
    outcome.progress.push((replied, end_ns));
    let (from_ns, from_replied, from_cpu) = counted_from.unwrap_or((start_ns, 0, begin_cpu));
    outcome.counted_from_ns = from_ns;
    outcome.elapsed_ns = end_ns - from_ns;
    outcome.counted = replied - from_replied;
    from_cpu.until_now(outcome);
    outcome.warm_up_cut_short = from_ns - start_ns < load.warm_up_ns;
    (outcome.sent, outcome.replied, outcome.repeats) = (sent, replied, repeats.sent);
    drain(client, load, notes, clock, outcome, turn)
}

fn at_a_rate(
    run: DriveContext<'_>,
    rate_per_s: u64,
    recorder_hook: &mut dyn FnMut(&mut IntervalRecorder),
    notes: &mut ReplyNotes,
    outcome: &mut LoadOutcome,
    turn: &mut dyn FnMut() -> Result<usize>,
) -> Result<()> {
    let DriveContext { form, client, load, keys, clock, signals } = run;
    let mut repeats = Repeats { per_million: u64::from(load.repeats_per_million), owed: 0, sent: 0 };
    let warm_up = WarmUp::new(load.warm_up_ns, load.count);
    let first_counted = warm_up.first_counted(rate_per_s);
    let start_ns = clock.monotonic_ns() + 1_000_000;
    let schedule = Schedule::new(start_ns, rate_per_s);
    let mut pacer = schedule.pacer();
    let counted_from_ns = schedule.due_ns(first_counted);
    let mut recorder = IntervalRecorder::new(counted_from_ns, schedule.due_ns(load.count) - counted_from_ns);
    recorder_hook(&mut recorder);
    let (mut sent, mut replied, mut next_key) = (0, 0, 0);
    let (mut count, mut last_injected_ns, mut last_reply_ns) = (load.count, start_ns, start_ns);
    let mut from_cpu = CpuTime::now();
    let mut pauses = PauseTracker::default();
    let replies_per_look = load.burst_messages as usize;
    while replied < count {
        let now_ns = clock.monotonic_ns();
        pauses.begin(now_ns);
        let sent_before = sent;
        while sent < count && now_ns >= pacer.next_due_ns() && sent - sent_before < load.burst_messages {
            if sent == first_counted {
                from_cpu = CpuTime::now();
            }
            let due_ns = pacer.next_due_ns();
            notes.due_ns[sent as usize & (DUE_SLOTS - 1)] = due_ns;
            if sent - replied >= DUE_SLOTS as u64 || !inject(form, client, load, keys[next_key], sent)? {
                break;
            }
            client.flush();
            pacer.take_if_due(now_ns);
            repeats.after(client, load, keys[next_key], sent)?;
            sent += 1;
            next_key = if next_key + 1 == keys.len() { 0 } else { next_key + 1 };
            last_injected_ns = now_ns;
            if sent.is_multiple_of(SIGNAL_INTERVAL_MESSAGES) {
                signals.replied.store(replied, Ordering::Relaxed);
                if signals.interrupted.load(Ordering::Relaxed) {
                    count = sent;
                }
            }
        }
        let work = turn()?;
        let before = replied;
        client
            .poll(replies_per_look, |incoming| {
                if let Some(index) = notes.reply(load.sessions, &incoming) {
                    replied += 1;
                    if index >= first_counted {
                        let due_ns = notes.due_ns[index as usize & (DUE_SLOTS - 1)];
                        recorder.record(due_ns, clock.monotonic_ns().saturating_sub(due_ns));
                    }
                }
            })
            .map_err(failed)?;
        pauses.end(work == 0 && sent == sent_before && replied == before);
        if replied != before {
            last_reply_ns = now_ns;
        } else if now_ns.saturating_sub(last_reply_ns) > LOST_AFTER_NS && sent > replied {
            break;
        }
    }
    let end_ns = clock.monotonic_ns();
    (outcome.pauses, outcome.driven_ns) = (Some(pauses.pauses()), end_ns.saturating_sub(start_ns));
    outcome.counted_from_ns = counted_from_ns;
    outcome.elapsed_ns = end_ns.saturating_sub(counted_from_ns);
    outcome.counted = replied.saturating_sub(first_counted);
    from_cpu.until_now(outcome);
    outcome.warm_up_cut_short = warm_up.is_cut_short(rate_per_s);
    outcome.latencies = recorder.finish(end_ns);
    let last_due_ns = schedule.due_ns(sent.saturating_sub(1));
    outcome.rate_reached =
        Some(RateCheck { first_due_ns: counted_from_ns, last_due_ns, last_injected_ns }.reached() && replied == sent);
    (outcome.sent, outcome.replied, outcome.repeats) = (sent, replied, repeats.sent);
    Ok(())
}

fn drain(
    client: &mut PolledClient,
    load: &CanonicalLoad,
    notes: &mut ReplyNotes,
    clock: &Clock,
    outcome: &mut LoadOutcome,
    turn: &mut dyn FnMut() -> Result<usize>,
) -> Result<()> {
    let mut quiet_since_ns = clock.monotonic_ns();
    while clock.monotonic_ns() - quiet_since_ns < 20_000_000 {
        turn()?;
        let taken = client
            .poll(1024, |incoming| outcome.replied += u64::from(notes.reply(load.sessions, &incoming).is_some()))
            .map_err(failed)?;
        if taken > 0 {
            quiet_since_ns = clock.monotonic_ns();
        }
    }
    Ok(())
}

/// Compares every reply, and sets the expected change of the service's state.
fn verify(
    form: &CarFunctions,
    load: &CanonicalLoad,
    notes: &ReplyNotes,
    outcome: &mut LoadOutcome,
    turn: &mut dyn FnMut() -> Result<usize>,
) -> Result<()> {
    let mut buffer = [0; LENGTH_MAX];
    for index in 0..outcome.sent {
        if index.is_multiple_of(SIGNAL_INTERVAL_MESSAGES) {
            // A member that is silent for seconds counts as dead.
            turn()?;
        }
        let written = form.write(&mut buffer, serial_number(load, index));
        let car = &buffer[..written.map_err(failed)?];
        let read = form.read(car).map_err(failed)?;
        let checksum = crc32c(car);
        let noted = notes.checksums[index as usize];
        outcome.replies_wrong += u64::from(noted != 0 && noted != checksum);
        outcome.expected.cars += 1;
        outcome.expected.sum = outcome.expected.sum.wrapping_add(read.sum);
    }
    Ok(())
}

/// Queries the state over a session of its own.
///
/// # Errors
/// There is no answer.
pub fn query(client: &mut PolledClient, turn: &mut dyn FnMut() -> Result<usize>) -> Result<ProcessorState> {
    let key = open_sessions(client, 1, SESSION_WINDOW_MESSAGES, turn)?[0];
    client.send(key, QUERY, 0, |_| Ok(0)).map_err(failed)?;
    let (since, mut answer) = (Instant::now(), None);
    while answer.is_none() {
        turn()?;
        client
            .poll(1, |incoming| {
                if let Incoming::Reply { reply, .. } = incoming {
                    answer = Some(ProcessorState::from_bytes(reply.payload));
                }
            })
            .map_err(failed)?;
        if since.elapsed() > OPENED_WITHIN {
            return Err(failed("the service does not say its state"));
        }
    }
    answer.flatten().ok_or_else(|| failed("a malformed state"))
}
