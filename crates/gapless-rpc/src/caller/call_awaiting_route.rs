//! `CallAwaitingRoute`: a call whose route has no instance yet.

use super::remote_call::RemoteCall;
use super::routes::{LocalRoutes, WakerRegistration};
use crate::block_on::block_on;
use crate::local::{LocalCall, LocalOffer, UnsentRequest};
use crate::message::Message;
use crate::outcome::CallError;
use gapless_agent::deadlines::Alarm;
use gapless_agent::monotonic::{monotonic_ns, saturating_ns};
use gapless_agent::wait_notices::WaitNotices;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

pub(super) enum RouteTarget<Reply> {
    Local(LocalCall<Reply>),
    SentLocally,
    Remote(Box<RemoteCall>),
}

pub(super) type RouteLookup<Reply> = Result<RouteTarget<Reply>, CallError>;

pub(super) fn not_local<Request>(unsent: UnsentRequest<Request>) -> Result<Request, CallError> {
    match unsent.error {
        CallError::NoRoute { .. } => Ok(unsent.request),
        error => Err(error),
    }
}

pub(super) trait RouteSearch<Reply>: Send + Sync {
    /// Wakes `task` for the next poll. Must not be called again after `Some`.
    fn poll_route(&mut self, task: Option<&Waker>) -> Option<RouteLookup<Reply>>;

    fn wait(&mut self) -> RouteLookup<Reply> {
        block_on(poll_fn(|task| self.poll_route(Some(task.waker())).map_or(Poll::Pending, Poll::Ready)))
    }
}

pub(super) struct CallAwaitingRoute<Request> {
    route: Arc<str>,
    routes: Arc<LocalRoutes>,
    /// Request and offer for this process; `None` when it is over. The mutex is never contended: it only makes calls
    /// `Sync` for any request type.
    request: Mutex<Option<(Request, LocalOffer)>>,
    elsewhere: Option<Box<RemoteCall>>,
    until_ns: u64,
    is_one_way: bool,
    waits: WaitNotices,
    woken_by: Option<(WakerRegistration, Option<Alarm>)>,
}

impl<Request: Message> CallAwaitingRoute<Request> {
    pub(super) fn new(
        (route, routes): (Arc<str>, Arc<LocalRoutes>),
        request: (Request, LocalOffer),
        elsewhere: Option<Box<RemoteCall>>,
        time: Duration,
        is_one_way: bool,
    ) -> Self {
        let until_ns = monotonic_ns().saturating_add(saturating_ns(time));
        let request = Mutex::new(Some(request));
        let waits = WaitNotices::after_a_second();
        Self { route, routes, request, elsewhere, until_ns, is_one_way, waits, woken_by: None }
    }

    pub(super) fn send<Reply: Message>(mut self) -> Result<(), CallError> {
        match RouteSearch::<Reply>::wait(&mut self)? {
            RouteTarget::Remote(remote_call) => remote_call.send(u64::MAX),
            RouteTarget::Local(_) | RouteTarget::SentLocally => Ok(()),
        }
    }

    fn check_local<Reply: Message>(&mut self) -> Option<RouteLookup<Reply>> {
        let local = match self.routes.get::<Request, Reply>(&self.route) {
            Ok(local) => local?,
            Err(error) => return Some(Err(error)),
        };
        let waiting = self.request.get_mut().expect("nobody panics with the lock");
        let (request, offer) = waiting.take()?;
        let taken = if self.is_one_way {
            local.send(request, offer.clone()).map(|()| RouteTarget::SentLocally)
        } else {
            local.call(request, offer.clone()).map(RouteTarget::Local)
        };
        match taken.map_err(|unsent| not_local(*unsent)) {
            Ok(reach) => Some(Ok(reach)),
            Err(Ok(request)) => {
                *waiting = Some((request, offer));
                None
            }
            Err(Err(error)) => Some(Err(error)),
        }
    }

    fn check_remote<Reply>(&mut self, task: Option<&Waker>) -> Option<RouteLookup<Reply>> {
        if let Some(remote_call) = &mut self.elsewhere {
            return match remote_call.look_for_instance(task) {
                Ok(true) => self.elsewhere.take().map(|remote_call| Ok(RouteTarget::Remote(remote_call))),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            };
        }
        let (route, now_ns) = (&*self.route, monotonic_ns());
        let (_, offer) = self.request.get_mut().expect("nobody panics with the lock").as_ref()?;
        if now_ns >= self.until_ns.min(offer.end_ns()) {
            return Some(Err(CallError::no_route(route)));
        }
        if let Some(waited) = self.waits.take_due(now_ns) {
            tracing::info!(route, waited_s = waited.as_secs(), "a call waits for its route, which nobody serves");
        }
        if let (Some(task), Some((_, alarm))) = (task, &mut self.woken_by) {
            let until_ns = self.until_ns.min(offer.end_ns()).min(self.waits.next_ns());
            *alarm = Some(Alarm::set(until_ns, task.clone()));
        }
        None
    }
}

impl<Request: Message, Reply: Message> RouteSearch<Reply> for CallAwaitingRoute<Request> {
    fn poll_route(&mut self, task: Option<&Waker>) -> Option<RouteLookup<Reply>> {
        if let Some(task) = task {
            self.woken_by = Some((self.routes.wake_when_served(&self.route, task.clone()), None));
        }
        let here = self.check_local();
        if here.is_none() {
            return self.check_remote(task);
        }
        self.elsewhere.take().into_iter().for_each(|elsewhere| elsewhere.leave());
        here
    }
}
