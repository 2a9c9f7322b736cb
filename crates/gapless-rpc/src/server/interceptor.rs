//! `ServerInterceptor`: a hook before and after a route's handler.

use super::request_processor::{HandlerOutput, HandlerResult};
use crate::context::CallContext;
use crate::outcome::{Refusal, Rejection};
use gapless_agent::foreign::{self, catch_panic};
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// A hook around the handler of a route ([`RouteBuilder::interceptor`](crate::RouteBuilder::interceptor)). Interceptors
/// run in the order in which they were added before the handler, and in reverse after it.
///
/// ```
/// # mod gapless { pub use gapless_rpc as rpc; }
/// use gapless::rpc::{CallContext, CallError, Domain, HandlerOutcome, Refusal, ServerInterceptor};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::time::Duration;
///
/// #[derive(Default)]
/// struct Tenants {
///     refused: AtomicU64,
/// }
///
/// impl ServerInterceptor for Tenants {
///     fn before(&self, context: &CallContext) -> Result<(), Refusal> {
///         let tenant = context.headers().get("tenant");
///         tenant.map(|_| ()).ok_or_else(|| Refusal::new(401, "whose call is it?"))
///     }
///
///     fn after(&self, _context: &CallContext, outcome: HandlerOutcome<'_>, _took: Duration) {
///         self.refused.fetch_add(u64::from(matches!(outcome, HandlerOutcome::Refused(_))), Ordering::Relaxed);
///     }
/// }
///
/// let domain = Domain::in_process("shop");
/// let tenants = Arc::new(Tenants::default());
/// let _route = domain.serve("shop/pay").interceptor(tenants.clone()).handle(|cents: u64, _context| Ok(cents))?;
/// assert!(matches!(domain.caller::<u64, u64>("shop/pay")?.call(250), Err(CallError::Refused { refusal, .. }) if refusal.code == 401));
/// assert_eq!(tenants.refused.load(Ordering::Relaxed), 1);
/// # Ok::<(), gapless_rpc::RpcError>(())
/// ```
pub trait ServerInterceptor: Send + Sync {
    /// Runs before the handler begins; a panic ends the call as one of the handler.
    ///
    /// # Errors
    /// The handler does not run, and its caller gets [`crate::CallError::Refused`]; the call is counted as begun and
    /// refused.
    fn before(&self, context: &CallContext) -> Result<(), Refusal> {
        let _ = context;
        Ok(())
    }

    /// Runs before the caller is answered, `took` after [`before`](Self::before). A panic is logged.
    fn after(&self, context: &CallContext, outcome: HandlerOutcome<'_>, took: Duration) {
        let _ = (context, outcome, took);
    }
}

/// Outcome of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandlerOutcome<'call> {
    Replied,
    /// A refusal by the handler, or by an interceptor before it.
    Refused(&'call Refusal),
    /// A forward to that route.
    Forwarded(&'call str),
    /// A panic of the handler, or of an interceptor before it.
    Panicked(&'call str),
    /// The executor dropped the task before the end.
    Dropped,
}

pub(crate) type ServerInterceptors = Arc<[Arc<dyn ServerInterceptor>]>;

pub(crate) fn around<Request, Reply>(
    interceptors: ServerInterceptors,
    handler: impl Fn(Request, &CallContext) -> HandlerOutput<Reply>,
) -> impl Fn(Request, &CallContext) -> HandlerOutput<Reply> {
    move |request, context| {
        let mut call = InterceptedCall::of(&interceptors, context);
        let ran = match call.ask() {
            None => catch_panic(|| handler(request, context)),
            Some(ended) => ended,
        };
        call.end(ran)
    }
}

pub(crate) fn around_async<Request: Send + 'static, Reply: Send + 'static, Handling>(
    interceptors: ServerInterceptors,
    handler: impl Fn(Request, CallContext) -> Handling + Send + Sync + 'static,
) -> impl Fn(Request, CallContext) -> Pin<Box<dyn Future<Output = HandlerOutput<Reply>> + Send>> + Send + Sync
where
    Handling: Future<Output = HandlerOutput<Reply>> + Send + 'static,
{
    let handler = Arc::new(handler);
    move |request, context| {
        let (interceptors, handler) = (Arc::clone(&interceptors), Arc::clone(&handler));
        Box::pin(async move {
            let mut call = InterceptedCall::of(&interceptors, &context);
            let ran = match call.ask() {
                Some(ended) => ended,
                None => match catch_panic(|| Box::pin(handler(request, context.clone()))) {
                    Err(panic) => Err(panic),
                    Ok(mut handling) => {
                        std::future::poll_fn(|task| match catch_panic(|| handling.as_mut().poll(task)) {
                            Ok(polled) => polled.map(Ok),
                            Err(panic) => Poll::Ready(Err(panic)),
                        })
                        .await
                    }
                },
            };
            call.end(ran)
        })
    }
}

struct InterceptedCall<'call> {
    interceptors: &'call [Arc<dyn ServerInterceptor>],
    context: &'call CallContext,
    began: Instant,
    /// Interceptors that ran, and must be told the end.
    asked: usize,
}

impl<'call> InterceptedCall<'call> {
    fn of(interceptors: &'call [Arc<dyn ServerInterceptor>], context: &'call CallContext) -> Self {
        Self { interceptors, context, began: Instant::now(), asked: 0 }
    }

    /// `Some` if the call ends without the handler.
    fn ask<Reply>(&mut self) -> Option<HandlerResult<Reply>> {
        for interceptor in self.interceptors {
            self.asked += 1;
            match catch_panic(|| interceptor.before(self.context)) {
                Ok(Ok(())) => {}
                Ok(Err(refusal)) => return Some(Ok(Err(Rejection::Refused(refusal)))),
                Err(panic) => return Some(Err(panic)),
            }
        }
        None
    }

    /// A panic is resumed: it was reported when it began.
    fn end<Reply>(mut self, ran: HandlerResult<Reply>) -> HandlerOutput<Reply> {
        self.tell(match &ran {
            Ok(Ok(_)) => HandlerOutcome::Replied,
            Ok(Err(Rejection::Refused(refusal))) => HandlerOutcome::Refused(refusal),
            Ok(Err(Rejection::Forward { route })) => HandlerOutcome::Forwarded(route),
            Err(panic) => HandlerOutcome::Panicked(panic),
        });
        ran.unwrap_or_else(|panic| resume_unwind(Box::new(panic)))
    }

    fn tell(&mut self, outcome: HandlerOutcome<'_>) {
        let took = self.began.elapsed();
        for interceptor in self.interceptors[..std::mem::take(&mut self.asked)].iter().rev() {
            foreign::run("an interceptor", || interceptor.after(self.context, outcome, took));
        }
    }
}

impl Drop for InterceptedCall<'_> {
    fn drop(&mut self) {
        self.tell(HandlerOutcome::Dropped);
    }
}
