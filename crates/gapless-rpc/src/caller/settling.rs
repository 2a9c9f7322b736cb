//! [`Settling`]: a call of a caller whose copies have not been heard of yet. No thread waits for them, neither the one that begins the
//! call nor one that polls it: the thread that hears of them makes the call.

use super::routes::RemoteRoutes;
use crate::block_on::block_on;
use crate::clock::monotonic_ns;
use gapless_agent::deadlines::Alarm;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};

/// Makes a call once copies have been heard of.
pub(super) trait MakesCall<Made>: Send {
    /// The call, or `None` if it is to be tried again when there is news of copies. It is not tried again if it `is_late`.
    fn make(&mut self, is_late: bool) -> Option<Made>;

    /// Nobody wants it any more.
    fn give_up(&mut self);
}

/// See the head of the file. Dropping it gives the call up.
pub(super) struct Settling<Made>(Arc<Shared<Made>>);

struct Shared<Made> {
    routes: Arc<dyn RemoteRoutes>,
    state: Mutex<State<Made>>,
    /// There was news since it was tried last.
    is_woken: AtomicBool,
    /// Woken when the call is made. Never locked with anything else.
    task: Mutex<Option<Waker>>,
    /// When it is late, ns of the monotonic clock.
    until_ns: u64,
}

enum State<Made> {
    Waiting(Box<dyn MakesCall<Made>>, Option<Alarm>),
    Made(Made),
    Over,
}

impl<Made: Send + 'static> Settling<Made> {
    /// It waits until `until_ns` of the monotonic clock at most.
    pub(super) fn begin(routes: Arc<dyn RemoteRoutes>, make: impl MakesCall<Made> + 'static, until_ns: u64) -> Self {
        let state = Mutex::new(State::Waiting(Box::new(make), None));
        let (is_woken, task) = (AtomicBool::new(false), Mutex::default());
        let shared = Arc::new(Shared { routes, state, is_woken, task, until_ns });
        let alarm = Alarm::set(until_ns, Waker::from(Arc::clone(&shared)));
        if let State::Waiting(_, its_alarm) = &mut *shared.state.lock().expect("nobody panics with the lock") {
            *its_alarm = Some(alarm);
        }
        shared.try_make();
        Self(shared)
    }

    /// The call, if it is made; else `task` is woken when it is. Not to be asked after that.
    pub(super) fn look(&mut self, task: Option<&Waker>) -> Option<Made> {
        if let Some(task) = task {
            *self.0.task.lock().expect("nobody panics with the lock") = Some(task.clone());
        }
        // Whoever has it locked wakes the task afterwards.
        let mut state = self.0.state.try_lock().ok()?;
        match &*state {
            State::Made(_) => match std::mem::replace(&mut *state, State::Over) {
                State::Made(made) => Some(made),
                State::Waiting(..) | State::Over => None,
            },
            State::Waiting(..) | State::Over => None,
        }
    }

    /// Looks at the call where it lies, if it is made.
    pub(super) fn peek<T>(&self, look: impl FnOnce(&Made) -> T) -> Option<T> {
        match &*self.0.state.lock().expect("nobody panics with the lock") {
            State::Made(made) => Some(look(made)),
            State::Waiting(..) | State::Over => None,
        }
    }

    /// Waits for the call on this thread.
    pub(super) fn wait(&mut self) -> Made {
        block_on(poll_fn(|task| self.look(Some(task.waker())).map_or(Poll::Pending, Poll::Ready)))
    }
}

impl<Made: Send + 'static> Shared<Made> {
    fn try_make(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        // Whoever tries it looks at the flag again after letting it go; so one of the two tries it after this.
        while self.is_woken.load(Ordering::SeqCst) {
            let Ok(mut state) = self.state.try_lock() else { return };
            self.is_woken.store(false, Ordering::SeqCst);
            let State::Waiting(call, _) = &mut *state else { return };
            // First, so that news from now on wakes it.
            self.routes.wake_at_news(Waker::from(Arc::clone(self)));
            let Some(made) = call.make(monotonic_ns() >= self.until_ns) else { continue };
            let before = std::mem::replace(&mut *state, State::Made(made));
            drop(state);
            drop(before);
            let task = self.task.lock().expect("nobody panics with the lock").take();
            task.into_iter().for_each(Waker::wake);
            return;
        }
    }
}

impl<Made: Send + 'static> Wake for Shared<Made> {
    fn wake(self: Arc<Self>) {
        self.try_make();
    }
}

impl<Made> Drop for Settling<Made> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().expect("nobody panics with the lock");
        let mut before = std::mem::replace(&mut *state, State::Over);
        drop(state);
        if let State::Waiting(call, _) = &mut before {
            call.give_up();
        }
    }
}
