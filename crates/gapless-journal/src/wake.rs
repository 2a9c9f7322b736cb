//! Wakes the helper thread, without a system call unless it sleeps. Signalled by the writer at thresholds.

#[cfg(loom)]
use loom::sync::{
    Condvar, Mutex,
    atomic::{AtomicBool, fence},
};
use std::sync::atomic::Ordering;
#[cfg(not(loom))]
use std::sync::{
    Condvar, Mutex,
    atomic::{AtomicBool, fence},
};
use std::time::Duration;

use crate::disk::unpoisoned;

#[derive(Debug)]
pub(crate) struct WakeSignal {
    is_due: AtomicBool,
    is_parked: AtomicBool,
    is_ended: AtomicBool,
    mutex: Mutex<()>,
    condvar: Condvar,
}

impl Default for WakeSignal {
    fn default() -> Self {
        Self {
            is_due: AtomicBool::new(false),
            is_parked: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            mutex: Mutex::new(()),
            condvar: Condvar::new(),
        }
    }
}

impl WakeSignal {
    pub(crate) fn signal(&self) {
        // AcqRel: pairs with the swap in `wait`. This fence and its counterpart there order each side's store before
        // its load, so Relaxed is enough for the flag: either this load sees the parked helper, or the helper's swap
        // sees the work.
        self.is_due.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if self.is_parked.load(Ordering::Relaxed) {
            // With the mutex held, the helper is either before its check or asleep, never between.
            let _guard = unpoisoned(self.mutex.lock());
            self.condvar.notify_all();
        }
    }

    pub(crate) fn end(&self) {
        self.is_ended.store(true, Ordering::SeqCst);
        self.signal();
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::SeqCst)
    }

    /// Returns `false` at the end.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> bool {
        let mut guard = unpoisoned(self.mutex.lock());
        // Relaxed: the fence orders it, see `signal`.
        self.is_parked.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // Pairs with the swap in `signal`.
        while !self.is_due.swap(false, Ordering::AcqRel) && !self.is_ended() {
            match timeout {
                None => guard = unpoisoned(self.condvar.wait(guard)),
                Some(timeout) => {
                    let (_guard, result) =
                        self.condvar.wait_timeout(guard, timeout).unwrap_or_else(std::sync::PoisonError::into_inner);
                    if result.timed_out() {
                        break;
                    }
                    guard = _guard;
                }
            }
        }
        // Relaxed: a signal that still sees the flag wakes no thread, and the next wait sees the work.
        self.is_parked.store(false, Ordering::Relaxed);
        !self.is_ended()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::WakeSignal;
    use std::sync::Arc;

    #[test]
    fn no_signal_is_lost() {
        let wake = Arc::new(WakeSignal::default());
        let helper = std::thread::spawn({
            let wake = wake.clone();
            move || {
                let mut woken = 0;
                while wake.wait(None) {
                    woken += 1;
                }
                woken
            }
        });
        for _ in 0..1000 {
            wake.signal();
            std::thread::yield_now();
        }
        wake.end();
        assert!(helper.join().unwrap() <= 1000);
        assert!(!wake.wait(None), "the end is permanent");
    }

    #[test]
    fn wait_ends_after_its_timeout() {
        assert!(WakeSignal::default().wait(Some(std::time::Duration::from_millis(1))));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::WakeSignal;
    use loom::sync::Arc;

    #[test]
    fn signal_wakes_a_parking_helper() {
        loom::model(|| {
            let wake = Arc::new(WakeSignal::default());
            let helper = loom::thread::spawn({
                let wake = wake.clone();
                move || assert!(wake.wait(None))
            });
            wake.signal();
            helper.join().unwrap();
        });
    }

    #[test]
    fn end_wakes_the_helper() {
        loom::model(|| {
            let wake = Arc::new(WakeSignal::default());
            let helper = loom::thread::spawn({
                let wake = wake.clone();
                move || while wake.wait(None) {}
            });
            wake.signal();
            wake.end();
            helper.join().unwrap();
        });
    }
}
