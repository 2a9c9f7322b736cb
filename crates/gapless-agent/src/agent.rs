//! An agent never starts threads, sleeps or reads a clock: time comes in as [`Now`].

use std::os::fd::BorrowedFd;

/// One reading of the clock, shared by all agents of a duty cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Now {
    /// Monotonic time, ns; only differences are meaningful.
    pub monotonic_ns: u64,
    /// Nanoseconds since 1970-01-01 UTC, monotonic and slowly slewed to the wall clock; for time stamps.
    pub epoch_ns: u64,
}

/// A fatal error of an agent; it ends the agent's thread.
pub type AgentError = Box<dyn std::error::Error + Send + Sync>;

/// One stage: a ring reader, sequencer, journaler, handler, sender …
///
/// ```
/// use gapless_agent::{Agent, AgentError, AgentGroup, Now};
///
/// struct Countdown(u32);
/// impl Agent for Countdown {
///     fn name(&self) -> &str { "countdown" }
///     fn poll(&mut self, _now: Now) -> Result<usize, AgentError> {
///         let work = self.0.min(10);
///         self.0 -= work;
///         Ok(work as usize)
///     }
/// }
/// let mut group = AgentGroup::new(vec![Box::new(Countdown(15))]);
/// group.start(Now::default())?;
/// assert_eq!(group.poll_once(Now::default())?, 10);
/// assert_eq!(group.poll_once(Now::default())?, 5);
/// assert_eq!(group.poll_once(Now::default())?, 0);
/// # Ok::<(), gapless_agent::AgentFailure>(())
/// ```
pub trait Agent: Send {
    fn name(&self) -> &str;

    /// Called on the agent's own thread.
    ///
    /// # Errors
    /// An error that keeps the agent from starting; it ends the thread.
    fn on_start(&mut self, _now: Now) -> Result<(), AgentError> {
        Ok(())
    }

    /// Does a bounded amount of work and returns how much; never blocks. Periodic housekeeping counts as 0: otherwise
    /// each heartbeat would cost an idle period of spinning.
    ///
    /// # Errors
    /// A fatal error. It ends the thread and closes its agents.
    fn poll(&mut self, now: Now) -> Result<usize, AgentError>;

    /// Announce in shared memory that wake-ups are needed. Any ordering will do: the thread fences afterwards and polls
    /// once more before it waits.
    fn arm(&mut self) {}

    /// Withdraw the announcement of `arm`.
    fn disarm(&mut self) {}

    /// Adds descriptors that become readable when the agent has work.
    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        let _ = descriptors;
    }

    /// Monotonic time, ns, of the next poll even without a wake-up.
    fn next_deadline_ns(&self) -> Option<u64> {
        None
    }

    /// Stops taking input; each agent is polled until [`Agent::is_drained`] before the next is closed. After another
    /// agent has failed, called without draining.
    ///
    /// # Errors
    /// An error while closing.
    fn on_close(&mut self, _now: Now) -> Result<(), AgentError> {
        Ok(())
    }

    fn is_drained(&self) -> bool {
        true
    }
}
