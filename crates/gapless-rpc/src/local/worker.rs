//! `LocalWorker`: pulls requests out of a route, as a blocking thread or a task of any executor.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::answer::{IncomingRequest, WorkerContext};
use super::idle::{Sleeper, WorkerNumber, WorkerPause};
use super::intake::{Intake, NextWork};
use super::spin::spin;
use super::sync::{current, park};
use crate::options::Waiting;

const STREAK_MAX: u32 = 64;

/// One worker of a route, a thread or a task; handles one request at a time. Dropping it leaves the route.
pub struct LocalWorker<Request, Reply> {
    intake: Arc<Intake<Request, Reply>>,
    desk: Arc<WorkerContext<Request, Reply>>,
    number: WorkerNumber,
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
        desk: Arc<WorkerContext<Request, Reply>>,
        number: WorkerNumber,
    ) -> Self {
        Self { intake, desk, number, is_waiting: false, streak: 0 }
    }

    /// Takes and begins the next request, if there is one.
    pub fn try_next(&mut self) -> Option<IncomingRequest<Request, Reply>> {
        match self.take_work(|| WorkerPause::Leaves) {
            NextWork::Work(incoming) => Some(incoming),
            NextWork::Nothing | NextWork::End => None,
        }
    }

    /// Blocks this thread until there is a request, and begins it; `None` when the route ends.
    pub fn next_blocking(&mut self, waiting: Waiting) -> Option<IncomingRequest<Request, Reply>> {
        loop {
            match self.take_work(|| WorkerPause::Leaves) {
                NextWork::Work(incoming) => return Some(incoming),
                NextWork::End => return None,
                NextWork::Nothing if spin(waiting, u64::MAX, || self.intake.should_look()) => continue,
                NextWork::Nothing => {}
            }
            match self.take_work(|| WorkerPause::Sleeps(Sleeper::Thread(current()))) {
                NextWork::Work(incoming) => return Some(incoming),
                NextWork::End => return None,
                // A wake-up in between is kept by the thread's park token; an early return only looks again.
                NextWork::Nothing => park(),
            }
        }
    }

    /// Waits for the next request and begins it; `None` when the route ends. Cancel-safe.
    #[must_use = "a future does nothing unless it is polled"]
    pub const fn next(&mut self) -> NextRequest<'_, Request, Reply> {
        NextRequest { worker: self }
    }

    /// Like [`LocalWorker::next`], for hand-written futures; one that stops polling must call
    /// [`LocalWorker::stop_waiting`], or a request may wait for this worker.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<IncomingRequest<Request, Reply>>> {
        if self.streak >= STREAK_MAX {
            // Lets other tasks run; counts as busy meanwhile.
            self.streak = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        // Looks once more before it sleeps: callers whose calls it has ended may call again without having to wake it.
        let lingers = self.streak > 0;
        let pause =
            || if lingers { WorkerPause::Lingers } else { WorkerPause::Sleeps(Sleeper::Task(context.waker().clone())) };
        match self.take_work(pause) {
            NextWork::Work(incoming) => {
                self.streak += 1;
                Poll::Ready(Some(incoming))
            }
            NextWork::End => Poll::Ready(None),
            NextWork::Nothing => {
                self.streak = 0;
                if lingers {
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    }

    fn take_work(&mut self, pause: impl Fn() -> WorkerPause) -> NextWork<IncomingRequest<Request, Reply>> {
        loop {
            let mut waits = false;
            let paused = || {
                let pause = pause();
                waits = !matches!(pause, WorkerPause::Leaves);
                pause
            };
            match self.intake.take(self.number, paused) {
                NextWork::Work(queued) => {
                    self.is_waiting = false;
                    if let Some(incoming) = IncomingRequest::begin(queued, &self.desk) {
                        return NextWork::Work(incoming);
                    }
                }
                NextWork::Nothing => {
                    self.is_waiting = waits;
                    return NextWork::Nothing;
                }
                NextWork::End => {
                    self.is_waiting = false;
                    return NextWork::End;
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
pub struct NextRequest<'worker, Request, Reply> {
    worker: &'worker mut LocalWorker<Request, Reply>,
}

impl<Request, Reply: Send + 'static> Future for NextRequest<'_, Request, Reply> {
    type Output = Option<IncomingRequest<Request, Reply>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.worker.poll_next(context)
    }
}

impl<Request, Reply> Drop for NextRequest<'_, Request, Reply> {
    fn drop(&mut self) {
        self.worker.stop_waiting();
    }
}
