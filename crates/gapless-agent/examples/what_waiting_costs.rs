//! What each way of waiting costs: CPU time of an idle thread, and the time until it sees a message.
//!
//! `cargo run --release -p gapless-agent --example what_waiting_costs [SECONDS]`
//!
//! The first line is an idle node in the default configuration: it should stay below 2 % of a core.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gapless_agent::{
    Agent, AgentError, AgentSpec, AgentThread, Clock, IdleStrategy, Now, OptimizeFor, PlanKind, ThreadGroup,
    ThreadSpec, Waker, plan,
};

/// Answers a message by writing down when it was seen.
struct Watcher {
    name: String,
    sent: Arc<AtomicU64>,
    seen: Arc<AtomicU64>,
}

impl Agent for Watcher {
    fn name(&self) -> &str {
        &self.name
    }
    fn poll(&mut self, _now: Now) -> Result<usize, AgentError> {
        let sent = self.sent.load(Ordering::Acquire);
        if self.seen.load(Ordering::Relaxed) == sent {
            return Ok(0);
        }
        self.seen.store(sent, Ordering::Release);
        Ok(1)
    }
}

fn watcher(name: &str) -> (Box<dyn Agent>, Arc<AtomicU64>, Arc<AtomicU64>) {
    let (sent, seen) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    (Box::new(Watcher { name: name.to_owned(), sent: sent.clone(), seen: seen.clone() }), sent, seen)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(2.0), |text| text.parse())?;
    let (clock, note) = Clock::fastest();
    println!("clock: {}{}", clock.kind(), note.map_or(String::new(), |note| format!(" ({note})")));
    what_reading_costs(&clock);
    what_reading_costs(&Clock::system());
    idle_node(&clock, seconds)?;
    println!("{:<44} {:>12} {:>12} {:>12}", "strategy", "idle, % core", "p50, µs", "p99, µs");
    for idle in [
        IdleStrategy::Spin,
        IdleStrategy::SPIN_YIELD,
        IdleStrategy::SPIN_YIELD_PARK,
        IdleStrategy::SHARED_CORE,
        IdleStrategy::BACK_OFF,
    ] {
        one_thread(idle, &clock, seconds)?;
    }
    Ok(())
}

fn what_reading_costs(clock: &Clock) {
    const READINGS: u32 = 100_000;
    let best = |reading: &dyn Fn() -> u64| {
        let once = || {
            let begun = Instant::now();
            for _ in 0..READINGS {
                std::hint::black_box(reading());
            }
            begun.elapsed()
        };
        (0..20).map(|_| once()).min().unwrap_or_default() / READINGS
    };
    println!("{} clock: now {:?}, ticks {:?}", clock.kind(), best(&|| clock.now().epoch_ns), best(&|| clock.ticks()));
}

fn idle_node(clock: &Clock, seconds: f64) -> Result<(), Box<dyn std::error::Error>> {
    let specs = ["sequencer", "journaler", "service", "sender"].map(|name| AgentSpec::new(name).hot().detachable());
    let cores = gapless_agent::plan::cores_available();
    let plan = plan(PlanKind::Default, OptimizeFor::Latency, &specs, cores, 0);
    print!("{plan}");
    let agents = specs.iter().map(|spec| (spec.role, watcher(spec.role).0)).collect();
    let wakers = plan.threads.iter().map(|_| Waker::new()).collect::<Result<Vec<_>, _>>()?;
    let group = ThreadGroup::launch(&plan, agents, clock, wakers)?;
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let share = group.cpu_time_ns() as f64 / begun.elapsed().as_nanos() as f64;
    println!("idle node, default configuration: {:.3} % of a core", share * 100.0);
    group.stop_and_join()?;
    Ok(())
}

fn one_thread(idle: IdleStrategy, clock: &Clock, seconds: f64) -> Result<(), Box<dyn std::error::Error>> {
    let (agent, sent, seen) = watcher("watcher");
    let waker = Waker::new()?;
    let spec = ThreadSpec { idle, ..ThreadSpec::new("watcher") };
    let thread = AgentThread::spawn(spec, vec![agent], clock.clone(), waker.clone())?;
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let idle_share = thread.cpu_time_ns().unwrap_or(0) as f64 / begun.elapsed().as_nanos() as f64;
    let mut times_ns = Vec::new();
    for sequence in 1..=200 {
        // Long enough for every strategy to reach its last phase.
        std::thread::sleep(Duration::from_millis(2));
        let begun_ns = clock.monotonic_ns();
        sent.store(sequence, Ordering::Release);
        waker.wake();
        while seen.load(Ordering::Acquire) != sequence {
            std::hint::spin_loop();
        }
        times_ns.push(clock.monotonic_ns() - begun_ns);
    }
    thread.stop();
    thread.join()?;
    times_ns.sort_unstable();
    let micros = |share: f64| times_ns[(times_ns.len() as f64 * share) as usize] as f64 / 1_000.0;
    println!("{:<44} {:>12.3} {:>12.2} {:>12.2}", idle.to_string(), idle_share * 100.0, micros(0.5), micros(0.99));
    Ok(())
}
