//! [`RouteTable`]: the calling process's side of one route. A slot belongs to one call from [`RouteTable::offer`] until
//! it is given back. A slot to which a living instance may write is in quarantine until that instance answers or dies.

mod counters;
mod instances;
mod keyed;
mod state;
mod wakeups;

pub use counters::CallStatistics;
pub(crate) use counters::{BacklogCounters, CallEnd, TablelessCounters};
pub(crate) use keyed::KeyOwner;
pub(crate) use state::{InstanceState, QUEUE_CHECK_INTERVAL_NS};

use crate::block_on::thread_waker;
use crate::error::RpcError;
use crate::message::described::RewriteFn;
use crate::protocol::request_flags::KIND_CALL;
use crate::protocol::status::ReplyStatus;
use crate::route_counters::CounterDestination;
use counters::CallCounters;
use gapless_agent::fault::crash_point;
use gapless_agent::foreign::catch_panic;
use gapless_agent::process_mark::ProcessMark;
use gapless_log::call_table::slot_queue::QueuePlace;
use gapless_log::call_table::{CallTable, CallTableShape, RequestHeader};
use gapless_log::claim::{Claim, ClaimState, Withdrawal};
use state::{HeldSlot, TableGuard, TableState};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

pub(super) const KEPT_BYTES: usize = 1 << 20;

const COPIED_LOCKED_MAX: usize = 1024;

const QUARANTINE_CHECK_INTERVAL: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct RouteTable {
    route: Arc<str>,
    table: CallTable,
    state: Mutex<TableState>,
    slots: Box<[ReactorSlot]>,
    /// Changed under the lock of the state.
    request_fingerprint: AtomicU64,
    rewrite: RewriteFn,
    has_taken_back: AtomicBool,
    has_forwarded: AtomicBool,
    pub(crate) backlog_counters: BacklogCounters,
    /// A forked child has neither its memory nor its locks.
    made_by: ProcessMark,
}

#[derive(Debug, Default)]
struct ReactorSlot {
    generation: AtomicU32,
    is_long: AtomicBool,
    is_one_way: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl ReactorSlot {
    /// Drop or wake the returned task without a lock.
    fn put_task(&self, task: Option<Waker>) -> Option<Waker> {
        std::mem::replace(&mut *self.task.lock().expect("nobody panics with the lock"), task)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    pub(crate) is_counted: bool,
    pub(crate) is_timed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SlotHold {
    #[default]
    Unknown,
    Nobody,
    Answered,
    Instance(u32),
    Lost(u32),
}

impl SlotHold {
    fn of(claim: Claim<'_>, generation: u32) -> Self {
        let is_revoked = claim.load().is_revoked();
        match claim.withdraw(generation) {
            Withdrawal::Begun { holder } if is_revoked => Self::Lost(holder),
            Withdrawal::Answered => Self::Answered,
            withdrawal => withdrawal.holder().map_or(Self::Nobody, Self::Instance),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotOffered {
    NoInstance,
    Full,
    OtherVersion(u64),
    Closed,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RemoteOffer {
    pub(crate) header: RequestHeader,
    /// Only instance that may take it, or 0.
    pub(crate) target: u32,
    pub(crate) precedes_instance: bool,
    pub(crate) keyed: bool,
    pub(crate) one_way: bool,
    pub(crate) is_followed: bool,
    pub(crate) uses_reserve: bool,
    pub(crate) place: Option<QueuePlace>,
}

impl RouteTable {
    pub(crate) fn create(
        route: Arc<str>,
        shape: CallTableShape,
        (request_fingerprint, rewrite): (u64, RewriteFn),
        shown: &CounterDestination,
    ) -> Result<Self, RpcError> {
        let (counters, backlog_counters) = CallCounters::create(&route, shown)?;
        let table = CallTable::create(shape)?;
        let slots = (0..shape.slots()).map(|_| ReactorSlot::default()).collect();
        let state = Mutex::new(TableState::new(shape, counters));
        let (request_fingerprint, has_taken_back) = (AtomicU64::new(request_fingerprint), AtomicBool::new(false));
        let (has_forwarded, made_by) = (AtomicBool::new(false), ProcessMark::current());
        Ok(Self {
            route,
            table,
            state,
            slots,
            request_fingerprint,
            rewrite,
            has_taken_back,
            has_forwarded,
            backlog_counters,
            made_by,
        })
    }

    pub(crate) const fn table(&self) -> &CallTable {
        &self.table
    }

    fn lock(&self) -> TableGuard<'_> {
        TableGuard(Some(self.state.lock().expect("nobody panics with the lock")))
    }

    /// The call owns the slot until [`RouteTable::finish`].
    pub(crate) fn offer(
        &self,
        mut offer: RemoteOffer,
        user_headers: &[u8],
        payload: &[u8],
    ) -> Result<Ticket, NotOffered> {
        if !self.made_by.is_here() {
            return Err(NotOffered::Closed);
        }
        let mut state = self.lock();
        let slot = self.take_slot(&mut state, &offer)?;
        crash_point("call_slot_taken");
        // A long request is copied without the lock, so as not to block others.
        let is_short = user_headers.len() + payload.len() <= COPIED_LOCKED_MAX;
        let locked = is_short.then_some(state);
        // Relaxed: written only by the owner of the slot, and passed on under the lock.
        let generation = self.slots[slot as usize].generation.load(Ordering::Relaxed).wrapping_add(1);
        self.slots[slot as usize].generation.store(generation, Ordering::Relaxed);
        self.slots[slot as usize].is_one_way.store(offer.one_way, Ordering::Relaxed);
        offer.header.generation = generation;
        self.table.write_request(slot, offer.header, user_headers, payload);
        if user_headers.len() + payload.len() > KEPT_BYTES {
            self.note_long(slot);
        }
        crash_point("call_request_written");
        let mut state = locked.unwrap_or_else(|| self.lock());
        if !offer.precedes_instance && !state.has_open_instance(offer.target) {
            // The instance has gone while the request was copied: its request would never be revoked.
            self.free(&mut state, slot, generation);
            return Err(NotOffered::NoInstance);
        }
        if let Err(other_version) = self.check_version(&offer) {
            self.free(&mut state, slot, generation);
            return Err(other_version);
        }
        offer.target = state.target_of(offer.target);
        let TableState { rings, keyed, .. } = &mut *state;
        if offer.keyed {
            keyed.offered(slot, generation, offer.target);
        }
        rings.offer(&self.table, offer.header.class.into(), slot, generation, (offer.target, !offer.one_way));
        let is_counted = offer.header.kind == KIND_CALL;
        let is_timed = is_counted && state.counters.offer(offer.one_way);
        if is_counted && offer.is_followed {
            state.counters.send_followed();
        }
        if offer.one_way {
            state.one_way.push(HeldSlot { slot, generation, holder: 0, attempt: 1 });
            if let Some(next) = state.free.last() {
                self.table.prefetch(*next);
            }
        }
        crash_point("call_offered");
        state.ring(offer.target);
        Ok(Ticket { slot, generation, is_counted, is_timed })
    }

    fn take_slot(&self, state: &mut TableState, offer: &RemoteOffer) -> Result<u32, NotOffered> {
        if state.is_closed {
            return Err(NotOffered::Closed);
        }
        if !offer.precedes_instance && !state.has_open_instance(offer.target) {
            return Err(NotOffered::NoInstance);
        }
        if !state.has_free(offer) {
            self.sweep(state);
        }
        if !state.has_free(offer) {
            return Err(NotOffered::Full);
        }
        self.check_version(offer)?;
        let slot = state.free.pop().ok_or(NotOffered::Full)?;
        if !offer.uses_reserve && !offer.place.is_some_and(|place| state.slot_queue.is_called(place)) {
            state.slot_queue.overtaken_by(offer.header.class);
        }
        if let Some(place) = offer.place {
            // A task that still waits there is woken: dropping it here could run arbitrary code.
            let task = state.leave(place);
            state.woken_tasks.extend(task);
        }
        Ok(slot)
    }

    fn check_version(&self, offer: &RemoteOffer) -> Result<(), NotOffered> {
        let fingerprint = self.request_fingerprint();
        let is_same = [0, fingerprint].contains(&offer.header.fingerprint);
        if is_same { Ok(()) } else { Err(NotOffered::OtherVersion(fingerprint)) }
    }

    /// May return early. The offer has a place in the line from then on.
    pub(crate) fn wait_for_change(&self, offer: &mut RemoteOffer, timeout: Duration) {
        let mut state = self.lock();
        state.check_queue_if_due();
        self.sweep(&mut state);
        let has_instance = state.has_open_instance(offer.target);
        if has_instance && state.has_free(offer) || state.is_closed {
            return;
        }
        // The answer to the middle one of the one-way requests wakes this thread: one wake-up for many requests. If
        // others wait, it enters the line instead.
        if has_instance
            && state.slot_queue.is_empty()
            && let Some(held) = state.one_way.get(state.one_way.len() / 2).copied()
        {
            drop(state);
            if let Some(low_half) = self.table.claim(held.slot).announce_wait(held.generation) {
                self.table.wait(held.slot, low_half, timeout.min(QUARANTINE_CHECK_INTERVAL));
            }
            return;
        }
        crash_point("call_waiting_for_slot");
        let before = state.enter(offer, Some(thread_waker()));
        state.call_next();
        drop(state);
        drop(before);
        // Slots leave quarantine without a signal, so it looks from time to time.
        std::thread::park_timeout(if has_instance { timeout.min(QUARANTINE_CHECK_INTERVAL) } else { timeout });
    }

    /// The offer has a place in the line afterwards. True if the I/O thread must be woken.
    pub(crate) fn want_change(&self, task: &Waker, offer: &mut RemoteOffer) -> bool {
        let mut state = self.lock();
        state.check_queue_if_due();
        let before = state.enter(offer, Some(task.clone()));
        // A slot may have become free since the attempt.
        self.sweep(&mut state);
        let middle = state.one_way.get(state.one_way.len() / 2).copied();
        let of_middle = middle.and_then(|held| self.slots[held.slot as usize].put_task(Some(task.clone())));
        if middle.is_some_and(|held| !self.table.claim(held.slot).want_notice(held.generation)) {
            self.sweep(&mut state);
        }
        if state.is_closed {
            state.wake_waiting();
        }
        state.call_next();
        let is_untold = state.must_wake_reactor();
        drop(state);
        drop((before, of_middle));
        is_untold
    }

    pub(crate) fn join_queue(&self, offer: &mut RemoteOffer) {
        let mut state = self.lock();
        state.check_queue_if_due();
        let before = state.enter(offer, None);
        state.call_next();
        drop(state);
        drop(before);
    }

    /// Calls the next one if its own slot is unused.
    pub(crate) fn leave_queue(&self, place: QueuePlace) {
        let task = self.lock().leave(place);
        // Without the lock: dropping a task may drop another waiting call.
        drop(task);
    }

    /// A quarter of the slots, at least one, so that unpolled calls cannot hold all of them.
    pub(crate) fn keep_reserve(&self) {
        self.lock().reserve = (self.table.shape().slots() as usize / 4).max(1);
    }

    /// `has_task`: a notice was wanted. `took_ns`: time of the whole call, if counted.
    pub(crate) fn finish(
        &self,
        ticket: Ticket,
        has_task: bool,
        hold: SlotHold,
        (end, took_ns): (CallEnd, Option<u64>),
    ) {
        if !self.made_by.is_here() {
            return;
        }
        let Ticket { slot, generation, .. } = ticket;
        if has_task {
            drop(self.slots[slot as usize].put_task(None));
        }
        let hold = if hold == SlotHold::Unknown { SlotHold::of(self.table.claim(slot), generation) } else { hold };
        let held = match hold {
            SlotHold::Unknown | SlotHold::Nobody | SlotHold::Answered => None,
            SlotHold::Instance(holder) | SlotHold::Lost(holder) => Some(holder),
        };
        if held.is_some() {
            crash_point("call_withdrawn");
        } else {
            self.release_pages(slot);
        }
        crash_point("call_before_free");
        let mut state = self.lock();
        state.keyed.ended(slot, generation, (hold != SlotHold::Nobody, end != CallEnd::TakenBack));
        if ticket.is_counted {
            state.counters.end(end, took_ns);
            if matches!(hold, SlotHold::Lost(_)) {
                state.counters.lose();
            }
        }
        match held {
            Some(holder) if state.is_alive(holder) => {
                if ticket.is_counted {
                    state.counters.withdraw();
                }
                state.notify_withdrawal(holder);
                state.quarantine.push(HeldSlot { slot, generation, holder, attempt: 0 });
            }
            _ => self.free(&mut state, slot, generation),
        }
    }

    fn free(&self, state: &mut TableState, slot: u32, generation: u32) {
        self.release_pages(slot);
        self.table.claim(slot).free(generation);
        state.free.push(slot);
        state.call_next();
    }

    pub(super) fn note_long(&self, slot: u32) {
        // Relaxed: passed on with the slot, under the lock.
        self.slots[slot as usize].is_long.store(true, Ordering::Relaxed);
    }

    /// Releases the memory of long payloads, of a slot that no one reads or writes any more.
    fn release_pages(&self, slot: u32) {
        let is_long = &self.slots[slot as usize].is_long;
        // Relaxed: see `note_long`.
        if !is_long.load(Ordering::Relaxed) {
            return;
        }
        is_long.store(false, Ordering::Relaxed);
        if let Err(error) = self.table.release_pages(slot, KEPT_BYTES) {
            tracing::debug!(route = &*self.route, %error, "memory of a long call is kept");
        }
    }

    /// One-way requests that were forwarded wait for [`RouteTable::take_forwarded`].
    fn sweep(&self, state: &mut TableState) {
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
                state.keyed.ended(held.slot, held.generation, (true, false));
                if self.table.reply_header(held.slot).status == ReplyStatus::Forward as u32 {
                    state.forwarded.push(held);
                    // Release: pairs with the Acquire in `has_forwarded`.
                    self.has_forwarded.store(true, Ordering::Release);
                } else {
                    self.free(state, held.slot, held.generation);
                }
            } else if seen.is_revoked() && (seen.state() == Some(ClaimState::Offered) || !state.is_alive(seen.holder()))
            {
                let has_begun = seen.state() == Some(ClaimState::Begun);
                if has_begun || held.attempt == u8::MAX {
                    if has_begun {
                        state.counters.lose();
                    }
                    self.free(state, held.slot, held.generation);
                } else {
                    // Not begun, so a retry is safe; at the same instance if that is still there.
                    let is_meant = seen.state() == Some(ClaimState::Offered) && state.has_open_instance(seen.holder());
                    self.offer_again(state, held, if is_meant { seen.holder() } else { 0 });
                }
            } else {
                state.one_way.push(held);
            }
        }
        if !state.outdated.is_empty() {
            // Release: pairs with the Acquire in `give_notices`.
            self.has_taken_back.store(true, Ordering::Release);
        }
    }

    /// A request in an outdated version waits for [`RouteTable::offer_outdated`].
    fn offer_again(&self, state: &mut TableState, held: HeldSlot, target: u32) {
        let (mut user_headers, mut payload) = (Vec::new(), Vec::new());
        match self.table.read_back(held.slot, held.generation, &mut user_headers, &mut payload) {
            Some(header) if header.fingerprint == self.request_fingerprint() => {
                self.offer_held(state, (held, target), header, (&user_headers, &payload));
            }
            // Includes a request that a faulty process has overwritten; it is dropped there.
            _ => state.outdated.push((held, target)),
        }
    }

    fn offer_held(
        &self,
        state: &mut TableState,
        (held, target): (HeldSlot, u32),
        header: RequestHeader,
        (user_headers, payload): (&[u8], &[u8]),
    ) {
        let is_keyed = state.keyed.ended(held.slot, held.generation, (false, false));
        let target = if is_keyed { state.key_owner(header.key).instance } else { target };
        let target = state.target_of(target);
        let (generation, attempt) = (held.generation.wrapping_add(1), held.attempt + 1);
        self.slots[held.slot as usize].generation.store(generation, Ordering::Relaxed);
        let header = RequestHeader { generation, attempt, ..header };
        self.table.write_request(held.slot, header, user_headers, payload);
        if is_keyed {
            state.keyed.offered(held.slot, generation, target);
        }
        state.rings.offer(&self.table, header.class.into(), held.slot, generation, (target, false));
        state.ring(target);
        state.one_way.push(HeldSlot { generation, attempt, ..held });
    }

    /// Offers outdated requests again, in the current version; only the I/O thread calls this. The rewrite runs
    /// application code, so it runs without the lock.
    #[cold]
    fn offer_outdated(&self) {
        let mut state = self.lock();
        while let Some((held, target)) = state.outdated.last().copied() {
            drop(state);
            let (mut user_headers, mut payload) = (Vec::new(), Vec::new());
            let header = self.table.read_back(held.slot, held.generation, &mut user_headers, &mut payload);
            let fingerprint = self.request_fingerprint();
            let rewritten = header.ok_or_else(|| "another process has written over it".to_owned()).and_then(|header| {
                let versions = (header.fingerprint, fingerprint);
                self.rewritten(versions, user_headers.len(), &payload).map(|payload| (header, payload))
            });
            state = self.lock();
            if self.request_fingerprint() != fingerprint {
                // The version has changed again meanwhile.
                continue;
            }
            state.outdated.retain(|(other, _)| other.slot != held.slot);
            match rewritten {
                Ok((header, payload)) => {
                    let header = RequestHeader { fingerprint, ..header };
                    let target = if state.has_open_instance(target) { target } else { 0 };
                    self.offer_held(&mut state, (held, target), header, (&user_headers, &payload));
                }
                Err(reason) => {
                    tracing::warn!(route = &*self.route, reason, "what nobody waits for is not offered again");
                    self.free(&mut state, held.slot, held.generation);
                }
            }
        }
    }

    #[cold]
    pub(crate) fn rewritten(
        &self,
        versions: (u64, u64),
        headers_length: usize,
        payload: &[u8],
    ) -> Result<Vec<u8>, String> {
        let rewritten = catch_panic(|| (self.rewrite)(versions, payload))?.map_err(|error| error.to_string())?;
        self.check_request(headers_length, rewritten.len())?;
        Ok(rewritten)
    }

    pub(crate) fn check_request(&self, headers_length: usize, payload_length: usize) -> Result<(), String> {
        let shape = self.table.shape();
        if shape.has_room(headers_length, payload_length) {
            return Ok(());
        }
        Err(format!("a request of {payload_length} bytes; at most {} are allowed", shape.payload_length_max()))
    }
}
