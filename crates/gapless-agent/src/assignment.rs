//! `ThreadAssignment`: the threads of a plan before they run: their agents and their wakers.

use crate::plan::ThreadPlan;
use crate::wake::Waker;
use std::io;

pub struct ThreadAssignment<R> {
    pub plan: ThreadPlan<R>,
    /// In the order of the threads.
    pub wakers: Vec<Waker>,
}

impl<R: Copy + Eq> ThreadAssignment<R> {
    /// Creates the wakers.
    ///
    /// # Errors
    /// The operating system has no more descriptors.
    pub fn new(plan: ThreadPlan<R>) -> io::Result<Self> {
        let wakers = plan.threads.iter().map(|_| Waker::new()).collect::<io::Result<_>>()?;
        Ok(Self { plan, wakers })
    }

    #[must_use]
    pub fn has(&self, role: R) -> bool {
        self.plan.thread_of(role).is_some()
    }

    /// Waker of the thread of the agent with this role.
    ///
    /// # Panics
    /// If the plan has no such agent.
    #[must_use]
    pub fn waker(&self, role: R) -> Waker {
        let thread = self.plan.thread_of(role).expect("the plan has the agent");
        self.wakers[thread].clone()
    }

    /// Wakers of the agents in `roles` on other threads than `from` (`None`: a helper thread), each once.
    #[must_use]
    pub fn downstream(&self, from: Option<R>, roles: &[R]) -> Vec<Waker> {
        let own = from.and_then(|from| self.plan.thread_of(from));
        let mut threads: Vec<usize> = roles.iter().filter_map(|role| self.plan.thread_of(*role)).collect();
        threads.sort_unstable();
        threads.dedup();
        threads.into_iter().filter(|thread| Some(*thread) != own).map(|thread| self.wakers[thread].clone()).collect()
    }
}
