//! The probe: lone calls of another route, one after the other, each of which sleeps and is woken.

use super::load::Payload;
use crate::failed;
use crate::reporting::check_interrupted;
use gapless_measure::Result;
use gapless_measure::histogram::LatencyHistogram;
use gapless_report::affinity::pin_current_thread;
use gapless_rpc::Domain;
use gapless_rpc::domain::ServeReach;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Between two calls.
const PACE: Duration = Duration::from_micros(500);

/// Calls a second.
pub(super) const PER_S: u64 = 1_000_000 / PACE.as_micros() as u64;

/// Makes `count` calls; caller and worker are threads, on `cpu` if it is named. A latency begins when the call is made, or when
/// it was due if that is earlier because the one before took so long; how late the machine's timer is does not belong to it.
pub(super) fn run(
    domain: &Domain,
    count: u64,
    cpu: Option<usize>,
    interrupted: &AtomicBool,
) -> Result<(LatencyHistogram, u64)> {
    // Not to be pinned makes it another probe, not a wrong one.
    let pin = move || drop(cpu.map(|cpu| pin_current_thread(&[cpu])));
    let route = domain.serve("scenarios/probe").reach(ServeReach::Process).init(move |_| pin());
    let _route = route.handle(|payload: Payload, _context| Ok(payload.answered())).map_err(failed)?;
    let caller = domain.caller::<Payload, Payload>("scenarios/probe").map_err(failed)?;
    let probing = move || {
        pin();
        let (mut histogram, mut wrong) = (LatencyHistogram::new(), 0);
        let mut due = Instant::now();
        for number in 0..count + count / 10 {
            check_interrupted(interrupted)?;
            let now = Instant::now();
            if number == count / 10 {
                // What the warm-up was late by is not of what counts.
                due = now;
            }
            let begin = if now < due {
                std::thread::sleep(due - now);
                Instant::now()
            } else {
                due
            };
            let payload = Payload::new(number);
            let reply = caller.call(payload).map_err(failed)?;
            let elapsed = begin.elapsed();
            // The first tenth warms up.
            if number >= count / 10 {
                histogram.record(elapsed.as_nanos() as u64);
                wrong += u64::from(reply != payload.answered());
            }
            due = (due + PACE).max(begin);
        }
        Ok((histogram, wrong))
    };
    std::thread::scope(|scope| scope.spawn(probing).join().unwrap_or_else(|_| Err(failed("the probe panicked"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_what_it_was_asked_for_and_is_interrupted() {
        let domain = Domain::in_process("probe");
        let (histogram, wrong) = run(&domain, 50, None, &AtomicBool::new(false)).unwrap();
        assert_eq!((histogram.count(), wrong), (50, 0));
        let error = run(&domain, 50, None, &AtomicBool::new(true)).unwrap_err();
        assert!(error.to_string().contains("interrupted"));
    }
}
