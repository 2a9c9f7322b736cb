//! [`RemoteCall`]: one call between processes until its end, with retries after a death and forwards by handlers.

use super::routes::{RemoteRoutes, RouteKey, SETTLE_MAX, SharedTable};
use crate::caller::table::{
    CallEnd, KEPT_BYTES, KeyOwner, NotOffered, QUEUE_CHECK_INTERVAL_NS, RemoteOffer, RouteTable, SlotHold, Ticket,
};
use crate::local::check_hop;
use crate::options::{Priority, Retry, Waiting};
use crate::outcome::CallError;
use crate::protocol::ended::read_ended;
use crate::protocol::request_flags::{KIND_CALL, key_of};
use crate::protocol::status::{ReplyStatus, read_refusal};
use gapless_agent::fault::crash_point;
use gapless_agent::monotonic::{monotonic_ns, saturating_ns};
use gapless_log::call_table::{ReplyHeader, RequestHeader};
use gapless_log::claim::{ClaimState, Withdrawal};
use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[derive(Clone)]
pub(crate) struct Destination {
    pub(crate) routes: Arc<dyn RemoteRoutes>,
    pub(crate) key: Arc<RouteKey>,
    pub(crate) table: Arc<SharedTable>,
}

impl Destination {
    fn not_taken_by(&self, is_offered: bool, instance: u32) -> Vec<u32> {
        let mut processes = [self.routes.unanswering(&self.key), self.routes.unknown_servers()].concat();
        if is_offered {
            let instances = self.table.open_numbers().into_iter().filter(|open| [0, *open].contains(&instance));
            processes.extend(instances.filter_map(|instance| self.routes.process_of(instance)));
        }
        processes.sort_unstable();
        processes.dedup();
        processes
    }
}

const OVERWRITTEN: &str = "another process has written over its request";

pub(crate) type RequestBytes = (Vec<u8>, Vec<u8>);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) offer: RemoteOffer,
    pub(crate) retry: Retry,
    /// Each attempt goes to the instance that owns this key.
    pub(crate) affinity: Option<u64>,
    /// For errors; the deadline is in the header.
    pub(crate) timeout: Duration,
    pub(crate) wait_for_route: Duration,
}

impl Terms {
    pub(crate) fn class(&self) -> Priority {
        Priority::ALL[usize::from(self.offer.header.class)]
    }
}

pub(crate) struct RemoteCall {
    /// Must be dropped before its route's table.
    state: RemoteCallState,
    to: Destination,
    terms: Terms,
    no_instance_since_ns: Option<u64>,
    /// A handler has begun, perhaps before a forward.
    has_begun: bool,
    loss: Option<Cow<'static, str>>,
    attempts_before: u32,
    reply_version: u32,
}

impl Drop for RemoteCall {
    fn drop(&mut self) {
        self.leave_queue();
        if matches!(self.state, RemoteCallState::Offering { .. }) {
            // Dropped before it was offered; an offered attempt counts itself.
            let is_late = self.deadline_ns().is_some_and(|deadline_ns| monotonic_ns() >= deadline_ns);
            self.count_unoffered(if is_late { CallEnd::TimedOut } else { CallEnd::Cancelled });
        }
    }
}

enum RemoteCallState {
    Offering { user_headers: Vec<u8>, payload: Vec<u8> },
    Offered(Attempt),
    Over,
}

impl RemoteCall {
    pub(crate) fn start(
        to: &Destination,
        terms: Terms,
        (user_headers, payload): (&[u8], &[u8]),
    ) -> Result<Self, CallError> {
        let mut remote_call = Self::of(to.clone(), terms, RemoteCallState::Over);
        if !remote_call.offer(user_headers, payload)? {
            remote_call.state =
                RemoteCallState::Offering { user_headers: user_headers.to_vec(), payload: payload.to_vec() };
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
        Self::of(to, terms, RemoteCallState::Offered(attempt))
    }

    fn of(to: Destination, terms: Terms, state: RemoteCallState) -> Self {
        let (reply_version, no_instance_since_ns, has_begun, loss, attempts_before) =
            (to.key.reply.version, None, false, None, 0);
        Self { to, state, terms, no_instance_since_ns, has_begun, loss, attempts_before, reply_version }
    }

    pub(crate) const fn is_offered(&self) -> bool {
        matches!(self.state, RemoteCallState::Offered(_))
    }

    pub(crate) const fn waits_for_instance(&self) -> bool {
        self.no_instance_since_ns.is_some()
    }

    pub(crate) fn take_without_slot(&mut self) -> Option<(Terms, RequestBytes)> {
        let RemoteCallState::Offering { user_headers, payload } = &mut self.state else { return None };
        let bytes = (std::mem::take(user_headers), std::mem::take(payload));
        if self.waits_for_instance() {
            self.state = RemoteCallState::Offering { user_headers: bytes.0, payload: bytes.1 };
            return None;
        }
        self.state = RemoteCallState::Over;
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

    /// False if that must be retried.
    fn offer(&mut self, user_headers: &[u8], payload: &[u8]) -> Result<bool, CallError> {
        let mut offer = self.terms.offer;
        offer.header.attempt += 1;
        if let Some(key) = self.terms.affinity {
            let KeyOwner { instance, must_wake_reactor } = self.to.table.key_owner(key);
            (offer.target, offer.keyed) = (instance, instance != 0);
            if must_wake_reactor {
                self.to.routes.wake();
            }
        }
        let mut payload = Cow::Borrowed(payload);
        loop {
            match Attempt::start(&self.to.table, offer, user_headers, &payload) {
                Ok(attempt) => {
                    self.state = RemoteCallState::Offered(attempt);
                    offer.place = None;
                    (self.terms.offer, self.no_instance_since_ns) = (offer, None);
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

    /// A request that was never taken has found no route; one that was taken, even by a worker that had just begun when
    /// its route was suspended, is lost.
    fn check(&mut self, not_offered: NotOffered) -> Result<(), CallError> {
        let error = match not_offered {
            NotOffered::Full | NotOffered::OtherVersion(_) => {
                self.no_instance_since_ns = None;
                return Ok(());
            }
            NotOffered::Closed => CallError::Closed,
            NotOffered::NoInstance => {
                let now_ns = monotonic_ns();
                let waits_ns = now_ns - *self.no_instance_since_ns.get_or_insert(now_ns);
                let waits = Duration::from_nanos(waits_ns);
                if waits < self.terms.wait_for_route || waits < SETTLE_MAX && !self.to.routes.is_settled(&self.to.key) {
                    return Ok(());
                }
                self.to.routes.no_instance_error(&self.to.key)
            }
        };
        let error = self.loss.as_ref().map_or(error, |reason| self.lost(reason));
        Err(self.unoffered(error))
    }

    fn unoffered(&mut self, error: CallError) -> CallError {
        let error = self.ended(error);
        self.state = RemoteCallState::Over;
        self.count_unoffered(CallEnd::of(&error));
        error
    }

    fn count_unoffered(&self, end: CallEnd) {
        if self.terms.offer.header.kind == KIND_CALL {
            self.to.table.count_unoffered(end);
        }
    }

    /// Leaves the request to another path in this process, uncounted here.
    pub(crate) fn leave(mut self) {
        self.state = RemoteCallState::Over;
    }

    fn count_as(&mut self, end: CallEnd) {
        if let RemoteCallState::Offered(attempt) = &mut self.state {
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

    fn ended(&self, error: CallError) -> CallError {
        if self.has_begun { error.of_begun(&self.to.key.route, self.attempts()) } else { error }
    }

    /// The only instance that may take it; 0 for any. A call with a key moves on when the key's instance is gone.
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

    #[cold]
    fn no_instance_in_time(&self) -> CallError {
        match self.timed_out(false) {
            CallError::TimedOut { route, not_taken_by, .. } if not_taken_by.is_empty() && self.attempts() == 0 => {
                CallError::no_route(route)
            }
            error => error,
        }
    }

    fn too_late(&self) -> CallError {
        let mut error = self.timed_out(false);
        if let CallError::TimedOut { not_taken_by, .. } = &mut error {
            not_taken_by.clear();
        }
        error
    }

    fn try_offer(&mut self) -> Result<bool, CallError> {
        let (user_headers, payload) = match &mut self.state {
            RemoteCallState::Offering { user_headers, payload } => {
                (std::mem::take(user_headers), std::mem::take(payload))
            }
            RemoteCallState::Offered(_) | RemoteCallState::Over => return Ok(true),
        };
        if self.offer(&user_headers, &payload)? {
            return Ok(true);
        }
        self.state = RemoteCallState::Offering { user_headers, payload };
        if self.deadline_ns().is_some_and(|deadline_ns| monotonic_ns() >= deadline_ns) {
            let error = if self.waits_for_instance() { self.no_instance_in_time() } else { self.timed_out(false) };
            return Err(self.unoffered(error));
        }
        Ok(false)
    }

    pub(crate) fn look_for_instance(&mut self, task: Option<&Waker>) -> Result<bool, CallError> {
        if self.try_offer()? || !self.waits_for_instance() {
            return Ok(true);
        }
        task.iter().for_each(|task| self.want_change(task));
        Ok(false)
    }

    fn want_change(&mut self, task: &Waker) {
        // The I/O thread also wakes it from time to time: instances may refuse, and the call's deadline belongs to no
        // slot yet.
        if self.with_place(|table, offer| table.want_change(task, offer)) {
            self.to.routes.wake();
        }
    }

    pub(crate) fn send(mut self, until_ns: u64) -> Result<(), CallError> {
        while !self.try_offer()? {
            if until_ns != u64::MAX && monotonic_ns() >= until_ns {
                let reason = if self.waits_for_instance() { "it has not answered yet" } else { "its queue is full" };
                let error = CallError::Busy { route: self.route().to_string(), reason: reason.to_owned() };
                return Err(self.unoffered(error));
            }
            self.wait_for_change();
        }
        if let RemoteCallState::Offered(attempt) = std::mem::replace(&mut self.state, RemoteCallState::Over) {
            attempt.leave();
        }
        Ok(())
    }

    pub(crate) fn wait(&mut self, waiting: Waiting, reply: &mut Vec<u8>) -> Result<(), CallError> {
        loop {
            if self.try_offer()? {
                let RemoteCallState::Offered(attempt) = &mut self.state else { return Err(self.over()) };
                let ended = attempt.wait(waiting, reply);
                if let Some(result) = self.conclude(ended, reply) {
                    return result;
                }
            } else {
                self.wait_for_change();
            }
        }
    }

    /// Wakes from time to time, because instances may refuse.
    fn wait_for_change(&mut self) {
        let now_ns = monotonic_ns();
        let no_route_ns = self
            .no_instance_since_ns
            .map_or(u64::MAX, |since_ns| since_ns.saturating_add(saturating_ns(self.terms.wait_for_route)));
        let until_ns = [self.deadline_ns().unwrap_or(u64::MAX), no_route_ns, now_ns + QUEUE_CHECK_INTERVAL_NS];
        let until_ns = until_ns.into_iter().filter(|until_ns| *until_ns > now_ns).min().unwrap_or(now_ns);
        self.with_place(|table, offer| table.wait_for_change(offer, Duration::from_nanos(until_ns - now_ns)));
    }

    fn with_place<T>(&mut self, wait: impl FnOnce(&SharedTable, &mut RemoteOffer) -> T) -> T {
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
                    // Keeps later calls from overtaking it.
                    self.with_place(|table, offer| table.join_queue(offer));
                    return None;
                }
                Err(error) => return Some(Err(error)),
            }
            let RemoteCallState::Offered(attempt) = &mut self.state else { return Some(Err(self.over())) };
            let ended = match attempt.try_end(reply) {
                Some(ended) => ended,
                None if self.deadline_ns().is_some_and(|deadline_ns| monotonic_ns() >= deadline_ns) => {
                    let RemoteCallState::Offered(attempt) = &mut self.state else { return Some(Err(self.over())) };
                    attempt.time_out(reply)
                }
                None => return None,
            };
            if let Some(result) = self.conclude(ended, reply) {
                return Some(result);
            }
        }
    }

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
            let RemoteCallState::Offered(attempt) = &mut self.state else { return Poll::Ready(Err(self.over())) };
            let routes = &self.to.routes;
            let Poll::Ready(ended) = attempt.poll(task, || routes.wake(), reply) else { return Poll::Pending };
            if let Some(result) = self.conclude(ended, reply) {
                return Poll::Ready(result);
            }
        }
    }

    /// `None` if the call goes on.
    fn conclude(&mut self, ended: AttemptEnd, reply: &[u8]) -> Option<Result<(), CallError>> {
        if ended == AttemptEnd::Answered(ReplyStatus::Reply) && self.note_reply_version() {
            self.count_as(CallEnd::Replied);
            self.state = RemoteCallState::Over;
            return Some(Ok(()));
        }
        self.conclude_without_reply(ended, reply).map(Err)
    }

    /// False if the instance names a version that does not exist.
    #[inline]
    fn note_reply_version(&mut self) -> bool {
        if let RemoteCallState::Offered(attempt) = &self.state
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
            AttemptEnd::Answered(ReplyStatus::Forward) => self.forward(&text()).err()?,
            AttemptEnd::Answered(ReplyStatus::Refused) => match read_refusal(reply) {
                Some(refusal) => CallError::Refused { route, refusal },
                None => CallError::bad_reply_here(route, "it is a refusal that has no form"),
            },
            AttemptEnd::Answered(ReplyStatus::TooLate) => self.too_late(),
            AttemptEnd::Answered(ReplyStatus::BadRequest) => CallError::BadMessage {
                route,
                reason: format!("the request cannot be read where it is served: {}", text()),
            },
            AttemptEnd::Answered(ReplyStatus::BadReply) => CallError::BadMessage {
                route,
                reason: format!("the reply cannot be written where it is served: {}", text()),
            },
            AttemptEnd::Answered(ReplyStatus::Panicked) => CallError::Panicked { route, reason: text() },
            AttemptEnd::Answered(ReplyStatus::NotServed) => {
                self.lose(false, Cow::Borrowed("its instance has ended"))?
            }
            AttemptEnd::Answered(ReplyStatus::Ended) => match read_ended(&route, reply) {
                Some(CallError::NotBegun { reason, .. }) => self.lose(false, Cow::Owned(reason))?,
                Some(CallError::Unknown { reason, .. }) => self.lose(true, Cow::Owned(reason))?,
                Some(error) => error,
                None => CallError::bad_reply_here(route, "it is an end that has no form"),
            },
            AttemptEnd::Answered(ReplyStatus::Reply) => {
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
        self.count_as(CallEnd::of(&error));
        self.state = RemoteCallState::Over;
        Some(error)
    }

    /// The request waits again, whatever the retry policy.
    fn take_back(&mut self) -> Option<CallError> {
        let RemoteCallState::Offered(attempt) = &self.state else { return Some(self.over()) };
        let Some((_, user_headers, payload)) = attempt.request() else { return Some(self.lost(OVERWRITTEN)) };
        self.terms.offer.header.attempt -= 1;
        self.count_as(CallEnd::TakenBack);
        self.state = RemoteCallState::Offering { user_headers, payload };
        None
    }

    /// `None` if the policy allows a retry.
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
            RemoteCallState::Offered(attempt) if is_again && self.terms.offer.header.attempt < u8::MAX => {
                let Some((_, user_headers, payload)) = attempt.request() else { return Some(self.lost(OVERWRITTEN)) };
                self.count_as(CallEnd::Retried);
                self.state = RemoteCallState::Offering { user_headers, payload };
                None
            }
            _ => Some(lost),
        }
    }

    fn forward(&mut self, to: &str) -> Result<(), CallError> {
        let RemoteCallState::Offered(attempt) = &self.state else { return Err(self.over()) };
        self.has_begun = true;
        let Some((header, user_headers, payload)) = attempt.request() else { return Err(self.lost(OVERWRITTEN)) };
        check_hop(&self.to.key.route, to, header.hops)?;
        let key = Arc::new(RouteKey { route: to.into(), ..(*self.to.key).clone() });
        if self.terms.wait_for_route.is_zero() && !self.to.routes.may_be_served(&key) {
            // Checked before a table is made: handlers may forward to any name.
            return Err(self.to.routes.no_instance_error(&key).of_begun(to, self.attempts()));
        }
        let table = self.to.routes.table(&key).map_err(|error| error.of_begun(to, self.attempts()))?;
        self.count_as(CallEnd::Forwarded);
        self.loss = None;
        self.attempts_before = self.attempts();
        // The slot is given back before its table goes.
        self.state = RemoteCallState::Over;
        (self.to.key, self.to.table) = (key, table);
        let header = RequestHeader { hops: header.hops + 1, attempt: 0, ..self.terms.offer.header };
        self.terms.offer = RemoteOffer { header, target: 0, keyed: false, ..self.terms.offer };
        self.state = RemoteCallState::Offering { user_headers, payload };
        Ok(())
    }

    fn leave_queue(&mut self) {
        if let Some(place) = self.terms.offer.place.take() {
            self.to.table.leave_queue(place);
        }
    }

    fn over(&self) -> CallError {
        CallError::BadMessage { route: self.to.key.route.to_string(), reason: "its end was taken already".to_owned() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttemptEnd {
    Answered(ReplyStatus),
    Unintelligible(u32),
    /// Belongs to the caller again: no instance that may take it is open.
    NotTaken,
    /// Lost before its handler began.
    NotBegun(&'static str),
    /// Lost after its handler had begun, at an instance that is gone.
    Unknown(&'static str),
    TimedOut {
        begun: bool,
    },
}

/// Dropping it takes the request back, or withdraws it from the instance that has it.
#[derive(Debug)]
pub(crate) struct Attempt {
    table: Arc<RouteTable>,
    ticket: Option<Ticket>,
    /// Ns of the monotonic clock; 0 without one.
    deadline_ns: u64,
    made_ns: u64,
    end: CallEnd,
    is_deadline_noted: bool,
    has_task: bool,
    hold: SlotHold,
    /// Index of the caller's older version that the reply has; 0 for its own.
    reply_older: u8,
}

impl Attempt {
    pub(crate) fn start(
        table: &Arc<RouteTable>,
        offer: RemoteOffer,
        user_headers: &[u8],
        payload: &[u8],
    ) -> Result<Self, NotOffered> {
        let ticket = table.offer(offer, user_headers, payload)?;
        Ok(Self::of(table, ticket, offer.header))
    }

    pub(crate) fn of_sent(table: &Arc<RouteTable>, ticket: Ticket) -> Self {
        Self::of(table, ticket, RequestHeader::default())
    }

    fn of(table: &Arc<RouteTable>, ticket: Ticket, header: RequestHeader) -> Self {
        let RequestHeader { deadline_ns, sent_ns: made_ns, .. } = header;
        let (is_deadline_noted, has_task, hold, end) = (false, false, SlotHold::default(), CallEnd::Cancelled);
        let (table, ticket, reply_older) = (Arc::clone(table), Some(ticket), 0);
        Self { table, ticket, deadline_ns, made_ns, end, is_deadline_noted, has_task, hold, reply_older }
    }

    /// Sets the outcome to count; the default is cancelled.
    #[inline]
    pub(crate) fn count_as(&mut self, end: CallEnd) {
        self.end = end;
    }

    fn deadline_ns(&self) -> Option<u64> {
        Some(self.deadline_ns).filter(|deadline_ns| *deadline_ns != 0)
    }

    #[inline]
    pub(crate) const fn reply_older(&self) -> usize {
        self.reply_older as usize
    }

    /// Must not be called again after `Some`.
    pub(crate) fn try_end(&mut self, reply: &mut Vec<u8>) -> Option<AttemptEnd> {
        let ticket = self.ticket.expect("it was not asked again after its end");
        let claim = self.table.table().claim(ticket.slot);
        let seen = claim.load();
        match seen.state() {
            _ if seen.generation() != ticket.generation => Some(self.overwritten()),
            Some(ClaimState::Answered) => {
                let header = self.table.table().reply_header(ticket.slot);
                Some(self.take_reply(ticket, header, reply))
            }
            Some(ClaimState::Offered | ClaimState::Claimed | ClaimState::Begun) if seen.is_revoked() => {
                const REASON: &str = "the process that had it has died, or has left the domain";
                Some(match self.withdraw(reply) {
                    Ok(true) => {
                        self.hold = SlotHold::Lost(seen.holder());
                        AttemptEnd::Unknown(REASON)
                    }
                    Ok(false) if matches!(self.hold, SlotHold::Nobody) => AttemptEnd::NotTaken,
                    Ok(false) => AttemptEnd::NotBegun(REASON),
                    Err(ended) => ended,
                })
            }
            Some(ClaimState::Offered | ClaimState::Claimed | ClaimState::Begun) => None,
            Some(ClaimState::Free | ClaimState::Withdrawn) | None => Some(self.overwritten()),
        }
    }

    #[cold]
    fn overwritten(&mut self) -> AttemptEnd {
        self.hold = SlotHold::Nobody;
        AttemptEnd::Unknown("its claim was overwritten")
    }

    /// Takes the request back, also from an instance that has claimed it, so that no handler begins any more. True if
    /// one has begun; an error is the end that has come meanwhile.
    #[cold]
    fn withdraw(&mut self, reply: &mut Vec<u8>) -> Result<bool, AttemptEnd> {
        let ticket = self.ticket.expect("it has not ended");
        let withdrawal = self.table.table().claim(ticket.slot).withdraw(ticket.generation);
        self.hold = withdrawal.holder().map_or(SlotHold::Nobody, SlotHold::Instance);
        match withdrawal {
            Withdrawal::TakenBack | Withdrawal::NotBegun { .. } => Ok(false),
            Withdrawal::Begun { .. } => Ok(true),
            Withdrawal::Answered => {
                let header = self.table.table().reply_header(ticket.slot);
                Err(self.take_reply(ticket, header, reply))
            }
            Withdrawal::Lost => Err(self.overwritten()),
        }
    }

    #[inline]
    fn try_notice(&mut self, reply: &mut Vec<u8>) -> Option<AttemptEnd> {
        let ticket = self.ticket?;
        let header = self.table.table().notice(ticket.slot, ticket.generation)?;
        Some(self.take_reply(ticket, header, reply))
    }

    fn take_reply(&mut self, ticket: Ticket, header: ReplyHeader, reply: &mut Vec<u8>) -> AttemptEnd {
        crash_point("call_answer_seen");
        self.hold = SlotHold::Answered;
        self.table.table().read_reply(ticket.slot, header, reply);
        if reply.len() > KEPT_BYTES {
            self.table.note_long(ticket.slot);
        }
        match ReplyStatus::read(header.status) {
            Some((status, older)) => {
                self.reply_older = older;
                AttemptEnd::Answered(status)
            }
            None => AttemptEnd::Unintelligible(header.status),
        }
    }

    pub(crate) fn time_out(&mut self, reply: &mut Vec<u8>) -> AttemptEnd {
        self.withdraw(reply).map_or_else(|ended| ended, |begun| AttemptEnd::TimedOut { begun })
    }

    pub(crate) fn wait(&mut self, waiting: Waiting, reply: &mut Vec<u8>) -> AttemptEnd {
        let began_ns = if matches!(waiting, Waiting::SpinFor(_)) { monotonic_ns() } else { 0 };
        let mut looks = 0_u32;
        // The claim is checked only from time to time: each load takes its cache line from the instance, which writes
        // there.
        let mut is_claim_due = true;
        loop {
            let ended = if is_claim_due { self.try_end(reply) } else { self.try_notice(reply) };
            if let Some(ended) = ended {
                return ended;
            }
            looks = looks.wrapping_add(1);
            is_claim_due = looks.is_multiple_of(Waiting::LOOKS_PER_TIME);
            if !is_claim_due && looks < Waiting::LOOKS_BEFORE_PARKING {
                std::hint::spin_loop();
                continue;
            }
            let spins = match waiting {
                Waiting::Spin => true,
                Waiting::Park => looks < Waiting::LOOKS_BEFORE_PARKING,
                Waiting::SpinFor(time) => {
                    looks < Waiting::LOOKS_BEFORE_PARKING || monotonic_ns() - began_ns < time.as_nanos() as u64
                }
            };
            let is_clock_due = !spins || is_claim_due;
            let now_ns = if is_clock_due && self.deadline_ns().is_some() { monotonic_ns() } else { 0 };
            if self.deadline_ns().is_some_and(|deadline_ns| now_ns >= deadline_ns) {
                return self.time_out(reply);
            }
            if spins {
                std::hint::spin_loop();
            } else {
                let left =
                    self.deadline_ns().map_or(Duration::MAX, |deadline_ns| Duration::from_nanos(deadline_ns - now_ns));
                self.sleep(left);
                is_claim_due = true;
            }
        }
    }

    fn sleep(&self, timeout: Duration) {
        let Some(ticket) = self.ticket else { return };
        if let Some(low_half) = self.table.table().claim(ticket.slot).announce_wait(ticket.generation) {
            crash_point("call_waiting");
            // A corrupted claim wakes no one, so look once a second.
            self.table.table().wait(ticket.slot, low_half, timeout.min(Duration::from_secs(1)));
        }
    }

    /// Calls `note_deadline` if the I/O thread must learn of a new first deadline.
    pub(crate) fn poll(
        &mut self,
        context: &Context<'_>,
        note_deadline: impl FnOnce(),
        reply: &mut Vec<u8>,
    ) -> Poll<AttemptEnd> {
        let mut note_deadline = Some(note_deadline);
        loop {
            if let Some(ended) = self.try_end(reply) {
                return Poll::Ready(ended);
            }
            let Some(ticket) = self.ticket else { return Poll::Pending };
            if let Some(deadline_ns) = self.deadline_ns() {
                if monotonic_ns() >= deadline_ns {
                    return Poll::Ready(self.time_out(reply));
                }
                if !self.is_deadline_noted {
                    self.is_deadline_noted = true;
                    if self.table.note_deadline(ticket, deadline_ns)
                        && let Some(note_deadline) = note_deadline.take()
                    {
                        note_deadline();
                    }
                }
            }
            self.has_task = true;
            if self.table.want_notice(ticket, context.waker().clone()) {
                return Poll::Pending;
            }
        }
    }

    /// `None` if a faulty process has overwritten it.
    pub(crate) fn request(&self) -> Option<(RequestHeader, Vec<u8>, Vec<u8>)> {
        let (mut user_headers, mut payload) = (Vec::new(), Vec::new());
        let ticket = self.ticket.expect("a call that was answered still has its slot");
        let table = self.table.table();
        let header = table.read_back(ticket.slot, ticket.generation, &mut user_headers, &mut payload)?;
        Some((header, user_headers, payload))
    }
}

impl Attempt {
    /// Gives up a one-way request: the table frees the slot once it is answered.
    pub(crate) fn leave(mut self) {
        self.ticket = None;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let is_call_over = !matches!(self.end, CallEnd::Retried | CallEnd::Forwarded | CallEnd::TakenBack);
            let took_ns = (ticket.is_timed && is_call_over).then(|| monotonic_ns().saturating_sub(self.made_ns));
            self.table.finish(ticket, self.has_task, self.hold, (self.end, took_ns));
        }
    }
}
