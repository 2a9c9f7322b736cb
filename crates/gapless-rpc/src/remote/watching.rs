//! [`Watching`]: handlers of one copy that wait to be told that their calls were given up.
//!
//! A caller that withdraws a call writes the copy's eventfd if anybody waits so, which the [`Bell`] says; the I/O thread then looks at
//! the claims of those that wait. Where a caller has gone, the copy looks by itself, and so it does when it answers a call that is still
//! waited for: by what its handler has left behind.

use gapless_agent::foreign;
use gapless_log::Bell;
use gapless_log::call_table::{CopySide, Taken};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

/// Those that wait.
#[derive(Debug)]
pub(crate) struct Watching {
    bell: Arc<Bell>,
    waiting: Mutex<Vec<WatchingHandler>>,
    /// How many they are.
    count: AtomicUsize,
    /// Nobody looks any more when the eventfd is written.
    is_deaf: AtomicBool,
}

#[derive(Debug)]
struct WatchingHandler {
    number: u64,
    table: Arc<CopySide>,
    taken: Taken,
    task: Waker,
}

impl Watching {
    pub(crate) fn new(bell: Arc<Bell>) -> Self {
        Self { bell, waiting: Mutex::default(), count: AtomicUsize::new(0), is_deaf: AtomicBool::new(false) }
    }

    /// Changes who waits, and tells callers how many do.
    fn change<Changed>(&self, change: impl FnOnce(&mut Vec<WatchingHandler>) -> Changed) -> Changed {
        let mut waiting = self.waiting.lock().expect("nobody panics with the lock");
        let changed = change(&mut waiting);
        // Relaxed: ordered by the fence in `announce_watchers`.
        self.count.store(waiting.len(), Ordering::Relaxed);
        self.bell.announce_watchers(waiting.len());
        changed
    }

    /// Wakes those whose calls were given up.
    pub(crate) fn look(&self) {
        let is_over = |waiting: &mut WatchingHandler| waiting.table.is_withdrawn(waiting.taken);
        let over: Vec<_> = self.change(|waiting| waiting.extract_if(.., is_over).collect());
        over.into_iter().for_each(|waiting| foreign::wake(waiting.task));
    }

    /// A call was answered: wakes those that still wait for its end.
    #[inline]
    pub(crate) fn answered(&self, table: &Arc<CopySide>, taken: Taken) {
        // SeqCst, as the step of the claim before it: pairs with the fence in `change`; who waits sees the answer, or is seen here.
        if self.count.load(Ordering::SeqCst) != 0 {
            let is_own = |waiting: &mut WatchingHandler| waiting.taken == taken && Arc::ptr_eq(&waiting.table, table);
            let over: Vec<_> = self.change(|waiting| waiting.extract_if(.., is_own).collect());
            over.into_iter().for_each(|waiting| foreign::wake(waiting.task));
        }
    }

    /// Nobody calls [`Watching::look`] from now on when a caller withdraws a call: who waits looks for himself.
    pub(crate) fn deafen(&self) {
        // SeqCst: who waits from now on sees it, or stands in the list already.
        self.is_deaf.store(true, Ordering::SeqCst);
        self.change(std::mem::take).into_iter().for_each(|waiting| foreign::wake(waiting.task));
    }

    /// Wakes a task when a call is given up; once for each number, of which the last task counts. False if nobody will, so that it
    /// must look for itself.
    pub(crate) fn watch(&self, table: &Arc<CopySide>, taken: Taken, number: u64, task: Waker) -> bool {
        let replaced = self.change(|waiting| {
            if let Some(own) = waiting.iter_mut().find(|waiting| waiting.number == number) {
                return Some(std::mem::replace(&mut own.task, task));
            }
            waiting.push(WatchingHandler { number, table: Arc::clone(table), taken, task });
            None
        });
        drop(replaced);
        // SeqCst: as in `deafen`.
        !self.is_deaf.load(Ordering::SeqCst)
    }

    /// Not that task.
    pub(crate) fn unwatch(&self, number: u64) {
        let own = |waiting: &mut WatchingHandler| waiting.number == number;
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
    fn who_waits_is_woken_once_when_its_own_call_is_withdrawn() {
        let table = CallTable::create(CallTableShape::new(2, 0).unwrap()).unwrap();
        let mut rings = OfferRings::new(table.shape());
        (0..2).for_each(|slot| rings.offer(&table, 0, slot, 1, (0, false)));
        let copy = Arc::new(CopySide::in_process(&table, 1));
        let taken = [0, 1].map(|_| copy.take(0).unwrap());
        assert!(taken.iter().all(|taken| copy.begin(*taken)));
        let bell = Arc::new(Bell::create().unwrap());
        let watching = Watching::new(Arc::clone(&bell));
        let counts = [0, 1, 2].map(|_| Arc::<WakeCount>::default());
        let woken = || counts.each_ref().map(|count| count.count());
        let waker = |index: usize| Waker::from(Arc::clone(&counts[index]));
        assert!(!bell.has_watchers());
        // The second number waits twice: its last task counts.
        for (number, index) in [(0, 0), (1, 2), (1, 1)] {
            assert!(watching.watch(&copy, taken[number as usize], number, waker(index)));
        }
        watching.look();
        assert!(bell.has_watchers() && woken() == [0; 3]);
        let _ = table.claim(taken[1].slot).withdraw(1);
        watching.look();
        watching.look();
        assert!(bell.has_watchers() && woken() == [0, 1, 0]);
        watching.deafen();
        assert!(!bell.has_watchers() && woken() == [1, 1, 0]);
        assert!(!watching.watch(&copy, taken[0], 0, waker(0)), "it must look for itself");
        watching.unwatch(0);
        assert!(!bell.has_watchers());
    }
}
