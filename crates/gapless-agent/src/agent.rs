//! `Agent`: one stage of a node, with one non-blocking `poll`.
//!
//! Implemented by every stage in higher crates; called only by [`crate::AgentGroup`]. An agent never starts threads,
//! never sleeps and never reads a clock: time comes in as [`Now`].

use std::os::fd::BorrowedFd;

/// One reading of the clock, shared by all agents of a duty cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Now {
    /// Monotonic time, ns. For timeouts; only differences are meaningful.
    pub monotonic_ns: u64,
    /// Nanoseconds since 1970-01-01 UTC: monotonic time, anchored to the wall clock and slowly slewed to it. For time
    /// stamps.
    pub epoch_ns: u64,
}

/// A fatal error of an agent. It ends the agent's thread.
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
    /// Name of the agent in plans, failures and figures.
    fn name(&self) -> &str;

    /// Called once on the agent's own thread before the first poll.
    ///
    /// # Errors
    /// An error that keeps the agent from starting; it ends the thread.
    fn on_start(&mut self, _now: Now) -> Result<(), AgentError> {
        Ok(())
    }

    /// Does a bounded amount of work and returns how much (in any unit; 0 for none). Never blocks.
    ///
    /// A return of 0 lets the thread idle, so periodic housekeeping (a heartbeat, a statistic) counts as 0: otherwise
    /// each heartbeat would cost an idle period of spinning.
    ///
    /// # Errors
    /// A fatal error. It ends the thread and closes its agents.
    fn poll(&mut self, now: Now) -> Result<usize, AgentError>;

    /// Called before the thread parks: announce in shared memory that wake-ups are needed. Any ordering will do,
    /// because the thread fences after all agents are armed. One more poll follows before the thread waits, so that
    /// concurrent events are not missed.
    fn arm(&mut self) {}

    /// Called when the thread is awake again: withdraw the announcement of `arm`.
    fn disarm(&mut self) {}

    /// Adds the descriptors that become readable when the agent has work: they end the thread's wait like a wake-up.
    /// Called after the last poll before the thread waits.
    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        let _ = descriptors;
    }

    /// Monotonic time, ns, at which the agent must be polled even without a wake-up. Called after the last poll before
    /// the thread waits.
    fn next_deadline_ns(&self) -> Option<u64> {
        None
    }

    /// Stops taking input; everything taken must still be finished. Called once, in the order of the thread's agents;
    /// each is polled until [`Agent::is_drained`] before the next is closed. Also called, without draining, after
    /// another agent has failed.
    ///
    /// # Errors
    /// An error while closing.
    fn on_close(&mut self, _now: Now) -> Result<(), AgentError> {
        Ok(())
    }

    /// After `on_close`: whether everything taken is finished.
    fn is_drained(&self) -> bool {
        true
    }
}
