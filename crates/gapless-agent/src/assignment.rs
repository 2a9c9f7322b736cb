//! [`ThreadAssignment`]: a plan's threads before they run: which agent runs on which, and how each is woken.

use crate::plan::ThreadPlan;
use crate::wake::Waker;
use std::io;

/// A plan with a waker for each of its threads.
pub struct ThreadAssignment<R> {
    pub plan: ThreadPlan<R>,
    /// The waker of each of its threads, in the same order.
    pub wakers: Vec<Waker>,
}

impl<R: Copy + Eq> ThreadAssignment<R> {
    /// Makes the wakers of `plan`.
    ///
    /// # Errors
    /// The operating system has no more descriptors.
    pub fn new(plan: ThreadPlan<R>) -> io::Result<Self> {
        let wakers = plan.threads.iter().map(|_| Waker::new()).collect::<io::Result<_>>()?;
        Ok(Self { plan, wakers })
    }

    /// Whether the plan has an agent of this role.
    #[must_use]
    pub fn has(&self, role: R) -> bool {
        self.plan.thread_of(role).is_some()
    }

    /// Wakes the thread of the agent of this role.
    ///
    /// # Panics
    /// If the plan has none.
    #[must_use]
    pub fn waker(&self, role: R) -> Waker {
        let thread = self.plan.thread_of(role).expect("the plan has the agent");
        self.wakers[thread].clone()
    }

    /// The wakers of those of `roles` that run on another thread than `from` (`None`: a helper thread), each once.
    #[must_use]
    pub fn downstream(&self, from: Option<R>, roles: &[R]) -> Vec<Waker> {
        let own = from.and_then(|from| self.plan.thread_of(from));
        let mut threads: Vec<usize> = roles.iter().filter_map(|role| self.plan.thread_of(*role)).collect();
        threads.sort_unstable();
        threads.dedup();
        threads.into_iter().filter(|thread| Some(*thread) != own).map(|thread| self.wakers[thread].clone()).collect()
    }
}
