//! `RequestProcessor`: from the encoded request of another process to its encoded reply.

use super::counters::InstanceCounters;
use crate::context::{CallContext, Cancellation, Headers};
use crate::local::{IncomingRequest, ReplySender};
use crate::message::{Message, version_of};
use crate::outcome::Rejection;
use crate::protocol::request_flags::{
    FLAG_JSON, FLAG_ONE_WAY, FLAG_TRACE_STATE, InstanceQuery, KIND_CALL, NOTICES_SHIFT, TRACE_STATE,
};
use crate::protocol::status::{ReplyStatus, write_refusal};
use crate::server::puller::ClaimedRequest;
use gapless_agent::fault::crash_point;
use gapless_agent::foreign::catch_panic;
use gapless_agent::monotonic::monotonic_ns;
use gapless_agent::process_mark::ProcessMark;
use gapless_log::call_table::RequestHeader;
use gapless_trace::{PANICKED, ServedSpan, TraceContext};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tracing::Span;

pub(crate) struct RequestProcessor<Request, Reply> {
    pub(crate) route: Arc<str>,
    pub(crate) handler: Handler<Request, Reply>,
    pub(crate) counters: Arc<InstanceCounters>,
    pub(crate) info: String,
}

#[derive(Debug, Default)]
pub(crate) struct WorkerBuffers {
    user_headers: Vec<u8>,
    payload: Vec<u8>,
    reply: Vec<u8>,
}

const BYTES_KEPT_MAX: usize = 1 << 20;

impl WorkerBuffers {
    fn reuse<Reply: Message>(&mut self, ran: HandlerResult<Reply>) {
        if self.payload.capacity() == 0
            && let Ok(Ok(reply)) = ran
        {
            self.payload = reply.into_buffer();
        }
    }

    pub(crate) fn trim(&mut self) {
        for buffer in [&mut self.user_headers, &mut self.payload, &mut self.reply] {
            if buffer.capacity() > BYTES_KEPT_MAX {
                *buffer = Vec::new();
            }
        }
    }
}

pub(crate) struct PreparedRequest<Request> {
    claimed: ClaimedRequest,
    request: Request,
    context: CallContext,
    form: ReplyForm,
    in_flight: InFlightGuard,
}

/// Dropped at the handler's end by any cause.
pub(crate) struct InFlightGuard {
    counters: Arc<InstanceCounters>,
    begun_ns: u64,
}

impl InFlightGuard {
    pub(crate) fn begin(counters: &Arc<InstanceCounters>, begun_ns: u64) -> Self {
        counters.begin();
        Self { counters: Arc::clone(counters), begun_ns }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.counters.end(monotonic_ns() - self.begun_ns);
    }
}

#[derive(Clone, Copy, Debug)]
struct ReplyForm {
    is_json: bool,
    is_one_way: bool,
    version: u32,
}

impl<Request: Message, Reply: Message> RequestProcessor<Request, Reply> {
    /// A request that is not for the handler is answered here.
    pub(crate) fn prepare(
        &self,
        mut claimed: ClaimedRequest,
        scratch: &mut WorkerBuffers,
    ) -> Option<PreparedRequest<Request>> {
        let Some(header) = claimed.read(&mut scratch.user_headers, &mut scratch.payload) else {
            self.answer(claimed, ReplyStatus::BadRequest, b"what stands in the slot is no request");
            return None;
        };
        match InstanceQuery::from_value(header.kind) {
            _ if header.kind == KIND_CALL => {}
            Some(query) => {
                self.answer_about_itself(claimed, query);
                return None;
            }
            None => {
                self.answer(claimed, ReplyStatus::BadRequest, format!("request of kind {}", header.kind).as_bytes());
                return None;
            }
        }
        let now_ns = monotonic_ns();
        if header.deadline_ns != 0 && now_ns >= header.deadline_ns {
            self.answer(claimed, ReplyStatus::TooLate, &[]);
            return None;
        }
        let request = catch_panic(|| Self::decode(&header, &mut scratch.payload)).flatten();
        let headers = Headers::decode(&scratch.user_headers).ok_or_else(|| "its headers are none".to_owned());
        let (request, mut headers) = match request.and_then(|request| headers.map(|headers| (request, headers))) {
            Ok(read) => read,
            Err(reason) => {
                self.answer(claimed, ReplyStatus::BadRequest, reason.as_bytes());
                return None;
            }
        };
        if !claimed.begin() {
            self.answer(claimed, ReplyStatus::NotServed, &[]);
            return None;
        }
        let in_flight = InFlightGuard::begin(&self.counters, now_ns);
        let caller = claimed.caller();
        let form = ReplyForm {
            is_json: header.flags & FLAG_JSON != 0,
            is_one_way: header.flags & FLAG_ONE_WAY != 0,
            version: caller.reply_version,
        };
        let context = CallContext {
            route: Arc::clone(&self.route),
            caller: Arc::clone(&caller.identity),
            deadline_ns: header.deadline_ns,
            attempt: header.attempt,
            hops: header.hops,
            key: header.key,
            notices: (header.flags >> NOTICES_SHIFT) as u8,
            trace: trace_of(&header, &mut headers),
            headers,
            cancellation: Cancellation::Remote(Arc::clone(caller) as _, claimed.taken()),
        };
        Some(PreparedRequest { claimed, request, context, form, in_flight })
    }

    fn decode(header: &RequestHeader, payload: &mut Vec<u8>) -> Result<Request, String> {
        if header.flags & FLAG_JSON != 0 {
            return Request::from_json(payload).map_err(|error| error.to_string());
        }
        let version = version_of::<Request>(header.fingerprint).ok_or_else(|| {
            let (name, own) = (Request::TYPE_NAME, Request::fingerprint());
            format!("{name}: fingerprint {:#x} was found, this instance reads {own:#x}", header.fingerprint)
        })?;
        Request::decode_owned(version, payload).map_err(|error| error.to_string())
    }

    pub(crate) fn handle(&self, ready: PreparedRequest<Request>, scratch: &mut WorkerBuffers) {
        let PreparedRequest { claimed, request, context, form, in_flight } = ready;
        let ran = self.handler.run(request, &context, None);
        self.answer_with(claimed, ran, form, scratch);
        // Dropped after the answer: the caller need not wait for the clock.
        drop(in_flight);
    }

    pub(crate) async fn handle_later(&self, ready: PreparedRequest<Request>, scratch: &mut WorkerBuffers) {
        let PreparedRequest { claimed, request, context, form, in_flight } = ready;
        let ran = self.handler.run_later(request, context, None).await;
        self.answer_with(claimed, ran, form, scratch);
        drop(in_flight);
    }

    fn answer_with(
        &self,
        claimed: ClaimedRequest,
        ran: HandlerResult<Reply>,
        form: ReplyForm,
        scratch: &mut WorkerBuffers,
    ) {
        crash_point("instance_handler_done");
        let length_max = claimed.reply_length_max();
        if let Ok(Ok(reply)) = &ran
            && !form.is_json
            && !form.is_one_way
            && form.version == Reply::VERSION
            && let Some(bytes) =
                catch_panic(|| reply.encoded()).ok().flatten().filter(|bytes| bytes.len() <= length_max)
        {
            self.answer(claimed, ReplyStatus::Reply, bytes);
            return scratch.reuse(ran);
        }
        let body = &mut scratch.reply;
        body.clear();
        let status = match ran {
            Ok(handled) => Self::encode(handled, form, length_max, body),
            Err(text) => {
                tracing::error!(route = &*self.route, panic = text, "a handler has panicked");
                body.extend_from_slice(text.as_bytes());
                ReplyStatus::Panicked
            }
        };
        if status == ReplyStatus::Forward && form.is_one_way {
            // The caller must follow the forward.
            claimed.notify_caller();
        }
        if body.len() <= length_max || matches!(status, ReplyStatus::Panicked | ReplyStatus::BadReply) {
            self.answer(claimed, status, body);
        } else {
            self.answer(claimed, ReplyStatus::BadReply, too_long(body.len(), length_max).as_bytes());
        }
    }

    fn encode(handled: HandlerOutput<Reply>, form: ReplyForm, length_max: usize, body: &mut Vec<u8>) -> ReplyStatus {
        let encoded = match handled {
            Ok(_) if form.is_one_way => return ReplyStatus::Reply,
            Ok(reply) => catch_panic(|| {
                if form.is_json {
                    return reply.to_json().map(|json| body.extend_from_slice(&json));
                }
                reply.encode_as(form.version, body)
            }),
            Err(Rejection::Refused(refusal)) => {
                write_refusal(&refusal, length_max, body);
                return ReplyStatus::Refused;
            }
            Err(Rejection::Forward { route }) => {
                body.extend_from_slice(route.as_bytes());
                return ReplyStatus::Forward;
            }
        };
        let reason = match encoded {
            Ok(Ok(())) => return ReplyStatus::Reply,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic,
        };
        body.clear();
        body.extend_from_slice(reason.as_bytes());
        ReplyStatus::BadReply
    }

    fn answer_about_itself(&self, claimed: ClaimedRequest, query: InstanceQuery) {
        let body = match query {
            InstanceQuery::Ping => String::new(),
            InstanceQuery::Info => self.info.clone(),
            InstanceQuery::Statistics => self.counters.statistics().to_json(),
        };
        let length_max = claimed.reply_length_max();
        if body.len() <= length_max {
            claimed.answer(ReplyStatus::Reply, body.as_bytes());
        } else {
            claimed.answer(ReplyStatus::BadReply, too_long(body.len(), length_max).as_bytes());
        }
    }

    fn answer(&self, claimed: ClaimedRequest, status: ReplyStatus, body: &[u8]) {
        let is_heard = claimed.answer(status, body);
        self.counters.answered(status, is_heard);
    }
}

pub(crate) fn too_long(length: usize, length_max: usize) -> String {
    format!("it has {length} bytes; at most {length_max} are allowed on this route")
}

/// A malformed trace is ignored.
pub(crate) fn trace_of(header: &RequestHeader, headers: &mut Headers) -> TraceContext {
    let state = (header.flags & FLAG_TRACE_STATE != 0).then(|| headers.take_last(TRACE_STATE)).flatten();
    let trace = TraceContext::new(header.trace_id, header.span_id, header.trace_flags);
    match state.as_deref().map(str::from_utf8) {
        _ if trace.is_none() => TraceContext::NONE,
        Some(Ok(state)) => trace.with_state(state),
        Some(Err(_)) | None => trace,
    }
}

pub(crate) type HandlerOutput<Reply> = Result<Reply, Rejection>;

type PlainHandler<Request, Reply> = dyn Fn(Request, &CallContext) -> HandlerOutput<Reply> + Send + Sync;
type AsyncHandler<Request, Reply> =
    dyn Fn(Request, CallContext) -> Pin<Box<dyn Future<Output = HandlerOutput<Reply>> + Send>> + Send + Sync;

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

/// Output of a handler's run, or the text of its panic.
pub(crate) type HandlerResult<Reply> = Result<HandlerOutput<Reply>, String>;

impl<Request, Reply> Handler<Request, Reply> {
    /// Runs the handler on this thread, an `async` one to its end. `caller` is the span of the call, if it was made in
    /// this process.
    pub(crate) fn run(&self, request: Request, context: &CallContext, caller: Option<&Span>) -> HandlerResult<Reply> {
        match self {
            Self::Plain(handler) => {
                let span = ServedSpan::begin(context.served(), caller);
                let here = ProcessMark::current();
                let ran = catch_panic(|| span.enter(|| handler(request, context)));
                here.end_child("a handler");
                span.end(kind_of(&ran));
                ran
            }
            Self::Async(_) => crate::block_on::block_on(self.run_later(request, context.clone(), caller)),
        }
    }

    pub(crate) async fn run_later(
        &self,
        request: Request,
        context: CallContext,
        caller: Option<&Span>,
    ) -> HandlerResult<Reply> {
        let Self::Async(handler) = self else { return self.run(request, &context, caller) };
        let span = ServedSpan::begin(context.served(), caller);
        let ran = match catch_panic(|| span.enter(|| handler(request, context))) {
            Err(text) => Err(text),
            Ok(mut handling) => {
                std::future::poll_fn(|task: &mut Context<'_>| {
                    let here = ProcessMark::current();
                    let polled = catch_panic(|| span.enter(|| handling.as_mut().poll(task)));
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
    pub(crate) fn answer(&self, incoming: IncomingRequest<Request, Reply>, counters: &InstanceCounters) {
        let IncomingRequest { request, context, answer } = incoming;
        let begun_ns = begin(counters);
        let ran = self.run(request, &context, answer.offer().span());
        complete(answer, ran, (counters, begun_ns));
    }

    pub(crate) async fn answer_later(&self, incoming: IncomingRequest<Request, Reply>, counters: &InstanceCounters) {
        let IncomingRequest { request, context, answer } = incoming;
        let begun_ns = begin(counters);
        let ran = self.run_later(request, context, answer.offer().span()).await;
        complete(answer, ran, (counters, begun_ns));
    }
}

const fn kind_of<Reply>(ran: &HandlerResult<Reply>) -> &'static str {
    match ran {
        Ok(Ok(_)) => "replied",
        Ok(Err(Rejection::Refused(_))) => "refused",
        Ok(Err(Rejection::Forward { .. })) => "forwarded",
        Err(_) => PANICKED,
    }
}

fn begin(counters: &InstanceCounters) -> u64 {
    counters.begin();
    monotonic_ns()
}

fn complete<Request, Reply: Send + 'static>(
    answer: ReplySender<Request, Reply>,
    ran: HandlerResult<Reply>,
    (counters, begun_ns): (&InstanceCounters, u64),
) {
    // Before the answer, so that the caller finds itself counted.
    counters.answered(
        match &ran {
            Ok(Ok(_)) => ReplyStatus::Reply,
            Ok(Err(Rejection::Refused(_))) => ReplyStatus::Refused,
            Ok(Err(Rejection::Forward { .. })) => ReplyStatus::Forward,
            Err(_) => ReplyStatus::Panicked,
        },
        true,
    );
    counters.end(monotonic_ns().saturating_sub(begun_ns));
    match ran {
        Ok(handled) => answer.complete(handled),
        Err(text) => answer.panicked(&text),
    }
}
