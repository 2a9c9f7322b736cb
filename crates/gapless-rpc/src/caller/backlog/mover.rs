//! [`Mover`]: the thread that offers a caller's backlog to its route and follows each request to its end, so that an
//! unpolled caller holds no slot. Only one request waits for a slot, so the order is kept.

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
    numbers: Mutex<Vec<usize>>,
    has_cancelled: AtomicBool,
    thread: OnceLock<Thread>,
}

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

    pub(super) fn cancelled(&self) {
        // Release: pairs with the Acquire in `Mover::run`, which then sees the cancellation.
        if !self.has_cancelled.swap(true, Ordering::Release)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

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

pub(super) struct Mover {
    to: Destination,
    worker: LocalWorker<BacklogRecord, EncodedReply>,
    woken: Arc<MoverWakeups>,
    shown: Arc<BacklogGauges>,
    flights: Vec<Option<InFlightRequest>>,
    wakers: Vec<Waker>,
    free: Vec<usize>,
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

    pub(super) fn run(mut self) {
        // Set before the first poll, so that no wake-up is lost.
        let _ = self.woken.thread.set(std::thread::current());
        crash_point("backlog_mover_started");
        let in_line = Waker::from(Arc::new(MoverWaker { woken: Arc::clone(&self.woken), number: IN_LINE }));
        let mut numbers = vec![IN_LINE];
        loop {
            // Acquire: pairs with the Release in `MoverWakeups::cancelled`.
            if self.woken.has_cancelled.swap(false, Ordering::Acquire) {
                self.drop_cancelled();
            }
            numbers.iter().filter(|number| **number != IN_LINE).for_each(|number| self.poll_flight(*number));
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

    /// False once the queue has ended.
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
        self.poll_flight(number);
        crash_point("backlog_offered");
    }

    fn poll_flight(&mut self, number: usize) {
        let Some(flight) = &mut self.flights[number] else { return };
        let task = Context::from_waker(&self.wakers[number]);
        let Poll::Ready(ended) = flight.remote_call.poll(&task, &mut flight.reply) else { return };
        self.free.push(number);
        if let Some(InFlightRequest { remote_call, answer, reply, .. }) = self.flights[number].take() {
            let version = remote_call.reply_version();
            // The slot is freed first: the woken caller may call again at once.
            drop(remote_call);
            crash_point("backlog_slot_freed");
            answer.end(ended.map(|()| (reply, version)));
        }
    }

    fn drop_cancelled(&mut self) {
        for (number, flight) in self.flights.iter_mut().enumerate() {
            if flight.as_ref().is_some_and(|flight| flight.cancellation.is_cancelled()) {
                *flight = None;
                crash_point("backlog_cancelled");
                self.free.push(number);
            }
        }
    }
}
