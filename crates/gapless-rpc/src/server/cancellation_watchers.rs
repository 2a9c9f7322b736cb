//! [`CancellationWatchers`]: handlers that wait for the cancellation of their calls. If the [`Bell`] says so, a caller
//! that withdraws a call writes the instance's eventfd, and the I/O thread checks the claims.

use gapless_agent::foreign;
use gapless_log::Bell;
use gapless_log::call_table::{ClaimedSlot, InstanceSide};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

#[derive(Debug)]
pub(crate) struct CancellationWatchers {
    bell: Arc<Bell>,
    waiting: Mutex<Vec<CancellationWatcher>>,
    count: AtomicUsize,
    is_stopped: AtomicBool,
}

#[derive(Debug)]
struct CancellationWatcher {
    number: u64,
    table: Arc<InstanceSide>,
    taken: ClaimedSlot,
    task: Waker,
}

impl CancellationWatchers {
    pub(crate) fn new(bell: Arc<Bell>) -> Self {
        Self { bell, waiting: Mutex::default(), count: AtomicUsize::new(0), is_stopped: AtomicBool::new(false) }
    }

    fn change<Changed>(&self, change: impl FnOnce(&mut Vec<CancellationWatcher>) -> Changed) -> Changed {
        let mut waiting = self.waiting.lock().expect("nobody panics with the lock");
        let changed = change(&mut waiting);
        // Relaxed: ordered by the fence in `announce_watchers`.
        self.count.store(waiting.len(), Ordering::Relaxed);
        self.bell.announce_watchers(waiting.len());
        changed
    }

    pub(crate) fn wake_withdrawn(&self) {
        let is_over = |waiting: &mut CancellationWatcher| waiting.table.is_withdrawn(waiting.taken);
        let over: Vec<_> = self.change(|waiting| waiting.extract_if(.., is_over).collect());
        over.into_iter().for_each(|waiting| foreign::wake(waiting.task));
    }

    #[inline]
    pub(crate) fn answered(&self, table: &Arc<InstanceSide>, taken: ClaimedSlot) {
        // SeqCst, as the claim's transition before it: pairs with the fence in `change`. A waiting task either sees the
        // answer, or is seen here.
        if self.count.load(Ordering::SeqCst) != 0 {
            let is_own =
                |waiting: &mut CancellationWatcher| waiting.taken == taken && Arc::ptr_eq(&waiting.table, table);
            let over: Vec<_> = self.change(|waiting| waiting.extract_if(.., is_own).collect());
            over.into_iter().for_each(|waiting| foreign::wake(waiting.task));
        }
    }

    /// [`CancellationWatchers::wake_withdrawn`] is no longer called on a withdrawal, so waiting tasks must poll.
    pub(crate) fn stop_signals(&self) {
        // SeqCst: a later task sees the flag, an earlier one is in the list.
        self.is_stopped.store(true, Ordering::SeqCst);
        self.change(std::mem::take).into_iter().for_each(|waiting| foreign::wake(waiting.task));
    }

    /// The last task of a number counts. False if the task must poll, for want of a signal.
    pub(crate) fn watch(&self, table: &Arc<InstanceSide>, taken: ClaimedSlot, number: u64, task: Waker) -> bool {
        let replaced = self.change(|waiting| {
            if let Some(own) = waiting.iter_mut().find(|waiting| waiting.number == number) {
                return Some(std::mem::replace(&mut own.task, task));
            }
            waiting.push(CancellationWatcher { number, table: Arc::clone(table), taken, task });
            None
        });
        drop(replaced);
        // SeqCst: pairs with `stop_signals`.
        !self.is_stopped.load(Ordering::SeqCst)
    }

    pub(crate) fn unwatch(&self, number: u64) {
        let own = |waiting: &mut CancellationWatcher| waiting.number == number;
        let gone: Vec<_> = self.change(|waiting| waiting.extract_if(.., own).collect());
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_log::call_table::{CallTable, CallTableShape, OfferRings};
    use gapless_testkit::wake_count::WakeCount;

    #[test]
    fn watcher_is_woken_once() {
        let table = CallTable::create(CallTableShape::new(2, 0).unwrap()).unwrap();
        let mut rings = OfferRings::new(table.shape());
        (0..2).for_each(|slot| rings.offer(&table, 0, slot, 1, (0, false)));
        let instance = Arc::new(InstanceSide::in_process(&table, 1));
        let taken = [0, 1].map(|_| instance.take(0).unwrap());
        assert!(taken.iter().all(|taken| instance.begin(*taken)));
        let bell = Arc::new(Bell::create().unwrap());
        let watchers = CancellationWatchers::new(Arc::clone(&bell));
        let counts = [0, 1, 2].map(|_| Arc::<WakeCount>::default());
        let woken = || counts.each_ref().map(|count| count.count());
        let waker = |index: usize| Waker::from(Arc::clone(&counts[index]));
        assert!(!bell.has_watchers());
        for (number, index) in [(0, 0), (1, 2), (1, 1)] {
            assert!(watchers.watch(&instance, taken[number as usize], number, waker(index)));
        }
        watchers.wake_withdrawn();
        assert!(bell.has_watchers() && woken() == [0; 3]);
        let _ = table.claim(taken[1].slot).withdraw(1);
        watchers.wake_withdrawn();
        watchers.wake_withdrawn();
        assert!(bell.has_watchers() && woken() == [0, 1, 0]);
        watchers.stop_signals();
        assert!(!bell.has_watchers() && woken() == [1, 1, 0]);
        assert!(!watchers.watch(&instance, taken[0], 0, waker(0)), "the task must poll");
        watchers.unwatch(0);
        assert!(!bell.has_watchers());
    }
}
