//! Sends, awaits and checks commands: each has one event, its aggregate's next version and an increasing position; a
//! repeated command gets the first answer. In the end every aggregate must have as many events as commands.

use crate::commands::bus_under_test::{self, BusPlace, BusUnderTest};
use crate::commands::case::{BusCase, CommandEncoding, Identifiers};
use crate::commands::messages::{CommandForm, Counter, SbeForm, SerdeForm};
use crate::commands::{check_interrupted, failed};
use gapless_cqrs::{
    AcceptedCommand, Aggregate as _, CAUSATION, CORRELATION, CommandBus, CommandError, Draft, Headers, PendingOutcome,
    PolledBus, Position, Ticket,
};
use gapless_measure::Result;
use gapless_measure::resources::{process_cpu_ns, thread_cpu_ns};
use gapless_wire::split_mix;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Consecutive aggregates would be in the order of memory.
const STRIDE: u64 = 7919;
/// One of this many commands with identifiers is sent twice.
const REPEAT_OF: u64 = 100;

#[derive(Clone, Copy, Debug)]
pub enum LoadLimit {
    /// Warm-up and counted part.
    Time(Duration, Duration),
    /// All of them count.
    Count(u64),
}

#[derive(Clone, Copy)]
pub struct CommandLoad<'a> {
    pub case: BusCase,
    pub until: LoadLimit,
    pub in_flight: usize,
    pub interrupted: &'a AtomicBool,
}

impl<'a> CommandLoad<'a> {
    pub const fn of(case: BusCase, in_flight: usize, interrupted: &'a AtomicBool) -> Self {
        Self { case, until: LoadLimit::Count(1), in_flight, interrupted }
    }
}

#[derive(Debug, Default, PartialEq)]
pub struct LoadResult {
    /// Awaited in the counted time, without repeats.
    pub counted: u64,
    pub elapsed: Duration,
    /// CPU time of the counted part: of the driver's thread, and of the process.
    pub driver_cpu_ns: u64,
    pub process_cpu_ns: u64,
    pub sent: u64,
    pub repeated: u64,
    pub wrong: u64,
    pub first_wrong: Option<String>,
}

impl LoadResult {
    #[cold]
    pub fn note_wrong(&mut self, outcome: &BusAnswer, version: u64) {
        self.wrong += 1;
        let text = || format!("one event and version {version} were expected; the outcome is {outcome:?}");
        self.first_wrong.get_or_insert_with(text);
    }
}

pub fn headers() -> Headers {
    Headers::default().with(CORRELATION, [0x11; 16]).with(CAUSATION, [0x22; 16])
}

pub fn note(size: usize) -> String {
    "An amount was added to the counter. ".chars().cycle().take(size).collect()
}

pub trait CommandSender<F: CommandForm> {
    type Pending;

    fn send(&mut self, draft: Draft<'_, F::Command, (), ()>) -> Self::Pending;
    fn wait(&mut self, pending: Self::Pending) -> BusAnswer;
}

pub type BusAnswer = std::result::Result<AcceptedCommand, CommandError<()>>;

impl<F: CommandForm> CommandSender<F> for &CommandBus {
    type Pending = PendingOutcome<(), ()>;

    #[inline]
    fn send(&mut self, draft: Draft<'_, F::Command, (), ()>) -> Self::Pending {
        CommandBus::send(self, draft)
    }

    #[inline]
    fn wait(&mut self, pending: Self::Pending) -> BusAnswer {
        pending.wait()
    }
}

impl<F: CommandForm> CommandSender<F> for &mut PolledBus {
    type Pending = Ticket<(), ()>;

    #[inline]
    fn send(&mut self, draft: Draft<'_, F::Command, (), ()>) -> Self::Pending {
        PolledBus::send(self, draft)
    }

    #[inline]
    fn wait(&mut self, pending: Self::Pending) -> BusAnswer {
        PolledBus::wait(self, pending)
    }
}

pub fn drive(bus: &CommandBus, load: CommandLoad<'_>) -> Result<LoadResult> {
    match load.case.encoding {
        CommandEncoding::Sbe => on_driver(|| LoadDriver::<SbeForm, _>::new(bus, load).run()),
        CommandEncoding::Serde => on_driver(|| LoadDriver::<SerdeForm, _>::new(bus, load).run()),
    }
}

/// Drives a bus without threads.
///
/// # Errors
/// A bus that does not start or stop; an interrupt.
pub fn drive_direct(place: BusPlace<'_>, load: CommandLoad<'_>) -> Result<LoadResult> {
    match load.case.encoding {
        CommandEncoding::Sbe => drive_direct_form::<SbeForm>(place, load),
        CommandEncoding::Serde => drive_direct_form::<SerdeForm>(place, load),
    }
}

fn drive_direct_form<F: CommandForm>(place: BusPlace<'_>, load: CommandLoad<'_>) -> Result<LoadResult> {
    let start = || BusUnderTest::direct::<F>(&load.case, place, load.in_flight.max(2));
    on_driver_with(start, |(mut bus, _directory)| {
        let loaded = LoadDriver::<F, _>::new(&mut bus, load).run()?;
        bus.stop().map_err(failed)?;
        Ok(loaded)
    })
}

/// Runs `drive` on a new pinned thread.
pub fn on_driver<T: Send>(drive: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    on_driver_with(|| Ok(()), |()| drive())
}

/// Runs `start` before pinning, so that helper threads, such as the index's, may use all cores.
pub fn on_driver_with<S, T: Send>(
    start: impl FnOnce() -> Result<S> + Send,
    drive: impl FnOnce(S) -> Result<T> + Send,
) -> Result<T> {
    let driving = || {
        let started = start()?;
        bus_under_test::pin_driver();
        drive(started)
    };
    std::thread::scope(|scope| scope.spawn(driving).join().unwrap_or_else(|_| Err(failed("the driver panicked"))))
}

pub struct LoadDriver<'a, F: CommandForm, S: CommandSender<F>> {
    bus: S,
    load: CommandLoad<'a>,
    command: F::Command,
    headers: Headers,
    identifiers: IdentifierSource,
    sent: VecDeque<SentCommand<S::Pending>>,
    number: u64,
    answered: u64,
    last: Position,
    loaded: LoadResult,
}

struct SentCommand<Pending> {
    pending: Pending,
    version: u64,
    is_repeat: bool,
}

impl<'a, F: CommandForm, S: CommandSender<F>> LoadDriver<'a, F, S> {
    pub fn new(bus: S, load: CommandLoad<'a>) -> Self {
        Self {
            bus,
            load,
            command: F::command(1, &note(load.case.size)),
            headers: headers(),
            identifiers: IdentifierSource::new(load.case.identifiers),
            sent: VecDeque::with_capacity(load.in_flight),
            number: 0,
            answered: 0,
            last: Position::default(),
            loaded: LoadResult::default(),
        }
    }

    pub fn run(mut self) -> Result<LoadResult> {
        let most = if let LoadLimit::Count(count) = self.load.until { count } else { u64::MAX };
        let mut counted = CountedClocks::begin(0);
        if let LoadLimit::Time(warm_up, _) = self.load.until {
            while counted.begin.elapsed() < warm_up {
                self.round(most)?;
            }
            counted = CountedClocks::begin(self.answered);
        }
        let is_over = |driver: &Self, since: Instant| match driver.load.until {
            LoadLimit::Time(_, time) => since.elapsed() >= time,
            LoadLimit::Count(count) => driver.answered >= count,
        };
        while !is_over(&self, counted.begin) {
            self.round(most)?;
        }
        counted.end(self.answered, &mut self.loaded);
        while !self.sent.is_empty() {
            self.take();
        }
        self.loaded.sent = self.number;
        self.check_aggregates()?;
        Ok(self.loaded)
    }

    /// Fills up to the limit in flight, and awaits half.
    fn round(&mut self, most: u64) -> Result<()> {
        check_interrupted(self.load.interrupted)?;
        // A command that is sent twice counts as two in flight.
        while self.sent.len() + 1 < self.load.in_flight.max(2) && self.number < most {
            self.send();
        }
        for _ in 0..self.sent.len().div_ceil(2) {
            self.take();
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self) {
        let (aggregate, version) = aggregate_and_version(self.number, self.load.case.aggregates);
        let Self { bus, command, headers, sent, .. } = self;
        let draft = || Counter::<F>::command(&aggregate, command).with(headers);
        match self.identifiers.next() {
            None => sent.push_back(SentCommand { pending: bus.send(draft()), version, is_repeat: false }),
            Some(identifier) => {
                let is_sent_twice = self.number % REPEAT_OF == REPEAT_OF - 1;
                for is_repeat in [false, true].into_iter().take(1 + usize::from(is_sent_twice)) {
                    let pending = bus.send(draft().identified_by(identifier));
                    sent.push_back(SentCommand { pending, version, is_repeat });
                }
            }
        }
        self.number += 1;
    }

    #[inline]
    fn take(&mut self) {
        let Some(SentCommand { pending, version, is_repeat }) = self.sent.pop_front() else { return };
        let outcome = self.bus.wait(pending);
        let is_right = matches!(&outcome, Ok(AcceptedCommand { position, events: 1, version: found, .. })
            if *found == version && if is_repeat { *position == self.last } else { *position > self.last });
        if is_repeat {
            self.loaded.repeated += 1;
        } else {
            self.answered += 1;
        }
        match outcome {
            Ok(accepted) if is_right => self.last = accepted.position,
            outcome => self.loaded.note_wrong(&outcome, version),
        }
    }

    fn check_aggregates(&mut self) -> Result<()> {
        let nothing = F::command(0, "");
        let aggregates = self.load.case.aggregates.min(self.number);
        for first in 0..aggregates {
            if first % 1024 == 0 {
                check_interrupted(self.load.interrupted)?;
            }
            let (aggregate, _) = aggregate_and_version(first, self.load.case.aggregates);
            let version = commands_of(first, self.number, self.load.case.aggregates);
            let draft = Counter::<F>::command(&aggregate, &nothing).expecting_version(version);
            let pending = self.bus.send(draft);
            self.sent.push_back(SentCommand { pending, version: version + 1, is_repeat: false });
            if self.sent.len() >= self.load.in_flight {
                self.take();
            }
        }
        while !self.sent.is_empty() {
            self.take();
        }
        Ok(())
    }
}

#[inline]
pub fn aggregate_and_version(number: u64, aggregates: u64) -> (u64, u64) {
    if aggregates == 1 {
        return (0, number + 1);
    }
    let stride = if aggregates.is_multiple_of(STRIDE) { 1 } else { STRIDE };
    (number % aggregates * stride % aggregates, number / aggregates + 1)
}

/// Number of the first `count` commands that are for the aggregate whose first command is number `first`.
pub fn commands_of(first: u64, count: u64, aggregates: u64) -> u64 {
    count / aggregates + u64::from(first < count % aggregates)
}

pub struct CountedClocks {
    pub begin: Instant,
    answered: u64,
    driver_cpu_ns: u64,
    process_cpu_ns: u64,
}

impl CountedClocks {
    pub fn begin(answered: u64) -> Self {
        Self { answered, driver_cpu_ns: thread_cpu_ns(), process_cpu_ns: process_cpu_ns(), begin: Instant::now() }
    }

    pub fn end(self, answered: u64, loaded: &mut LoadResult) {
        loaded.elapsed = self.begin.elapsed();
        loaded.counted = answered - self.answered;
        loaded.driver_cpu_ns = thread_cpu_ns() - self.driver_cpu_ns;
        loaded.process_cpu_ns = process_cpu_ns() - self.process_cpu_ns;
    }
}

/// UUID form, one for each command.
struct IdentifierSource {
    kind: Identifiers,
    state: u64,
}

impl IdentifierSource {
    fn new(kind: Identifiers) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { kind, state: now.as_nanos() as u64 }
    }

    #[inline]
    fn next(&mut self) -> Option<u128> {
        let mut random =
            || u128::from(split_mix::next(&mut self.state)) << 64 | u128::from(split_mix::next(&mut self.state));
        match self.kind {
            Identifiers::Position => None,
            Identifiers::Random => Some(of_version(random(), 4)),
            Identifiers::TimeOrdered => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Some(of_version(now.as_millis() << 80 | random() >> 48, 7))
            }
        }
    }
}

/// Follows RFC 9562.
const fn of_version(bits: u128, version: u128) -> u128 {
    bits & !(0xf << 76) & !(0b11 << 62) | version << 76 | 0b10 << 62
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::case::BusDrive;
    use gapless_agent::OptimizeFor;

    #[test]
    fn commands_are_spread_evenly() {
        for aggregates in [1, 2, 100, STRIDE, 2 * STRIDE] {
            let count = 3 * aggregates + aggregates / 2;
            let mut versions = std::collections::HashMap::new();
            for number in 0..count {
                let (aggregate, version) = aggregate_and_version(number, aggregates);
                assert!(aggregate < aggregates);
                let seen = versions.entry(aggregate).or_insert(0);
                *seen += 1;
                assert_eq!(*seen, version);
            }
            for first in 0..aggregates {
                assert_eq!(
                    versions[&aggregate_and_version(first, aggregates).0],
                    commands_of(first, count, aggregates)
                );
            }
        }
    }

    #[test]
    fn identifiers_are_unique_uuids() {
        assert_eq!(IdentifierSource::new(Identifiers::Position).next(), None);
        for (kind, version) in [(Identifiers::Random, 4), (Identifiers::TimeOrdered, 7)] {
            let mut source = IdentifierSource::new(kind);
            let made: Vec<u128> = (0..1000).filter_map(|_| source.next()).collect();
            assert!(made.iter().all(|made| made >> 76 & 0xf == version && made >> 62 & 0b11 == 0b10));
            assert_eq!(made.iter().collect::<std::collections::HashSet<_>>().len(), 1000);
            let is_ordered = made.is_sorted_by_key(|made| made >> 80);
            assert_eq!(is_ordered, kind == Identifiers::TimeOrdered);
        }
    }

    fn driven(case: BusCase) -> LoadResult {
        let directory = tempfile::tempdir().unwrap();
        let place =
            BusPlace { parent: directory.path(), optimize_for: OptimizeFor::Throughput, segment_bytes: 16 << 20 };
        let interrupted = AtomicBool::new(false);
        let load =
            CommandLoad { until: LoadLimit::Count(1000), ..CommandLoad::of(case, case.in_flight(64), &interrupted) };
        if case.drive == BusDrive::Direct {
            return drive_direct(place, load).unwrap();
        }
        let stand = BusUnderTest::start(&case, place).unwrap();
        let loaded = drive(&stand.bus(64).unwrap(), load).unwrap();
        stand.stop().unwrap();
        loaded
    }

    #[test]
    fn outcomes_and_repeats_are_checked() {
        let base = BusCase::base(BusDrive::Pipelined);
        let identified = BusCase { identifiers: Identifiers::Random, aggregates: 7, size: 300, ..base };
        let direct = [base, identified].map(|case| BusCase { drive: BusDrive::Direct, ..case });
        let one_by_one = direct.map(|case| BusCase { is_one_by_one: true, ..case });
        for case in [base, BusCase { aggregates: 7, ..base }, identified].into_iter().chain(direct).chain(one_by_one) {
            for loaded in [driven(case), driven(BusCase { encoding: CommandEncoding::Serde, ..case })] {
                assert_eq!((loaded.wrong, &loaded.first_wrong), (0, &None));
                assert_eq!((loaded.sent, loaded.counted), (1000, 1000));
                assert_eq!(loaded.repeated, if case.identifiers == Identifiers::Position { 0 } else { 10 });
            }
        }
    }

    #[test]
    fn foreign_aggregates_are_noticed() {
        let case = BusCase::base(BusDrive::Pipelined);
        let place = BusPlace {
            parent: std::path::Path::new("."),
            optimize_for: OptimizeFor::Throughput,
            segment_bytes: 16 << 20,
        };
        let stand = BusUnderTest::start(&case, place).unwrap();
        let bus = stand.bus(64).unwrap();
        bus.call(Counter::<SbeForm>::command(&0, &SbeForm::command(1, ""))).unwrap();
        let interrupted = AtomicBool::new(false);
        let load = CommandLoad { until: LoadLimit::Count(10), ..CommandLoad::of(case, 64, &interrupted) };
        let loaded = drive(&bus, load).unwrap();
        assert_eq!(loaded.wrong, 11, "each outcome, and the check of the aggregate");
        assert!(loaded.first_wrong.unwrap().contains("version 1 were expected"));
    }
}
