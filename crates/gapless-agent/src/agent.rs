//! `Agent`: one stage of a node, with one non-blocking `poll`.
//!
//! Implemented by every stage above this crate; called only by [`crate::AgentGroup`]. An agent
//! never starts threads, never sleeps and never reads a clock: time comes in as [`Now`].

use std::os::fd::BorrowedFd;

/// One reading of the clock, shared by every agent of a duty cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Now {
    /// Nanoseconds of monotonic time. For time-outs; only differences mean something.
    pub monotonic_ns: u64,
    /// Nanoseconds since 1970-01-01 UTC: monotonic time, anchored to the wall clock and slewed to
    /// it slowly. For time stamps.
    pub epoch_ns: u64,
}

/// Whatever went wrong in an agent. It ends the agent's thread.
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
    /// The name by which plans, failures and figures speak of this agent.
    fn name(&self) -> &str;

    /// Called once on the agent's own thread before the first poll.
    ///
    /// # Errors
    /// Whatever keeps the agent from starting; its thread ends with it.
    fn on_start(&mut self, _now: Now) -> Result<(), AgentError> {
        Ok(())
    }

    /// Does a bounded amount of work and says how much (in any unit; 0 is none). Never blocks.
    ///
    /// The number decides whether the thread idles, so housekeeping by the clock (a heartbeat, a
    /// statistic) counts as 0: otherwise each beat buys a whole idle period of spinning.
    ///
    /// # Errors
    /// What the agent cannot go on after. It ends the thread and closes its agents.
    fn poll(&mut self, now: Now) -> Result<usize, AgentError>;

    /// The thread is about to park: announce (in shared memory, with any ordering: the thread
    /// fences after all agents are armed) that wake-ups are needed. One more poll follows before
    /// the thread waits, so that what came in between is not missed.
    fn arm(&mut self) {}

    /// The thread is awake again: withdraw what `arm` announced.
    fn disarm(&mut self) {}

    /// Adds the descriptors that have something for the agent when they become readable: they end the thread's wait
    /// like a wake-up. Asked after the last poll before the thread waits.
    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        let _ = descriptors;
    }

    /// Monotonic time, in nanoseconds, at which the agent wants to be polled although nobody
    /// wakes its thread. Asked after the last poll before the thread waits.
    fn next_deadline_ns(&self) -> Option<u64> {
        None
    }

    /// Take no new input from now on, finish what has been taken. Called once, in the order of
    /// the thread's agents; each is polled until [`Agent::is_drained`] before the next is closed.
    /// Also called, without draining, when another agent has failed.
    ///
    /// # Errors
    /// What went wrong while closing.
    fn on_close(&mut self, _now: Now) -> Result<(), AgentError> {
        Ok(())
    }

    /// After `on_close`: whether everything that was taken has been finished.
    fn is_drained(&self) -> bool {
        true
    }
}
