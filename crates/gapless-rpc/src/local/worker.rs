//! [`LocalWorker`]: pulls requests out of a route, as a blocking thread or a task of any executor.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::answer::{Desk, Incoming};
use super::idle::{Pause, Sleeper, WorkerNumber};
use super::intake::{Found, Intake};
use super::spin::spin;
use super::sync::{current, park};
use crate::options::Waiting;

/// Requests that a task takes in a row before it lets others run.
const STREAK_MAX: u32 = 64;

/// One worker of a route, which handles one request at a time. Dropping it leaves the route.
pub struct LocalWorker<Request, Reply> {
    intake: Arc<Intake<Request, Reply>>,
    desk: Arc<Desk<Request, Reply>>,
    number: WorkerNumber,
    /// The worker may be idle or woken.
    is_waiting: bool,
    streak: u32,
}

impl<Request, Reply> fmt::Debug for LocalWorker<Request, Reply> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalWorker").field("route", &self.desk.route).field("number", &self.number).finish()
    }
}

impl<Request, Reply: Send + 'static> LocalWorker<Request, Reply> {
    pub(super) const fn new(
        intake: Arc<Intake<Request, Reply>>,
        desk: Arc<Desk<Request, Reply>>,
        number: WorkerNumber,
    ) -> Self {
        Self { intake, desk, number, is_waiting: false, streak: 0 }
    }

    /// Takes and begins the next request, if there is one.
    pub fn try_next(&mut self) -> Option<Incoming<Request, Reply>> {
        match self.look(|| Pause::Leaves) {
            Found::Work(incoming) => Some(incoming),
            Found::Nothing | Found::End => None,
        }
    }

    /// Blocks this thread until there is a request, and begins it; `None` when the route ends.
    pub fn next_blocking(&mut self, waiting: Waiting) -> Option<Incoming<Request, Reply>> {
        loop {
            match self.look(|| Pause::Leaves) {
                Found::Work(incoming) => return Some(incoming),
                Found::End => return None,
                Found::Nothing if spin(waiting, u64::MAX, || self.intake.looks_worth_it()) => continue,
                Found::Nothing => {}
            }
            match self.look(|| Pause::Sleeps(Sleeper::Thread(current()))) {
                Found::Work(incoming) => return Some(incoming),
                Found::End => return None,
                // A wake-up in between is kept by the thread's park token; an early return only looks again.
                Found::Nothing => park(),
            }
        }
    }

    /// Waits for the next request and begins it; `None` when the route ends. Cancel-safe.
    #[must_use = "a future does nothing unless it is polled"]
    pub const fn next(&mut self) -> Next<'_, Request, Reply> {
        Next { worker: self }
    }

    /// Like [`LocalWorker::next`], for hand-written futures. If polling stops before it is ready,
    /// [`LocalWorker::stop_waiting`] must be called, or a request may wait for this worker.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Incoming<Request, Reply>>> {
        if self.streak >= STREAK_MAX {
            // Lets other tasks of this executor run; counts as busy meanwhile.
            self.streak = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        // After work, lets others run and looks once more before it sleeps: callers whose calls it has ended may call
        // again without having to wake it.
        let lingers = self.streak > 0;
        let pause = || if lingers { Pause::Lingers } else { Pause::Sleeps(Sleeper::Task(context.waker().clone())) };
        match self.look(pause) {
            Found::Work(incoming) => {
                self.streak += 1;
                Poll::Ready(Some(incoming))
            }
            Found::End => Poll::Ready(None),
            Found::Nothing => {
                self.streak = 0;
                if lingers {
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    }

    /// Takes and begins the next request that was not cancelled.
    fn look(&mut self, pause: impl Fn() -> Pause) -> Found<Incoming<Request, Reply>> {
        loop {
            let mut waits = false;
            let paused = || {
                let pause = pause();
                waits = !matches!(pause, Pause::Leaves);
                pause
            };
            match self.intake.take(self.number, paused) {
                Found::Work(queued) => {
                    self.is_waiting = false;
                    if let Some(incoming) = Incoming::begin(queued, &self.desk) {
                        return Found::Work(incoming);
                    }
                }
                Found::Nothing => {
                    self.is_waiting = waits;
                    return Found::Nothing;
                }
                Found::End => {
                    self.is_waiting = false;
                    return Found::End;
                }
            }
        }
    }
}

impl<Request, Reply> LocalWorker<Request, Reply> {
    /// Stops waiting: a wake-up for a request is passed on to another worker.
    pub fn stop_waiting(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            self.intake.pass_on(self.number);
        }
    }
}

impl<Request, Reply> Drop for LocalWorker<Request, Reply> {
    fn drop(&mut self) {
        self.intake.leave(self.number);
    }
}

#[derive(Debug)]
pub struct Next<'worker, Request, Reply> {
    worker: &'worker mut LocalWorker<Request, Reply>,
}

impl<Request, Reply: Send + 'static> Future for Next<'_, Request, Reply> {
    type Output = Option<Incoming<Request, Reply>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.worker.poll_next(context)
    }
}

impl<Request, Reply> Drop for Next<'_, Request, Reply> {
    fn drop(&mut self) {
        self.worker.stop_waiting();
    }
}
