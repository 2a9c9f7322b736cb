//! How long a command takes at a rate, from the time at which it is due to its answer: slices that alternate with the canonical row
//! and with the machine's bare ping-pong at the same pace, because tails are the machine's first.

use crate::commands::arguments::Plan;
use crate::commands::case::{Case, Drive, Tier};
use crate::commands::load::{Outcome, Sender, headers, note, on_driver, on_driver_with};
use crate::commands::messages::{Counter, Form, OfSbe};
use crate::commands::stand::{Place, Stand};
use crate::commands::throughput::CANONICAL;
use crate::commands::{Canonical, MeasureCanonical, check_interrupted, failed, rows};
use gapless_agent::OptimizeFor;
use gapless_cqrs::{Aggregate as _, CommandBus, Draft, Pending};
use gapless_measure::Result;
use gapless_measure::Row;
use gapless_measure::floor::{FloorKind, FloorPlan, HEADER_BYTES};
use gapless_measure::histogram::LatencyHistogram;
use gapless_measure::open_loop::{RateCheck, Schedule};
use gapless_measure::reporting::Run;
use gapless_measure::turns;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Commands a second.
pub(crate) const PER_S: u64 = 10_000;
/// A floor of a row needs no longer.
const FLOOR_TIME_MAX: Duration = Duration::from_secs(2);
/// Messages of a canonical row of a quick run.
const CANONICAL_QUICK: u64 = 1_000;

/// The rows: how commands reach the writer, and whether the thread that awaits an outcome sleeps, as it does by default, or spins, as the driver of
/// the canonical row does. The one that owns a direct bus has nobody to wait for.
const ROWS: [(Drive, Option<&str>); 3] =
    [(Drive::Pipelined, Some(SLEEPS)), (Drive::Pipelined, Some(SPINS)), (Drive::Direct, None)];
pub(crate) const SLEEPS: &str = "sleeps";
const SPINS: &str = "spins";

pub(crate) fn steps(plan: &Plan) -> usize {
    plan.turns * (1 + ROWS.len())
}

/// What the slices of one row have shown.
struct Slices {
    case: Case,
    /// What the caller does meanwhile.
    caller: Option<&'static str>,
    histogram: LatencyHistogram,
    wrong: u64,
    is_rate_reached: bool,
}

/// Measures, and adds the rows.
pub(crate) fn measure(plan: &Plan, canonical: &MeasureCanonical<'_>, run: &mut Run<'_>) -> Result<()> {
    let mut slices = ROWS.map(|(drive, caller)| Slices {
        case: Case { tier: Tier::Journal, ..Case::base(drive) },
        caller,
        histogram: LatencyHistogram::new(),
        wrong: 0,
        is_rate_reached: true,
    });
    let (mut canonical_rows, mut floors) = (Vec::new(), Vec::new());
    let measured = (0..plan.turns).try_for_each(|_| {
        run.next("the canonical row at a rate")?;
        let items = vec![(FloorKind::ShmPingPongPaced, HEADER_BYTES)];
        let floor =
            FloorPlan { time_limit: plan.time.min(FLOOR_TIME_MAX), ..FloorPlan::new(&plan.directory, items) }.measure();
        run.report.notes.extend(floor.skipped);
        floors.push(floor.rows);
        let mut row = canonical(Canonical::Latency, plan.is_quick.then_some(CANONICAL_QUICK), &plan.directory)?;
        // One that was cut short is none.
        check_interrupted(run.interrupted)?;
        row.config.name = Some(CANONICAL.to_owned());
        canonical_rows.push(vec![row]);
        slices.iter_mut().try_for_each(|slices| {
            let caller = slices.caller.map_or_else(String::new, |does| format!(", the caller {does}"));
            run.next(&format!("{} at {PER_S} a second{caller}", slices.case.label()))?;
            one_slice::<OfSbe>(plan, run.interrupted, slices)
        })
    });
    let floors = turns::middle_floors(floors);
    let mut measured_rows = turns::middle_rows(canonical_rows);
    measured_rows.extend(slices.iter().filter(|slices| slices.histogram.count() > 0).map(row));
    for mut row in measured_rows {
        if let Some(floor) = floors.first() {
            row.compare_with(floor);
        }
        run.report.rows.push(row);
    }
    run.report.floor.extend(floors);
    measured
}

fn row(slices: &Slices) -> Row {
    let mut config = rows::config(&slices.case, "latency", 1);
    config.rate_per_s = Some(PER_S);
    config.count = Some(slices.histogram.count());
    config.extra.extend(slices.caller.map(|does| ("caller".to_owned(), does.into())));
    Row {
        config,
        latency_ns: slices.histogram.latency_ns(),
        sent: Some(slices.histogram.count()),
        rate_reached: Some(slices.is_rate_reached),
        verified: Some(slices.wrong == 0),
        ..Row::default()
    }
}

fn one_slice<F: Form>(plan: &Plan, interrupted: &AtomicBool, slices: &mut Slices) -> Result<()> {
    let place = Place { parent: &plan.directory, optimize_for: OptimizeFor::Latency, is_quick: plan.is_quick };
    let times = (plan.warm_up, plan.time);
    if slices.case.drive == Drive::Direct {
        let case = slices.case;
        let start = || Stand::direct::<F>(&case, place, 1);
        return on_driver_with(start, |(mut bus, _directory)| {
            paced::<F, _>(&mut bus, times, interrupted, slices)?;
            bus.stop().map(drop).map_err(failed)
        });
    }
    let stand = Stand::start::<F>(&slices.case, place)?;
    let bus = stand.bus(1)?;
    on_driver(|| match slices.caller {
        Some(SPINS) => paced::<F, _>(Spinning(&bus), times, interrupted, slices),
        _ => paced::<F, _>(&bus, times, interrupted, slices),
    })?;
    drop(bus);
    stand.stop()
}

/// A handle whose thread looks for the outcome until it is there.
struct Spinning<'a>(&'a CommandBus);

impl<F: Form> Sender<F> for Spinning<'_> {
    type Pending = Pending<(), ()>;

    #[inline]
    fn send(&mut self, draft: Draft<'_, F::Command, (), ()>) -> Self::Pending {
        self.0.send(draft)
    }

    #[inline]
    fn wait(&mut self, mut pending: Self::Pending) -> Outcome {
        loop {
            match pending.try_wait() {
                Ok(outcome) => return outcome,
                Err(none_yet) => pending = none_yet,
            }
            // Without a pause, as the driver of the canonical row looks.
        }
    }
}

/// Calls at the pace. One that is late because the last one took so long begins at once, and its latency when it was due.
fn paced<F: Form, S: Sender<F>>(
    mut bus: S,
    (warm_up, time): (Duration, Duration),
    interrupted: &AtomicBool,
    slices: &mut Slices,
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
