//! `RetryTimer`: runs delayed work on a thread that lives while there is any.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(super) type DelayedWork = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(super) struct RetryTimer {
    state: Mutex<TimerState>,
    added: Condvar,
}

#[derive(Default)]
struct TimerState {
    due: BTreeMap<(Instant, u64), DelayedWork>,
    next: u64,
    is_running: bool,
}

impl RetryTimer {
    /// Runs `work` after the delay; at once without a thread.
    pub fn after(self: &Arc<Self>, delay: Duration, work: DelayedWork) {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.due.insert((Instant::now() + delay, number), work);
        let is_running = std::mem::replace(&mut state.is_running, true);
        drop(state);
        if is_running {
            return self.added.notify_one();
        }
        let this = Arc::clone(self);
        if let Err(error) = std::thread::Builder::new().name("gapless-retry".to_owned()).spawn(move || this.run()) {
            tracing::warn!("commands are sent again at once, since there is no thread to wait: {error}");
            let mut state = self.lock();
            state.is_running = false;
            let due = std::mem::take(&mut state.due);
            drop(state);
            due.into_values().for_each(|work| work());
        }
    }

    fn run(&self) {
        let mut state = self.lock();
        while let Some((&(at, _), _)) = state.due.first_key_value() {
            let left = at.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                state = self.added.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let first = state.due.pop_first();
            drop(state);
            if let Some((_, work)) = first {
                work();
            }
            state = self.lock();
        }
        state.is_running = false;
    }

    fn lock(&self) -> MutexGuard<'_, TimerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn work_runs_at_its_time() {
        let timer = Arc::new(RetryTimer::default());
        let (done, dones) = channel();
        for round in 0..3 {
            let begun = Instant::now();
            for delay_ms in [20, 0, 10] {
                let done = done.clone();
                timer.after(Duration::from_millis(delay_ms), Box::new(move || done.send((round, delay_ms)).unwrap()));
            }
            let mut all: Vec<_> = (0..3).map(|_| dones.recv().unwrap()).collect();
            assert!(begun.elapsed() >= Duration::from_millis(20));
            all.sort_unstable();
            assert_eq!(all, [0, 10, 20].map(|delay_ms| (round, delay_ms)));
            gapless_testkit::wait::until("the thread has ended", || !timer.lock().is_running);
        }
    }
}
