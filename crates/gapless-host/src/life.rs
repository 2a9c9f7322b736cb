//! [`Life`]: phases of a running host, shared by its handles.
//!
//! Locks are taken in the order `state`, `started`, both for moments. A call uses its own reference to the started host,
//! and a stop waits for such calls.

use crate::HostError;
use crate::started::Started;
use crate::status::{Phase, Role, Status};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval between two looks at a host's failure.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between two looks of a stop at the calls in progress.
const CALLS_INTERVAL: Duration = Duration::from_millis(1);

pub(crate) struct Life {
    started: Mutex<Option<Arc<Started>>>,
    state: Mutex<LifeState>,
    changed: Condvar,
    starts_again: bool,
}

pub(crate) struct LifeState {
    pub phase: Phase,
    pub is_stop_asked: bool,
    pub starts: u64,
    /// Reason of [`Phase::Failed`].
    failure: Option<Arc<HostError>>,
    /// Before the end of the last start.
    last: Status,
    /// Last sequence of a clean stop.
    stopped_at: u64,
}

impl Life {
    pub fn new(started: Started, starts_again: bool) -> Self {
        let state = LifeState {
            phase: Phase::Running,
            is_stop_asked: false,
            starts: 1,
            failure: None,
            last: started.status(1),
            stopped_at: 0,
        };
        let started = Mutex::new(Some(Arc::new(started)));
        Self { started, state: Mutex::new(state), changed: Condvar::new(), starts_again }
    }

    /// Runs `look` on the started host, which does not stop meanwhile.
    ///
    /// # Errors
    /// There is none, with the reason.
    pub fn with<T>(&self, look: impl FnOnce(&Started) -> T) -> Result<T, HostError> {
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(started) = started {
            return Ok(look(&started));
        }
        let state = self.state();
        Err(match &state.failure {
            Some(failure) => HostError::Ended(Arc::clone(failure)),
            None if state.is_stop_asked => HostError::Stopped,
            None => HostError::Starting,
        })
    }

    pub fn state(&self) -> MutexGuard<'_, LifeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn status(&self) -> Status {
        let starts = self.state().starts;
        let looked = self.with(|started| {
            let failure = started.failure().filter(|_| !self.continues(started));
            let mut status = started.status(starts);
            if let Some(failure) = failure {
                (status.phase, status.failure) = (Phase::Failed, Some(failure.to_string()));
            }
            status
        });
        looked.unwrap_or_else(|error| {
            let state = self.state();
            let is_between = state.phase == Phase::Running && !state.is_stop_asked;
            let phase = if is_between { Phase::Starting } else { state.phase };
            let failure = (phase == Phase::Failed).then(|| error.to_string());
            Status { phase, failure, starts: state.starts, ..state.last.clone() }
        })
    }

    fn continues(&self, started: &Started) -> bool {
        self.starts_again && started.must_start_again()
    }

    /// Sleeps until the host has ended.
    pub fn wait(&self) -> Result<(), HostError> {
        loop {
            if let Ok(Some(failure)) = self.with(|started| started.failure().filter(|_| !self.continues(started))) {
                return Err(failure.into());
            }
            let state = self.state();
            match (state.phase, &state.failure) {
                (_, Some(failure)) => return Err(HostError::Ended(Arc::clone(failure))),
                (Phase::Stopped, None) => return Ok(()),
                // A stop wakes it.
                _ => drop(self.changed.wait_timeout(state, LOOK_INTERVAL).unwrap_or_else(PoisonError::into_inner)),
            }
        }
    }

    pub fn stop(&self) -> Result<u64, HostError> {
        self.ask_stop();
        if let Some(started) = self.take() {
            return self.stop_started(started);
        }
        // Another handle stops it, or a start is going on, after which the watcher stops it.
        let state = self.state();
        let is_ending = |state: &mut LifeState| matches!(state.phase, Phase::Running | Phase::Starting);
        let state = self.changed.wait_while(state, is_ending).unwrap_or_else(PoisonError::into_inner);
        match &state.failure {
            Some(failure) => Err(HostError::Ended(Arc::clone(failure))),
            None => Ok(state.stopped_at),
        }
    }

    fn take(&self) -> Option<Started> {
        self.taken_from(self.state())
    }

    /// Later calls find no host; those in progress end first. Keeps the status.
    fn taken_from(&self, mut state: MutexGuard<'_, LifeState>) -> Option<Started> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        state.last = started.status(state.starts);
        drop(state);
        loop {
            match Arc::try_unwrap(started) {
                Ok(started) => return Some(started),
                Err(shared) => started = shared,
            }
            std::thread::sleep(CALLS_INTERVAL);
        }
    }

    fn stop_started(&self, started: Started) -> Result<u64, HostError> {
        // A member that has just fetched a state has ended, but not failed.
        let fetched = self.continues(&started).then(|| self.state().last.released);
        let stopped = catch_unwind(AssertUnwindSafe(|| started.stop())).unwrap_or(Err(HostError::Panicked));
        let stopped = stopped.or_else(|error| fetched.ok_or(error)).map_err(Arc::new);
        let mut state = self.state();
        match &stopped {
            Ok(sequence) => {
                (state.phase, state.stopped_at, state.last.released) = (Phase::Stopped, *sequence, *sequence);
                if state.last.role != Role::Witness {
                    // A clean stop handles everything.
                    state.last.handled = *sequence;
                }
            }
            Err(error) => (state.phase, state.failure) = (Phase::Failed, Some(Arc::clone(error))),
        }
        drop(state);
        self.changed.notify_all();
        stopped.map_err(HostError::Ended)
    }

    /// The watcher ends soon.
    pub fn ask_stop(&self) {
        self.state().is_stop_asked = true;
        self.changed.notify_all();
    }

    /// Stops the host, if no handle has.
    pub fn end(&self) {
        if let Some(Err(error)) = self.take().map(Started::stop) {
            tracing::error!(%error, "a host that was dropped had failed");
        }
    }
}

/// Parts for the watcher.
#[cfg(feature = "cluster")]
impl Life {
    /// Waits for [`LOOK_INTERVAL`]; returns whether a stop was asked for meanwhile.
    pub fn is_stop_asked_soon(&self) -> bool {
        let state = self.state();
        let waits = |state: &mut LifeState| !state.is_stop_asked;
        let waited = self.changed.wait_timeout_while(state, LOOK_INTERVAL, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_stop_asked
    }

    /// Ends the host that must start again; its directory is free when this returns. `false` if a stop was asked for.
    pub fn begin_start(&self) -> bool {
        let mut state = self.state();
        if state.is_stop_asked {
            return false;
        }
        state.phase = Phase::Starting;
        let ended = self.taken_from(state);
        // A panic of the application's `drop` would leave the host starting for ever.
        if catch_unwind(AssertUnwindSafe(|| drop(ended))).is_err() {
            self.end_start(Err(HostError::Panicked));
            return false;
        }
        true
    }

    /// Continues with the host of the next start, which is stopped if that was asked for meanwhile.
    pub fn end_start(&self, next: Result<Started, HostError>) {
        let mut state = self.state();
        match next {
            // A stop has ended the wait for the next start: the last one was no failure.
            Err(HostError::Stopped) => (state.phase, state.stopped_at) = (Phase::Stopped, state.last.released),
            Err(error) => {
                let failure = HostError::StartAgain(Box::new(error));
                (state.phase, state.failure) = (Phase::Failed, Some(Arc::new(failure)));
            }
            Ok(started) if state.is_stop_asked => {
                (state.starts, state.last) = (state.starts + 1, started.status(state.starts + 1));
                drop(state);
                if let Err(error) = self.stop_started(started) {
                    tracing::error!(%error, "a member that had started again was to stop, and has failed");
                }
                return;
            }
            Ok(started) => {
                (state.phase, state.starts) = (Phase::Running, state.starts + 1);
                *self.started.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(started));
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}
