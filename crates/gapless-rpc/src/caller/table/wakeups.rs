//! Work of the I/O thread for calls without a waiting thread: it wakes tasks for answers, lost calls and timeouts.

use super::state::HeldSlot;
use super::{CallEnd, RouteTable, Ticket};
use gapless_agent::foreign;
use gapless_agent::monotonic::monotonic_ns;
use gapless_log::claim::ClaimState;
use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use std::task::Waker;

const DEADLINES_PER_SLOT: usize = 4;

impl RouteTable {
    /// Replaces the previous task. False if there is something to see already.
    pub(crate) fn want_notice(&self, ticket: Ticket, task: Waker) -> bool {
        let slot = &self.slots[ticket.slot as usize];
        drop(slot.put_task(Some(task)));
        if self.table.claim(ticket.slot).want_notice(ticket.generation) {
            return true;
        }
        drop(slot.put_task(None));
        false
    }

    pub(super) fn notice(&self, slot: u32) {
        self.slots[slot as usize].put_task(None).into_iter().for_each(foreign::wake);
    }

    /// I/O thread, after a write of its eventfd or before a sleep: wakes the callers of all answers, and rings another
    /// instance for an untaken request. True if there was any work.
    pub(crate) fn give_notices(&self) -> bool {
        let (mut is_any, mut is_any_sent) = (self.table.take_unclaimed(), false);
        if is_any {
            self.lock().ring(0);
        }
        // Acquire: pairs with the Release in `set_request_fingerprint`. A load first keeps the cache line shared.
        if self.has_taken_back.load(Ordering::Relaxed) && self.has_taken_back.swap(false, Ordering::Acquire) {
            is_any = true;
            self.notice_taken_back();
        }
        for word in 0..self.table.shape().slots().div_ceil(64) {
            let mut done = self.table.take_done(word);
            while done != 0 {
                let slot = word * 64 + done.trailing_zeros();
                done &= done - 1;
                is_any = true;
                if slot < self.table.shape().slots() {
                    // Relaxed: stored before its slot was offered.
                    is_any_sent |= self.slots[slot as usize].is_one_way.load(Ordering::Relaxed);
                    self.notice(slot);
                }
            }
        }
        if is_any_sent {
            self.sweep(&mut self.lock());
        }
        is_any
    }

    pub(crate) fn has_forwarded(&self) -> bool {
        // Acquire: pairs with the Release in `sweep`.
        self.has_forwarded.load(Ordering::Acquire)
    }

    /// Takes those requests: each is a call from now on.
    #[cold]
    pub(crate) fn take_forwarded(&self) -> Vec<Ticket> {
        let mut state = self.lock();
        self.has_forwarded.store(false, Ordering::Relaxed);
        let ticket = |HeldSlot { slot, generation, .. }| Ticket { slot, generation, is_counted: true, is_timed: false };
        let forwarded: Vec<_> = std::mem::take(&mut state.forwarded).into_iter().map(ticket).collect();
        forwarded.iter().for_each(|_| state.counters.adopt());
        forwarded
    }

    /// Offers one-way requests again at once; for the others their callers do.
    #[cold]
    fn notice_taken_back(&self) {
        let mut state = self.lock();
        self.sweep(&mut state);
        let taken_back = std::mem::take(&mut state.taken_back);
        drop(state);
        self.offer_outdated();
        taken_back.into_iter().for_each(|slot| self.notice(slot));
    }

    /// True if the I/O thread sleeps too long.
    pub(crate) fn note_deadline(&self, ticket: Ticket, deadline_ns: u64) -> bool {
        let mut state = self.lock();
        let is_first = state.deadlines.peek().is_none_or(|Reverse((first, ..))| deadline_ns < *first);
        if state.deadlines.len() >= DEADLINES_PER_SLOT * self.slots.len() {
            // Ended calls leave their deadlines, which may be due much later.
            state.deadlines.retain(|Reverse((_, slot, generation))| self.is_under_way(*slot, *generation));
        }
        state.deadlines.push(Reverse((deadline_ns, ticket.slot, ticket.generation)));
        is_first
    }

    /// Called by the I/O thread. Returns the time of the next deadline.
    pub(crate) fn expire(&self) -> Option<u64> {
        let now_ns = monotonic_ns();
        let mut expired = Vec::new();
        let mut state = self.lock();
        let next_ns = loop {
            let Some(Reverse((deadline_ns, slot, generation))) = state.deadlines.peek().copied() else { break None };
            let is_over = !self.is_under_way(slot, generation);
            if !is_over && deadline_ns > now_ns {
                break Some(deadline_ns);
            }
            state.deadlines.pop();
            if !is_over {
                expired.push(slot);
            }
        };
        // Waiting tasks also have deadlines, and slots leave quarantine without a signal.
        state.check_queue_if_due();
        let given_away = self.move_keys(&mut state, now_ns);
        let next_ns = next_ns.into_iter().chain(state.announce_check_ns()).chain(state.keyed.check_ns()).min();
        drop(state);
        given_away.into_iter().for_each(|slot| self.notice(slot));
        expired.into_iter().for_each(|slot| self.notice(slot));
        next_ns
    }

    fn is_under_way(&self, slot: u32, generation: u32) -> bool {
        // Relaxed: changes only under the lock, or when the slot's state shows another call.
        self.slots[slot as usize].generation.load(Ordering::Relaxed) == generation
            && self.table.claim(slot).load().state() != Some(ClaimState::Free)
    }

    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        let mut state = self.lock();
        let first_ns = state.deadlines.peek().map(|Reverse((deadline_ns, ..))| *deadline_ns);
        first_ns.into_iter().chain(state.announce_check_ns()).chain(state.keyed.check_ns()).min()
    }

    #[cold]
    pub(crate) fn count_unoffered(&self, end: CallEnd) {
        self.lock().counters.end_unoffered(end);
    }

    pub(crate) fn has_ended(&self) -> bool {
        let mut state = self.lock();
        self.sweep(&mut state);
        let is_empty = state.one_way.is_empty() && state.outdated.is_empty() && state.forwarded.is_empty();
        is_empty || state.is_closed
    }

    pub(crate) fn counted(&self) -> Vec<(String, u64)> {
        self.lock().counters.values()
    }

    #[cfg(test)]
    pub(crate) fn deadlines(&self) -> usize {
        self.lock().deadlines.len()
    }

    /// Free, in quarantine, of one-way requests.
    #[cfg(test)]
    pub(crate) fn slots(&self) -> (usize, usize, usize) {
        let mut state = self.lock();
        self.sweep(&mut state);
        (state.free.len(), state.quarantine.len(), state.one_way.len())
    }
}
