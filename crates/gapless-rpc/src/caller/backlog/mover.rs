//! [`Mover`]: the thread that offers a caller's backlog to its route. It dequeues the oldest request, offers it when a
//! slot is free, and follows it to its end, so that a caller that does not poll its replies holds no slot.
//!
//! One request at a time waits for a slot and the others wait in the queue, so the order is kept.

use super::EncodedReply;
use super::gauges::BacklogGauges;
use super::record::{BacklogPlace, BacklogRecord};
use crate::caller::remote_call::{Destination, RemoteCall};
use crate::context::Cancellation;
use crate::local::{IncomingRequest, LocalWorker, ReplySender};
use crate::protocol::request_flags::FLAG_ONE_WAY;
use gapless_agent::fault::crash_point;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

#[derive(Debug, Default)]
pub(super) struct MoverWakeups {
    /// Flights that may have ended, and [`IN_LINE`].
    numbers: Mutex<Vec<usize>>,
    has_cancelled: AtomicBool,
    thread: OnceLock<Thread>,
}

/// Number that stands for new requests in the queue.
const IN_LINE: usize = usize::MAX;

impl MoverWakeups {
    fn wake(&self, number: usize) {
        let mut numbers = self.numbers.lock().expect("nobody panics with the lock");
        let is_first = numbers.is_empty();
        numbers.push(number);
        drop(numbers);
        if is_first && let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Notes that a call in flight was cancelled: the mover withdraws its request.
    pub(super) fn cancelled(&self) {
        // Release: pairs with the Acquire in `Mover::run`, which then sees the cancellation.
        if !self.has_cancelled.swap(true, Ordering::Release)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// Replaces `numbers` by the wake-ups since the last call. False without any.
    fn take(&self, numbers: &mut Vec<usize>) -> bool {
        numbers.clear();
        std::mem::swap(&mut *self.numbers.lock().expect("nobody panics with the lock"), numbers);
        !numbers.is_empty()
    }
}

struct MoverWaker {
    woken: Arc<MoverWakeups>,
    number: usize,
}

impl Wake for MoverWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.wake(self.number);
    }
}

/// Thread of the backlog; see the module documentation.
pub(super) struct Mover {
    to: Destination,
    worker: LocalWorker<BacklogRecord, EncodedReply>,
    woken: Arc<MoverWakeups>,
    shown: Arc<BacklogGauges>,
    flights: Vec<Option<InFlightRequest>>,
    /// Wakers, by number of the flight.
    wakers: Vec<Waker>,
    free: Vec<usize>,
    /// The request that waits for a slot or an instance, and its place in the queue.
    first: Option<(usize, BacklogPlace)>,
}

struct InFlightRequest {
    remote_call: RemoteCall,
    cancellation: Cancellation,
    answer: ReplySender<BacklogRecord, EncodedReply>,
    reply: Vec<u8>,
}

impl Mover {
    pub(super) fn new(
        to: Destination,
        worker: LocalWorker<BacklogRecord, EncodedReply>,
        woken: Arc<MoverWakeups>,
        shown: Arc<BacklogGauges>,
    ) -> Self {
        Self { to, worker, woken, shown, flights: Vec::new(), wakers: Vec::new(), free: Vec::new(), first: None }
    }

    /// Runs until the caller is dropped and the queue is empty.
    pub(super) fn run(mut self) {
        // Set before the first look, so that every later wake-up finds the thread.
        let _ = self.woken.thread.set(std::thread::current());
        crash_point("backlog_mover_started");
        let in_line = Waker::from(Arc::new(MoverWaker { woken: Arc::clone(&self.woken), number: IN_LINE }));
        let mut numbers = vec![IN_LINE];
        loop {
            // Acquire: pairs with the Release in `MoverWakeups::cancelled`.
            if self.woken.has_cancelled.swap(false, Ordering::Acquire) {
                self.drop_cancelled();
            }
            numbers.iter().filter(|number| **number != IN_LINE).for_each(|number| self.look(*number));
            let is_over = !self.take_in(&in_line);
            if is_over && self.free.len() == self.flights.len() {
                crash_point("backlog_mover_ended");
                return;
            }
            self.shown.publish();
            if !self.woken.take(&mut numbers) && !self.woken.has_cancelled.load(Ordering::Relaxed) {
                // A wake-up in between is kept by the thread's park token.
                std::thread::park();
                self.woken.take(&mut numbers);
            }
        }
    }

    /// Dequeues requests while they can be offered. False once the queue has ended.
    fn take_in(&mut self, in_line: &Waker) -> bool {
        loop {
            if let Some((number, _)) = &self.first {
                let is_waiting = |flight: &InFlightRequest| !flight.remote_call.is_offered();
                if self.flights[*number].as_ref().is_some_and(is_waiting) {
                    return true;
                }
                self.first = None;
            }
            match self.worker.poll_next(&mut Context::from_waker(in_line)) {
                Poll::Ready(Some(incoming)) => self.begin(incoming),
                Poll::Ready(None) => return false,
                Poll::Pending => return true,
            }
        }
    }

    fn begin(&mut self, incoming: IncomingRequest<BacklogRecord, EncodedReply>) {
        let IncomingRequest { request: BacklogRecord { mut terms, user_headers, payload, place }, context, answer } =
            incoming;
        crash_point("backlog_taken");
        terms.offer.uses_reserve = true;
        terms.offer.is_followed = terms.offer.header.flags & FLAG_ONE_WAY != 0;
        let remote_call = match RemoteCall::start(&self.to, terms, (&user_headers, &payload)) {
            Ok(remote_call) => remote_call,
            Err(error) => return answer.end(Err(error)),
        };
        let flight =
            Some(InFlightRequest { remote_call, cancellation: context.cancellation, answer, reply: Vec::new() });
        let number = self.free.pop().unwrap_or(self.flights.len());
        if number == self.flights.len() {
            self.flights.push(flight);
            self.wakers.push(Waker::from(Arc::new(MoverWaker { woken: Arc::clone(&self.woken), number })));
        } else {
            self.flights[number] = flight;
        }
        self.first = Some((number, place));
        self.look(number);
        crash_point("backlog_offered");
    }

    /// Polls a flight and delivers its outcome if it has ended.
    fn look(&mut self, number: usize) {
        let Some(flight) = &mut self.flights[number] else { return };
        let task = Context::from_waker(&self.wakers[number]);
        let Poll::Ready(ended) = flight.remote_call.poll(&task, &mut flight.reply) else { return };
        self.free.push(number);
        if let Some(InFlightRequest { remote_call, answer, reply, .. }) = self.flights[number].take() {
            let version = remote_call.reply_version();
            // The slot is freed before the answer: the woken caller may call again at once.
            drop(remote_call);
            crash_point("backlog_slot_freed");
            answer.end(ended.map(|()| (reply, version)));
        }
    }

    fn drop_cancelled(&mut self) {
        for (number, flight) in self.flights.iter_mut().enumerate() {
            // An expired call ends by its own timeout.
            if flight.as_ref().is_some_and(|flight| flight.cancellation.is_cancelled()) {
                *flight = None;
                crash_point("backlog_cancelled");
                self.free.push(number);
            }
        }
    }
}
