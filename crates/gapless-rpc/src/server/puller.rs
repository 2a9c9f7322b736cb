//! [`ServedCallers`]: the tables of all callers of a route. Workers take requests by class (8 : 4 : 2 : 1), then by the
//! caller's turn ([`TurnScheduler`]), then by age. Other processes write here: everything is copied once, then checked.

use crate::context::{CallerWithDomain, RemoteCaller};
use crate::registry::{RouteState, TypeDescription};
use gapless_agent::fault::crash_point;
use gapless_agent::foreign;
use gapless_agent::process_mark::ProcessMark;
use gapless_agent::wake_fd;
use gapless_log::call_table::turn_scheduler::{CallerTurn, TurnScheduler};
use gapless_log::call_table::{AnswerOutcome, CLASSES, ClaimedSlot, InstanceSide, RequestHeader};
use gapless_log::{Bell, Rung};
use rustix::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::cancellation_watchers::CancellationWatchers;
use crate::protocol::status::{ReplyStatus, cut};

/// Longest sleep, in case a caller corrupts the bell.
const PARK_MAX: Duration = Duration::from_millis(100);
const STREAK_MAX: u32 = 64;

const OPEN: u32 = 0;
const SUSPENDED: u32 = 1;
const ENDED: u32 = 2;

#[derive(Debug)]
pub(crate) struct AttachedCaller {
    pub(crate) attachment: u64,
    pub(crate) table: Arc<InstanceSide>,
    pub(crate) eventfd: OwnedFd,
    pub(crate) identity: Arc<CallerWithDomain>,
    pub(crate) reply_version: u32,
    /// Index of that version among the caller's older ones, or 0.
    pub(crate) reply_older: u8,
    pub(crate) watchers: Arc<CancellationWatchers>,
    /// Request and reply, with the fingerprints of the agreed versions.
    pub(crate) types: Arc<(TypeDescription, TypeDescription)>,
}

impl RemoteCaller for AttachedCaller {
    fn is_over(&self, taken: ClaimedSlot) -> bool {
        !self.table.is_mapped_here() || self.table.is_withdrawn(taken)
    }

    fn watch(&self, taken: ClaimedSlot, number: u64, task: Waker) -> bool {
        self.watchers.watch(&self.table, taken, number, task)
    }

    fn unwatch(&self, number: u64) {
        if self.table.is_mapped_here() {
            self.watchers.unwatch(number);
        }
    }
}

#[derive(Debug)]
pub(crate) struct ServedCallers {
    bell: Arc<Bell>,
    watchers: Arc<CancellationWatchers>,
    /// Wakes the instance's tasks, and those that wait for a cancellation.
    eventfd: OwnedFd,
    callers: RwLock<Arc<[Arc<AttachedCaller>]>>,
    /// Lets workers detect a change without the lock.
    version: AtomicU64,
    state: AtomicU32,
    /// Sleeping tasks, by the numbers of their pullers.
    tasks: Mutex<Vec<(u64, Waker)>>,
    last_puller: AtomicU64,
    /// A worker spins before it sleeps.
    has_looker: AtomicBool,
    /// A relay that stands for instances elsewhere takes only requests targeted at it.
    is_relay: AtomicBool,
    /// A forked child takes and answers nothing.
    made_by: ProcessMark,
}

impl ServedCallers {
    pub(crate) fn new(bell: Bell, eventfd: OwnedFd) -> Self {
        let (callers, bell) = (RwLock::new(Arc::from(Vec::new())), Arc::new(bell));
        Self {
            watchers: Arc::new(CancellationWatchers::new(Arc::clone(&bell))),
            bell,
            eventfd,
            callers,
            version: AtomicU64::new(1),
            state: AtomicU32::new(OPEN),
            tasks: Mutex::default(),
            last_puller: AtomicU64::new(0),
            has_looker: AtomicBool::new(false),
            is_relay: AtomicBool::new(false),
            made_by: ProcessMark::current(),
        }
    }

    pub(crate) fn set_relay(&self, is_relay: bool) {
        // Relaxed: a worker that sees it late looks once more, because it is woken.
        if self.is_relay.swap(is_relay, Ordering::Relaxed) != is_relay {
            self.wake_all();
        }
    }

    fn is_relay(&self) -> bool {
        // Relaxed: see `set_relay`.
        self.is_relay.load(Ordering::Relaxed)
    }

    pub(crate) fn attach(&self, caller: AttachedCaller) {
        self.change(|callers| callers.push(Arc::new(caller)));
    }

    pub(crate) fn detach(&self, attachment: u64) {
        self.change(|callers| {
            let gone = callers.extract_if(.., |caller| caller.attachment == attachment);
            gone.for_each(|caller| caller.table.abandon());
        });
        self.watchers.wake_withdrawn();
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<AttachedCaller>>)) {
        let mut callers = self.callers.write().expect("nobody panics with the lock");
        let mut changed = callers.to_vec();
        change(&mut changed);
        *callers = changed.into();
        // Release: pairs with the Acquire in `Puller::refresh`.
        self.version.fetch_add(1, Ordering::Release);
        drop(callers);
        self.wake_all();
    }

    pub(crate) fn suspend(&self) {
        // Relaxed: a worker that sees it late takes one more request. The exchange never revives an ended route.
        let _ = self.state.compare_exchange(OPEN, SUSPENDED, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn resume(&self) {
        let _ = self.state.compare_exchange(SUSPENDED, OPEN, Ordering::Relaxed, Ordering::Relaxed);
        self.wake_all();
    }

    /// The workers finish their requests, and end.
    pub(crate) fn end(&self) {
        self.state.store(ENDED, Ordering::Relaxed);
        self.wake_all();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ENDED
    }

    pub(crate) fn state(&self) -> RouteState {
        match self.state.load(Ordering::Relaxed) {
            OPEN => RouteState::Open,
            SUSPENDED => RouteState::Suspended,
            _ => RouteState::Draining,
        }
    }

    /// Written by callers for sleeping tasks and waiting handlers; the I/O thread then calls
    /// [`ServedCallers::handle_ring`].
    pub(crate) const fn eventfd(&self) -> &OwnedFd {
        &self.eventfd
    }

    pub(crate) fn handle_ring(&self) {
        self.wake_rung_tasks();
        self.watchers.wake_withdrawn();
    }

    pub(crate) const fn watchers(&self) -> &Arc<CancellationWatchers> {
        &self.watchers
    }

    fn wake_rung_tasks(&self) {
        let mut tasks = self.tasks.lock().expect("nobody panics with the lock");
        let rung = self.bell.take_rung_tasks(tasks.len());
        let left = tasks.len() - rung;
        let woken = tasks.split_off(left);
        drop(tasks);
        woken.into_iter().for_each(|(_, task)| foreign::wake(task));
    }

    /// False if all workers are awake or woken already.
    fn wake_one(&self) -> bool {
        let rung = if self.bell.is_anyone_idle() { self.bell.ring() } else { Rung::Nobody };
        if rung == Rung::Task {
            self.wake_rung_tasks();
        }
        rung != Rung::Nobody
    }

    /// Passes on a ring for requests that the worker will not take, to another worker here or in another instance.
    fn pass_ring_on(&self, callers: &[Arc<AttachedCaller>]) {
        if self.wake_one() {
            return;
        }
        let has_offers = |caller: &&Arc<AttachedCaller>| (0..CLASSES).any(|class| caller.table.has_offers(class));
        for caller in callers.iter().filter(has_offers) {
            if caller.table.pass_ring_on() {
                wake_fd::signal(&caller.eventfd);
            }
        }
    }

    /// Changes the list of sleeping tasks and announces their number to callers. Also returns whether a task that no
    /// longer sleeps was rung.
    fn change_sleepers<Changed>(&self, change: impl FnOnce(&mut Vec<(u64, Waker)>) -> Changed) -> (Changed, bool) {
        let mut tasks = self.tasks.lock().expect("nobody panics with the lock");
        let changed = change(&mut tasks);
        let was_rung = self.bell.announce_tasks(tasks.len());
        (changed, was_rung)
    }

    fn wake_all(&self) {
        self.bell.ring_all();
        let (tasks, _) = self.change_sleepers(std::mem::take);
        tasks.into_iter().for_each(|(_, task)| foreign::wake(task));
    }

    pub(crate) fn is_suspended(&self) -> bool {
        // Relaxed: a worker that sees it late looks once more.
        self.state.load(Ordering::Relaxed) == SUSPENDED
    }

    #[cfg(test)]
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    #[cfg(test)]
    pub(crate) fn is_anyone_idle(&self) -> bool {
        self.bell.is_anyone_idle()
    }

    fn is_open(&self) -> bool {
        self.state.load(Ordering::Relaxed) == OPEN
    }

    pub(crate) fn callers(&self) -> usize {
        self.callers.read().expect("nobody panics with the lock").len()
    }
}

#[derive(Debug)]
pub(crate) struct Puller {
    served: Arc<ServedCallers>,
    callers: Arc<[Arc<AttachedCaller>]>,
    version: u64,
    turns: TurnScheduler,
    number: u64,
    streak: u32,
    /// The task was told to sleep, and has not polled since.
    sleeps: bool,
    /// A ring arrived although it found work by itself: it may be for another request.
    owes_ring: bool,
}

impl Puller {
    pub(crate) fn new(served: Arc<ServedCallers>) -> Self {
        // Relaxed: only unique numbers.
        let number = served.last_puller.fetch_add(1, Ordering::Relaxed);
        Self {
            served,
            callers: Arc::from(Vec::new()),
            version: 0,
            turns: TurnScheduler::default(),
            number,
            streak: 0,
            sleeps: false,
            owes_ring: false,
        }
    }

    pub(crate) const fn served(&self) -> &Arc<ServedCallers> {
        &self.served
    }

    #[inline]
    fn refresh(&mut self) {
        // Acquire: pairs with the Release in `change`.
        let version = self.served.version.load(Ordering::Acquire);
        if version != self.version {
            self.version = version;
            self.callers = Arc::clone(&self.served.callers.read().expect("nobody panics with the lock"));
            self.turns.reset(self.callers.len());
        }
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<ClaimedRequest> {
        self.take_of::<false>()
    }

    /// Like [`Puller::take`], for the only worker of a relay: one that stands for instances claims only targeted
    /// requests.
    pub(crate) fn take_relayed(&mut self) -> Option<ClaimedRequest> {
        if self.served.is_relay() { self.take_of::<true>() } else { self.take_of::<false>() }
    }

    #[inline]
    fn take_of<const IS_TARGETED: bool>(&mut self) -> Option<ClaimedRequest> {
        if !self.served.is_open() {
            return None;
        }
        self.refresh();
        loop {
            let turn = self.find_turn::<IS_TARGETED>()?;
            let caller = &self.callers[turn.caller];
            let taken =
                if IS_TARGETED { caller.table.take_targeted(turn.class) } else { caller.table.take(turn.class) };
            if let Some(taken) = taken {
                crash_point("instance_claimed");
                self.turns.take(turn);
                let claimed = ClaimedRequest { caller: Arc::clone(caller), taken, progress: ClaimProgress::Claimed };
                // Wakes one more worker; in another instance if its own ring was not for this work.
                if std::mem::take(&mut self.owes_ring) {
                    if self.may_take::<IS_TARGETED>() {
                        self.served.pass_ring_on(&self.callers);
                    }
                } else if self.served.bell.is_anyone_idle() && self.find_turn::<IS_TARGETED>().is_some() {
                    self.served.wake_one();
                }
                return Some(claimed);
            }
        }
    }

    #[inline]
    fn find_turn<const IS_TARGETED: bool>(&mut self) -> Option<CallerTurn> {
        let callers = &self.callers;
        self.turns.find_turn(|caller, class| has_offers::<IS_TARGETED>(&callers[caller].table, class))
    }

    /// The last check before a sleep.
    fn may_take<const IS_TARGETED: bool>(&mut self) -> bool {
        self.refresh();
        let callers = &self.callers;
        let has_offers = |caller: usize, class| has_offers::<IS_TARGETED>(&callers[caller].table, class);
        self.served.is_open() && self.turns.check_all_callers(has_offers)
    }

    /// Woken when there may be requests; `None` when the route has ended.
    pub(crate) fn poll_take(&mut self, task: &mut Context<'_>) -> Poll<Option<ClaimedRequest>> {
        self.poll_take_of(task, Self::take, Self::may_take::<false>)
    }

    pub(crate) fn poll_take_relayed(&mut self, task: &mut Context<'_>) -> Poll<Option<ClaimedRequest>> {
        self.poll_take_of(task, Self::take_relayed, |puller| {
            if puller.served.is_relay() { puller.may_take::<true>() } else { puller.may_take::<false>() }
        })
    }

    #[inline]
    fn poll_take_of(
        &mut self,
        task: &mut Context<'_>,
        take: impl Fn(&mut Self) -> Option<ClaimedRequest>,
        may_take: impl Fn(&mut Self) -> bool,
    ) -> Poll<Option<ClaimedRequest>> {
        if self.streak >= STREAK_MAX {
            // Lets other tasks run; counts as busy meanwhile.
            self.streak = 0;
            task.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut found_work = false;
        loop {
            self.stay_awake(found_work);
            if self.served.has_ended() {
                return Poll::Ready(None);
            }
            if let Some(claimed) = take(self) {
                self.streak += 1;
                return Poll::Ready(Some(claimed));
            }
            self.streak = 0;
            let sleeper = (self.number, task.waker().clone());
            self.served.change_sleepers(|tasks| tasks.push(sleeper));
            self.sleeps = true;
            if !may_take(self) && !self.served.has_ended() {
                self.owes_ring = false;
                return Poll::Pending;
            }
            found_work = true;
        }
    }

    /// Takes its task off the sleepers. With `found_work` it has not slept: if it was woken meanwhile, it owes a ring.
    fn stay_awake(&mut self, found_work: bool) {
        if !std::mem::take(&mut self.sleeps) {
            return;
        }
        let (own, was_rung) = self.served.change_sleepers(|tasks| {
            let own = tasks.iter().position(|(number, _)| *number == self.number);
            own.map(|index| tasks.swap_remove(index))
        });
        self.owes_ring |= was_rung || found_work && own.is_none();
    }

    /// Spins for `looks` looks, unless another worker of the instance does. Must be followed by a take or a park.
    pub(crate) fn look_before_parking(&mut self, looks: u32) {
        let served = Arc::clone(&self.served);
        // Acquire: pairs with the Release below, so that one look is over before the next begins.
        if served.has_looker.swap(true, Ordering::Acquire) {
            return;
        }
        self.refresh();
        // A search that skips some callers would owe a ring for requests that it does not see.
        let spares_rings = self.turns.checks_all_callers();
        if spares_rings {
            served.bell.begin_look();
        }
        for _ in 0..looks {
            self.refresh();
            if self.find_turn::<false>().is_some() || !served.is_open() || served.has_ended() {
                break;
            }
            std::hint::spin_loop();
        }
        self.owes_ring |= spares_rings && served.bell.end_look();
        served.has_looker.store(false, Ordering::Release);
    }

    pub(crate) fn park(&mut self, timeout: Duration) {
        let served = Arc::clone(&self.served);
        let mut is_anything = false;
        let was_rung = served.bell.park(timeout.min(PARK_MAX), || {
            is_anything = served.has_ended() || self.may_take::<false>();
            is_anything
        });
        // With nothing queued, no ring is owed.
        self.owes_ring = is_anything && self.owes_ring || was_rung;
    }
}

#[inline]
fn has_offers<const IS_TARGETED: bool>(table: &InstanceSide, class: usize) -> bool {
    if IS_TARGETED { table.has_targeted_offers(class) } else { table.has_offers(class) }
}

impl Drop for Puller {
    fn drop(&mut self) {
        if !self.served.made_by.is_here() {
            return;
        }
        self.stay_awake(true);
        if self.owes_ring {
            // Woken for a request that it will never take.
            self.served.pass_ring_on(&self.callers);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimProgress {
    Claimed,
    Begun,
    Answered,
}

/// Dropping it without an answer tells the caller.
#[derive(Debug)]
pub(crate) struct ClaimedRequest {
    caller: Arc<AttachedCaller>,
    taken: ClaimedSlot,
    progress: ClaimProgress,
}

impl ClaimedRequest {
    pub(crate) const fn caller(&self) -> &Arc<AttachedCaller> {
        &self.caller
    }

    pub(crate) const fn taken(&self) -> ClaimedSlot {
        self.taken
    }

    /// Replaces both buffers. `None` if the slot holds no valid request.
    #[inline]
    pub(crate) fn read(&self, user_headers: &mut Vec<u8>, payload: &mut Vec<u8>) -> Option<RequestHeader> {
        let header = self.caller.table.request_header(self.taken)?;
        crash_point("instance_header_read");
        self.caller.table.read_request(self.taken, &header, user_headers, payload);
        Some(header)
    }

    /// False if the caller has cancelled.
    #[inline]
    pub(crate) fn begin(&mut self) -> bool {
        self.progress = ClaimProgress::Begun;
        let is_wanted = self.caller.table.begin(self.taken);
        crash_point("instance_begun");
        is_wanted
    }

    pub(crate) fn reply_length_max(&self) -> usize {
        self.caller.table.shape().payload_length_max()
    }

    /// Signals the caller at the answer, even for a one-way request.
    pub(crate) fn notify_caller(&self) {
        if self.caller.table.is_mapped_here() {
            self.caller.table.want_notice(self.taken);
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.caller.is_over(self.taken)
    }

    /// True if the caller will see it. Text that is too long is truncated; nothing else may be.
    #[inline]
    pub(crate) fn answer(mut self, status: ReplyStatus, body: &[u8]) -> bool {
        self.put_answer(status, body)
    }

    #[inline]
    fn put_answer(&mut self, status: ReplyStatus, body: &[u8]) -> bool {
        self.progress = ClaimProgress::Answered;
        if !self.caller.table.is_mapped_here() {
            return false;
        }
        // Only texts for people can be longer: replies are checked before.
        let body = if body.len() > self.reply_length_max() { cut(body, self.reply_length_max()) } else { body };
        let status = match status {
            ReplyStatus::Reply => ReplyStatus::of_reply(self.caller.reply_older),
            other => other as u32,
        };
        let answered = self.caller.table.answer(self.taken, status, body);
        self.caller.watchers.answered(&self.caller.table, self.taken);
        match answered {
            AnswerOutcome::Answered { ring_reactor } => {
                if ring_reactor {
                    crash_point("instance_before_completion");
                    wake_fd::signal(&self.caller.eventfd);
                }
                true
            }
            AnswerOutcome::Withdrawn | AnswerOutcome::Lost => false,
        }
    }
}

impl Drop for ClaimedRequest {
    fn drop(&mut self) {
        let (status, body): (_, &[u8]) = match self.progress {
            ClaimProgress::Answered => return,
            ClaimProgress::Claimed => (ReplyStatus::NotServed, &[]),
            ClaimProgress::Begun => (ReplyStatus::Panicked, b"the handler was dropped before it had answered"),
        };
        self.put_answer(status, body);
    }
}
