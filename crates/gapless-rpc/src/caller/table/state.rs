//! State under the lock of a table: free slots, instances, waiting calls.

use super::RemoteOffer;
use super::counters::CallCounters;
use super::keyed::{KeyOwner, KeyedRequests};
use crate::registry::Instance;
use gapless_agent::foreign;
use gapless_agent::monotonic::monotonic_ns;
use gapless_agent::wake_fd;
use gapless_log::call_table::slot_queue::{QueuePlace, SlotQueue};
use gapless_log::call_table::{CallTableShape, OfferRings};
use gapless_log::{Bell, Rung};
use rustix::fd::OwnedFd;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, MutexGuard};
use std::task::Waker;

pub(crate) const QUEUE_CHECK_INTERVAL_NS: u64 = 10_000_000;

#[derive(Debug)]
pub(super) struct TableState {
    pub(super) free: Vec<u32>,
    pub(super) rings: OfferRings,
    pub(super) instances: Vec<AttachedInstance>,
    /// Greatest number of an instance that may have claimed.
    pub(super) last_number: u32,
    /// Dead instances that a slot still names.
    pub(super) dead: Vec<u32>,
    pub(super) next_instance: usize,
    /// Only relays are open, no ordinary instance: untargeted requests go to a relay.
    pub(super) needs_relay: bool,
    pub(super) quarantine: Vec<HeldSlot>,
    pub(super) one_way: Vec<HeldSlot>,
    /// One-way requests to be offered again to these instances, once rewritten in another version.
    pub(super) outdated: Vec<(HeldSlot, u32)>,
    pub(super) forwarded: Vec<HeldSlot>,
    /// Deadlines of ended calls are dropped when they come up.
    pub(super) deadlines: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Slots whose offers were taken back, and whose callers have not been woken yet.
    pub(super) taken_back: Vec<u32>,
    pub(super) keyed: KeyedRequests,
    pub(super) is_closed: bool,
    pub(super) slot_queue: SlotQueue,
    waiting_for_instance: BTreeMap<QueuePlace, Waker>,
    waiting_backlogs: BTreeMap<QueuePlace, Waker>,
    last_place: QueuePlace,
    /// Time at which all waiting calls are woken unconditionally.
    next_check_ns: u64,
    /// Next check that the I/O thread knows of.
    announced_check_ns: Option<u64>,
    /// Number of free slots reserved for backlogs.
    pub(super) reserve: usize,
    pub(super) woken_tasks: Vec<Waker>,
    rung: Vec<Arc<OwnedFd>>,
    pub(super) counters: CallCounters,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct HeldSlot {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) holder: u32,
    pub(super) attempt: u8,
}

#[derive(Debug)]
pub(super) struct AttachedInstance {
    pub(super) number: u32,
    pub(super) identity: u64,
    pub(super) bell: Bell,
    pub(super) eventfd: Arc<OwnedFd>,
    pub(super) state: InstanceState,
    /// Empty for an ordinary instance.
    pub(super) stands_for: Arc<[Instance]>,
}

impl AttachedInstance {
    fn is_relay(&self) -> bool {
        !self.stands_for.is_empty()
    }

    fn is_open(&self) -> bool {
        self.state == InstanceState::Open
    }

    /// False if all workers are awake. Eventfds for tasks go into `rung_tasks`.
    fn ring(&self, rung_tasks: &mut Vec<Arc<OwnedFd>>) -> bool {
        let rung = self.bell.ring();
        if rung == Rung::Task {
            rung_tasks.push(Arc::clone(&self.eventfd));
        }
        rung != Rung::Nobody
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstanceState {
    Open,
    Suspended,
    Draining,
}

/// Wakes tasks when it is unlocked, because an executor may do anything then.
pub(super) struct TableGuard<'a>(pub(super) Option<MutexGuard<'a, TableState>>);

const UNTIL_DROPPED: &str = "it is locked until it is dropped";

impl Deref for TableGuard<'_> {
    type Target = TableState;

    fn deref(&self) -> &TableState {
        self.0.as_ref().expect(UNTIL_DROPPED)
    }
}

impl DerefMut for TableGuard<'_> {
    fn deref_mut(&mut self) -> &mut TableState {
        self.0.as_mut().expect(UNTIL_DROPPED)
    }
}

impl Drop for TableGuard<'_> {
    fn drop(&mut self) {
        let (woken, rung) = (std::mem::take(&mut self.woken_tasks), std::mem::take(&mut self.rung));
        self.0 = None;
        rung.iter().for_each(wake_fd::signal);
        woken.into_iter().for_each(foreign::wake);
    }
}

impl TableState {
    pub(super) fn new(shape: CallTableShape, counters: CallCounters) -> Self {
        Self {
            free: (0..shape.slots()).rev().collect(),
            rings: OfferRings::new(shape),
            instances: Vec::new(),
            last_number: 0,
            dead: Vec::new(),
            next_instance: 0,
            needs_relay: false,
            quarantine: Vec::new(),
            one_way: Vec::new(),
            outdated: Vec::new(),
            forwarded: Vec::new(),
            deadlines: BinaryHeap::new(),
            taken_back: Vec::new(),
            keyed: KeyedRequests::new(shape.slots()),
            is_closed: false,
            slot_queue: SlotQueue::default(),
            waiting_for_instance: BTreeMap::new(),
            waiting_backlogs: BTreeMap::new(),
            last_place: 0,
            next_check_ns: 0,
            announced_check_ns: None,
            reserve: 0,
            woken_tasks: Vec::new(),
            rung: Vec::new(),
            counters,
        }
    }

    /// Reports whether an instance may still write to what it has claimed. The end of its connection does not prevent
    /// that, only the death of its process.
    pub(super) fn is_alive(&self, number: u32) -> bool {
        (1..=self.last_number).contains(&number) && !self.dead.contains(&number)
    }

    pub(super) fn open_attached(&self) -> impl Iterator<Item = &AttachedInstance> {
        self.instances.iter().filter(|instance| instance.is_open())
    }

    pub(super) fn key_owner(&mut self, key: u64) -> KeyOwner {
        self.keyed.key_owner(key, open_identities(&self.instances))
    }

    /// Call after each change. True if untargeted requests go to a relay from now on.
    pub(super) fn instances_changed(&mut self) -> bool {
        let is_open =
            |is_relay| self.instances.iter().any(|instance| instance.is_open() && instance.is_relay() == is_relay);
        self.needs_relay = is_open(true) && !is_open(false);
        self.needs_relay
    }

    /// Any (0) becomes the next relay if only relays are open.
    #[inline]
    pub(super) fn target_of(&mut self, target: u32) -> u32 {
        if target == 0 && self.needs_relay { self.next_relay() } else { target }
    }

    #[cold]
    fn next_relay(&mut self) -> u32 {
        let count = self.instances.len();
        let is_meant = |index: &usize| self.instances[*index].is_open() && self.instances[*index].is_relay();
        let next = (0..count).map(|step| (self.next_instance + step) % count).find(is_meant);
        next.map_or(0, |index| {
            self.next_instance = index + 1;
            self.instances[index].number
        })
    }

    /// Now or after a resume; `target` is one instance, or any (0).
    pub(super) fn has_open_instance(&self, target: u32) -> bool {
        let is_open =
            |instance: &AttachedInstance| matches!(instance.state, InstanceState::Open | InstanceState::Suspended);
        self.instances.iter().any(|instance| is_open(instance) && (target == 0 || instance.number == target))
    }

    /// Keeps an earlier place. Drop the returned task without the lock.
    pub(super) fn enter(&mut self, offer: &mut RemoteOffer, task: Option<Waker>) -> Option<Waker> {
        if self.check_ns().is_none() {
            self.next_check_ns = monotonic_ns() + QUEUE_CHECK_INTERVAL_NS;
        }
        let place = *offer.place.get_or_insert_with(|| {
            self.last_place += 1;
            self.last_place
        });
        if offer.uses_reserve {
            return task.and_then(|task| self.waiting_backlogs.insert(place, task));
        }
        if self.has_open_instance(offer.target) {
            self.waiting_for_instance.remove(&place);
            return self.slot_queue.enter(offer.header.class, place, task);
        }
        let (_, before) = self.slot_queue.leave(place);
        before.or(task.and_then(|task| self.waiting_for_instance.insert(place, task)))
    }

    /// Drop the returned task without the lock.
    pub(super) fn leave(&mut self, place: QueuePlace) -> Option<Waker> {
        let (was_called, task) = self.slot_queue.leave(place);
        let Self { waiting_for_instance, waiting_backlogs, .. } = self;
        let task = task.or_else(|| waiting_for_instance.remove(&place)).or_else(|| waiting_backlogs.remove(&place));
        if was_called || task.is_none() {
            self.call_next();
        }
        task
    }

    pub(super) fn has_free(&self, offer: &RemoteOffer) -> bool {
        let (free, kept) = (self.free.len(), self.slot_queue.kept_from(offer.header.class));
        match offer.place {
            _ if offer.uses_reserve => free > kept.min(free.saturating_sub(self.reserve)),
            Some(place) if self.slot_queue.is_called(place) => free > self.reserve,
            _ => free > self.reserve + kept,
        }
    }

    pub(super) fn call_next(&mut self) {
        if !self.free.is_empty()
            && let Some((_, backlog)) = self.waiting_backlogs.pop_first()
        {
            self.woken_tasks.push(backlog);
        }
        while self.free.len() > self.reserve + self.slot_queue.called()
            && let Some(task) = self.slot_queue.call()
        {
            self.woken_tasks.extend(task);
        }
    }

    pub(super) fn wake_waiting(&mut self) {
        let Self { slot_queue, waiting_for_instance, waiting_backlogs, woken_tasks, .. } = self;
        slot_queue.wake(woken_tasks);
        woken_tasks.extend(std::mem::take(waiting_backlogs).into_values());
        woken_tasks.extend(std::mem::take(waiting_for_instance).into_values());
    }

    /// `None` if no call waits. Deadlines of waiting calls belong to no slot.
    pub(super) fn check_ns(&self) -> Option<u64> {
        let is_any =
            !self.slot_queue.is_empty() || !self.waiting_for_instance.is_empty() || !self.waiting_backlogs.is_empty();
        is_any.then_some(self.next_check_ns)
    }

    pub(super) fn announce_check_ns(&mut self) -> Option<u64> {
        self.announced_check_ns = self.check_ns();
        self.announced_check_ns
    }

    pub(super) fn must_wake_reactor(&self) -> bool {
        self.announced_check_ns.is_none_or(|told_ns| told_ns > self.next_check_ns) && self.check_ns().is_some()
    }

    pub(super) fn check_queue_if_due(&mut self) {
        let Some(check_ns) = self.check_ns() else { return };
        let now_ns = monotonic_ns();
        if now_ns < check_ns {
            return;
        }
        self.next_check_ns = now_ns + QUEUE_CHECK_INTERVAL_NS;
        self.slot_queue.check_callers(&mut self.woken_tasks);
        self.wake_waiting();
        self.call_next();
    }

    pub(super) fn ring(&mut self, target: u32) {
        // SeqCst: pairs with the fence in `Bell::park`: a worker that goes to sleep now sees the offer.
        fence(Ordering::SeqCst);
        let count = self.instances.len();
        for step in 0..count {
            let index = (self.next_instance + step) % count;
            let instance = &self.instances[index];
            let is_meant = if target == 0 { !instance.is_relay() } else { instance.number == target };
            if instance.is_open() && is_meant && instance.bell.is_anyone_idle() && instance.ring(&mut self.rung) {
                self.next_instance = index + 1;
                return;
            }
        }
    }

    pub(super) fn notify_withdrawal(&mut self, number: u32) {
        let Self { instances, rung, .. } = self;
        let told = instances.iter().find(|instance| instance.number == number && instance.bell.has_watchers());
        rung.extend(told.map(|instance| Arc::clone(&instance.eventfd)));
    }

    /// A rung worker may have stopped before it took the offer.
    pub(super) fn ring_all(&mut self) {
        for instance in self.instances.iter().filter(|instance| instance.is_open()) {
            instance.ring(&mut self.rung);
        }
    }
}

fn open_identities(instances: &[AttachedInstance]) -> impl Iterator<Item = (u32, u64)> + Clone {
    instances.iter().filter(|instance| instance.is_open()).flat_map(|instance| {
        let own = Some(instance.identity).filter(|_| !instance.is_relay());
        let elsewhere = instance.stands_for.iter().map(|elsewhere| elsewhere.identity);
        own.into_iter().chain(elsewhere).map(|identity| (instance.number, identity))
    })
}
