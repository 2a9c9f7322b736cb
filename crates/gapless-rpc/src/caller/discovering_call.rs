//! [`DiscoveringCall`]: a call made before its instances are discovered. No thread waits: the thread that receives the
//! news makes the call.

use super::routes::{WakerRegistration, WakerSet};
use crate::block_on::block_on;
use gapless_agent::deadlines::Alarm;
use gapless_agent::foreign;
use gapless_agent::monotonic::monotonic_ns;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Wake, Waker};

pub(super) trait CallFactory<Made>: Send {
    /// `None`: to be tried again at the next news, but not once `is_late`.
    fn make(&mut self, is_late: bool) -> Option<Made>;

    fn give_up(&mut self);
}

/// Dropping it gives the call up.
pub(super) struct DiscoveringCall<Made>(Arc<DiscoveryShared<Made>>);

struct DiscoveryShared<Made> {
    state: Mutex<DiscoveryState<Made>>,
    is_woken: AtomicBool,
    /// Woken when the call is made. Never locked together with another lock.
    task: Mutex<Option<Waker>>,
    until_ns: u64,
}

enum DiscoveryState<Made> {
    Waiting(Box<dyn CallFactory<Made>>, Option<(Vec<Alarm>, WakerRegistration)>),
    Made(Made),
    Over,
}

impl<Made: Send + 'static> DiscoveringCall<Made> {
    /// Waits for news of its route until `until_ns` of the monotonic clock, and tries once more at `try_ns`.
    pub(super) fn begin(
        (news, route): (&Arc<WakerSet>, &Arc<str>),
        make: impl CallFactory<Made> + 'static,
        until_ns: u64,
        try_ns: Option<u64>,
    ) -> Self {
        let state = Mutex::new(DiscoveryState::Waiting(Box::new(make), None));
        let (is_woken, task) = (AtomicBool::new(false), Mutex::default());
        let shared = Arc::new(DiscoveryShared { state, is_woken, task, until_ns });
        shared.try_make();
        if let DiscoveryState::Waiting(_, woken_by) = &mut *shared.state.lock().expect("nobody panics with the lock") {
            let waker = || Waker::from(Arc::clone(&shared));
            let alarms = try_ns.into_iter().chain([until_ns]).map(|at_ns| Alarm::set(at_ns, waker()));
            *woken_by = Some((alarms.collect(), news.enter(route, waker())));
        }
        // News may have come between the first try and the registration.
        shared.try_make();
        Self(shared)
    }

    /// Must not be called again after `Some`.
    pub(super) fn poll_call(&mut self, task: Option<&Waker>) -> Option<Made> {
        if let Some(task) = task {
            let before = self.0.task.lock().expect("nobody panics with the lock").replace(task.clone());
            // Without the lock: dropping a waker may run arbitrary code.
            drop(before);
        }
        // The thread that holds the lock wakes the task afterwards.
        let state = self.0.state.try_lock().ok()?;
        self.0.with_state(state, |state| match state {
            DiscoveryState::Made(_) => match std::mem::replace(state, DiscoveryState::Over) {
                DiscoveryState::Made(made) => Some(made),
                DiscoveryState::Waiting(..) | DiscoveryState::Over => None,
            },
            DiscoveryState::Waiting(..) | DiscoveryState::Over => None,
        })
    }

    pub(super) fn peek<T>(&self, inspect: impl FnOnce(&Made) -> T) -> Option<T> {
        let state = self.0.state.lock().expect("nobody panics with the lock");
        self.0.with_state(state, |state| match state {
            DiscoveryState::Made(made) => Some(inspect(made)),
            DiscoveryState::Waiting(..) | DiscoveryState::Over => None,
        })
    }

    pub(super) fn wait(&mut self) -> Made {
        block_on(poll_fn(|task| self.poll_call(Some(task.waker())).map_or(Poll::Pending, Poll::Ready)))
    }
}

impl<Made: Send + 'static> DiscoveryShared<Made> {
    /// News that arrived meanwhile found the state locked, so the call is tried afterwards.
    fn with_state<T>(
        &self,
        mut state: MutexGuard<'_, DiscoveryState<Made>>,
        inspect: impl FnOnce(&mut DiscoveryState<Made>) -> T,
    ) -> T {
        let seen = inspect(&mut state);
        drop(state);
        self.try_while_woken();
        seen
    }

    fn try_make(&self) {
        self.is_woken.store(true, Ordering::SeqCst);
        self.try_while_woken();
    }

    /// Must be called after each unlock, so that some thread tries the call after the news.
    fn try_while_woken(&self) {
        loop {
            // Between flag and lock on both sides: a thread that finds the state locked has set the flag for the
            // holder.
            fence(Ordering::SeqCst);
            if !self.is_woken.load(Ordering::SeqCst) {
                return;
            }
            let Ok(mut state) = self.state.try_lock() else { return };
            self.is_woken.store(false, Ordering::SeqCst);
            let DiscoveryState::Waiting(call, _) = &mut *state else { return };
            let Some(made) = call.make(monotonic_ns() >= self.until_ns) else { continue };
            let before = std::mem::replace(&mut *state, DiscoveryState::Made(made));
            drop(state);
            drop(before);
            let task = self.task.lock().expect("nobody panics with the lock").take();
            task.into_iter().for_each(foreign::wake);
            return;
        }
    }
}

impl<Made: Send + 'static> Wake for DiscoveryShared<Made> {
    fn wake(self: Arc<Self>) {
        self.try_make();
    }
}

impl<Made> Drop for DiscoveringCall<Made> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().expect("nobody panics with the lock");
        let mut before = std::mem::replace(&mut *state, DiscoveryState::Over);
        drop(state);
        if let DiscoveryState::Waiting(call, _) = &mut before {
            call.give_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    struct FactoryAtLook(usize, Arc<AtomicUsize>);

    impl CallFactory<usize> for FactoryAtLook {
        fn make(&mut self, is_late: bool) -> Option<usize> {
            assert!(!is_late);
            let looks = self.1.fetch_add(1, Ordering::Relaxed) + 1;
            (looks >= self.0).then_some(looks)
        }

        fn give_up(&mut self) {}
    }

    #[test]
    fn made_call_needs_no_news() {
        let (news, route) = (Arc::<WakerSet>::default(), Arc::from("route"));
        let begin = |at| {
            let looks = Arc::<AtomicUsize>::default();
            let discovering =
                DiscoveringCall::begin((&news, &route), FactoryAtLook(at, Arc::clone(&looks)), u64::MAX, None);
            (discovering, move || looks.load(Ordering::Relaxed))
        };
        let made: Vec<_> = (0..100).map(|_| begin(1)).collect();
        assert!(made.iter().all(|(_, looks)| looks() == 1) && news.len() == 0, "{} wait", news.len());
        let (mut waits, looks) = begin(5);
        let (given_up, _) = begin(usize::MAX);
        assert_eq!((looks(), news.len()), (2, 2));
        drop(given_up);
        assert_eq!(news.len(), 1);
        for looked in [3, 4] {
            news.wake_all();
            assert_eq!((looks(), news.len(), waits.poll_call(None)), (looked, 1, None));
        }
        news.wake_all();
        assert_eq!((news.len(), waits.poll_call(None)), (0, Some(5)));
    }

    #[test]
    fn news_while_polled_is_kept() {
        let (news, route) = (Arc::<WakerSet>::default(), Arc::from("route"));
        let tried = Arc::<AtomicUsize>::default();
        let mut waits = DiscoveringCall::begin((&news, &route), FactoryAtLook(3, Arc::clone(&tried)), u64::MAX, None);
        let state = waits.0.state.try_lock().unwrap();
        waits.0.with_state(state, |_| news.wake_all());
        assert_eq!((tried.load(Ordering::Relaxed), waits.peek(|made| *made)), (3, Some(3)));
        assert_eq!(waits.poll_call(None), Some(3));
    }

    #[test]
    fn no_thread_misses_news() {
        const CALLS: usize = 10_000;
        let (news, route) = (Arc::<WakerSet>::default(), Arc::from("route"));
        let heard = Barrier::new(2);
        let lost = std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..CALLS {
                    heard.wait();
                    news.wake_all();
                    heard.wait();
                }
            });
            let is_lost = |_: &usize| {
                let mut waits =
                    DiscoveringCall::begin((&news, &route), FactoryAtLook(3, Arc::default()), u64::MAX, None);
                heard.wait();
                let mut made = None;
                for _ in 0..50 {
                    made = waits.peek(|made| *made).or(made);
                    made = made.or_else(|| waits.poll_call(None));
                }
                heard.wait();
                made.or_else(|| waits.poll_call(None)) != Some(3)
            };
            (0..CALLS).filter(is_lost).count()
        });
        assert_eq!(lost, 0, "of {CALLS} calls");
    }
}
