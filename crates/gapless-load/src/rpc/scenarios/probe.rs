//! Lone calls of another route, one after the other; both sides sleep in between.

use super::load::Payload;
use crate::rpc::check_interrupted;
use crate::rpc::failed;
use gapless_measure::Result;
use gapless_measure::affinity::pin_current_thread;
use gapless_measure::histogram::LatencyHistogram;
use gapless_rpc::Domain;
use gapless_rpc::domain::ServeReach;
use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

const PACE: Duration = Duration::from_micros(500);

pub const PER_S: u64 = 1_000_000 / PACE.as_micros() as u64;

/// Latencies, and the number of wrong replies.
pub type ProbeResult = (LatencyHistogram, u64);

/// Caller and worker are threads, on `cpu` if it is named.
pub fn run(domain: &Domain, count: u64, cpu: Option<usize>, interrupted: &AtomicBool) -> Result<ProbeResult> {
    let route = domain.serve("scenarios/probe").reach(ServeReach::ThisProcess).init(move |_| pin(cpu));
    let _route = route.handle(|payload: Payload, _context| Ok(payload.answered())).map_err(failed)?;
    let caller = domain.caller::<Payload, Payload>("scenarios/probe").map_err(failed)?;
    paced(count, cpu, interrupted, |number| {
        let payload = Payload::new(number);
        Ok(caller.call(payload).map_err(failed)? == payload.answered())
    })
}

/// Two threads that only wake each other: the machine's cost at that pace.
pub fn bare(count: u64, cpu: Option<usize>, interrupted: &AtomicBool) -> Result<ProbeResult> {
    let (asked, answered) = (WakeWord::default(), WakeWord::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(cpu);
            let mut number = 0;
            while number != END {
                number = asked.wait_for_change(number);
                answered.set(number);
            }
        });
        let probed = paced(count, cpu, interrupted, |number| {
            asked.set(number + 1);
            Ok(answered.wait_for_change(number) == number + 1)
        });
        asked.set(END);
        probed
    })
}

const END: u64 = u64::MAX;

#[derive(Default)]
struct WakeWord {
    value: Mutex<u64>,
    changed: Condvar,
}

impl WakeWord {
    fn set(&self, value: u64) {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = value;
        self.changed.notify_one();
    }

    fn wait_for_change(&self, old: u64) -> u64 {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        *self.changed.wait_while(value, |value| *value == old).unwrap_or_else(PoisonError::into_inner)
    }
}

/// An unpinned thread changes the probe, but not its correctness.
fn pin(cpu: Option<usize>) {
    drop(cpu.map(|cpu| pin_current_thread(&[cpu])));
}

/// Starts a thread. A latency begins when the call is made, or when it was due if the previous call delayed it, without
/// the timer's lateness.
fn paced(
    count: u64,
    cpu: Option<usize>,
    interrupted: &AtomicBool,
    mut call: impl FnMut(u64) -> Result<bool> + Send,
) -> Result<ProbeResult> {
    let probing = move || {
        pin(cpu);
        let (mut histogram, mut wrong) = (LatencyHistogram::new(), 0);
        let mut due = Instant::now();
        for number in 0..count + count / 10 {
            check_interrupted(interrupted)?;
            let now = Instant::now();
            if number == count / 10 {
                due = now;
            }
            let begin = if now < due {
                std::thread::sleep(due - now);
                Instant::now()
            } else {
                due
            };
            let is_right = call(number)?;
            let elapsed = begin.elapsed();
            if number >= count / 10 {
                histogram.record(elapsed.as_nanos() as u64);
                wrong += u64::from(!is_right);
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
    fn probe_counts_and_is_interrupted() {
        let domain = Domain::in_process("probe");
        let (histogram, wrong) = run(&domain, 50, None, &AtomicBool::new(false)).unwrap();
        assert_eq!((histogram.count(), wrong), (50, 0));
        let (histogram, wrong) = bare(50, None, &AtomicBool::new(false)).unwrap();
        assert_eq!((histogram.count(), wrong), (50, 0));
        let interrupted = AtomicBool::new(true);
        for ended in [run(&domain, 50, None, &interrupted), bare(50, None, &interrupted)] {
            assert!(ended.unwrap_err().to_string().contains("interrupted"));
        }
    }
}
