//! Commands mostly for few aggregates, and some for random ones. Each outcome must have its aggregate's next version.

use crate::commands::load::{BusAnswer, CountedClocks, LoadResult, aggregate_and_version, headers, on_driver};
use crate::commands::messages::{CommandForm, Counter};
use gapless_cqrs::{AcceptedCommand, Aggregate as _, CommandBus, PendingOutcome};
use gapless_measure::LatencyNs;
use gapless_measure::Result;
use gapless_measure::histogram::LatencyHistogram;
use gapless_wire::split_mix;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Filled in turns before the next ones, so that these are in memory.
const FILLED_TOGETHER: u64 = 8_000;

pub struct CommandSpread {
    aggregates: u64,
    hot: u64,
    in_flight: usize,
    time: (Duration, Duration),
    /// Events of each aggregate, in the order of first commands.
    versions: Vec<u32>,
    random: u64,
}

struct SpreadCommand {
    pending: PendingOutcome<(), ()>,
    version: u64,
}

impl CommandSpread {
    /// Starts with `events` events of each aggregate; most commands are for `hot` aggregates; `time` is warm-up and
    /// counted part.
    pub fn new(events: u64, aggregates: u64, hot: u64, in_flight: usize, time: (Duration, Duration)) -> Self {
        Self { aggregates, hot, in_flight, time, versions: vec![events as u32; aggregates as usize], random: 1 }
    }

    pub fn last(&mut self) -> (u64, u64) {
        self.next_of(self.aggregates - 1)
    }

    pub fn fill<F: CommandForm>(&mut self, bus: &CommandBus, each: u64) -> Result<LoadResult> {
        let (in_flight, aggregates) = (self.in_flight, self.aggregates);
        let groups = (0..aggregates).step_by(FILLED_TOGETHER as usize);
        let mut firsts = groups.flat_map(move |begin| {
            let end = (begin + FILLED_TOGETHER).min(aggregates);
            (0..each).flat_map(move |_| begin..end)
        });
        let next = |spread: &mut Self| firsts.next().map(|first| spread.next_of(first));
        on_driver(|| send::<F>(bus, self, in_flight, next, |_, _, is_counted| is_counted))
    }

    fn any(&mut self) -> (u64, u64) {
        let first = split_mix::next(&mut self.random) % self.aggregates;
        self.next_of(first)
    }

    #[inline]
    fn next_of(&mut self, first: u64) -> (u64, u64) {
        let version = &mut self.versions[first as usize];
        *version += 1;
        (aggregate_and_version(first, self.aggregates).0, u64::from(*version))
    }

    /// `percent` of the commands are for random aggregates.
    pub fn run<F: CommandForm>(&mut self, bus: &CommandBus, percent: u64) -> Result<LoadResult> {
        let (warm_up, time) = self.time;
        let in_flight = self.in_flight;
        let mut number = 0;
        let next = |spread: &mut Self| {
            number += 1;
            Some(if number % 100 < percent { spread.any() } else { spread.next_of(number % spread.hot) })
        };
        on_driver(|| {
            send::<F>(bus, self, in_flight, next, |since, _, is_counted| {
                since.elapsed() < if is_counted { time } else { warm_up }
            })
        })
    }

    pub fn create<F: CommandForm>(&mut self, bus: &CommandBus, count: u64) -> Result<LoadResult> {
        let in_flight = self.in_flight;
        let mut created = self.aggregates;
        let next = |_: &mut Self| {
            created += 1;
            Some((created - 1, 1))
        };
        on_driver(|| send::<F>(bus, self, in_flight, next, |_, answered, is_counted| is_counted && answered < count))
    }
}

/// `next` returns `None` at the end. `goes_on` ends the warm-up, then the counted part: it gets the start, the number
/// of answers, and whether the part counts.
fn send<F: CommandForm>(
    bus: &CommandBus,
    spread: &mut CommandSpread,
    in_flight: usize,
    mut next: impl FnMut(&mut CommandSpread) -> Option<(u64, u64)>,
    goes_on: impl Fn(Instant, u64, bool) -> bool,
) -> Result<LoadResult> {
    let (command, headers) = (F::command(1, ""), headers());
    let (mut loaded, mut sent, mut answered) = (LoadResult::default(), VecDeque::with_capacity(in_flight), 0);
    let mut counted = CountedClocks::begin(0);
    for is_counted in [false, true] {
        counted = CountedClocks::begin(answered);
        while goes_on(counted.begin, answered, is_counted) {
            while sent.len() < in_flight {
                let Some((aggregate, version)) = next(spread) else { break };
                let pending = bus.send(Counter::<F>::command(&aggregate, &command).with(&headers));
                sent.push_back(SpreadCommand { pending, version });
            }
            if sent.is_empty() {
                break;
            }
            for SpreadCommand { pending, version } in sent.drain(..sent.len().div_ceil(2)) {
                check(&mut loaded, pending.wait(), version);
                answered += 1;
            }
        }
    }
    counted.end(answered, &mut loaded);
    loaded.sent = answered + sent.len() as u64;
    sent.into_iter().for_each(|SpreadCommand { pending, version }| check(&mut loaded, pending.wait(), version));
    Ok(loaded)
}

pub fn call_each<F: CommandForm>(
    bus: &CommandBus,
    spread: &mut CommandSpread,
    count: u64,
) -> Result<(Option<LatencyNs>, LoadResult)> {
    on_driver(|| {
        let (command, headers) = (F::command(1, ""), headers());
        let (mut histogram, mut loaded) =
            (LatencyHistogram::new(), LoadResult { sent: count, ..LoadResult::default() });
        let counted = CountedClocks::begin(0);
        for _ in 0..count {
            let (aggregate, version) = spread.any();
            let begin = Instant::now();
            let outcome = bus.call(Counter::<F>::command(&aggregate, &command).with(&headers));
            histogram.record(begin.elapsed().as_nanos() as u64);
            check(&mut loaded, outcome, version);
        }
        counted.end(count, &mut loaded);
        Ok((histogram.latency_ns(), loaded))
    })
}

#[inline]
fn check(loaded: &mut LoadResult, outcome: BusAnswer, version: u64) {
    if !matches!(&outcome, Ok(AcceptedCommand { events: 1, version: found, .. }) if *found == version) {
        loaded.note_wrong(&outcome, version);
    }
}
