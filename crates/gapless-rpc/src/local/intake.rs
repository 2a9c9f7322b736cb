//! [`Intake`]: a route's queue and its workers, under one lock, where the only foreign code is the clone of a waker. A
//! push wakes one idle worker, and a worker that sees more work than the woken ones can take wakes one more. `idle.rs`
//! argues why no wake-up is lost. Lock order: overflow before queue.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::gauges::QueueGauges;
use super::idle::{IdleWorkers, Sleeper, WorkerNumber, WorkerPause};
use super::offer::LocalOffer;
use super::one_shot::OneShot;
use super::overflow::{Overflow, PoppedRequest};
use super::queued::{QueuedRequest, lose};
use super::sync::{AtomicUsize, Condvar, Mutex, MutexGuard};
use crate::options::Priority;
use crate::outcome::CallError;
use crate::overflow::classes::{CLASSES, Classes};

const REFILL_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    Open,
    Suspended,
    Draining,
    Withdrawn,
}

pub(super) enum NextWork<Work> {
    Work(Work),
    Nothing,
    End,
}

struct IntakeQueue<Request, Reply> {
    classes: Classes<QueuedRequest<Request, Reply>>,
    workers: IdleWorkers,
    state: QueueState,
    /// New ones of the class go there too, to keep the order.
    spilled: [usize; CLASSES],
    refusals_left: [usize; CLASSES],
}

struct SpilledRequests<Request, Reply> {
    overflow: Box<dyn Overflow<Request>>,
    waiting: [VecDeque<SpilledCall<Reply>>; CLASSES],
}

/// Done without the lock: callbacks and wakers may call this route.
struct RefillResult<Reply> {
    lost: Vec<(SpilledCall<Reply>, String)>,
    sleepers: Vec<Sleeper>,
}

type SpilledCall<Reply> = (Option<Arc<OneShot<Reply>>>, LocalOffer);

pub(super) struct Intake<Request, Reply> {
    name: Arc<str>,
    queue_max: usize,
    queue: Mutex<IntakeQueue<Request, Reply>>,
    /// Requests to take, for spinning workers; `usize::MAX` when they should end.
    hint: AtomicUsize,
    left: Condvar,
    gauges: Option<Arc<QueueGauges>>,
    spill: Option<Mutex<SpilledRequests<Request, Reply>>>,
}

pub(super) type RejectedRequest<Request, Reply> = (QueuedRequest<Request, Reply>, CallError);

impl<Request, Reply> Intake<Request, Reply> {
    pub(super) fn new(
        name: Arc<str>,
        queue_max: usize,
        overflow: Option<Box<dyn Overflow<Request>>>,
        gauges: Option<Arc<QueueGauges>>,
    ) -> Self {
        let queue = IntakeQueue {
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

    fn lock(&self) -> MutexGuard<'_, IntakeQueue<Request, Reply>> {
        // No foreign code runs under the lock, so a panic leaves the state consistent.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, queue: &IntakeQueue<Request, Reply>) {
        let hint = match queue.state {
            QueueState::Suspended => 0,
            QueueState::Withdrawn => usize::MAX,
            QueueState::Draining if queue.is_empty() => usize::MAX,
            QueueState::Draining | QueueState::Open => queue.classes.len(),
        };
        // Relaxed: a hint; a worker that follows it takes the lock.
        self.hint.store(hint, Ordering::Relaxed);
        if let Some(gauges) = &self.gauges {
            gauges.set(queue.classes.len(), queue.spilled.iter().sum());
        }
    }

    #[inline]
    pub(super) fn should_look(&self) -> bool {
        // Relaxed: a worker looks under the lock before it sleeps.
        self.hint.load(Ordering::Relaxed) > 0
    }

    #[inline]
    pub(super) fn push(
        &self,
        queued: QueuedRequest<Request, Reply>,
    ) -> Result<(), Box<RejectedRequest<Request, Reply>>> {
        let class = queued.offer.priority;
        let mut queue = self.lock();
        if !queue.takes_in() || queue.spilled[class as usize] > 0 || queue.classes.len_of(class) >= self.queue_max {
            drop(queue);
            return self.push_otherwise(queued);
        }
        queue.classes.push(class, queued);
        let sleeper = queue.wake_for_more();
        self.tell(&queue);
        drop(queue);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
        Ok(())
    }

    #[cold]
    fn push_otherwise(
        &self,
        queued: QueuedRequest<Request, Reply>,
    ) -> Result<(), Box<RejectedRequest<Request, Reply>>> {
        let Some(spill) = &self.spill else { return self.push_into_full(queued) };
        let class = queued.offer.priority;
        let mut spill = spill.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.lock().takes_in() {
            return Err(Box::new((queued, self.no_route())));
        }
        // Goes after everything spilled, even if memory has room now; this lock keeps other requests out.
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
        // If the workers have emptied the memory, only this thread can refill it.
        self.refill_classes(spill, &[class][..usize::from(is_low)]);
        Ok(())
    }

    /// Linear search for cancelled requests: at the first refusal, and then once per eighth of the class's length in
    /// refusals, unless it found as many or the class was half empty meanwhile.
    fn push_into_full(
        &self,
        queued: QueuedRequest<Request, Reply>,
    ) -> Result<(), Box<RejectedRequest<Request, Reply>>> {
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
                unwanted = queue.classes.take_out(class, QueuedRequest::is_cancelled);
                queue.refusals_left[class as usize] = if unwanted.len() > pause { 0 } else { pause };
            }
        }
        if queue.classes.len_of(class) >= self.queue_max {
            drop(queue);
            return Err(Box::new((queued, self.busy(format!("{} requests of its class wait", self.queue_max)))));
        }
        queue.classes.push(class, queued);
        let sleeper = queue.wake_for_more();
        self.tell(&queue);
        drop(queue);
        drop(unwanted);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
        Ok(())
    }

    /// `pause` runs under the lock, and only if needed: it clones a handle.
    #[inline]
    pub(super) fn take(
        &self,
        number: WorkerNumber,
        pause: impl FnOnce() -> WorkerPause,
    ) -> NextWork<QueuedRequest<Request, Reply>> {
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
                return NextWork::End;
            }
            queue.workers.pause(number, pause());
            drop(queue);
            drop(replaced);
            return NextWork::Nothing;
        };
        let more = queue.wake_for_more();
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
        NextWork::Work(queued)
    }

    /// Passes a possible wake-up on, for a worker that leaves without looking.
    pub(super) fn pass_on(&self, number: WorkerNumber) {
        let mut queue = self.lock();
        let replaced = queue.workers.arrive(number);
        let sleeper = queue.wake_for_more();
        drop(queue);
        drop(replaced);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// `None` if there will be no work.
    pub(super) fn enter(&self) -> Option<WorkerNumber> {
        let mut queue = self.lock();
        (queue.state != QueueState::Withdrawn).then(|| queue.workers.enter())
    }

    /// The last worker withdraws the route, because queued requests would never be served.
    pub(super) fn leave(&self, number: WorkerNumber) {
        let mut queue = self.lock();
        let replaced = queue.workers.leave(number);
        let is_last = queue.workers.len() == 0;
        let sleeper = queue.wake_for_more();
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

    pub(super) fn queued(&self) -> (usize, usize) {
        let queue = self.lock();
        (queue.classes.len(), queue.spilled.iter().sum())
    }

    pub(super) fn workers(&self) -> (usize, usize) {
        let queue = self.lock();
        (queue.workers.len(), queue.workers.idle())
    }

    /// False if the route is past that state.
    pub(super) fn change(&self, to: QueueState) -> bool {
        let mut queue = self.lock();
        if matches!(queue.state, QueueState::Draining | QueueState::Withdrawn) {
            return queue.state == to;
        }
        queue.state = to;
        self.tell(&queue);
        // Draining wakes all workers to let them end; resuming wakes one, which wakes the next.
        let sleepers: Vec<Sleeper> = if to == QueueState::Draining {
            std::iter::from_fn(|| queue.workers.next()).collect()
        } else {
            queue.wake_for_more().into_iter().collect()
        };
        drop(queue);
        sleepers.into_iter().for_each(Sleeper::wake);
        true
    }

    pub(super) fn withdraw(&self, reason: &str) {
        // In lock order, so that requests being spilled meanwhile are included.
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
        for QueuedRequest { request, one_shot, offer } in lost {
            drop(request);
            lose(one_shot.as_deref(), &offer, &self.name, reason);
        }
        for (one_shot, offer) in waiting.into_iter().flatten().flatten() {
            lose(one_shot.as_deref(), &offer, &self.name, reason);
        }
    }

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

    pub(super) fn refill(&self) {
        let Some(spill) = &self.spill else { return };
        self.refill_classes(spill.lock().unwrap_or_else(PoisonError::into_inner), &Priority::ALL);
    }

    #[cold]
    fn refill_low(&self, class: Priority, is_empty: bool) {
        let Some(spill) = &self.spill else { return };
        // If the class is empty, wait for the lock: no later take would trigger a refill.
        let guard =
            if is_empty { Some(spill.lock().unwrap_or_else(PoisonError::into_inner)) } else { spill.try_lock().ok() };
        guard.into_iter().for_each(|spill| self.refill_classes(spill, &[class]));
    }

    /// Callbacks and wake-ups happen without the lock.
    fn refill_classes(&self, mut spill: MutexGuard<'_, SpilledRequests<Request, Reply>>, classes: &[Priority]) {
        let mut refilled = RefillResult { lost: Vec::new(), sleepers: Vec::new() };
        classes.iter().for_each(|class| self.refill_class(&mut spill, *class, &mut refilled));
        drop(spill);
        let RefillResult { lost, sleepers } = refilled;
        sleepers.into_iter().for_each(Sleeper::wake);
        for ((one_shot, offer), reason) in lost {
            lose(one_shot.as_deref(), &offer, &self.name, &reason);
        }
    }

    fn refill_class(
        &self,
        spill: &mut SpilledRequests<Request, Reply>,
        class: Priority,
        RefillResult { lost, sleepers }: &mut RefillResult<Reply>,
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
                    PoppedRequest::Request(request) => back.push(QueuedRequest { request, one_shot, offer }),
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
            sleepers.extend(std::iter::from_fn(|| queue.wake_for_more()));
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

impl<Request, Reply> IntakeQueue<Request, Reply> {
    fn takes_in(&self) -> bool {
        matches!(self.state, QueueState::Open | QueueState::Suspended)
    }

    fn serves(&self) -> bool {
        matches!(self.state, QueueState::Open | QueueState::Draining)
    }

    fn is_empty(&self) -> bool {
        self.classes.len() == 0 && self.spilled.iter().all(|&count| count == 0)
    }

    fn wake_for_more(&mut self) -> Option<Sleeper> {
        if self.serves() { self.workers.next_for(self.classes.len()) } else { None }
    }
}

impl<Request, Reply> QueuedRequest<Request, Reply> {
    fn is_cancelled(&self) -> bool {
        self.one_shot.as_ref().is_some_and(|one_shot| one_shot.was_cancelled())
    }
}

impl<Request, Reply> Drop for Intake<Request, Reply> {
    fn drop(&mut self) {
        self.withdraw("its route was dropped");
    }
}
