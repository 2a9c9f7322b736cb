//! What the I/O thread does for calls that no thread waits for: it tells tasks of answers, of lost calls, and of time-outs.

use super::{CallStatistics, RouteTable, Ticket};
use crate::clock::monotonic_ns;
use gapless_log::claim::ClaimState;
use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use std::task::Waker;

/// Between two looks at tasks that wait for a slot or a copy, ns.
const TASK_LOOK_NS: u64 = 10_000_000;

impl RouteTable {
    /// The task is woken at the call's end; it takes the place of the one before. False if there is something to be seen already.
    pub(crate) fn want_notice(&self, ticket: Ticket, task: Waker) -> bool {
        let slot = &self.slots[ticket.slot as usize];
        *slot.task.lock().expect("nobody panics with the lock") = Some(task);
        if self.table.claim(ticket.slot).want_notice(ticket.generation) {
            return true;
        }
        slot.task.lock().expect("nobody panics with the lock").take();
        false
    }

    pub(super) fn notice(&self, slot: u32) {
        let task = self.slots[slot as usize].task.lock().expect("nobody panics with the lock").take();
        if let Some(task) = task {
            task.wake();
        }
    }

    /// I/O thread: its eventfd was written, or it is about to sleep: gives notice of every answer. True if there was one.
    pub(crate) fn give_notices(&self) -> bool {
        let mut is_any = false;
        for word in 0..self.table.shape().slots().div_ceil(64) {
            let mut done = self.table.take_done(word);
            while done != 0 {
                let slot = word * 64 + done.trailing_zeros();
                done &= done - 1;
                is_any = true;
                if slot < self.table.shape().slots() {
                    self.notice(slot);
                }
            }
        }
        is_any
    }

    /// The deadline of a call that no thread waits for. True if it comes before all others, so the I/O thread sleeps too long.
    pub(crate) fn note_deadline(&self, ticket: Ticket, deadline_ns: u64) -> bool {
        let mut state = self.lock();
        let is_first = state.deadlines.peek().is_none_or(|Reverse((first, ..))| deadline_ns < *first);
        state.deadlines.push(Reverse((deadline_ns, ticket.slot, ticket.generation)));
        is_first
    }

    /// I/O thread: gives notice to calls whose time is over; when the next one is.
    pub(crate) fn expire(&self) -> Option<u64> {
        let now_ns = monotonic_ns();
        let mut expired = Vec::new();
        let mut state = self.lock();
        let next_ns = loop {
            let Some(Reverse((deadline_ns, slot, generation))) = state.deadlines.peek().copied() else { break None };
            let is_over = self.slots[slot as usize].generation.load(Ordering::Relaxed) != generation
                || self.table.claim(slot).load().state() == Some(ClaimState::Free);
            if !is_over && deadline_ns > now_ns {
                break Some(deadline_ns);
            }
            state.deadlines.pop();
            if !is_over {
                expired.push(slot);
            }
        };
        // Tasks that wait for a slot or a copy have deadlines, too, and slots in quarantine become free without a word.
        let next_ns = if state.has_waiting_tasks() {
            state.wake_waiting(&self.changed);
            Some(next_ns.unwrap_or(u64::MAX).min(now_ns + TASK_LOOK_NS))
        } else {
            next_ns
        };
        drop(state);
        expired.into_iter().for_each(|slot| self.notice(slot));
        next_ns
    }

    /// I/O thread: when it is to call [`RouteTable::expire`] next, ns of the monotonic clock.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        let state = self.lock();
        let first_ns = state.deadlines.peek().map(|Reverse((deadline_ns, ..))| *deadline_ns);
        let look_ns = state.has_waiting_tasks().then(|| monotonic_ns() + TASK_LOOK_NS);
        first_ns.into_iter().chain(look_ns).min()
    }

    pub(crate) fn counts(&self) -> CallStatistics {
        self.lock().counts
    }

    /// Slots that are free, in quarantine, and of requests that nobody waits for.
    #[cfg(test)]
    pub(crate) fn slots(&self) -> (usize, usize, usize) {
        let mut state = self.lock();
        self.sweep(&mut state);
        (state.free.len(), state.quarantine.len(), state.one_way.len())
    }
}
