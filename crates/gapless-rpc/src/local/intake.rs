//! [`Intake`]: a route's queue and the books of its workers, under one lock.
//!
//! A request enters and leaves in one critical section each, of some tens of nanoseconds; nothing foreign runs in it but
//! the cloning of a waker: waking, dropping and encoding are done without the lock. [`Intake::push`] wakes one idle worker; who takes work and sees more than
//! is being woken for wakes one more, so no request waits behind a busy worker while another is idle, and none costs more
//! than one wake-up. Why no wake-up is lost stands in `idle.rs`.
//!
//! Two locks: the one of the overflow is taken before the one of the queue, never after.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::gauges::QueueGauges;
use super::idle::{IdleWorkers, Pause, Sleeper, WorkerNumber};
use super::offer::Offer;
use super::one_shot::OneShot;
use super::overflow::{Overflow, PoppedRequest};
use super::queued::{Queued, lose};
use super::sync::{AtomicUsize, Condvar, Mutex, MutexGuard};
use crate::options::Priority;
use crate::outcome::CallError;
use crate::overflow::classes::{CLASSES, Classes};

/// Requests that come back from the overflow in one critical section.
const REFILL_MAX: usize = 256;

/// What a route does with its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    /// They come and are served.
    Open,
    /// They come and wait.
    Suspended,
    /// No more come; those that wait are served.
    Draining,
    /// No more come, and none waits.
    Withdrawn,
}

/// What a worker finds.
pub(super) enum Found<Work> {
    Work(Work),
    Nothing,
    /// There will be no more work.
    End,
}

struct Queue<Request, Reply> {
    classes: Classes<Queued<Request, Reply>>,
    workers: IdleWorkers,
    state: QueueState,
    /// How many of each class lie in the overflow; while there is one, all that come go there, for the order.
    spilled: [usize; CLASSES],
    /// Refusals of each class before it is searched for cancelled requests.
    refusals_left: [usize; CLASSES],
}

/// The requests in the overflow, and the calls that wait for them.
struct SpilledRequests<Request, Reply> {
    overflow: Box<dyn Overflow<Request>>,
    waiting: [VecDeque<SpilledCall<Reply>>; CLASSES],
}

/// What is to be done once something has come back from the overflow, without its lock: what is told or woken may call this route.
struct Refilled<Reply> {
    /// With the reasons.
    lost: Vec<(SpilledCall<Reply>, String)>,
    sleepers: Vec<Sleeper>,
}

/// The part of a spilled request that stays in memory.
type SpilledCall<Reply> = (Option<Arc<OneShot<Reply>>>, Offer);

/// A route's queue and the books of its workers.
pub(super) struct Intake<Request, Reply> {
    name: Arc<str>,
    /// Requests in memory for each class.
    queue_max: usize,
    queue: Mutex<Queue<Request, Reply>>,
    /// What spinning workers look at: how many requests there are to be taken; `usize::MAX` when they should end.
    hint: AtomicUsize,
    left: Condvar,
    gauges: Option<Arc<QueueGauges>>,
    spill: Option<Mutex<SpilledRequests<Request, Reply>>>,
}

/// A request that was not taken, and why.
pub(super) type NotTaken<Request, Reply> = (Queued<Request, Reply>, CallError);

impl<Request, Reply> Intake<Request, Reply> {
    pub(super) fn new(
        name: Arc<str>,
        queue_max: usize,
        overflow: Option<Box<dyn Overflow<Request>>>,
        gauges: Option<Arc<QueueGauges>>,
    ) -> Self {
        let queue = Queue {
            classes: Classes::new(),
            workers: IdleWorkers::default(),
            state: QueueState::Open,
            spilled: [0; CLASSES],
            refusals_left: [0; CLASSES],
        };
        let spill = overflow.map(|overflow| Mutex::new(SpilledRequests { overflow, waiting: Default::default() }));
        Self {
            name,
            queue_max,
            queue: Mutex::new(queue),
            hint: AtomicUsize::new(0),
            left: Condvar::new(),
            gauges,
            spill,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<Request, Reply>> {
        // Nothing under it runs foreign code, so a panic under it is one of ours, between two whole changes.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After each change, under the lock.
    fn tell(&self, queue: &Queue<Request, Reply>) {
        let hint = match queue.state {
            QueueState::Suspended => 0,
            QueueState::Withdrawn => usize::MAX,
            QueueState::Draining if queue.is_empty() => usize::MAX,
            QueueState::Draining | QueueState::Open => queue.classes.len(),
        };
        // Relaxed: a hint; who follows it takes the lock.
        self.hint.store(hint, Ordering::Relaxed);
        if let Some(gauges) = &self.gauges {
            gauges.set(queue.classes.len(), queue.spilled.iter().sum());
        }
    }

    /// Whether a look under the lock is worth it. A hint for workers that spin.
    #[inline]
    pub(super) fn looks_worth_it(&self) -> bool {
        // Relaxed: pairs with nothing; a worker looks under the lock before it sleeps.
        self.hint.load(Ordering::Relaxed) > 0
    }

    /// Takes a request in and wakes one for it.
    #[inline]
    pub(super) fn push(&self, queued: Queued<Request, Reply>) -> Result<(), Box<NotTaken<Request, Reply>>> {
        let class = queued.offer.priority;
        let mut queue = self.lock();
        if !queue.takes_in() || queue.spilled[class as usize] > 0 || queue.classes.len_of(class) >= self.queue_max {
            drop(queue);
            return self.push_otherwise(queued);
        }
        queue.classes.push(class, queued);
        let sleeper = queue.somebody_for_more();
        self.tell(&queue);
        drop(queue);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
        Ok(())
    }

    #[cold]
    fn push_otherwise(&self, queued: Queued<Request, Reply>) -> Result<(), Box<NotTaken<Request, Reply>>> {
        let Some(spill) = &self.spill else { return self.push_into_full(queued) };
        let class = queued.offer.priority;
        let mut spill = spill.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.lock().takes_in() {
            return Err(Box::new((queued, self.no_route())));
        }
        // In memory or not, it goes behind all that were spilled; this lock keeps others from coming between.
        if let Err(reason) = spill.overflow.push(class, &queued.request) {
            return Err(Box::new((queued, self.busy(reason))));
        }
        spill.waiting[class as usize].push_back((queued.one_shot, queued.offer));
        let mut queue = self.lock();
        queue.spilled[class as usize] += 1;
        self.gauges.iter().for_each(|gauges| gauges.overflowed.add(1));
        self.tell(&queue);
        let is_low = queue.classes.len_of(class) <= self.queue_max / 2;
        drop(queue);
        // The workers may have emptied the memory meanwhile, and then nobody else brings it back.
        self.refill_classes(spill, &[class][..usize::from(is_low)]);
        Ok(())
    }

    /// Cancelled requests make room, if there are any. Searching costs as much as a class is long, so it is done at the first refusal, and
    /// then once for an eighth of its length in refusals, unless it has found as many, or the class was half empty meanwhile.
    fn push_into_full(&self, queued: Queued<Request, Reply>) -> Result<(), Box<NotTaken<Request, Reply>>> {
        let class = queued.offer.priority;
        let mut queue = self.lock();
        if !queue.takes_in() {
            drop(queue);
            return Err(Box::new((queued, self.no_route())));
        }
        let mut unwanted = Vec::new();
        if queue.classes.len_of(class) >= self.queue_max {
            let pause = self.queue_max / 8;
            if let Some(left) = queue.refusals_left[class as usize].checked_sub(1) {
                queue.refusals_left[class as usize] = left;
            } else {
                unwanted = queue.classes.take_out(class, Queued::is_cancelled);
                queue.refusals_left[class as usize] = if unwanted.len() > pause { 0 } else { pause };
            }
        }
        if queue.classes.len_of(class) >= self.queue_max {
            drop(queue);
            return Err(Box::new((queued, self.busy(format!("{} requests of its class wait", self.queue_max)))));
        }
        queue.classes.push(class, queued);
        let sleeper = queue.somebody_for_more();
        self.tell(&queue);
        drop(queue);
        drop(unwanted);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
        Ok(())
    }

    /// A worker looks for work. If there is none and it sleeps, it is woken when there is. `pause` runs under the lock, and
    /// only if it is needed: it clones a handle.
    #[inline]
    pub(super) fn take(&self, number: WorkerNumber, pause: impl FnOnce() -> Pause) -> Found<Queued<Request, Reply>> {
        let mut queue = self.lock();
        let replaced = queue.workers.arrive(number);
        let taken = if queue.serves() { queue.classes.take() } else { None };
        let Some((class, queued)) = taken else {
            let is_over = match queue.state {
                QueueState::Open | QueueState::Suspended => false,
                QueueState::Draining => queue.is_empty(),
                QueueState::Withdrawn => true,
            };
            if is_over {
                drop(queue);
                drop(replaced);
                return Found::End;
            }
            queue.workers.pause(number, pause());
            drop(queue);
            drop(replaced);
            return Found::Nothing;
        };
        let more = queue.somebody_for_more();
        let left_of_class = queue.classes.len_of(class);
        let is_half_empty = left_of_class <= self.queue_max / 2;
        if is_half_empty {
            queue.refusals_left[class as usize] = 0;
        }
        let is_low = queue.spilled[class as usize] > 0 && is_half_empty;
        self.tell(&queue);
        drop(queue);
        drop(replaced);
        if let Some(more) = more {
            more.wake();
        }
        if is_low {
            self.refill_low(class, left_of_class == 0);
        }
        Found::Work(queued)
    }

    /// A worker goes home without having looked, though it may have been woken: the next one looks.
    pub(super) fn pass_on(&self, number: WorkerNumber) {
        let mut queue = self.lock();
        let replaced = queue.workers.arrive(number);
        let sleeper = queue.somebody_for_more();
        drop(queue);
        drop(replaced);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// A new worker; `None` if there will be no work.
    pub(super) fn enter(&self) -> Option<WorkerNumber> {
        let mut queue = self.lock();
        (queue.state != QueueState::Withdrawn).then(|| queue.workers.enter())
    }

    /// A worker leaves for good. With the last one the route is withdrawn: nobody would serve what waits.
    pub(super) fn leave(&self, number: WorkerNumber) {
        let mut queue = self.lock();
        let replaced = queue.workers.leave(number);
        let is_last = queue.workers.len() == 0;
        let sleeper = queue.somebody_for_more();
        drop(queue);
        drop(replaced);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
        if is_last {
            self.withdraw("its last worker has left");
            self.left.notify_all();
        }
    }

    pub(super) fn state(&self) -> QueueState {
        self.lock().state
    }

    /// Requests that wait, in memory and in the overflow.
    pub(super) fn queued(&self) -> (usize, usize) {
        let queue = self.lock();
        (queue.classes.len(), queue.spilled.iter().sum())
    }

    /// Workers, and how many of them are idle.
    pub(super) fn workers(&self) -> (usize, usize) {
        let queue = self.lock();
        (queue.workers.len(), queue.workers.idle())
    }

    /// From `Open` to `Suspended` and back, or to `Draining`; false if the route is beyond that.
    pub(super) fn change(&self, to: QueueState) -> bool {
        let mut queue = self.lock();
        if matches!(queue.state, QueueState::Draining | QueueState::Withdrawn) {
            return queue.state == to;
        }
        queue.state = to;
        self.tell(&queue);
        // Who drains tells all that they will find no more; who resumes wakes one, who wakes the next.
        let sleepers: Vec<Sleeper> = if to == QueueState::Draining {
            std::iter::from_fn(|| queue.workers.next()).collect()
        } else {
            queue.somebody_for_more().into_iter().collect()
        };
        drop(queue);
        sleepers.into_iter().for_each(Sleeper::wake);
        true
    }

    /// Ends the route: what waits has not begun and does not any more.
    pub(super) fn withdraw(&self, reason: &str) {
        // In the order of the locks: what is being spilled meanwhile is not overlooked.
        let mut spill = self.spill.as_ref().map(|spill| spill.lock().unwrap_or_else(PoisonError::into_inner));
        let mut queue = self.lock();
        queue.state = QueueState::Withdrawn;
        queue.spilled = [0; CLASSES];
        let lost = queue.classes.take_all();
        self.tell(&queue);
        let sleepers: Vec<Sleeper> = std::iter::from_fn(|| queue.workers.next()).collect();
        drop(queue);
        let waiting = spill.as_mut().map(|spill| std::mem::take(&mut spill.waiting));
        drop(spill);
        sleepers.into_iter().for_each(Sleeper::wake);
        for Queued { request, one_shot, offer } in lost {
            drop(request);
            lose(one_shot.as_deref(), &offer, &self.name, reason);
        }
        for (one_shot, offer) in waiting.into_iter().flatten().flatten() {
            lose(one_shot.as_deref(), &offer, &self.name, reason);
        }
    }

    /// Waits until the last worker has left; false if `until` came before.
    pub(super) fn wait_until_left(&self, until: Option<Instant>) -> bool {
        let mut queue = self.lock();
        while queue.workers.len() > 0 {
            queue = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => self.left.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => return false,
                Some(left) => self.left.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        true
    }

    /// Brings back from the overflow what has room.
    pub(super) fn refill(&self) {
        let Some(spill) = &self.spill else { return };
        self.refill_classes(spill.lock().unwrap_or_else(PoisonError::into_inner), &Priority::ALL);
    }

    #[cold]
    fn refill_low(&self, class: Priority, is_empty: bool) {
        let Some(spill) = &self.spill else { return };
        // Another brings something back, or looks after it has spilled; unless the class is empty: then nobody comes by again.
        let guard =
            if is_empty { Some(spill.lock().unwrap_or_else(PoisonError::into_inner)) } else { spill.try_lock().ok() };
        guard.into_iter().for_each(|spill| self.refill_classes(spill, &[class]));
    }

    /// Brings back what has room, of these classes. Nobody is told or woken before the lock is free.
    fn refill_classes(&self, mut spill: MutexGuard<'_, SpilledRequests<Request, Reply>>, classes: &[Priority]) {
        let mut refilled = Refilled { lost: Vec::new(), sleepers: Vec::new() };
        classes.iter().for_each(|class| self.refill_class(&mut spill, *class, &mut refilled));
        drop(spill);
        let Refilled { lost, sleepers } = refilled;
        sleepers.into_iter().for_each(Sleeper::wake);
        for ((one_shot, offer), reason) in lost {
            lose(one_shot.as_deref(), &offer, &self.name, &reason);
        }
    }

    fn refill_class(
        &self,
        spill: &mut SpilledRequests<Request, Reply>,
        class: Priority,
        Refilled { lost, sleepers }: &mut Refilled<Reply>,
    ) {
        let mut is_ready = true;
        while is_ready {
            let room = self.queue_max.saturating_sub(self.lock().classes.len_of(class)).min(REFILL_MAX);
            let mut back = Vec::with_capacity(room.min(spill.waiting[class as usize].len()));
            let mut gone = 0;
            while back.len() < room && is_ready && !spill.waiting[class as usize].is_empty() {
                let popped = spill.overflow.pop(class);
                if matches!(popped, PoppedRequest::NotYet) {
                    is_ready = false;
                    continue;
                }
                let Some((one_shot, offer)) = spill.waiting[class as usize].pop_front() else { break };
                gone += 1;
                match popped {
                    PoppedRequest::Request(request) => back.push(Queued { request, one_shot, offer }),
                    PoppedRequest::Lost(reason) => lost.push(((one_shot, offer), reason)),
                    PoppedRequest::NotYet => {}
                }
            }
            if gone == 0 {
                break;
            }
            let mut queue = self.lock();
            queue.spilled[class as usize] = queue.spilled[class as usize].saturating_sub(gone);
            back.into_iter().for_each(|queued| queue.classes.push(class, queued));
            sleepers.extend(std::iter::from_fn(|| queue.somebody_for_more()));
            if queue.state == QueueState::Draining && queue.is_empty() {
                sleepers.extend(std::iter::from_fn(|| queue.workers.next()));
            }
            self.tell(&queue);
        }
    }

    fn no_route(&self) -> CallError {
        CallError::no_route(&*self.name)
    }

    fn busy(&self, reason: String) -> CallError {
        CallError::Busy { route: self.name.to_string(), reason }
    }
}

impl<Request, Reply> Queue<Request, Reply> {
    fn takes_in(&self) -> bool {
        matches!(self.state, QueueState::Open | QueueState::Suspended)
    }

    fn serves(&self) -> bool {
        matches!(self.state, QueueState::Open | QueueState::Draining)
    }

    fn is_empty(&self) -> bool {
        self.classes.len() == 0 && self.spilled.iter().all(|&count| count == 0)
    }

    fn somebody_for_more(&mut self) -> Option<Sleeper> {
        if self.serves() { self.workers.next_for(self.classes.len()) } else { None }
    }
}

impl<Request, Reply> Queued<Request, Reply> {
    fn is_cancelled(&self) -> bool {
        self.one_shot.as_ref().is_some_and(|one_shot| one_shot.was_cancelled())
    }
}

impl<Request, Reply> Drop for Intake<Request, Reply> {
    fn drop(&mut self) {
        self.withdraw("its route was dropped");
    }
}
