//! Clocks of the agents, for `gapless bench time`.

use crate::time_sources::TimeSource;
use gapless_agent::Clock;

/// The reason explains a missing clock.
#[must_use]
pub fn agent_clocks() -> (Vec<TimeSource>, Option<String>) {
    let source = |name, clock: Clock, read: fn(&Clock) -> u64| TimeSource {
        name,
        read_ns: Box::new(move || read(&clock)),
        resolution_ns: None,
    };
    let mut sources = vec![
        source("agent_system", Clock::system(), Clock::monotonic_ns),
        source("agent_system_both", Clock::system(), |clock| clock.now().epoch_ns),
    ];
    let note = match Clock::tsc() {
        Ok(clock) => {
            sources.push(source("agent_tsc", clock.clone(), Clock::monotonic_ns));
            sources.push(source("agent_tsc_both", clock, |clock| clock.now().epoch_ns));
            None
        }
        Err(error) => Some(format!("the agents' TSC clock was left out: {error}")),
    };
    (sources, note)
}
