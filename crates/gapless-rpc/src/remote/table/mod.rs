//! [`RouteTable`]: the calling process's side of one route: its slots, its copies, and what is to be done when one dies.
//!
//! A slot belongs to one call from [`RouteTable::offer`] until the call gives it back; only then may it be written again. One that
//! a copy may still be writing to goes into quarantine instead, and is free when that copy has answered or its process is dead.
//!
//! | module | what lives there |
//! |---|---|
//! | `copies` | copies come, change and go |
//! | `counters` | what is counted |
//! | `keyed` | a copy that does not take what waits for it gives its keys to the next |
//! | `notices` | what the I/O thread does for calls that no thread waits for |
//! | `state` | what the lock guards |

mod copies;
mod counters;
mod keyed;
mod notices;
mod state;

pub use counters::CallStatistics;
pub(crate) use counters::{BacklogCounters, End, TablelessCounters};
pub(crate) use keyed::CopyOfKey;
pub(crate) use state::{CopyState, LOOK_NS};

use super::request_words::KIND_CALL;
use super::status::Status;
use crate::block_on::thread_waker;
use crate::error::RpcError;
use crate::message::described::Rewrite;
use crate::route_counters::Shown;
use counters::CallCounters;
use gapless_agent::fault::crash_point;
use gapless_agent::foreign::caught;
use gapless_agent::process_mark::ProcessMark;
use gapless_log::call_table::line::PlaceInLine;
use gapless_log::call_table::{CallTable, CallTableShape, RequestHeader};
use gapless_log::claim::{Claim, ClaimState, Withdrawal};
use state::{Held, Locked, State};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

/// Bytes of a slot's request and reply that keep their memory when it is free.
pub(super) const KEPT_BYTES: usize = 1 << 20;

/// Bytes of a request that are copied into its slot with the table locked.
const COPIED_LOCKED_MAX: usize = 1024;

/// Between two looks at slots in quarantine, when there is no other.
const QUARANTINE_LOOK: Duration = Duration::from_millis(1);

/// The calling process's side of one route.
#[derive(Debug)]
pub(crate) struct RouteTable {
    route: Arc<str>,
    table: CallTable,
    state: Mutex<State>,
    slots: Box<[Slot]>,
    /// Of the version that requests are offered in. Changed with the state locked.
    request_fingerprint: AtomicU64,
    rewrite: Rewrite,
    has_taken_back: AtomicBool,
    has_forwarded: AtomicBool,
    pub(crate) backlog_counters: BacklogCounters,
    /// The process that made it: a child of that process has neither its memory nor its locks.
    made_by: ProcessMark,
}

/// What a slot's own call leaves for the reactor.
#[derive(Debug, Default)]
struct Slot {
    generation: AtomicU32,
    /// Its request or its reply took more memory than a free slot keeps.
    is_long: AtomicBool,
    is_one_way: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Slot {
    /// Sets the task that is woken from now on. The one before is to be dropped, or woken, without a lock: a waker may run anything.
    fn put_task(&self, task: Option<Waker>) -> Option<Waker> {
        std::mem::replace(&mut *self.task.lock().expect("nobody panics with the lock"), task)
    }
}

/// A request's slot, for as long as its call has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    /// It is a call of the route, and nothing that is asked of a copy itself.
    pub(crate) is_counted: bool,
    /// How long its call takes is counted.
    pub(crate) is_timed: bool,
}

/// The copy that may still write to the slot of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The withdrawal says it.
    #[default]
    Unknown,
    Nobody,
    /// Nobody: its copy has answered.
    Answered,
    Copy(u32),
    /// A copy that has left, and at which it had begun.
    Lost(u32),
}

impl Hold {
    /// Withdraws a request that its caller no longer wants.
    fn of(claim: Claim<'_>, generation: u32) -> Self {
        let is_revoked = claim.load().is_revoked();
        match claim.withdraw(generation) {
            Withdrawal::Begun { holder } if is_revoked => Self::Lost(holder),
            Withdrawal::Answered => Self::Answered,
            withdrawal => withdrawal.holder().map_or(Self::Nobody, Self::Copy),
        }
    }
}

/// Why a request cannot be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotOffered {
    /// No copy takes requests of this route, or not the one that was asked for.
    NoCopy,
    /// Every slot is taken.
    Full,
    /// Requests are offered in the version of this fingerprint.
    OtherVersion(u64),
    /// The domain is closed.
    Closed,
}

/// What a request is offered with, besides its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RemoteOffer {
    pub(crate) header: RequestHeader,
    /// The only copy that may take it, or 0.
    pub(crate) target: u32,
    /// It may be offered before there is a copy.
    pub(crate) precedes_copy: bool,
    /// That copy is the one of its key.
    pub(crate) keyed: bool,
    /// Nobody waits for its end.
    pub(crate) one_way: bool,
    /// Nobody waits for its reply, but a backlog follows it to its end.
    pub(crate) is_followed: bool,
    /// It comes from a backlog, for which some slots are kept.
    pub(crate) uses_reserve: bool,
    /// Its caller's place in the line, if it has waited.
    pub(crate) place: Option<PlaceInLine>,
}

impl RouteTable {
    /// Its counts are `shown`.
    pub(crate) fn create(
        route: Arc<str>,
        shape: CallTableShape,
        (request_fingerprint, rewrite): (u64, Rewrite),
        shown: &Shown,
    ) -> Result<Self, RpcError> {
        let (counters, backlog_counters) = CallCounters::create(&route, shown)?;
        let table = CallTable::create(shape)?;
        let slots = (0..shape.slots()).map(|_| Slot::default()).collect();
        let state = Mutex::new(State::new(shape, counters));
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

    fn lock(&self) -> Locked<'_> {
        Locked(Some(self.state.lock().expect("nobody panics with the lock")))
    }

    /// Takes a slot, writes the request into it and offers it. Its call has the slot until [`RouteTable::finish`].
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
        // A long one is copied without the lock: others go on meanwhile.
        let is_short = user_headers.len() + payload.len() <= COPIED_LOCKED_MAX;
        let locked = is_short.then_some(state);
        // Relaxed: written only by the owner of the slot, handed over under the lock.
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
        if !offer.precedes_copy && !state.has_open_copy(offer.target) {
            // It has gone while a long request was copied: nobody would ever revoke what only it may take.
            self.free(&mut state, slot, generation);
            return Err(NotOffered::NoCopy);
        }
        if let Err(other_version) = self.check_version(&offer) {
            self.free(&mut state, slot, generation);
            return Err(other_version);
        }
        offer.target = state.target_of(offer.target);
        let State { rings, keyed, .. } = &mut *state;
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
            state.one_way.push(Held { slot, generation, holder: 0, attempt: 1 });
            if let Some(next) = state.free.last() {
                self.table.prefetch(*next);
            }
        }
        crash_point("call_offered");
        state.ring(offer.target);
        Ok(Ticket { slot, generation, is_counted, is_timed })
    }

    fn take_slot(&self, state: &mut State, offer: &RemoteOffer) -> Result<u32, NotOffered> {
        if state.is_closed {
            return Err(NotOffered::Closed);
        }
        if !offer.precedes_copy && !state.has_open_copy(offer.target) {
            return Err(NotOffered::NoCopy);
        }
        if !state.has_free(offer) {
            self.sweep(state);
        }
        if !state.has_free(offer) {
            return Err(NotOffered::Full);
        }
        self.check_version(offer)?;
        let slot = state.free.pop().ok_or(NotOffered::Full)?;
        if !offer.uses_reserve && !offer.place.is_some_and(|place| state.line.is_called(place)) {
            state.line.overtaken_by(offer.header.class);
        }
        if let Some(place) = offer.place {
            // If a task still waits for it, that is woken: to drop it here could run what nobody knows.
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

    /// Sleeps on this thread until there may be a slot or a copy for what offers this, or for `timeout`; may end early. It has a place
    /// in the line from then on.
    pub(crate) fn wait_for_change(&self, offer: &mut RemoteOffer, timeout: Duration) {
        let mut state = self.lock();
        state.look_if_due();
        self.sweep(&mut state);
        let has_copy = state.has_open_copy(offer.target);
        if has_copy && state.has_free(offer) || state.is_closed {
            return;
        }
        // Of requests that nobody waits for, the one in the middle: whoever answers it wakes this thread, and then half of their
        // slots are free. One wake for many requests. Where others wait, it stands in line.
        if has_copy
            && state.line.is_empty()
            && let Some(held) = state.one_way.get(state.one_way.len() / 2).copied()
        {
            drop(state);
            if let Some(low_half) = self.table.claim(held.slot).announce_wait(held.generation) {
                self.table.wait(held.slot, low_half, timeout.min(QUARANTINE_LOOK));
            }
            return;
        }
        crash_point("call_waiting_for_slot");
        let before = state.enter(offer, Some(thread_waker()));
        state.call_next();
        drop(state);
        drop(before);
        // Slots in quarantine become free without a word, so it looks now and then.
        std::thread::park_timeout(if has_copy { timeout.min(QUARANTINE_LOOK) } else { timeout });
    }

    /// A task wants to be woken when there may be a slot or a copy for what offers this. It has a place in the line from then on. True if
    /// the I/O thread is to be told, which sleeps too long.
    pub(crate) fn want_change(&self, task: &Waker, offer: &mut RemoteOffer) -> bool {
        let mut state = self.lock();
        state.look_if_due();
        let before = state.enter(offer, Some(task.clone()));
        // One may have become free between the attempt and this.
        self.sweep(&mut state);
        let middle = state.one_way.get(state.one_way.len() / 2).copied();
        let of_middle = middle.and_then(|held| self.slots[held.slot as usize].put_task(Some(task.clone())));
        // It is woken by the answer to the one in the middle of the requests that nobody waits for, as threads are.
        if middle.is_some_and(|held| !self.table.claim(held.slot).want_notice(held.generation)) {
            self.sweep(&mut state);
        }
        if state.is_closed {
            state.wake_waiting();
        }
        state.call_next();
        let is_untold = state.is_look_untold();
        drop(state);
        drop((before, of_middle));
        is_untold
    }

    /// What offers this has a place in the line from now on, but looks by itself.
    pub(crate) fn stand_in_line(&self, offer: &mut RemoteOffer) {
        let mut state = self.lock();
        state.look_if_due();
        let before = state.enter(offer, None);
        state.call_next();
        drop(state);
        drop(before);
    }

    /// It waits no more. If it was woken for a slot that it has not taken, the next is woken.
    pub(crate) fn leave_line(&self, place: PlaceInLine) {
        let task = self.lock().leave(place);
        // Without the lock: with a task may go what waits itself.
        drop(task);
    }

    /// From now on a quarter of the slots, at least one, is kept for what comes from backlogs: calls whose callers do not look at
    /// their replies hold none of them.
    pub(crate) fn keep_reserve(&self) {
        self.lock().reserve = (self.table.shape().slots() as usize / 4).max(1);
    }

    /// The call has seen the end of its request: its slot is free, or goes into quarantine.
    /// `has_task`: it had asked for a notice. `took_ns`: the time of the whole call, if it is to be counted.
    pub(crate) fn finish(&self, ticket: Ticket, has_task: bool, hold: Hold, (end, took_ns): (End, Option<u64>)) {
        if !self.made_by.is_here() {
            return;
        }
        let Ticket { slot, generation, .. } = ticket;
        if has_task {
            drop(self.slots[slot as usize].put_task(None));
        }
        let hold = if hold == Hold::Unknown { Hold::of(self.table.claim(slot), generation) } else { hold };
        let held = match hold {
            Hold::Unknown | Hold::Nobody | Hold::Answered => None,
            Hold::Copy(holder) | Hold::Lost(holder) => Some(holder),
        };
        if held.is_some() {
            crash_point("call_withdrawn");
        } else {
            self.release_pages(slot);
        }
        crash_point("call_before_free");
        let mut state = self.lock();
        state.keyed.ended(slot, generation, (hold != Hold::Nobody, end != End::TakenBack));
        if ticket.is_counted {
            state.counters.end(end, took_ns);
            if matches!(hold, Hold::Lost(_)) {
                state.counters.lose();
            }
        }
        match held {
            Some(holder) if state.is_alive(holder) => {
                if ticket.is_counted {
                    state.counters.withdraw();
                }
                state.tell_of_withdrawal(holder);
                state.quarantine.push(Held { slot, generation, holder, attempt: 0 });
            }
            _ => self.free(&mut state, slot, generation),
        }
    }

    fn free(&self, state: &mut State, slot: u32, generation: u32) {
        self.release_pages(slot);
        self.table.claim(slot).free(generation);
        state.free.push(slot);
        state.call_next();
    }

    /// The request or the reply of a slot is long.
    pub(super) fn note_long(&self, slot: u32) {
        // Relaxed: handed over with the slot, under the lock.
        self.slots[slot as usize].is_long.store(true, Ordering::Relaxed);
    }

    /// Gives memory of long payloads back, of a slot that nobody reads or writes any more.
    fn release_pages(&self, slot: u32) {
        let is_long = &self.slots[slot as usize].is_long;
        // Relaxed: as in `note_long`.
        if !is_long.load(Ordering::Relaxed) {
            return;
        }
        is_long.store(false, Ordering::Relaxed);
        if let Err(error) = self.table.release_pages(slot, KEPT_BYTES) {
            tracing::debug!(route = &*self.route, %error, "memory of a long call is kept");
        }
    }

    /// Frees what is over: requests that nobody waits for, and slots in quarantine. Of the former, those that go on to other routes
    /// wait for [`RouteTable::take_forwarded`].
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
                state.keyed.ended(held.slot, held.generation, (true, false));
                if self.table.reply_header(held.slot).status == Status::Forward as u32 {
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
                    // It has not begun, so it may be offered again without harm; to its copy, if that is there still.
                    let is_meant = seen.state() == Some(ClaimState::Offered) && state.has_open_copy(seen.holder());
                    self.offer_again(state, held, if is_meant { seen.holder() } else { 0 });
                }
            } else {
                state.one_way.push(held);
            }
        }
        if !state.outdated.is_empty() {
            // Release: as in `set_request_fingerprint`.
            self.has_taken_back.store(true, Ordering::Release);
        }
    }

    /// Offers what stands in a slot once more, to the copy `target`, or to any (0). What is of another version by now waits for
    /// [`RouteTable::offer_outdated`].
    fn offer_again(&self, state: &mut State, held: Held, target: u32) {
        let (mut user_headers, mut payload) = (Vec::new(), Vec::new());
        match self.table.read_back(held.slot, held.generation, &mut user_headers, &mut payload) {
            Some(header) if header.fingerprint == self.request_fingerprint() => {
                self.offer_held(state, (held, target), header, (&user_headers, &payload));
            }
            // Also what a mad process has written over: there it is dropped.
            _ => state.outdated.push((held, target)),
        }
    }

    fn offer_held(
        &self,
        state: &mut State,
        (held, target): (Held, u32),
        header: RequestHeader,
        (user_headers, payload): (&[u8], &[u8]),
    ) {
        let is_keyed = state.keyed.ended(held.slot, held.generation, (false, false));
        let target = if is_keyed { state.copy_of_key(header.key).copy } else { target };
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
        state.one_way.push(Held { generation, attempt, ..held });
    }

    /// I/O thread, the only one: offers again what must be written in another version first. That is the application's affair, so it
    /// is done without the lock.
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
                // Yet another meanwhile.
                continue;
            }
            state.outdated.retain(|(other, _)| other.slot != held.slot);
            match rewritten {
                Ok((header, payload)) => {
                    let header = RequestHeader { fingerprint, ..header };
                    let target = if state.has_open_copy(target) { target } else { 0 };
                    self.offer_held(&mut state, (held, target), header, (&user_headers, &payload));
                }
                Err(reason) => {
                    tracing::warn!(route = &*self.route, reason, "what nobody waits for is not offered again");
                    self.free(&mut state, held.slot, held.generation);
                }
            }
        }
    }

    /// The payload of a request in the version of one fingerprint, in that of another.
    ///
    /// # Errors
    /// Why there is none, in a sentence.
    #[cold]
    pub(crate) fn rewritten(
        &self,
        versions: (u64, u64),
        headers_length: usize,
        payload: &[u8],
    ) -> Result<Vec<u8>, String> {
        let rewritten = caught(|| (self.rewrite)(versions, payload))?.map_err(|error| error.to_string())?;
        self.check_request(headers_length, rewritten.len())?;
        Ok(rewritten)
    }

    /// Whether a request of such lengths, bytes, has room in a slot, or why not.
    pub(crate) fn check_request(&self, headers_length: usize, payload_length: usize) -> Result<(), String> {
        let shape = self.table.shape();
        if shape.has_room(headers_length, payload_length) {
            return Ok(());
        }
        Err(format!("a request of {payload_length} bytes; at most {} are allowed", shape.payload_length_max()))
    }
}
