//! [`ControlDesk`]: what the doorman does with a request. It passes commands to the sequencer and answers once their
//! effect is released; it never blocks.

use super::{ControlAnswer, ControlOutcome, ControlRequest, ControlStatus};
use crate::link::ForSequencer;
use crate::mailbox::Mailbox;
use gapless_agent::{Counter, Counters, Waker};
use gapless_log::{StreamIdentity, Window};

/// Commands that may wait for the sequencer at one time.
pub const WAITING_MAX: usize = 64;

/// Who decides here.
pub enum Master {
    /// A sequencer in this process.
    Sequencer {
        /// To it; what comes this way overtakes everything that publishers have sent.
        requests: Mailbox<ForSequencer>,
        /// From it.
        outcomes: Mailbox<ControlOutcome>,
        /// Wakes its thread.
        waker: Waker,
    },
    /// Another process: this one passes a stream on.
    Elsewhere,
}

/// What the desk counts.
pub struct ControlCounters {
    /// Requests that took effect.
    pub done: Counter,
    /// Requests that were refused, and first words that were nothing at all.
    pub refused: Counter,
}

impl ControlCounters {
    /// Adds them to `counters`.
    ///
    /// # Errors
    /// No room, or labels that are taken.
    pub fn add_to(counters: &Counters) -> Result<Self, gapless_agent::Error> {
        Ok(Self { done: counters.add("control.done")?, refused: counters.add("control.refused")? })
    }
}

/// What became of what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It is answered at once.
    Answered(ControlAnswer),
    /// The sequencer was asked; [`ControlDesk::outcome`] says what it said.
    Waits(u64),
}

/// The doorman's desk for control.
pub struct ControlDesk {
    master: Master,
    window: Window,
    next_number: u64,
    /// What the sequencer has said and what is not told yet.
    outcomes: Vec<ControlOutcome>,
    /// Asked of the sequencer, and nothing heard of it.
    unheard: usize,
    counters: ControlCounters,
}

impl ControlDesk {
    /// A desk for the stream in `window`.
    #[must_use]
    pub const fn new(master: Master, window: Window, counters: ControlCounters) -> Self {
        Self { master, window, next_number: 1, outcomes: Vec::new(), unheard: 0, counters }
    }

    /// Somebody's first word was none.
    pub fn count_refused(&self) {
        self.counters.refused.add(1);
    }

    /// Takes a request.
    pub fn ask(&mut self, request: ControlRequest) -> Asked {
        let ours = self.window.identity();
        let theirs = request.identity;
        if theirs.stream_id != 0 && theirs.stream_id != ours.stream_id {
            return Asked::Answered(self.refuse(ControlStatus::OtherStream));
        }
        if theirs.incarnation != 0 && theirs.incarnation != ours.incarnation {
            return Asked::Answered(self.refuse(ControlStatus::OtherIncarnation));
        }
        let Master::Sequencer { requests, waker, .. } = &self.master else {
            return Asked::Answered(self.refuse(ControlStatus::Relay));
        };
        let number = self.next_number;
        let command = ForSequencer::Control { number, command: request.command };
        if self.unheard >= WAITING_MAX || requests.push(command).is_err() {
            return Asked::Answered(self.refuse(ControlStatus::Busy));
        }
        waker.wake();
        self.next_number += 1;
        self.unheard += 1;
        Asked::Waits(number)
    }

    /// A refusal, which is counted.
    pub fn refuse(&self, status: ControlStatus) -> ControlAnswer {
        self.counters.refused.add(1);
        answer(status, self.window.identity(), 0)
    }

    /// Looks for what the sequencer has said.
    pub fn refresh(&mut self) {
        let Master::Sequencer { outcomes, .. } = &self.master else { return };
        while let Some(outcome) = outcomes.pop() {
            self.unheard = self.unheard.saturating_sub(1);
            self.outcomes.push(outcome);
            if self.outcomes.len() > 2 * WAITING_MAX {
                // Of those who hung up nobody asks.
                self.outcomes.remove(0);
            }
        }
    }

    /// What became of request `number`, once that is released.
    pub fn outcome(&mut self, number: u64) -> Option<ControlAnswer> {
        let released_sequence = self.window.released_sequence();
        let is_due = |each: &ControlOutcome| each.number == number && each.sequence <= released_sequence;
        let index = self.outcomes.iter().position(is_due)?;
        let ControlOutcome { status, sequence, .. } = self.outcomes.swap_remove(index);
        Some(match status {
            ControlStatus::Done => {
                self.counters.done.add(1);
                answer(status, self.window.identity(), sequence)
            }
            ControlStatus::Unchanged => answer(status, self.window.identity(), sequence),
            refused => self.refuse(refused),
        })
    }
}

/// An answer of this process.
#[must_use]
pub fn answer(status: ControlStatus, identity: StreamIdentity, sequence: u64) -> ControlAnswer {
    ControlAnswer { status, identity, sequence, process_id: u64::from(std::process::id()) }
}
