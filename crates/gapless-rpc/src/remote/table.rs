//! [`RouteTable`]: the calling process's side of one route: its slots, its copies, and what is to be done when one dies.
//!
//! A slot belongs to one call from [`RouteTable::offer`] until the call gives it back; only then may it be written again. One that
//! a copy may still be writing to goes into quarantine instead, and is free when that copy has answered or its process is dead.

use crate::clock::monotonic_ns;
use crate::error::RpcError;
use gapless_log::call_table::{CallTable, CallTableShape, OfferRings, RequestHeader};
use gapless_log::claim::{ClaimState, Withdrawal};
use gapless_log::{Bell, Region};
use rustix::fd::OwnedFd;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;

/// Bytes of a slot's request and reply that keep their memory when it is free.
pub(super) const KEPT_BYTES: usize = 1 << 20;

/// Bytes of a request that are copied into its slot with the table locked.
const COPIED_LOCKED_MAX: usize = 1024;

/// Between two looks at slots in quarantine, when there is no other.
const QUARANTINE_LOOK: Duration = Duration::from_millis(1);

/// Between two looks at tasks that wait for a slot or a copy, ns.
const TASK_LOOK_NS: u64 = 10_000_000;

/// The calling process's side of one route.
#[derive(Debug)]
pub(crate) struct RouteTable {
    route: Arc<str>,
    table: CallTable,
    state: Mutex<State>,
    /// A copy has come, or a slot is free.
    changed: Condvar,
    slots: Box<[Slot]>,
    request_fingerprint: AtomicU64,
}

/// What a slot's own call leaves for the reactor.
#[derive(Debug, Default)]
struct Slot {
    generation: AtomicU32,
    task: Mutex<Option<Waker>>,
}

#[derive(Debug)]
struct State {
    free: Vec<u32>,
    rings: OfferRings,
    copies: Vec<Copy>,
    #[cfg(test)]
    last_number: u32,
    next_copy: usize,
    quarantine: Vec<Held>,
    /// Requests that nobody waits for, oldest first.
    one_way: Vec<Held>,
    /// Deadlines of calls that no thread waits for; those that are over are dropped when they come up.
    deadlines: BinaryHeap<Reverse<(u64, u32, u32)>>,
    is_closed: bool,
    /// Threads that wait for a slot or a copy.
    waiting_threads: u32,
    /// Tasks that do, the one that has waited longest first.
    waiting_tasks: VecDeque<Waker>,
    /// Those that are woken when the state is unlocked.
    woken_tasks: Vec<Waker>,
    counts: CallStatistics,
}

/// How often what has happened to the requests that a process has made of one route of other processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStatistics {
    /// Offered to copies, each attempt.
    pub offered: u64,
    /// Withdrawn from a copy that had taken them: time-outs and cancellations.
    pub withdrawn: u64,
    /// Taken by a copy that died or left.
    pub lost: u64,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    slot: u32,
    generation: u32,
    holder: u32,
    attempt: u8,
}

/// A copy as its callers see it.
#[derive(Debug)]
struct Copy {
    number: u32,
    identity: u64,
    bell: Bell,
    eventfd: OwnedFd,
    state: CopyState,
}

/// Whether a copy takes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyState {
    /// It takes requests.
    Open,
    /// It takes none for now.
    Suspended,
    /// It takes none any more, and finishes what it has.
    Draining,
    /// Its connection has ended, its process may live: what it has is lost, and its slots stay as they are.
    Closed,
}

/// A request's slot, for as long as its call has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Why a request cannot be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotOffered {
    /// No copy takes requests of this route, or not the one that was asked for.
    NoCopy,
    /// Every slot is taken.
    Full,
    /// The domain is closed.
    Closed,
}

/// What a request is offered with, besides its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offer {
    pub(crate) header: RequestHeader,
    /// The only copy that may take it, or 0.
    pub(crate) target: u32,
    /// The reactor is to be told of its end.
    pub(crate) notify: bool,
    /// Nobody waits for its end.
    pub(crate) one_way: bool,
}

impl RouteTable {
    pub(crate) fn create(route: Arc<str>, shape: CallTableShape, request_fingerprint: u64) -> Result<Self, RpcError> {
        let table = CallTable::create(shape)?;
        let state = State {
            free: (0..shape.slots()).rev().collect(),
            rings: OfferRings::default(),
            copies: Vec::new(),
            #[cfg(test)]
            last_number: 0,
            next_copy: 0,
            quarantine: Vec::new(),
            one_way: Vec::new(),
            deadlines: BinaryHeap::new(),
            is_closed: false,
            waiting_threads: 0,
            waiting_tasks: VecDeque::new(),
            woken_tasks: Vec::new(),
            counts: CallStatistics::default(),
        };
        let slots = (0..shape.slots()).map(|_| Slot::default()).collect();
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Ok(Self { route, table, state, changed, slots, request_fingerprint: AtomicU64::new(request_fingerprint) })
    }

    pub(crate) const fn table(&self) -> &CallTable {
        &self.table
    }

    fn lock(&self) -> Locked<'_> {
        Locked(Some(self.state.lock().expect("nobody panics with the lock")))
    }

    // ---- copies ----

    /// A number for a copy of a test.
    #[cfg(test)]
    pub(crate) fn next_copy_number(&self) -> Option<u32> {
        let mut state = self.lock();
        state.last_number += 1;
        Some(state.last_number)
    }

    /// The copy has opened the table and passed its bell.
    /// `identity` is the same for this copy in every calling process.
    pub(crate) fn add_copy(
        &self,
        number: u32,
        identity: u64,
        (bell, eventfd): (Region, OwnedFd),
        copy_state: CopyState,
    ) {
        let mut state = self.lock();
        // A route that was withdrawn and is served again has another bell.
        state.copies.retain(|copy| copy.number != number);
        state.copies.push(Copy { number, identity, bell: Bell::new(bell), eventfd, state: copy_state });
        state.wake_waiting(&self.changed);
        // What was offered before it came is there for it, too.
        state.ring(0);
    }

    pub(crate) fn set_copy_state(&self, number: u32, to: CopyState) {
        let mut state = self.lock();
        for copy in state.copies.iter_mut().filter(|copy| copy.number == number && copy.state != CopyState::Closed) {
            copy.state = to;
        }
        state.wake_waiting(&self.changed);
    }

    /// The copy's connection has ended: it takes nothing new, and what it has is lost.
    pub(crate) fn close_copy(&self, number: u32) {
        let mut state = self.lock();
        for copy in state.copies.iter_mut().filter(|copy| copy.number == number) {
            copy.state = CopyState::Closed;
        }
        let lost = self.lose(&mut state, number);
        drop(state);
        lost.into_iter().for_each(|slot| self.notice(slot));
    }

    /// The copy's process is dead: nobody writes to what it had any more.
    pub(crate) fn remove_copy(&self, number: u32) {
        let mut state = self.lock();
        state.copies.retain(|copy| copy.number != number);
        let lost = self.lose(&mut state, number);
        self.sweep(&mut state);
        state.wake_waiting(&self.changed);
        drop(state);
        lost.into_iter().for_each(|slot| self.notice(slot));
    }

    /// Ends everything that a copy has, and what only it may take. Notice is to be given of these slots, without the lock.
    fn lose(&self, state: &mut State, number: u32) -> Vec<u32> {
        let lost: Vec<u32> =
            (0..self.table.shape().slots()).filter(|slot| self.table.claim(*slot).revoke(number)).collect();
        lost.iter().for_each(|slot| self.table.wake(*slot));
        state.counts.lost += lost.len() as u64;
        lost
    }

    /// The copies that take requests now.
    pub(crate) fn open_copies(&self) -> Vec<u32> {
        self.lock().copies.iter().filter(|copy| copy.state == CopyState::Open).map(|copy| copy.number).collect()
    }

    /// The copy that requests of this key go to, or 0 if there is none: of all copies that take requests the one with the
    /// greatest hash of key and copy (rendezvous hashing), so that only a dead copy's keys move.
    pub(crate) fn copy_of_key(&self, key: u64) -> u32 {
        let state = self.lock();
        let open = state.copies.iter().filter(|copy| copy.state == CopyState::Open);
        let weight = |copy: &&Copy| mix(mix(key) ^ copy.identity);
        open.max_by_key(weight).map_or(0, |copy| copy.number)
    }

    /// The fingerprint of requests that every copy reads.
    pub(crate) fn request_fingerprint(&self) -> u64 {
        // Relaxed: a copy that has come since reads the older form, too, or has refused.
        self.request_fingerprint.load(Ordering::Relaxed)
    }

    pub(crate) fn set_request_fingerprint(&self, fingerprint: u64) {
        self.request_fingerprint.store(fingerprint, Ordering::Relaxed);
    }

    /// Calls end: nothing more is offered.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let numbers: Vec<u32> = state.copies.iter().map(|copy| copy.number).collect();
        let lost: Vec<u32> = numbers.into_iter().flat_map(|number| self.lose(&mut state, number)).collect();
        state.wake_waiting(&self.changed);
        drop(state);
        lost.into_iter().for_each(|slot| self.notice(slot));
    }

    // ---- requests ----

    /// Takes a slot, writes the request into it and offers it. Its call has the slot until [`RouteTable::finish`].
    pub(crate) fn offer(&self, mut offer: Offer, user_headers: &[u8], payload: &[u8]) -> Result<Ticket, NotOffered> {
        let mut state = self.lock();
        let slot = self.take_slot(&mut state, offer.target)?;
        // A long one is copied without the lock: others go on meanwhile.
        let is_short = user_headers.len() + payload.len() <= COPIED_LOCKED_MAX;
        let locked = is_short.then_some(state);
        // Relaxed: written only by the owner of the slot, handed over under the lock.
        let generation = self.slots[slot as usize].generation.load(Ordering::Relaxed).wrapping_add(1);
        self.slots[slot as usize].generation.store(generation, Ordering::Relaxed);
        offer.header.generation = generation;
        self.table.write_request(slot, offer.header, user_headers, payload);
        let mut state = locked.unwrap_or_else(|| self.lock());
        if !state.has_open_copy(offer.target) {
            // It has gone while a long request was copied: nobody would ever revoke what only it may take.
            self.free(&mut state, slot, generation);
            return Err(NotOffered::NoCopy);
        }
        let State { rings, .. } = &mut *state;
        rings.offer(&self.table, offer.header.class.into(), slot, generation, (offer.target, offer.notify));
        state.counts.offered += 1;
        if offer.one_way {
            state.one_way.push(Held { slot, generation, holder: 0, attempt: 1 });
        }
        state.ring(offer.target);
        Ok(Ticket { slot, generation })
    }

    fn take_slot(&self, state: &mut State, target: u32) -> Result<u32, NotOffered> {
        if state.is_closed {
            return Err(NotOffered::Closed);
        }
        if !state.has_open_copy(target) {
            return Err(NotOffered::NoCopy);
        }
        if let Some(slot) = state.free.pop() {
            return Ok(slot);
        }
        self.sweep(state);
        state.free.pop().ok_or(NotOffered::Full)
    }

    /// Sleeps until a slot is free or the copies have changed, or for `timeout`; may end early.
    pub(crate) fn wait_for_change(&self, timeout: Duration) {
        let mut state = self.lock();
        self.sweep(&mut state);
        if !state.free.is_empty() && state.has_open_copy(0) || state.is_closed {
            return;
        }
        // Of requests that nobody waits for, the one in the middle: whoever answers it wakes this thread, and then half of their
        // slots are free. One wake for many requests.
        if state.free.is_empty()
            && let Some(held) = state.one_way.get(state.one_way.len() / 2).copied()
        {
            drop(state);
            if let Some(low_half) = self.table.claim(held.slot).announce_wait(held.generation) {
                self.table.wait(held.slot, low_half, timeout.min(QUARANTINE_LOOK));
            }
            return;
        }
        state.waiting_threads += 1;
        // Slots in quarantine become free without a word, so it looks now and then.
        let timeout = if state.free.is_empty() { timeout.min(QUARANTINE_LOOK) } else { timeout };
        let guard = state.0.take().expect(UNTIL_DROPPED);
        let (guard, _) = self.changed.wait_timeout(guard, timeout).expect("nobody panics with the lock");
        state.0 = Some(guard);
        state.waiting_threads -= 1;
    }

    /// A task wants to be woken when a slot is free or the copies have changed.
    pub(crate) fn want_change(&self, task: &Waker) {
        let mut state = self.lock();
        if !state.waiting_tasks.iter().any(|waiting| waiting.will_wake(task)) {
            state.waiting_tasks.push_back(task.clone());
        }
        // One may have become free between the attempt and this.
        self.sweep(&mut state);
        if !state.free.is_empty() && state.has_open_copy(0) || state.is_closed {
            state.wake_waiting(&self.changed);
        }
    }

    /// The call has seen the end of its request: its slot is free, or goes into quarantine.
    /// `has_task`: it had asked for a notice.
    pub(crate) fn finish(&self, ticket: Ticket, has_task: bool) {
        let Ticket { slot, generation } = ticket;
        if has_task {
            self.slots[slot as usize].task.lock().expect("nobody panics with the lock").take();
        }
        let claim = self.table.claim(slot);
        let held = match claim.withdraw(generation) {
            Withdrawal::TakenBack | Withdrawal::Answered | Withdrawal::Lost => None,
            Withdrawal::NotBegun { holder } | Withdrawal::Begun { holder } => Some(holder),
        };
        let mut state = self.lock();
        match held {
            Some(holder) if state.is_alive(holder) => {
                state.counts.withdrawn += 1;
                state.quarantine.push(Held { slot, generation, holder, attempt: 0 });
            }
            _ => self.free(&mut state, slot, generation),
        }
    }

    fn free(&self, state: &mut State, slot: u32, generation: u32) {
        self.table.claim(slot).free(generation);
        state.free.push(slot);
        if state.waiting_threads != 0 {
            self.changed.notify_one();
        } else if let Some(task) = state.waiting_tasks.pop_front() {
            state.woken_tasks.push(task);
        }
    }

    /// Gives memory of long payloads back; of a slot that its call still has and whose end it has seen.
    pub(crate) fn release_pages(&self, ticket: Ticket) {
        if let Err(error) = self.table.release_pages(ticket.slot, KEPT_BYTES) {
            tracing::debug!(route = &*self.route, %error, "memory of a long call is kept");
        }
    }

    /// Frees what is over: requests that nobody waits for, and slots in quarantine.
    fn sweep(&self, state: &mut State) {
        let quarantine = std::mem::take(&mut state.quarantine);
        for held in quarantine {
            let is_answered = self.table.claim(held.slot).load().state() == Some(ClaimState::Answered);
            if is_answered || !state.is_alive(held.holder) {
                self.free(state, held.slot, held.generation);
            } else {
                state.quarantine.push(held);
            }
        }
        let one_way = std::mem::take(&mut state.one_way);
        for held in one_way {
            let seen = self.table.claim(held.slot).load();
            if seen.state() == Some(ClaimState::Answered) {
                self.free(state, held.slot, held.generation);
            } else if seen.is_revoked() && !state.is_alive(seen.holder()) {
                if seen.state() == Some(ClaimState::Begun) || held.attempt == u8::MAX {
                    self.free(state, held.slot, held.generation);
                } else {
                    // It has not begun, so it may be offered again without harm.
                    let again = self.offer_again(state, held);
                    state.one_way.push(again);
                }
            } else {
                state.one_way.push(held);
            }
        }
    }

    /// Offers what stands in a slot once more, to any copy.
    fn offer_again(&self, state: &mut State, held: Held) -> Held {
        let (mut user_headers, mut payload) = (Vec::new(), Vec::new());
        let header = self.table.read_back(held.slot, &mut user_headers, &mut payload);
        let (generation, attempt) = (held.generation.wrapping_add(1), held.attempt + 1);
        self.slots[held.slot as usize].generation.store(generation, Ordering::Relaxed);
        let header = RequestHeader { generation, attempt, ..header };
        self.table.write_request(held.slot, header, &user_headers, &payload);
        state.rings.offer(&self.table, header.class.into(), held.slot, generation, (0, false));
        state.ring(0);
        Held { generation, attempt, ..held }
    }

    // ---- the reactor ----

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

    fn notice(&self, slot: u32) {
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
        let next_ns = if state.waiting_tasks.is_empty() {
            next_ns
        } else {
            state.wake_waiting(&self.changed);
            Some(next_ns.unwrap_or(u64::MAX).min(now_ns + TASK_LOOK_NS))
        };
        drop(state);
        expired.into_iter().for_each(|slot| self.notice(slot));
        next_ns
    }

    /// I/O thread: when it is to call [`RouteTable::expire`] next, ns of the monotonic clock.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        let state = self.lock();
        let first_ns = state.deadlines.peek().map(|Reverse((deadline_ns, ..))| *deadline_ns);
        let look_ns = (!state.waiting_tasks.is_empty()).then(|| monotonic_ns() + TASK_LOOK_NS);
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

/// The finisher of SplitMix64: every bit of the input changes about half of the output's.
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The state, locked. Tasks that are to be woken are woken when it is unlocked: nobody knows what an executor does then.
struct Locked<'a>(Option<MutexGuard<'a, State>>);

const UNTIL_DROPPED: &str = "it is locked until it is dropped";

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.0.as_ref().expect(UNTIL_DROPPED)
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.0.as_mut().expect(UNTIL_DROPPED)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let woken = std::mem::take(&mut self.woken_tasks);
        self.0 = None;
        woken.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn is_alive(&self, number: u32) -> bool {
        self.copies.iter().any(|copy| copy.number == number)
    }

    /// Whether a copy takes requests, now or when it is resumed.
    fn has_open_copy(&self, target: u32) -> bool {
        let is_open = |copy: &Copy| matches!(copy.state, CopyState::Open | CopyState::Suspended);
        self.copies.iter().any(|copy| is_open(copy) && (target == 0 || copy.number == target))
    }

    fn wake_waiting(&mut self, changed: &Condvar) {
        changed.notify_all();
        let Self { waiting_tasks, woken_tasks, .. } = self;
        woken_tasks.extend(waiting_tasks.drain(..));
    }

    /// Wakes one sleeping worker of one copy that may take what was offered.
    fn ring(&mut self, target: u32) {
        // SeqCst: pairs with the fence in `Bell::park`: whoever goes to sleep now sees the offer.
        fence(Ordering::SeqCst);
        let count = self.copies.len();
        for step in 0..count {
            let index = (self.next_copy + step) % count;
            let copy = &self.copies[index];
            let is_meant = copy.state == CopyState::Open && (target == 0 || copy.number == target);
            if is_meant && copy.bell.is_anyone_parked() {
                self.next_copy = index + 1;
                if copy.bell.ring() {
                    // Writing 1 to an eventfd fails only when its counter is full, which wakes as well.
                    let _ = rustix::io::write(&copy.eventfd, &1u64.to_ne_bytes());
                }
                return;
            }
        }
    }
}
