//! [`LocalWorker`]: who pulls requests out of a route: a thread that blocks, or a task of any executor.

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

/// Requests that a task takes one after the other before it lets others run.
const STREAK_MAX: u32 = 64;

/// One worker of a route. It handles one request after the other; dropping it lets it leave the route.
pub struct LocalWorker<Request, Reply> {
    intake: Arc<Intake<Request, Reply>>,
    desk: Arc<Desk<Request, Reply>>,
    number: WorkerNumber,
    /// Whether it may stand among the idle or be woken.
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

    /// The next request, if there is one now. It has begun.
    pub fn try_next(&mut self) -> Option<Incoming<Request, Reply>> {
        match self.look(|| Pause::Leaves) {
            Found::Work(incoming) => Some(incoming),
            Found::Nothing | Found::End => None,
        }
    }

    /// Blocks this thread until there is a request, which has begun then; `None` when the route ends.
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
                // A wake-up since then is kept by the thread's token; an early return only looks again.
                Found::Nothing => park(),
            }
        }
    }

    /// The next request, which has begun then; `None` when the route ends. Nothing is lost if the future is dropped.
    #[must_use = "a future does nothing unless it is polled"]
    pub const fn next(&mut self) -> Next<'_, Request, Reply> {
        Next { worker: self }
    }

    /// As [`LocalWorker::next`], for futures written by hand. A future that is no longer polled before it is ready must call
    /// [`LocalWorker::stop_waiting`], or a request may wait for this worker.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Incoming<Request, Reply>>> {
        if self.streak >= STREAK_MAX {
            // Others of this executor want to run, too; meanwhile this one counts as busy.
            self.streak = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        // One that has just worked lets others run and looks once more before it sleeps: those whose calls it has ended may
        // call again, and need not wake it.
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

    /// Takes and begins the next that somebody still wants.
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
    /// It no longer waits: if it was woken for a request, another is.
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

/// See [`LocalWorker::next`].
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
