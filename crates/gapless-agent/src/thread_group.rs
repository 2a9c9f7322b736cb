//! `ThreadGroup`: the threads of a whole plan, started, watched and stopped together.

use crate::agent::Agent;
use crate::clock::Clock;
use crate::error::Error;
use crate::failure::{AgentFailure, FailureSlot};
use crate::pauses::Pauses;
use crate::plan::ThreadPlan;
use crate::thread::AgentThread;
use crate::wake::Waker;
use std::fmt::Display;

/// Running threads of a [`ThreadPlan`]; dropping it stops and joins them in order.
#[derive(Debug)]
pub struct ThreadGroup {
    threads: Vec<AgentThread>,
    failures: FailureSlot,
}

impl ThreadGroup {
    /// Starts the plan's threads. `agents` are in any order; `wakers` has one for each planned thread, in the plan's
    /// order.
    ///
    /// # Errors
    /// [`Error::PlanMismatch`] if an agent of the plan is missing, given twice or not in the plan, or if the number of
    /// wakers differs; [`Error::ThreadStart`]. Threads already started are stopped again.
    pub fn launch<R: Copy + Eq + Display>(
        plan: &ThreadPlan<R>,
        agents: Vec<(R, Box<dyn Agent>)>,
        clock: &Clock,
        wakers: Vec<Waker>,
    ) -> Result<Self, Error> {
        if wakers.len() != plan.threads.len() {
            let found = format!("{} wakers given for {} threads", wakers.len(), plan.threads.len());
            return Err(Error::PlanMismatch(found));
        }
        let mut agents = agents;
        let mut agents_of_threads: Vec<Vec<Box<dyn Agent>>> = Vec::with_capacity(plan.threads.len());
        for thread in &plan.threads {
            let mut agents_of_thread = Vec::with_capacity(thread.agents.len());
            for role in &thread.agents {
                let found = agents.iter().position(|(given, _)| given == role);
                let index =
                    found.ok_or_else(|| Error::PlanMismatch(format!("agent {role} is planned and was not given")))?;
                agents_of_thread.push(agents.remove(index).1);
            }
            agents_of_threads.push(agents_of_thread);
        }
        if let Some((role, _)) = agents.first() {
            return Err(Error::PlanMismatch(format!("agent {role} was given and is not planned")));
        }
        let mut group = Self { threads: Vec::with_capacity(agents_of_threads.len()), failures: FailureSlot::new() };
        for ((thread, agents_of_thread), waker) in plan.threads.iter().zip(agents_of_threads).zip(wakers) {
            let spec = thread.spec.clone();
            group.threads.push(AgentThread::spawn_sharing(
                spec,
                agents_of_thread,
                clock.clone(),
                waker,
                &group.failures,
            )?);
        }
        Ok(group)
    }

    /// Stops the threads in the plan's order, so that each still takes the work of the one before it.
    ///
    /// # Errors
    /// The first failure of any thread, now or before.
    pub fn stop_and_join(mut self) -> Result<(), AgentFailure> {
        let mut ended = Vec::new();
        for thread in self.threads.drain(..) {
            thread.stop();
            ended.extend(thread.join().err());
        }
        // The slot knows the first failure; the thread also the errors while it closed.
        let Some(first) = self.failures.failure() else { return ended.pop().map_or(Ok(()), Err) };
        let same = |other: &AgentFailure| (&other.thread, &other.agent) == (&first.thread, &first.agent);
        Err(ended.into_iter().find(same).unwrap_or(first))
    }

    #[must_use]
    pub fn threads(&self) -> &[AgentThread] {
        &self.threads
    }

    #[must_use]
    pub fn failures(&self) -> &FailureSlot {
        &self.failures
    }

    #[must_use]
    pub fn pin_warnings(&self) -> Vec<String> {
        let warning = |thread: &AgentThread| Some(format!("thread {}: {}", thread.spec().name, thread.pin_warning()?));
        self.threads.iter().filter_map(warning).collect()
    }

    #[must_use]
    pub fn pauses(&self) -> Vec<Pauses> {
        self.threads.iter().map(AgentThread::pauses).collect()
    }

    #[must_use]
    pub fn cpu_time_ns(&self) -> u64 {
        self.threads.iter().filter_map(AgentThread::cpu_time_ns).sum()
    }
}

impl Drop for ThreadGroup {
    fn drop(&mut self) {
        for thread in self.threads.drain(..) {
            drop(thread);
        }
    }
}
