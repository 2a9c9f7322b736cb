//! [`Pursuit`]: one call between processes until it has ended: it waits for a slot or a copy, is offered again after a death, and
//! follows where handlers forward it.

use super::routes::{RemoteRoutes, RouteKey};
use crate::clock::monotonic_ns;
use crate::options::{Retry, Waiting};
use crate::outcome::CallError;
use crate::remote::call::{Ended, RemoteCall};
use crate::remote::status::{Status, read_refusal};
use crate::remote::table::{NotOffered, Offer, RouteTable};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How often a request may be forwarded.
pub(crate) const HOPS_MAX: u8 = 16;
/// How long a forwarded request waits for the copies of a route that this process has not called before.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// Between two looks of a call that cannot be offered, ns.
const LOOK_NS: u64 = 10_000_000;

/// One call between processes.
pub(crate) struct Pursuit {
    routes: Arc<dyn RemoteRoutes>,
    key: Arc<RouteKey>,
    table: Arc<RouteTable>,
    state: State,
    offer: Offer,
    retry: Retry,
    /// When the call began, and how long it has.
    began_ns: u64,
    timeout: Duration,
    /// It waits for a copy until then, ns of the monotonic clock.
    wait_for_route_ns: u64,
    /// Attempts on routes that it was forwarded from.
    attempts_before: u32,
}

enum State {
    /// It waits for a slot or a copy.
    Offering {
        user_headers: Vec<u8>,
        payload: Vec<u8>,
    },
    Offered(RemoteCall),
    Over,
}

impl Pursuit {
    /// A call that begins now. It is offered at once if that is possible.
    pub(crate) fn start(
        routes: &Arc<dyn RemoteRoutes>,
        key: &Arc<RouteKey>,
        table: &Arc<RouteTable>,
        (offer, retry): (Offer, Retry),
        (timeout, wait_for_route): (Duration, Option<Duration>),
        (user_headers, payload): (&[u8], &[u8]),
    ) -> Result<Self, CallError> {
        let began_ns = offer.header.sent_ns;
        let wait_ns = wait_for_route.map_or(0, |wait| u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
        let mut pursuit = Self {
            routes: Arc::clone(routes),
            key: Arc::clone(key),
            table: Arc::clone(table),
            state: State::Over,
            offer,
            retry,
            began_ns,
            timeout,
            wait_for_route_ns: began_ns.saturating_add(wait_ns),
            attempts_before: 0,
        };
        match RemoteCall::start(table, offer, retry, user_headers, payload) {
            Ok(call) => pursuit.state = State::Offered(call),
            Err(not_offered) => {
                pursuit.check(not_offered)?;
                pursuit.state = State::Offering { user_headers: user_headers.to_vec(), payload: payload.to_vec() };
            }
        }
        Ok(pursuit)
    }

    /// The route that it is on now.
    pub(crate) fn route(&self) -> &Arc<str> {
        &self.key.route
    }

    /// How often it was offered.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts_before + if let State::Offered(call) = &self.state { call.attempts() } else { 0 }
    }

    /// Whether it makes sense to go on trying.
    fn check(&self, not_offered: NotOffered) -> Result<(), CallError> {
        let route = || self.key.route.to_string();
        match not_offered {
            NotOffered::Closed => Err(CallError::Closed),
            NotOffered::Full => Ok(()),
            NotOffered::NoCopy => {
                let is_settled = self.routes.is_settled(&self.key);
                let now_ns = monotonic_ns();
                let waits = now_ns < self.wait_for_route_ns
                    || !is_settled && now_ns < self.began_ns.saturating_add(SETTLE_MAX.as_nanos() as u64);
                match self.routes.mismatch(&self.key) {
                    _ if waits => Ok(()),
                    Some(mismatch) => Err(mismatch),
                    None => Err(CallError::NoRoute { route: route() }),
                }
            }
        }
    }

    fn deadline_ns(&self) -> Option<u64> {
        Some(self.offer.header.deadline_ns).filter(|deadline_ns| *deadline_ns != 0)
    }

    fn timed_out(&self, begun: bool) -> CallError {
        CallError::TimedOut { route: self.key.route.to_string(), after: self.timeout, begun }
    }

    /// Offers it if it waits for that. `Ok(true)` if it is offered now.
    fn try_offer(&mut self) -> Result<bool, CallError> {
        let State::Offering { user_headers, payload } = &self.state else { return Ok(true) };
        match RemoteCall::start(&self.table, self.offer, self.retry, user_headers, payload) {
            Ok(call) => {
                self.state = State::Offered(call);
                Ok(true)
            }
            Err(not_offered) => {
                self.check(not_offered)?;
                if self.deadline_ns().is_some_and(|deadline_ns| monotonic_ns() >= deadline_ns) {
                    return Err(self.timed_out(false));
                }
                Ok(false)
            }
        }
    }

    /// Waits until it is offered; its end is nobody's.
    pub(crate) fn send(mut self) -> Result<(), CallError> {
        while !self.try_offer()? {
            self.wait_for_change();
        }
        if let State::Offered(call) = std::mem::replace(&mut self.state, State::Over) {
            call.leave();
        }
        Ok(())
    }

    /// Waits for the end on this thread. The reply's bytes are in `reply`.
    pub(crate) fn wait(&mut self, waiting: Waiting, reply: &mut Vec<u8>) -> Result<(), CallError> {
        loop {
            if self.try_offer()? {
                let State::Offered(call) = &mut self.state else { return Err(self.over()) };
                let ended = call.wait(waiting, reply);
                if let Some(result) = self.conclude(ended, reply) {
                    return result;
                }
            } else {
                self.wait_for_change();
            }
        }
    }

    /// Sleeps while it cannot be offered; a look now and then, because copies may refuse.
    fn wait_for_change(&self) {
        let now_ns = monotonic_ns();
        let until_ns = [self.deadline_ns().unwrap_or(u64::MAX), self.wait_for_route_ns, now_ns + LOOK_NS];
        let until_ns = until_ns.into_iter().filter(|until_ns| *until_ns > now_ns).min().unwrap_or(now_ns);
        self.table.wait_for_change(Duration::from_nanos(until_ns - now_ns));
    }

    /// The end if it is there.
    pub(crate) fn try_end(&mut self, reply: &mut Vec<u8>) -> Option<Result<(), CallError>> {
        loop {
            match self.try_offer() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
            let State::Offered(call) = &mut self.state else { return Some(Err(self.over())) };
            let ended = match call.try_end(reply) {
                Some(ended) => ended,
                None if self.deadline_ns().is_some_and(|deadline_ns| monotonic_ns() >= deadline_ns) => {
                    let State::Offered(call) = &mut self.state else { return Some(Err(self.over())) };
                    call.time_out()
                }
                None => return None,
            };
            if let Some(result) = self.conclude(ended, reply) {
                return Some(result);
            }
        }
    }

    /// The end, or the task is woken when there may be one.
    pub(crate) fn poll(&mut self, task: &Context<'_>, reply: &mut Vec<u8>) -> Poll<Result<(), CallError>> {
        loop {
            match self.try_offer() {
                Ok(true) => {}
                Ok(false) => {
                    self.table.want_change(task.waker());
                    // The I/O thread wakes it now and then, too: its deadline is no slot's, and copies may refuse.
                    self.routes.wake();
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
            let State::Offered(call) = &mut self.state else { return Poll::Ready(Err(self.over())) };
            let routes = &self.routes;
            let Poll::Ready(ended) = call.poll(task, || routes.wake(), reply) else { return Poll::Pending };
            if let Some(result) = self.conclude(ended, reply) {
                return Poll::Ready(result);
            }
        }
    }

    /// What the end means; `None` if it goes on elsewhere.
    fn conclude(&mut self, ended: Ended, reply: &[u8]) -> Option<Result<(), CallError>> {
        if ended == Ended::Answered(Status::Reply) {
            self.state = State::Over;
            return Some(Ok(()));
        }
        self.conclude_without_reply(ended, reply).map(Err)
    }

    #[cold]
    fn conclude_without_reply(&mut self, ended: Ended, reply: &[u8]) -> Option<CallError> {
        let route = self.key.route.to_string();
        let attempts = self.attempts();
        let text = || String::from_utf8_lossy(reply).into_owned();
        let error = match ended {
            Ended::Answered(Status::Forward) => match self.forward(&text()) {
                Ok(()) => return None,
                Err(error) => error,
            },
            Ended::Answered(Status::Refused) => match read_refusal(reply) {
                Some(refusal) => CallError::Refused(refusal),
                None => CallError::BadMessage { route, reason: "its refusal cannot be read".to_owned() },
            },
            Ended::Answered(Status::TooLate) => self.timed_out(false),
            Ended::Answered(Status::BadRequest | Status::BadReply) => CallError::BadMessage { route, reason: text() },
            Ended::Answered(Status::Panicked) => CallError::Panicked { route, reason: text() },
            Ended::Answered(Status::Reply | Status::NotServed) => {
                CallError::NotBegun { route, attempts, reason: "its copy has ended".to_owned() }
            }
            Ended::Unintelligible(status) => CallError::BadMessage {
                route,
                reason: format!("a reply with status {status}, which this version does not know"),
            },
            Ended::NotBegun(reason) => CallError::NotBegun { route, attempts, reason: reason.to_owned() },
            Ended::Unknown(reason) => CallError::Unknown { route, attempts, reason: reason.to_owned() },
            Ended::TimedOut { begun } => self.timed_out(begun),
        };
        // What it had is given back: withdrawn, if a copy has it still.
        self.state = State::Over;
        Some(error)
    }

    /// Offers the same bytes to another route.
    fn forward(&mut self, to: &str) -> Result<(), CallError> {
        let from = self.key.route.to_string();
        let State::Offered(call) = &self.state else { return Err(self.over()) };
        let (header, user_headers, payload) = call.request();
        let not_begun = |attempts, reason| CallError::NotBegun { route: from, attempts, reason };
        if header.hops >= HOPS_MAX {
            let reason = format!("it was forwarded {HOPS_MAX} times, and would go on to {to}");
            return Err(not_begun(self.attempts(), reason));
        }
        if let Err(error) = crate::route_name::check(to) {
            return Err(not_begun(self.attempts(), error.to_string()));
        }
        self.attempts_before = self.attempts();
        self.key = Arc::new(RouteKey { route: to.into(), ..(*self.key).clone() });
        self.table = self.routes.table(&self.key)?;
        self.offer.header.hops = header.hops + 1;
        self.offer.target = 0;
        // From now on it waits for copies of that route as one does that has just begun.
        let waited_ns = monotonic_ns().saturating_sub(self.began_ns);
        self.began_ns += waited_ns;
        self.wait_for_route_ns = self.wait_for_route_ns.saturating_add(waited_ns);
        self.state = State::Offering { user_headers, payload };
        Ok(())
    }

    fn over(&self) -> CallError {
        CallError::BadMessage { route: self.key.route.to_string(), reason: "its end was taken already".to_owned() }
    }
}
