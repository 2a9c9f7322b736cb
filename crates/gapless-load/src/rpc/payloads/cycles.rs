//! Each cycle repeatedly forks as many calls as fit in flight, and joins them. Payloads are written before the clock
//! runs, and replies checked when it stands.

use super::content::{TaggedPayloads, is_whole};
use super::served::{ONE_WAY, SLOTS, TWO_WAY};
use crate::rpc::check_interrupted;
use crate::rpc::failed;
use gapless_measure::Result;
use gapless_measure::resources::process_cpu_ns;
use gapless_rpc::caller::together;
use gapless_rpc::{Caller, CallerOptions, Domain, Message, Reach};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Request bytes in flight: more than the caches hold, so that copies are of cold memory.
const FORK_BYTES: usize = 64 << 20;

pub fn forked_max(length: usize) -> u64 {
    (FORK_BYTES / length).clamp(1, SLOTS as usize) as u64
}

/// Totals without the warm-up.
#[derive(Debug, Default, PartialEq)]
pub struct CycleTotals {
    pub rates: Vec<f64>,
    pub elapsed: Duration,
    pub calls: u64,
    /// CPU time while the clock ran, ns.
    pub cpu_ns: u64,
    pub wrong: u64,
}

impl CycleTotals {
    /// Median, calls a second.
    pub fn rate(&self) -> f64 {
        gapless_measure::statistics::median(&self.rates)
    }
}

pub struct CycleCallers {
    one_way: Caller<Vec<u8>, bool>,
    two_way: Caller<Vec<u8>, Vec<u8>>,
}

impl CycleCallers {
    pub fn new(domain: &Domain, reach: Reach) -> Result<Self> {
        let options = CallerOptions { reach, ..CallerOptions::default() };
        Ok(Self {
            one_way: domain.caller_with(ONE_WAY, options.clone()).map_err(failed)?,
            two_way: domain.caller_with(TWO_WAY, options).map_err(failed)?,
        })
    }

    /// The answer says that the payload arrived.
    ///
    /// # Errors
    /// A call that fails; an interrupt.
    pub fn one_way(
        &self,
        length: usize,
        counts: (u64, (usize, usize)),
        interrupted: &AtomicBool,
    ) -> Result<CycleTotals> {
        run(&self.one_way, length, counts, |_, came| *came, interrupted)
    }

    /// The answer is the payload.
    ///
    /// # Errors
    /// A call that fails; an interrupt.
    pub fn two_way(
        &self,
        length: usize,
        counts: (u64, (usize, usize)),
        interrupted: &AtomicBool,
    ) -> Result<CycleTotals> {
        run(&self.two_way, length, counts, |sent, reply| is_whole(reply) && sent == reply, interrupted)
    }
}

/// `cycles`: all, and those that warm up. `is_right` compares request and reply.
fn run<Reply: Message>(
    caller: &Caller<Vec<u8>, Reply>,
    length: usize,
    (calls, cycles): (u64, (usize, usize)),
    is_right: fn(&[u8], &Reply) -> bool,
    interrupted: &AtomicBool,
) -> Result<CycleTotals> {
    let payloads = TaggedPayloads::new(length);
    let forked_max = forked_max(length);
    let mut counted = CycleTotals::default();
    for cycle in 0..cycles.0 {
        check_interrupted(interrupted)?;
        let (mut elapsed, mut cpu_ns, mut wrong) = (Duration::ZERO, 0, 0);
        let mut first = 0;
        while first < calls {
            let numbers = first..calls.min(first + forked_max);
            let requests: Vec<Vec<u8>> = numbers.clone().map(|call| payloads.of(call).to_vec()).collect();
            let cpu_before_ns = process_cpu_ns();
            let begin = Instant::now();
            let forked: Vec<_> = requests.into_iter().map(|request| caller.start(request)).collect();
            let replies = together::all(forked);
            elapsed += begin.elapsed();
            cpu_ns += process_cpu_ns() - cpu_before_ns;
            for (call, reply) in numbers.clone().zip(replies) {
                wrong += u64::from(!is_right(payloads.of(call), &reply.map_err(failed)?));
            }
            first = numbers.end;
        }
        if cycle >= cycles.1 {
            counted.rates.push(calls as f64 / elapsed.as_secs_f64());
            counted.elapsed += elapsed;
            counted.calls += calls;
            counted.cpu_ns += cpu_ns;
            counted.wrong += wrong;
        }
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(length: usize, spoil: fn(&mut Vec<u8>)) -> CycleTotals {
        let domain = Domain::in_process("payloads");
        let route = domain.serve("echo").workers(3).handle(move |mut bytes: Vec<u8>, _context| {
            spoil(&mut bytes);
            Ok(bytes)
        });
        let _route = route.unwrap();
        let caller = domain.caller::<Vec<u8>, Vec<u8>>("echo").unwrap();
        let is_right: fn(&[u8], &Vec<u8>) -> bool = |sent, reply| is_whole(reply) && sent == reply;
        run(&caller, length, (300, (4, 2)), is_right, &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn cycles_skip_warm_up_and_see_errors() {
        let good = cycles(72, |_| ());
        assert_eq!((good.rates.len(), good.calls, good.wrong), (2, 600, 0));
        assert!(good.rate() > 0.0 && good.elapsed > Duration::ZERO);
        // All wrong except payload 0, which has that byte anyway.
        let bad = cycles(72, |bytes| bytes[20] = (20 * 7) as u8);
        assert_eq!(bad.wrong, 2 * (300 - 5));
        assert_eq!(cycles(72, |bytes| bytes.truncate(71)).wrong, 600);
    }

    #[test]
    fn interrupt_ends_cycles() {
        let domain = Domain::in_process("payloads");
        let caller = domain.caller::<Vec<u8>, bool>("nobody").unwrap();
        let error = run(&caller, 72, (1, (1, 0)), |_, _| true, &AtomicBool::new(true)).unwrap_err();
        assert!(error.to_string().contains("interrupted"), "{error}");
        let error = run(&caller, 72, (1, (1, 0)), |_, _| true, &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().contains("nobody"), "{error}");
    }
}
