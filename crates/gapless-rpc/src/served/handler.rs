//! [`Handler`]: the application's function, plain or `async`.

use super::counters::CopyCounters;
use crate::context::CallContext;
use crate::local::{Answer, Incoming};
use crate::outcome::Rejection;
use crate::remote::status::Status;
use gapless_agent::foreign::caught;
use gapless_agent::monotonic::monotonic_ns;
use gapless_agent::process_mark::ProcessMark;
use gapless_trace::{PANICKED, ServedSpan};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tracing::Span;

pub(crate) type Handled<Reply> = Result<Reply, Rejection>;

type PlainHandler<Request, Reply> = dyn Fn(Request, &CallContext) -> Handled<Reply> + Send + Sync;
type AsyncHandler<Request, Reply> =
    dyn Fn(Request, CallContext) -> Pin<Box<dyn Future<Output = Handled<Reply>> + Send>> + Send + Sync;

/// The application's function, shared by all workers of an instance.
pub(crate) enum Handler<Request, Reply> {
    Plain(Arc<PlainHandler<Request, Reply>>),
    Async(Arc<AsyncHandler<Request, Reply>>),
}

impl<Request, Reply> Clone for Handler<Request, Reply> {
    fn clone(&self) -> Self {
        match self {
            Self::Plain(handler) => Self::Plain(Arc::clone(handler)),
            Self::Async(handler) => Self::Async(Arc::clone(handler)),
        }
    }
}

/// Result of a handler's run, or the text of its panic.
pub(crate) type Ran<Reply> = Result<Handled<Reply>, String>;

impl<Request, Reply> Handler<Request, Reply> {
    /// Runs the handler on this thread, an `async` one to its end. `caller` is the span of the call, if it was made in
    /// this process.
    pub(crate) fn run(&self, request: Request, context: &CallContext, caller: Option<&Span>) -> Ran<Reply> {
        match self {
            Self::Plain(handler) => {
                let span = ServedSpan::begin(context.served(), caller);
                let here = ProcessMark::current();
                let ran = caught(|| span.enter(|| handler(request, context)));
                here.end_child("a handler");
                span.end(kind_of(&ran));
                ran
            }
            Self::Async(_) => crate::block_on::block_on(self.run_later(request, context.clone(), caller)),
        }
    }

    /// Runs the handler as a part of the polling task.
    pub(crate) async fn run_later(&self, request: Request, context: CallContext, caller: Option<&Span>) -> Ran<Reply> {
        let Self::Async(handler) = self else { return self.run(request, &context, caller) };
        let span = ServedSpan::begin(context.served(), caller);
        let ran = match caught(|| span.enter(|| handler(request, context))) {
            Err(text) => Err(text),
            Ok(mut handling) => {
                std::future::poll_fn(|task: &mut Context<'_>| {
                    let here = ProcessMark::current();
                    let polled = caught(|| span.enter(|| handling.as_mut().poll(task)));
                    here.end_child("a handler");
                    match polled {
                        Ok(Poll::Pending) => Poll::Pending,
                        Ok(Poll::Ready(handled)) => Poll::Ready(Ok(handled)),
                        Err(text) => Poll::Ready(Err(text)),
                    }
                })
                .await
            }
        };
        span.end(kind_of(&ran));
        ran
    }
}

impl<Request: Send + 'static, Reply: Send + 'static> Handler<Request, Reply> {
    /// Answers a call of this process on this thread.
    pub(crate) fn answer(&self, incoming: Incoming<Request, Reply>, counters: &CopyCounters) {
        let Incoming { request, context, answer } = incoming;
        let begun_ns = begin(counters);
        let ran = self.run(request, &context, answer.offer().span());
        settle(answer, ran, (counters, begun_ns));
    }

    /// Answers a call of this process as a part of a task.
    pub(crate) async fn answer_later(&self, incoming: Incoming<Request, Reply>, counters: &CopyCounters) {
        let Incoming { request, context, answer } = incoming;
        let begun_ns = begin(counters);
        let ran = self.run_later(request, context, answer.offer().span()).await;
        settle(answer, ran, (counters, begun_ns));
    }
}

/// Outcome of a handler, as named in reports.
const fn kind_of<Reply>(ran: &Ran<Reply>) -> &'static str {
    match ran {
        Ok(Ok(_)) => "replied",
        Ok(Err(Rejection::Refused(_))) => "refused",
        Ok(Err(Rejection::Forward { .. })) => "forwarded",
        Err(_) => PANICKED,
    }
}

fn begin(counters: &CopyCounters) -> u64 {
    counters.begin();
    monotonic_ns()
}

fn settle<Request, Reply: Send + 'static>(
    answer: Answer<Request, Reply>,
    ran: Ran<Reply>,
    (counters, begun_ns): (&CopyCounters, u64),
) {
    // Before the answer, so that the caller finds itself counted.
    counters.answered(
        match &ran {
            Ok(Ok(_)) => Status::Reply,
            Ok(Err(Rejection::Refused(_))) => Status::Refused,
            Ok(Err(Rejection::Forward { .. })) => Status::Forward,
            Err(_) => Status::Panicked,
        },
        true,
    );
    counters.end(monotonic_ns().saturating_sub(begun_ns));
    match ran {
        Ok(handled) => answer.settle(handled),
        Err(text) => answer.panicked(&text),
    }
}
