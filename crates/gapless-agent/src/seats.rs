//! [`Seats`]: a plan's threads before they run: which agent sits on which, and how each is woken.

use crate::plan::ThreadPlan;
use crate::wake::Waker;
use std::io;

/// A plan with a waker for each of its threads.
pub struct Seats {
    /// The plan.
    pub plan: ThreadPlan,
    /// The waker of each of its threads, in the same order.
    pub wakers: Vec<Waker>,
}

impl Seats {
    /// Makes the wakers of `plan`.
    ///
    /// # Errors
    /// The operating system has no more descriptors.
    pub fn new(plan: ThreadPlan) -> io::Result<Self> {
        let wakers = plan.threads.iter().map(|_| Waker::new()).collect::<io::Result<_>>()?;
        Ok(Self { plan, wakers })
    }

    /// The index of the thread that `agent` sits on.
    #[must_use]
    pub fn seat(&self, agent: &str) -> Option<usize> {
        self.plan.thread_of(agent)
    }

    /// Wakes the thread of `agent`.
    ///
    /// # Panics
    /// If the plan does not seat it.
    #[must_use]
    pub fn waker(&self, agent: &str) -> Waker {
        let seat = self.seat(agent).expect("the plan seats the agent");
        self.wakers[seat].clone()
    }

    /// The wakers of those of `agents` that sit on another thread than `from` (`None`: a helper thread), each once.
    #[must_use]
    pub fn downstream(&self, from: Option<&str>, agents: &[&str]) -> Vec<Waker> {
        let own = from.and_then(|from| self.seat(from));
        let mut seats: Vec<usize> = agents.iter().filter_map(|agent| self.seat(agent)).collect();
        seats.sort_unstable();
        seats.dedup();
        seats.into_iter().filter(|seat| Some(*seat) != own).map(|seat| self.wakers[seat].clone()).collect()
    }
}
