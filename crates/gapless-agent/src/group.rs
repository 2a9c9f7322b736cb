//! The only place that calls agents. It never waits and reads no clock.

use std::any::Any;
use std::fmt;
use std::os::fd::BorrowedFd;

use crate::agent::{Agent, Now};
use crate::error::Error;
use crate::failure::AgentFailure;

pub struct AgentGroup {
    agents: Vec<Box<dyn Agent>>,
    /// Naming a failed agent runs none of its code.
    names: Vec<String>,
    /// A panic is this agent's failure.
    current: usize,
    started: usize,
    closing: usize,
    close_requested: bool,
    /// Agent that panicked: its state may be inconsistent, so it is not called again.
    broken: Option<usize>,
}

impl AgentGroup {
    #[must_use]
    pub fn new(agents: Vec<Box<dyn Agent>>) -> Self {
        let names = agents.iter().map(|agent| agent.name().to_owned()).collect();
        Self { agents, names, current: 0, started: 0, closing: 0, close_requested: false, broken: None }
    }

    /// Starts each agent, in order.
    ///
    /// # Errors
    /// The failure of the first agent that does not start; close the group then.
    pub fn start(&mut self, now: Now) -> Result<(), AgentFailure> {
        for index in self.started..self.agents.len() {
            self.current = index;
            let agent = &mut self.agents[index];
            // Counted before the call: resources of a failed start must be closed too.
            self.started = index + 1;
            agent.on_start(now).map_err(|error| AgentFailure::new(&self.names[index], error))?;
        }
        Ok(())
    }

    /// One duty cycle: polls each agent once, in order; returns the work done.
    ///
    /// # Errors
    /// The failure of the first agent that fails. The group must then only be closed, not polled.
    #[inline]
    pub fn poll_once(&mut self, now: Now) -> Result<usize, AgentFailure> {
        let mut work = 0_usize;
        for (index, agent) in self.agents.iter_mut().enumerate() {
            self.current = index;
            match agent.poll(now) {
                Ok(done) => work = work.saturating_add(done),
                Err(error) => return Err(AgentFailure::new(&self.names[index], error)),
            }
        }
        Ok(work)
    }

    pub fn arm(&mut self) {
        self.for_each(|agent| agent.arm());
    }

    pub fn disarm(&mut self) {
        self.for_each(|agent| agent.disarm());
    }

    /// Earliest deadline of all agents, ns of monotonic time.
    #[must_use]
    pub fn next_deadline_ns(&mut self) -> Option<u64> {
        let mut earliest: Option<u64> = None;
        self.for_each(|agent| {
            earliest = match (earliest, agent.next_deadline_ns()) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            }
        });
        earliest
    }

    /// One step of an orderly stop: closes the agents in order, and polls the whole group until the last one closed has
    /// drained. True when all are closed and drained.
    ///
    /// # Errors
    /// The failure of the first agent that fails. Continue with [`AgentGroup::abandon`].
    pub fn close_step(&mut self, now: Now) -> Result<bool, AgentFailure> {
        while self.closing < self.started {
            self.current = self.closing;
            let agent = &mut self.agents[self.closing];
            if !self.close_requested {
                self.close_requested = true;
                agent.on_close(now).map_err(|error| AgentFailure::new(&self.names[self.closing], error))?;
            }
            if !agent.is_drained() {
                self.poll_once(now)?;
                self.current = self.closing;
                if !self.agents[self.closing].is_drained() {
                    return Ok(false);
                }
            }
            self.closing += 1;
            self.close_requested = false;
        }
        Ok(true)
    }

    /// Closes the remaining agents after a failure, in order, without draining or calling a panicked one; adds further
    /// errors to `problems`. If this call panics, call it again: it continues with the next agent.
    pub fn abandon(&mut self, now: Now, problems: &mut Vec<String>) {
        while self.closing < self.started {
            let index = self.closing;
            let was_requested = std::mem::replace(&mut self.close_requested, false);
            self.closing += 1;
            self.current = index;
            if was_requested || self.broken == Some(index) {
                continue;
            }
            if let Err(error) = self.agents[index].on_close(now) {
                problems.push(format!("agent {}: {error}", self.names[index]));
            }
        }
    }

    /// Drops the agents, in order. If this call panics, call it again.
    pub fn release(&mut self) {
        self.started = 0;
        self.current = self.names.len() - self.agents.len();
        while !self.agents.is_empty() {
            let agent = self.agents.remove(0);
            self.current = self.names.len() - self.agents.len() - 1;
            drop(agent);
        }
    }

    /// Agent that [`AgentGroup::close_step`] waits for.
    #[must_use]
    pub fn draining(&self) -> Option<&str> {
        if self.closing < self.started { self.names.get(self.closing).map(String::as_str) } else { None }
    }

    pub fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        self.agents.iter().for_each(|agent| agent.watch(descriptors));
    }

    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Turns a panic out of this group into the failure of the agent that ran, which is not called again.
    #[must_use]
    pub fn blame_panic(&mut self, payload: &(dyn Any + Send)) -> AgentFailure {
        self.broken = Some(self.current);
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a value that is not text".to_owned());
        let agent = self.names.get(self.current).map_or("none", String::as_str);
        AgentFailure::new(agent, Box::new(Error::AgentPanicked { message }))
    }

    fn for_each(&mut self, mut action: impl FnMut(&mut dyn Agent)) {
        for (index, agent) in self.agents.iter_mut().enumerate() {
            self.current = index;
            action(agent.as_mut());
        }
    }
}

impl fmt::Debug for AgentGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentGroup").field("agents", &self.names()).finish_non_exhaustive()
    }
}
