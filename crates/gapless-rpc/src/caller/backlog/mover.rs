//! [`Mover`]: the thread that brings a caller's backlog to its route. It takes the oldest request in line, offers it when a slot is
//! free, and follows it to its end, so that a caller who does not look at its replies keeps no slot.
//!
//! One request at a time waits for a slot: the others wait behind it, so nothing overtakes.

use super::EncodedReply;
use super::record::{BacklogPlace, Record};
use super::shown::BacklogShown;
use crate::caller::remote_call::{Destination, RemoteCall};
use crate::context::Cancellation;
use crate::local::{Answer, Incoming, LocalWorker};
use crate::remote::request_words::FLAG_ONE_WAY;
use gapless_agent::fault::crash_point;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// What has woken the mover.
#[derive(Debug, Default)]
pub(super) struct Woken {
    /// Numbers of flights whose end may be there, and [`IN_LINE`].
    numbers: Mutex<Vec<usize>>,
    /// A call that was under way was given up.
    has_cancelled: AtomicBool,
    thread: OnceLock<Thread>,
}

/// Something new waits in line.
const IN_LINE: usize = usize::MAX;

impl Woken {
    fn wake(&self, number: usize) {
        let mut numbers = self.numbers.lock().expect("nobody panics with the lock");
        let is_first = numbers.is_empty();
        numbers.push(number);
        drop(numbers);
        if is_first && let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// A call that was under way was given up: its request is withdrawn.
    pub(super) fn cancelled(&self) {
        // Release: pairs with the Acquire of the mover, which then sees that the call was cancelled.
        if !self.has_cancelled.swap(true, Ordering::Release)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// What has woken it since, in the place of what is in `numbers`.
    fn take(&self, numbers: &mut Vec<usize>) -> bool {
        numbers.clear();
        std::mem::swap(&mut *self.numbers.lock().expect("nobody panics with the lock"), numbers);
        !numbers.is_empty()
    }
}

struct WakesMover {
    woken: Arc<Woken>,
    number: usize,
}

impl Wake for WakesMover {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.wake(self.number);
    }
}

/// See the head of the file.
pub(super) struct Mover {
    to: Destination,
    worker: LocalWorker<Record, EncodedReply>,
    woken: Arc<Woken>,
    shown: Arc<BacklogShown>,
    flights: Vec<Option<Flight>>,
    /// Of each number of a flight.
    wakers: Vec<Waker>,
    free: Vec<usize>,
    /// The one that waits for a slot or a copy, and its place in line.
    first: Option<(usize, BacklogPlace)>,
}

/// A request that was taken out of the line.
struct Flight {
    remote_call: RemoteCall,
    cancellation: Cancellation,
    answer: Answer<Record, EncodedReply>,
    reply: Vec<u8>,
}

impl Mover {
    pub(super) fn new(
        to: Destination,
        worker: LocalWorker<Record, EncodedReply>,
        woken: Arc<Woken>,
        shown: Arc<BacklogShown>,
    ) -> Self {
        Self { to, worker, woken, shown, flights: Vec::new(), wakers: Vec::new(), free: Vec::new(), first: None }
    }

    /// Works until its caller is gone and the line is empty.
    pub(super) fn run(mut self) {
        // Set before the first look, so that whoever wakes it finds it.
        let _ = self.woken.thread.set(std::thread::current());
        crash_point("backlog_mover_started");
        let in_line = Waker::from(Arc::new(WakesMover { woken: Arc::clone(&self.woken), number: IN_LINE }));
        let mut numbers = vec![IN_LINE];
        loop {
            // Acquire: as in `cancelled`.
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
                // A wake-up since then is kept by the thread's token.
                std::thread::park();
                self.woken.take(&mut numbers);
            }
        }
    }

    /// Takes requests out of the line for as long as they can be offered. False when there will be no more.
    fn take_in(&mut self, in_line: &Waker) -> bool {
        loop {
            if let Some((number, _)) = &self.first {
                let is_waiting = |flight: &Flight| !flight.remote_call.is_offered();
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

    fn begin(&mut self, incoming: Incoming<Record, EncodedReply>) {
        let Incoming { request: Record { mut terms, user_headers, payload, place }, context, answer } = incoming;
        crash_point("backlog_taken");
        terms.offer.uses_reserve = true;
        terms.offer.is_followed = terms.offer.header.flags & FLAG_ONE_WAY != 0;
        let remote_call = match RemoteCall::start(&self.to, terms, (&user_headers, &payload)) {
            Ok(remote_call) => remote_call,
            Err(error) => return answer.end(Err(error)),
        };
        let flight = Some(Flight { remote_call, cancellation: context.cancellation, answer, reply: Vec::new() });
        let number = self.free.pop().unwrap_or(self.flights.len());
        if number == self.flights.len() {
            self.flights.push(flight);
            self.wakers.push(Waker::from(Arc::new(WakesMover { woken: Arc::clone(&self.woken), number })));
        } else {
            self.flights[number] = flight;
        }
        self.first = Some((number, place));
        self.look(number);
        crash_point("backlog_offered");
    }

    /// Looks at a flight; if it has ended, its caller has the outcome.
    fn look(&mut self, number: usize) {
        let Some(flight) = &mut self.flights[number] else { return };
        let task = Context::from_waker(&self.wakers[number]);
        let Poll::Ready(ended) = flight.remote_call.poll(&task, &mut flight.reply) else { return };
        self.free.push(number);
        if let Some(Flight { remote_call, answer, reply, .. }) = self.flights[number].take() {
            let version = remote_call.reply_version();
            // The slot first: who is woken may call again.
            drop(remote_call);
            crash_point("backlog_slot_freed");
            answer.end(ended.map(|()| (reply, version)));
        }
    }

    fn drop_cancelled(&mut self) {
        for (number, flight) in self.flights.iter_mut().enumerate() {
            // One whose time is over ends as such.
            if flight.as_ref().is_some_and(|flight| flight.cancellation.is_cancelled()) {
                *flight = None;
                crash_point("backlog_cancelled");
                self.free.push(number);
            }
        }
    }
}
