//! Commands at a rate, each timed from its scheduled time to its answer.

use crate::commands::bus_under_test::{BusPlace, BusUnderTest};
use crate::commands::case::{BusCase, BusDrive};
use crate::commands::load::{BusAnswer, CommandSender, headers, note, on_driver, on_driver_with};
use crate::commands::messages::{CommandForm, Counter, SbeForm};
use crate::commands::{check_interrupted, failed};
use gapless_cqrs::{Aggregate as _, CommandBus, Draft, PendingOutcome};
use gapless_measure::Result;
use gapless_measure::histogram::LatencyHistogram;
use gapless_measure::open_loop::{RateCheck, Schedule};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub const PER_S: u64 = 10_000;
pub const SLEEPS: &str = "sleeps";
pub const SPINS: &str = "spins";

pub struct SliceResults {
    pub case: BusCase,
    pub caller: Option<&'static str>,
    pub histogram: LatencyHistogram,
    pub wrong: u64,
    pub is_rate_reached: bool,
}

/// Measures by SBE; `times` are warm-up and counted part.
///
/// # Errors
/// A bus that does not start or stop; an interrupt.
pub fn one_slice(
    place: BusPlace<'_>,
    times: (Duration, Duration),
    interrupted: &AtomicBool,
    slices: &mut SliceResults,
) -> Result<()> {
    type F = SbeForm;
    if slices.case.drive == BusDrive::Direct {
        let case = slices.case;
        let start = || BusUnderTest::direct::<F>(&case, place, 1);
        return on_driver_with(start, |(mut bus, _directory)| {
            paced::<F, _>(&mut bus, times, interrupted, slices)?;
            bus.stop().map(drop).map_err(failed)
        });
    }
    let stand = BusUnderTest::start(&slices.case, place)?;
    let bus = stand.bus(1)?;
    on_driver(|| match slices.caller {
        Some(SPINS) => paced::<F, _>(SpinningSender(&bus), times, interrupted, slices),
        _ => paced::<F, _>(&bus, times, interrupted, slices),
    })?;
    drop(bus);
    stand.stop()
}

struct SpinningSender<'a>(&'a CommandBus);

impl<F: CommandForm> CommandSender<F> for SpinningSender<'_> {
    type Pending = PendingOutcome<(), ()>;

    #[inline]
    fn send(&mut self, draft: Draft<'_, F::Command, (), ()>) -> Self::Pending {
        self.0.send(draft)
    }

    #[inline]
    fn wait(&mut self, mut pending: Self::Pending) -> BusAnswer {
        loop {
            match pending.try_wait() {
                Ok(outcome) => return outcome,
                Err(none_yet) => pending = none_yet,
            }
            // Without a pause, like the driver of the canonical row.
        }
    }
}

/// A call delayed by the previous one begins at once; its latency counts from the scheduled time.
fn paced<F: CommandForm, S: CommandSender<F>>(
    mut bus: S,
    (warm_up, time): (Duration, Duration),
    interrupted: &AtomicBool,
    slices: &mut SliceResults,
) -> Result<()> {
    let of = |time: Duration| (time.as_secs_f64() * PER_S as f64) as u64;
    let (uncounted, counted) = (of(warm_up), of(time).max(1));
    let (command, headers) = (F::command(1, &note(slices.case.size)), headers());
    let begin = Instant::now();
    let clock_ns = || begin.elapsed().as_nanos() as u64;
    let schedule = Schedule::new(clock_ns(), PER_S);
    let mut pacer = schedule.pacer();
    let mut last_sent_ns = 0;
    for number in 0..uncounted + counted {
        if number % 256 == 0 {
            check_interrupted(interrupted)?;
        }
        let due_ns = pacer.wait_for_next(clock_ns);
        last_sent_ns = clock_ns();
        let pending = bus.send(Counter::<F>::command(&0, &command).with(&headers));
        let outcome = bus.wait(pending);
        let latency_ns = clock_ns() - due_ns;
        if number >= uncounted {
            slices.histogram.record(latency_ns);
        }
        slices.wrong += u64::from(!outcome.is_ok_and(|accepted| accepted.version == number + 1));
    }
    let check = RateCheck {
        first_due_ns: schedule.due_ns(uncounted),
        last_due_ns: schedule.due_ns(uncounted + counted - 1),
        last_injected_ns: last_sent_ns,
    };
    slices.is_rate_reached &= check.reached();
    Ok(())
}
