//! [`RemoteCall`]: one call between processes until its end. It waits for a slot or an instance, is retried after a
//! death, and follows the forwards of handlers.

use super::routes::{RemoteRoutes, RouteKey, SETTLE_MAX, UsedTable};
use crate::local::check_hop;
use crate::options::{Priority, Retry, Waiting};
use crate::outcome::CallError;
use crate::remote::attempt::{Attempt, AttemptEnd};
use crate::remote::ended::read_ended;
use crate::remote::request_words::{KIND_CALL, key_of};
use crate::remote::status::{Status, read_refusal};
use crate::remote::table::{CopyOfKey, End, LOOK_NS, NotOffered, RemoteOffer, Ticket};
use gapless_agent::monotonic::{monotonic_ns, saturating_ns};
use gapless_log::call_table::RequestHeader;
use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[derive(Clone)]
pub(crate) struct Destination {
    pub(crate) routes: Arc<dyn RemoteRoutes>,
    pub(crate) key: Arc<RouteKey>,
    pub(crate) table: Arc<UsedTable>,
}

impl Destination {
    /// Processes that had not taken a call at its timeout, as far as known; only those of `copy` if that is not 0.
    fn not_taken_by(&self, is_offered: bool, copy: u32) -> Vec<u32> {
        let mut processes = [self.routes.unanswering(&self.key), self.routes.unheard()].concat();
        if is_offered {
            let copies = self.table.open_copies().into_iter().filter(|open| [0, *open].contains(&copy));
            processes.extend(copies.filter_map(|copy| self.routes.process_of(copy)));
        }
        processes.sort_unstable();
        processes.dedup();
        processes
    }
}

/// Reason why a lost request is not offered again.
const OVERWRITTEN: &str = "another process has written over its request";

pub(crate) type RequestBytes = (Vec<u8>, Vec<u8>);

/// Terms of a call, apart from its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) offer: RemoteOffer,
    pub(crate) retry: Retry,
    /// Affinity key: each attempt goes to the instance that owns it.
    pub(crate) affinity: Option<u64>,
    /// Timeout of the call; for errors.
    pub(crate) timeout: Duration,
    /// Longest wait without any instance.
    pub(crate) wait_for_route: Duration,
}

impl Terms {
    pub(crate) fn class(&self) -> Priority {
        Priority::ALL[usize::from(self.offer.header.class)]
    }
}

pub(crate) struct RemoteCall {
    /// Dropped before its route's table.
    state: State,
    to: Destination,
    terms: Terms,
    /// Time since when no instance was found, ns of the monotonic clock.
    no_copy_since_ns: Option<u64>,
    /// A handler has begun: in a lost attempt, or before a forward.
    has_begun: bool,
    /// Reason why the last attempt on this route was lost.
    loss: Option<Cow<'static, str>>,
    /// Attempts on earlier routes, before forwards.
    attempts_before: u32,
    /// Version of the reply, once there is one.
    reply_version: u32,
}

impl Drop for RemoteCall {
    fn drop(&mut self) {
        self.leave_line();
        if matches!(self.state, State::Offering { .. }) {
            // Dropped before it was offered; an offered attempt counts itself.
            let is_late = self.deadline_ns().is_some_and(|deadline_ns| monotonic_ns() >= deadline_ns);
            self.count_unoffered(if is_late { End::TimedOut } else { End::Cancelled });
        }
    }
}

enum State {
    /// Waiting for a slot or an instance.
    Offering {
        user_headers: Vec<u8>,
        payload: Vec<u8>,
    },
    Offered(Attempt),
    Over,
}

impl RemoteCall {
    /// Starts a call and offers it at once if possible.
    pub(crate) fn start(
        to: &Destination,
        terms: Terms,
        (user_headers, payload): (&[u8], &[u8]),
    ) -> Result<Self, CallError> {
        let mut remote_call = Self::of(to.clone(), terms, State::Over);
        if !remote_call.offer(user_headers, payload)? {
            remote_call.state = State::Offering { user_headers: user_headers.to_vec(), payload: payload.to_vec() };
        }
        Ok(remote_call)
    }

    /// Takes over a one-way request that its handler has forwarded: a call to the next route with the terms of its
    /// header, whose end no one awaits.
    pub(crate) fn of_sent(to: Destination, ticket: Ticket) -> Self {
        let attempt = Attempt::of_sent(&to.table, ticket);
        let header = attempt.request().map(|(header, ..)| header).unwrap_or_default();
        let terms = Terms {
            offer: RemoteOffer { header, is_followed: true, ..RemoteOffer::default() },
            retry: Retry::default(),
            affinity: key_of(&header),
            timeout: Duration::from_nanos(header.deadline_ns.saturating_sub(header.sent_ns)),
            wait_for_route: Duration::ZERO,
        };
        Self::of(to, terms, State::Offered(attempt))
    }

    fn of(to: Destination, terms: Terms, state: State) -> Self {
        let (reply_version, no_copy_since_ns, has_begun, loss, attempts_before) =
            (to.key.reply.version, None, false, None, 0);
        Self { to, state, terms, no_copy_since_ns, has_begun, loss, attempts_before, reply_version }
    }

    /// Reports whether the request is in the table, where an instance may take it.
    pub(crate) const fn is_offered(&self) -> bool {
        matches!(self.state, State::Offered(_))
    }

    /// Reports whether it waits because there is no instance.
    pub(crate) const fn waits_for_copy(&self) -> bool {
        self.no_copy_since_ns.is_some()
    }

    /// Takes out terms and bytes if there is an instance but no free slot.
    pub(crate) fn take_without_slot(&mut self) -> Option<(Terms, RequestBytes)> {
        let State::Offering { user_headers, payload } = &mut self.state else { return None };
        let bytes = (std::mem::take(user_headers), std::mem::take(payload));
        if self.waits_for_copy() {
            self.state = State::Offering { user_headers: bytes.0, payload: bytes.1 };
            return None;
        }
        self.state = State::Over;
        Some((self.terms, bytes))
    }

    /// Sets the caller's original timeout, part of which had passed when this call began; for errors.
    pub(crate) const fn set_timeout(&mut self, timeout: Duration) {
        self.terms.timeout = timeout;
    }

    pub(crate) fn route(&self) -> &Arc<str> {
        &self.to.key.route
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.attempts_before + u32::from(self.terms.offer.header.attempt)
    }

    /// Offers the request to its route. False if that must be retried.
    fn offer(&mut self, user_headers: &[u8], payload: &[u8]) -> Result<bool, CallError> {
        let mut offer = self.terms.offer;
        offer.header.attempt += 1;
        if let Some(key) = self.terms.affinity {
            let CopyOfKey { copy, is_look_untold } = self.to.table.copy_of_key(key);
            (offer.target, offer.keyed) = (copy, copy != 0);
            if is_look_untold {
                self.to.routes.wake();
            }
        }
        let mut payload = Cow::Borrowed(payload);
        loop {
            match Attempt::start(&self.to.table, offer, user_headers, &payload) {
                Ok(attempt) => {
                    self.state = State::Offered(attempt);
                    offer.place = None;
                    (self.terms.offer, self.no_copy_since_ns) = (offer, None);
                    return Ok(true);
                }
                Err(NotOffered::OtherVersion(fingerprint)) => {
                    let versions = (offer.header.fingerprint, fingerprint);
                    let rewritten = self.to.table.rewritten(versions, user_headers.len(), &payload);
                    let route = self.to.key.route.to_string();
                    let bad = |reason: String| self.unoffered(CallError::bad_request_here(route, &reason));
                    payload = Cow::Owned(rewritten.map_err(bad)?);
                    offer.header.fingerprint = fingerprint;
                }
                Err(not_offered) => return self.check(not_offered).map(|()| false),
            }
        }
    }

    /// Decides whether to keep trying after a failed offer. Without any instance left, a request that was never taken
    /// has found no route, and one that was lost after it was taken ends as lost. The criterion is whether it was
    /// taken, even by a worker that had just begun when its route was suspended, and not the fate of the instance.
    fn check(&mut self, not_offered: NotOffered) -> Result<(), CallError> {
        let error = match not_offered {
            NotOffered::Full | NotOffered::OtherVersion(_) => {
                self.no_copy_since_ns = None;
                return Ok(());
            }
            NotOffered::Closed => CallError::Closed,
            NotOffered::NoCopy => {
                let now_ns = monotonic_ns();
                let waits_ns = now_ns - *self.no_copy_since_ns.get_or_insert(now_ns);
                let waits = Duration::from_nanos(waits_ns);
                if waits < self.terms.wait_for_route || waits < SETTLE_MAX && !self.to.routes.is_settled(&self.to.key) {
                    return Ok(());
                }
                self.to.routes.nobody(&self.to.key)
            }
        };
        let error = self.loss.as_ref().map_or(error, |reason| self.lost(reason));
        Err(self.unoffered(error))
    }

    /// Ends a call that is not offered, with this error.
    fn unoffered(&mut self, error: CallError) -> CallError {
        let error = self.ended(error);
        self.state = State::Over;
        self.count_unoffered(End::of(&error));
        error
    }

    fn count_unoffered(&self, end: End) {
        if self.terms.offer.header.kind == KIND_CALL {
            self.to.table.count_unoffered(end);
        }
    }

    /// Leaves the request to another path in this process, and no longer counts it here.
    pub(crate) fn leave(mut self) {
        self.state = State::Over;
    }

    fn count_as(&mut self, end: End) {
        if let State::Offered(attempt) = &mut self.state {
            attempt.count_as(end);
        }
    }

    fn lost(&self, reason: &str) -> CallError {
        CallError::NotBegun {
            route: self.to.key.route.to_string(),
            attempts: self.attempts(),
            reason: reason.to_owned(),
        }
    }

    /// Error of the whole call, from an error on this route.
    fn ended(&self, error: CallError) -> CallError {
        if self.has_begun { error.of_begun(&self.to.key.route, self.attempts()) } else { error }
    }

    /// Only instance that may take it, or 0. A call with a key moves on when the key's instance is gone.
    fn target(&self) -> u32 {
        if self.terms.affinity.is_some() { 0 } else { self.terms.offer.target }
    }

    fn deadline_ns(&self) -> Option<u64> {
        Some(self.terms.offer.header.deadline_ns).filter(|deadline_ns| *deadline_ns != 0)
    }

    #[cold]
    fn timed_out(&self, begun: bool) -> CallError {
        let begun = begun || self.has_begun;
        let not_taken_by = if begun { Vec::new() } else { self.to.not_taken_by(self.is_offered(), self.target()) };
        let (route, after) = (self.to.key.route.to_string(), self.terms.timeout);
        CallError::TimedOut { route, after, begun, not_taken_by }
    }

    /// Error of a call that timed out without an instance: no route, if there never was one.
    #[cold]
    fn no_copy_in_time(&self) -> CallError {
        match self.timed_out(false) {
            CallError::TimedOut { route, not_taken_by, .. } if not_taken_by.is_empty() && self.attempts() == 0 => {
                CallError::no_route(route)
            }
            error => error,
        }
    }

    /// Error of a call that an instance took after its deadline.
    fn too_late(&self) -> CallError {
        let mut error = self.timed_out(false);
        if let CallError::TimedOut { not_taken_by, .. } = &mut error {
            not_taken_by.clear();
        }
        error
    }

    /// Offers the request if it still waits. `Ok(true)` if it is offered now.
    fn try_offer(&mut self) -> Result<bool, CallError> {
        let (user_headers, payload) = match &mut self.state {
            State::Offering { user_headers, payload } => (std::mem::take(user_headers), std::mem::take(payload)),
            State::Offered(_) | State::Over => return Ok(true),
        };
        if self.offer(&user_headers, &payload)? {
            return Ok(true);
        }
        self.state = State::Offering { user_headers, payload };
        if self.deadline_ns().is_some_and(|deadline_ns| monotonic_ns() >= deadline_ns) {
            let error = if self.waits_for_copy() { self.no_copy_in_time() } else { self.timed_out(false) };
            return Err(self.unoffered(error));
        }
        Ok(false)
    }

    /// Reports whether there is an instance; if not, the task is woken when there may be one.
    pub(crate) fn look_for_copy(&mut self, task: Option<&Waker>) -> Result<bool, CallError> {
        if self.try_offer()? || !self.waits_for_copy() {
            return Ok(true);
        }
        task.iter().for_each(|task| self.want_change(task));
        Ok(false)
    }

    fn want_change(&mut self, task: &Waker) {
        // The I/O thread also wakes it from time to time: its deadline belongs to no slot yet, and instances may
        // refuse.
        if self.with_place(|table, offer| table.want_change(task, offer)) {
            self.to.routes.wake();
        }
    }

    /// Waits until it is offered, up to `until_ns` of the monotonic clock, and gives up its outcome.
    pub(crate) fn send(mut self, until_ns: u64) -> Result<(), CallError> {
        while !self.try_offer()? {
            if until_ns != u64::MAX && monotonic_ns() >= until_ns {
                let reason = if self.waits_for_copy() { "it has not answered yet" } else { "its queue is full" };
                let error = CallError::Busy { route: self.route().to_string(), reason: reason.to_owned() };
                return Err(self.unoffered(error));
            }
            self.wait_for_change();
        }
        if let State::Offered(attempt) = std::mem::replace(&mut self.state, State::Over) {
            attempt.leave();
        }
        Ok(())
    }

    /// Blocks this thread until the end. `reply` receives the reply's bytes.
    pub(crate) fn wait(&mut self, waiting: Waiting, reply: &mut Vec<u8>) -> Result<(), CallError> {
        loop {
            if self.try_offer()? {
                let State::Offered(attempt) = &mut self.state else { return Err(self.over()) };
                let ended = attempt.wait(waiting, reply);
                if let Some(result) = self.conclude(ended, reply) {
                    return result;
                }
            } else {
                self.wait_for_change();
            }
        }
    }

    /// Sleeps while it cannot be offered. It wakes from time to time, because instances may refuse.
    fn wait_for_change(&mut self) {
        let now_ns = monotonic_ns();
        let no_route_ns = self
            .no_copy_since_ns
            .map_or(u64::MAX, |since_ns| since_ns.saturating_add(saturating_ns(self.terms.wait_for_route)));
        let until_ns = [self.deadline_ns().unwrap_or(u64::MAX), no_route_ns, now_ns + LOOK_NS];
        let until_ns = until_ns.into_iter().filter(|until_ns| *until_ns > now_ns).min().unwrap_or(now_ns);
        self.with_place(|table, offer| table.wait_for_change(offer, Duration::from_nanos(until_ns - now_ns)));
    }

    /// Waits in the line of the request that it offers next.
    fn with_place<T>(&mut self, wait: impl FnOnce(&UsedTable, &mut RemoteOffer) -> T) -> T {
        let mut offer = RemoteOffer { target: self.target(), ..self.terms.offer };
        let waited = wait(&self.to.table, &mut offer);
        self.terms.offer.place = offer.place;
        waited
    }

    pub(crate) fn try_end(&mut self, reply: &mut Vec<u8>) -> Option<Result<(), CallError>> {
        loop {
            match self.try_offer() {
                Ok(true) => {}
                Ok(false) => {
                    // Enters the line, so that later calls do not overtake it.
                    self.with_place(|table, offer| table.stand_in_line(offer));
                    return None;
                }
                Err(error) => return Some(Err(error)),
            }
            let State::Offered(attempt) = &mut self.state else { return Some(Err(self.over())) };
            let ended = match attempt.try_end(reply) {
                Some(ended) => ended,
                None if self.deadline_ns().is_some_and(|deadline_ns| monotonic_ns() >= deadline_ns) => {
                    let State::Offered(attempt) = &mut self.state else { return Some(Err(self.over())) };
                    attempt.time_out(reply)
                }
                None => return None,
            };
            if let Some(result) = self.conclude(ended, reply) {
                return Some(result);
            }
        }
    }

    /// Returns the end, or has the task woken when there may be one.
    pub(crate) fn poll(&mut self, task: &Context<'_>, reply: &mut Vec<u8>) -> Poll<Result<(), CallError>> {
        loop {
            match self.try_offer() {
                Ok(true) => {}
                Ok(false) => {
                    self.want_change(task.waker());
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
            let State::Offered(attempt) = &mut self.state else { return Poll::Ready(Err(self.over())) };
            let routes = &self.to.routes;
            let Poll::Ready(ended) = attempt.poll(task, || routes.wake(), reply) else { return Poll::Pending };
            if let Some(result) = self.conclude(ended, reply) {
                return Poll::Ready(result);
            }
        }
    }

    /// Interprets the end of an attempt; `None` if the call goes on.
    fn conclude(&mut self, ended: AttemptEnd, reply: &[u8]) -> Option<Result<(), CallError>> {
        if ended == AttemptEnd::Answered(Status::Reply) && self.note_reply_version() {
            self.count_as(End::Replied);
            self.state = State::Over;
            return Some(Ok(()));
        }
        self.conclude_without_reply(ended, reply).map(Err)
    }

    /// Notes the version of the reply. False if the instance names a version that does not exist.
    #[inline]
    fn note_reply_version(&mut self) -> bool {
        if let State::Offered(attempt) = &self.state
            && let Some(place) = attempt.reply_older().checked_sub(1)
        {
            let older = self.to.key.reply.older.get(place);
            self.reply_version = older.map_or(0, |older| older.version);
            return older.is_some();
        }
        true
    }

    pub(crate) const fn reply_version(&self) -> u32 {
        self.reply_version
    }

    #[cold]
    fn conclude_without_reply(&mut self, ended: AttemptEnd, reply: &[u8]) -> Option<CallError> {
        let route = self.to.key.route.to_string();
        let text = || String::from_utf8_lossy(reply).into_owned();
        let error = match ended {
            AttemptEnd::Answered(Status::Forward) => self.forward(&text()).err()?,
            AttemptEnd::Answered(Status::Refused) => match read_refusal(reply) {
                Some(refusal) => CallError::Refused { route, refusal },
                None => CallError::bad_reply_here(route, "it is a refusal that has no form"),
            },
            AttemptEnd::Answered(Status::TooLate) => self.too_late(),
            AttemptEnd::Answered(Status::BadRequest) => CallError::BadMessage {
                route,
                reason: format!("the request cannot be read where it is served: {}", text()),
            },
            AttemptEnd::Answered(Status::BadReply) => CallError::BadMessage {
                route,
                reason: format!("the reply cannot be written where it is served: {}", text()),
            },
            AttemptEnd::Answered(Status::Panicked) => CallError::Panicked { route, reason: text() },
            AttemptEnd::Answered(Status::NotServed) => self.lose(false, Cow::Borrowed("its copy has ended"))?,
            AttemptEnd::Answered(Status::Ended) => match read_ended(&route, reply) {
                Some(CallError::NotBegun { reason, .. }) => self.lose(false, Cow::Owned(reason))?,
                Some(CallError::Unknown { reason, .. }) => self.lose(true, Cow::Owned(reason))?,
                Some(error) => error,
                None => CallError::bad_reply_here(route, "it is an end that has no form"),
            },
            AttemptEnd::Answered(Status::Reply) => {
                CallError::bad_reply_here(route, "it is of a version that this program does not speak")
            }
            AttemptEnd::Unintelligible(status) => CallError::bad_reply_here(
                route,
                &format!("it has the status {status}, which this version does not know"),
            ),
            AttemptEnd::NotTaken => self.take_back()?,
            AttemptEnd::NotBegun(reason) => self.lose(false, Cow::Borrowed(reason))?,
            AttemptEnd::Unknown(reason) => self.lose(true, Cow::Borrowed(reason))?,
            AttemptEnd::TimedOut { begun } => self.timed_out(begun),
        };
        let error = self.ended(error);
        self.count_as(End::of(&error));
        // Gives the slot back; withdraws the request if an instance still has it.
        self.state = State::Over;
        Some(error)
    }

    /// Takes back a request that no instance has taken: it waits again as if never offered, whatever the retry policy.
    fn take_back(&mut self) -> Option<CallError> {
        let State::Offered(attempt) = &self.state else { return Some(self.over()) };
        let Some((_, user_headers, payload)) = attempt.request() else { return Some(self.lost(OVERWRITTEN)) };
        self.terms.offer.header.attempt -= 1;
        self.count_as(End::TakenBack);
        self.state = State::Offering { user_headers, payload };
        None
    }

    /// Handles a lost attempt. `None` if the policy allows a retry, which waits for a slot or an instance like the
    /// first attempt.
    fn lose(&mut self, begun: bool, reason: Cow<'static, str>) -> Option<CallError> {
        let is_again = match self.terms.retry {
            Retry::Never => false,
            Retry::NotBegun => !begun,
            Retry::Always => true,
        };
        self.has_begun |= begun;
        let lost = self.lost(&reason);
        self.loss = Some(reason);
        match &self.state {
            State::Offered(attempt) if is_again && self.terms.offer.header.attempt < u8::MAX => {
                let Some((_, user_headers, payload)) = attempt.request() else { return Some(self.lost(OVERWRITTEN)) };
                self.count_as(End::Retried);
                self.state = State::Offering { user_headers, payload };
                None
            }
            _ => Some(lost),
        }
    }

    /// Offers the same bytes to another route.
    fn forward(&mut self, to: &str) -> Result<(), CallError> {
        let State::Offered(attempt) = &self.state else { return Err(self.over()) };
        self.has_begun = true;
        let Some((header, user_headers, payload)) = attempt.request() else { return Err(self.lost(OVERWRITTEN)) };
        check_hop(&self.to.key.route, to, header.hops)?;
        let key = Arc::new(RouteKey { route: to.into(), ..(*self.to.key).clone() });
        if self.terms.wait_for_route.is_zero() && !self.to.routes.may_be_served(&key) {
            // Checked before a table is made: handlers may forward to any name.
            return Err(self.to.routes.nobody(&key).of_begun(to, self.attempts()));
        }
        let table = self.to.routes.table(&key).map_err(|error| error.of_begun(to, self.attempts()))?;
        self.count_as(End::Forwarded);
        self.loss = None;
        self.attempts_before = self.attempts();
        // The slot is given back before its table goes.
        self.state = State::Over;
        (self.to.key, self.to.table) = (key, table);
        let header = RequestHeader { hops: header.hops + 1, attempt: 0, ..self.terms.offer.header };
        self.terms.offer = RemoteOffer { header, target: 0, keyed: false, ..self.terms.offer };
        self.state = State::Offering { user_headers, payload };
        Ok(())
    }

    fn leave_line(&mut self) {
        if let Some(place) = self.terms.offer.place.take() {
            self.to.table.leave_line(place);
        }
    }

    fn over(&self) -> CallError {
        CallError::BadMessage { route: self.to.key.route.to_string(), reason: "its end was taken already".to_owned() }
    }
}
