//! [`IncomingRequest`]: a request that a worker has begun, and [`ReplySender`]: the obligation to answer it once. If it
//! is dropped instead, the caller gets `Unknown`, or `Panicked` if the handler panicked.
//!
//! Forwarding needs the request's value, which the handler has consumed, so only a route that forwards says how its
//! requests are kept ([`ForwardSupport::keep`]); cloning all would cost every route. [`ReplySender::forward`] takes the
//! value itself.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::gauges::QueueGauges;
use super::offer::{LocalOffer, OfferExtras};
use super::one_shot::OneShot;
use super::queued::QueuedRequest;
use crate::context::{CallContext, CallerWithDomain, Cancellation};
use crate::outcome::{CallError, Refusal, Rejection};
use crate::route_name;
use gapless_agent::foreign::{self, catch_panic};

/// Limit of forwards per request.
pub const HOPS_MAX: u8 = 16;

/// Checks whether a request may be forwarded once more, within a process or between processes.
///
/// # Errors
/// The refusal for its caller.
pub(crate) fn check_hop(from: &str, to: &str, hops: u8) -> Result<(), CallError> {
    let why_not = match route_name::check(to) {
        Ok(()) if hops < HOPS_MAX => return Ok(()),
        Ok(()) => format!("it was forwarded {HOPS_MAX} times already"),
        Err(error) => error.to_string(),
    };
    let refusal = Refusal::new(0, format!("{from} sends it on to {to}, but {why_not}"));
    Err(CallError::Refused { route: from.to_owned(), refusal })
}

/// Support for handlers that forward.
pub struct ForwardSupport<Request, Reply> {
    /// Duplicates the request before the handler consumes it. Without this, handlers forward only by
    /// [`ReplySender::forward`].
    pub keep: Option<fn(&Request) -> Option<Request>>,
    /// Offers the request to the other route; runs on the worker's thread.
    pub hook: Arc<ForwardHook<Request, Reply>>,
}

pub type ForwardHook<Request, Reply> = dyn Fn(ForwardedRequest<Request, Reply>) + Send + Sync;

impl<Request, Reply> Clone for ForwardSupport<Request, Reply> {
    fn clone(&self) -> Self {
        Self { keep: self.keep, hook: Arc::clone(&self.hook) }
    }
}

/// A request on its way to another route; its owner passes it on or answers it.
#[derive(Debug)]
pub struct ForwardedRequest<Request, Reply> {
    pub route: String,
    pub request: Request,
    /// Answer to the request, with one more hop.
    pub answer: ReplySender<Request, Reply>,
}

/// One per worker, so that cores do not share the cache lines of its reference counts.
pub(super) struct WorkerContext<Request, Reply> {
    pub(super) route: Arc<str>,
    pub(super) caller: Arc<CallerWithDomain>,
    pub(super) forwarding: Option<ForwardSupport<Request, Reply>>,
    pub(super) gauges: Option<Arc<QueueGauges>>,
}

/// A request that has begun.
#[derive(Debug)]
pub struct IncomingRequest<Request, Reply> {
    pub request: Request,
    /// The handler's view of the call.
    pub context: CallContext,
    pub answer: ReplySender<Request, Reply>,
}

/// The obligation to answer a request.
pub struct ReplySender<Request, Reply> {
    /// `None` for a one-way request, and once answered.
    one_shot: Option<Arc<OneShot<Reply>>>,
    desk: Arc<WorkerContext<Request, Reply>>,
    offer: LocalOffer,
    /// Boxed, because most routes keep nothing and a small value moves fast.
    kept: Option<Box<Request>>,
}

impl<Request, Reply> fmt::Debug for ReplySender<Request, Reply> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplySender")
            .field("route", &self.desk.route)
            .field("offer", &self.offer)
            .finish_non_exhaustive()
    }
}

impl<Request, Reply: Send + 'static> IncomingRequest<Request, Reply> {
    pub(super) fn begin(
        queued: QueuedRequest<Request, Reply>,
        desk: &Arc<WorkerContext<Request, Reply>>,
    ) -> Option<Self> {
        let QueuedRequest { request, one_shot, offer } = queued;
        if offer.is_late() {
            desk.gauges.iter().for_each(|gauges| gauges.count_too_late());
            if let Some(one_shot) = one_shot {
                one_shot.answer(Err(offer.timed_out(&desk.route, one_shot.has_begun())));
            }
            return None;
        }
        let cancellation = match &one_shot {
            None => Cancellation::Never,
            Some(one_shot) if one_shot.begin() => Cancellation::Local(Arc::clone(one_shot) as _),
            Some(_) => return None,
        };
        let extra = offer.extra.as_deref();
        let (headers, trace) =
            extra.map(|OfferExtras { headers, trace, .. }| (headers.clone(), trace.clone())).unwrap_or_default();
        let context = CallContext {
            route: Arc::clone(&desk.route),
            caller: Arc::clone(&desk.caller),
            deadline_ns: offer.deadline_ns,
            attempt: offer.attempt,
            hops: offer.hops,
            key: offer.key,
            #[cfg(not(loom))]
            notices: 0,
            headers,
            trace,
            cancellation,
        };
        let keep = desk.forwarding.as_ref().and_then(|forwarding| forwarding.keep);
        let kept = keep.and_then(|keep| keep(&request)).map(Box::new);
        Some(Self { request, context, answer: ReplySender { one_shot, desk: Arc::clone(desk), offer, kept } })
    }

    /// Runs a handler on this thread and answers. If it panics, the caller gets that error and this thread goes on.
    pub fn handle(self, handler: impl FnOnce(Request, CallContext) -> Result<Reply, Rejection>) {
        let Self { request, context, answer } = self;
        match catch_panic(|| handler(request, context)) {
            Ok(result) => answer.complete(result),
            Err(text) => answer.panicked(&text),
        }
    }

    /// Like [`IncomingRequest::handle`], with an asynchronous handler. If the handler panics, its future is dropped
    /// before the answer. If this future is dropped, so is the handler's, and the outcome is `Unknown`.
    pub async fn handle_later<Handling>(self, handler: impl FnOnce(Request, CallContext) -> Handling)
    where
        Handling: Future<Output = Result<Reply, Rejection>>,
    {
        let Self { request, context, answer } = self;
        let handling = match catch_panic(|| handler(request, context)) {
            Ok(handling) => handling,
            Err(text) => return answer.panicked(&text),
        };
        let result = {
            let mut handling = pin!(handling);
            std::future::poll_fn(|context| match catch_panic(|| handling.as_mut().poll(context)) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(result)) => Poll::Ready(Ok(result)),
                Err(text) => Poll::Ready(Err(text)),
            })
            .await
        };
        match result {
            Ok(result) => answer.complete(result),
            Err(text) => answer.panicked(&text),
        }
    }
}

impl<Request, Reply> ReplySender<Request, Reply> {
    pub fn reply(self, reply: Reply) {
        self.end(Ok(reply));
    }

    pub fn complete(mut self, result: Result<Reply, Rejection>) {
        match result {
            Ok(reply) => self.end(Ok(reply)),
            Err(Rejection::Refused(refusal)) => self.refuse(refusal),
            Err(Rejection::Forward { route }) => match self.kept.take() {
                Some(request) => self.forward(route, *request),
                None => {
                    let why = if self.desk.forwarding.is_none() {
                        "`RouteBuilder::forwards` is missing where the route is served"
                    } else {
                        "it could not be kept, because it cannot be written or read"
                    };
                    self.cannot_forward(&route, why);
                }
            },
        }
    }

    /// Forwards the request to another route, whose instance answers the caller. Refused as by `check_hop`, and if the
    /// route has no forwarding hook.
    pub fn forward(mut self, route: impl Into<String>, request: Request) {
        let route = route.into();
        if let Err(refusal) = check_hop(&self.desk.route, &route, self.offer.hops) {
            return self.end(Err(refusal));
        }
        match self.desk.forwarding.as_ref().map(|forwarding| Arc::clone(&forwarding.hook)) {
            Some(hook) => {
                self.offer.hops += 1;
                self.kept = None;
                // Encodes the request; if it panics, the dropped answer reports that.
                foreign::run("what forwards a request", || hook(ForwardedRequest { route, request, answer: self }));
            }
            None => self.cannot_forward(&route, "the route has nobody who forwards"),
        }
    }

    fn cannot_forward(self, to: &str, why: &str) {
        let (route, reason) = (self.desk.route.to_string(), format!("it would go on to {to}, but {why}"));
        self.end(Err(CallError::CannotForward { route, reason }));
    }

    pub fn panicked(self, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let reason = text.unwrap_or("with something that is no text").to_owned();
        let route = self.desk.route.to_string();
        self.end(Err(CallError::Panicked { route, reason }));
    }

    fn refuse(self, refusal: Refusal) {
        let route = self.desk.route.to_string();
        self.end(Err(CallError::Refused { route, refusal }));
    }

    #[cfg(not(loom))]
    pub(crate) fn end_forwarded(self, route: &str, error: CallError) {
        let attempts = self.offer.attempt.into();
        self.end(Err(error.of_begun(route, attempts)));
    }

    pub fn end(mut self, outcome: Result<Reply, CallError>) {
        if let Some(one_shot) = self.one_shot.take() {
            one_shot.answer(outcome);
        }
    }

    #[must_use]
    pub const fn is_one_way(&self) -> bool {
        self.one_shot.is_none()
    }

    #[must_use]
    pub const fn offer(&self) -> &LocalOffer {
        &self.offer
    }

    pub(super) fn of(
        one_shot: Option<Arc<OneShot<Reply>>>,
        desk: &Arc<WorkerContext<Request, Reply>>,
        offer: LocalOffer,
    ) -> Self {
        Self { one_shot, desk: Arc::clone(desk), offer, kept: None }
    }

    pub(super) fn queue(mut self, request: Request) -> QueuedRequest<Request, Reply> {
        QueuedRequest { request, one_shot: self.one_shot.take(), offer: self.offer.clone() }
    }
}

impl<Request, Reply> Drop for ReplySender<Request, Reply> {
    fn drop(&mut self) {
        let Some(one_shot) = self.one_shot.take() else { return };
        let route = self.desk.route.to_string();
        one_shot.answer(Err(if std::thread::panicking() {
            CallError::Panicked { route, reason: "the thread of its worker unwinds".to_owned() }
        } else {
            let (attempts, reason) =
                (self.offer.attempt.into(), "its handler was dropped without an answer".to_owned());
            CallError::Unknown { route, attempts, reason }
        }));
    }
}
