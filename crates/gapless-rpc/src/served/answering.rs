//! [`Answering`]: from the encoded request of another process to its encoded reply.

use super::counters::CopyCounters;
use super::handler::{Handled, Handler, Ran};
use crate::context::{CallContext, Cancellation, Headers};
use crate::message::{Message, version_of};
use crate::outcome::Rejection;
use crate::remote::copy::Claimed;
use crate::remote::request_words::{
    CopyQuery, FLAG_JSON, FLAG_ONE_WAY, FLAG_TRACE_STATE, KIND_CALL, NOTICES_SHIFT, TRACE_STATE,
};
use crate::remote::status::{Status, write_refusal};
use gapless_agent::fault::crash_point;
use gapless_agent::foreign::caught;
use gapless_agent::monotonic::monotonic_ns;
use gapless_log::call_table::RequestHeader;
use gapless_trace::TraceContext;
use std::sync::Arc;

/// State that the workers of an instance share to answer requests.
pub(crate) struct Answering<Request, Reply> {
    pub(crate) route: Arc<str>,
    pub(crate) handler: Handler<Request, Reply>,
    pub(crate) counters: Arc<CopyCounters>,
    /// Description of the instance: a JSON object.
    pub(crate) info: String,
}

/// Buffers of one worker, reused.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    user_headers: Vec<u8>,
    payload: Vec<u8>,
    reply: Vec<u8>,
}

/// Buffer capacity that is kept between two requests, bytes.
const BYTES_KEPT_MAX: usize = 1 << 20;

impl Scratch {
    /// Reuses the memory of a sent reply for the next request, if the last request's buffer has gone with it.
    fn reuse<Reply: Message>(&mut self, ran: Ran<Reply>) {
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

/// A decoded request, ready for the handler.
pub(crate) struct Ready<Request> {
    claimed: Claimed,
    request: Request,
    context: CallContext,
    form: ReplyForm,
    in_flight: InFlight,
}

/// Counts a handler from its begin to its end by any cause, which is the drop of this value.
pub(crate) struct InFlight {
    counters: Arc<CopyCounters>,
    begun_ns: u64,
}

impl InFlight {
    pub(crate) fn begin(counters: &Arc<CopyCounters>, begun_ns: u64) -> Self {
        counters.begin();
        Self { counters: Arc::clone(counters), begun_ns }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.counters.end(monotonic_ns() - self.begun_ns);
    }
}

/// Form of the reply that the caller expects.
#[derive(Clone, Copy, Debug)]
struct ReplyForm {
    is_json: bool,
    is_one_way: bool,
    version: u32,
}

impl<Request: Message, Reply: Message> Answering<Request, Reply> {
    /// Reads a claimed request. One that is not for the handler is answered here.
    pub(crate) fn prepare(&self, mut claimed: Claimed, scratch: &mut Scratch) -> Option<Ready<Request>> {
        let Some(header) = claimed.read(&mut scratch.user_headers, &mut scratch.payload) else {
            self.answer(claimed, Status::BadRequest, b"what stands in the slot is no request");
            return None;
        };
        match CopyQuery::from_value(header.kind) {
            _ if header.kind == KIND_CALL => {}
            Some(query) => {
                self.answer_about_itself(claimed, query);
                return None;
            }
            None => {
                self.answer(claimed, Status::BadRequest, format!("request of kind {}", header.kind).as_bytes());
                return None;
            }
        }
        let now_ns = monotonic_ns();
        if header.deadline_ns != 0 && now_ns >= header.deadline_ns {
            self.answer(claimed, Status::TooLate, &[]);
            return None;
        }
        let request = caught(|| Self::decode(&header, &mut scratch.payload)).flatten();
        let headers = Headers::decode(&scratch.user_headers).ok_or_else(|| "its headers are none".to_owned());
        let (request, mut headers) = match request.and_then(|request| headers.map(|headers| (request, headers))) {
            Ok(read) => read,
            Err(reason) => {
                self.answer(claimed, Status::BadRequest, reason.as_bytes());
                return None;
            }
        };
        if !claimed.begin() {
            // The caller has given up: the slot is given back.
            self.answer(claimed, Status::NotServed, &[]);
            return None;
        }
        let in_flight = InFlight::begin(&self.counters, now_ns);
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
        Some(Ready { claimed, request, context, form, in_flight })
    }

    fn decode(header: &RequestHeader, payload: &mut Vec<u8>) -> Result<Request, String> {
        if header.flags & FLAG_JSON != 0 {
            return Request::from_json(payload).map_err(|error| error.to_string());
        }
        let version = version_of::<Request>(header.fingerprint).ok_or_else(|| {
            let (name, own) = (Request::TYPE_NAME, Request::fingerprint());
            format!("{name}: fingerprint {:#x} was found, this copy reads {own:#x}", header.fingerprint)
        })?;
        Request::decode_owned(version, payload).map_err(|error| error.to_string())
    }

    /// Runs the handler on this thread, and answers.
    pub(crate) fn handle(&self, ready: Ready<Request>, scratch: &mut Scratch) {
        let Ready { claimed, request, context, form, in_flight } = ready;
        let ran = self.handler.run(request, &context, None);
        self.answer_with(claimed, ran, form, scratch);
        // Dropped after the answer: the caller need not wait for the clock.
        drop(in_flight);
    }

    /// Runs the handler as a part of a task, and answers.
    pub(crate) async fn handle_later(&self, ready: Ready<Request>, scratch: &mut Scratch) {
        let Ready { claimed, request, context, form, in_flight } = ready;
        let ran = self.handler.run_later(request, context, None).await;
        self.answer_with(claimed, ran, form, scratch);
        drop(in_flight);
    }

    fn answer_with(&self, claimed: Claimed, ran: Ran<Reply>, form: ReplyForm, scratch: &mut Scratch) {
        crash_point("copy_handler_done");
        let length_max = claimed.reply_length_max();
        if let Ok(Ok(reply)) = &ran
            && !form.is_json
            && !form.is_one_way
            && form.version == Reply::VERSION
            && let Some(bytes) = caught(|| reply.encoded()).ok().flatten().filter(|bytes| bytes.len() <= length_max)
        {
            self.answer(claimed, Status::Reply, bytes);
            return scratch.reuse(ran);
        }
        let body = &mut scratch.reply;
        body.clear();
        let status = match ran {
            Ok(handled) => Self::encode(handled, form, length_max, body),
            Err(text) => {
                tracing::error!(route = &*self.route, panic = text, "a handler has panicked");
                body.extend_from_slice(text.as_bytes());
                Status::Panicked
            }
        };
        if status == Status::Forward && form.is_one_way {
            // The caller must follow the forward.
            claimed.tell_caller();
        }
        if body.len() <= length_max || matches!(status, Status::Panicked | Status::BadReply) {
            self.answer(claimed, status, body);
        } else {
            self.answer(claimed, Status::BadReply, too_long(body.len(), length_max).as_bytes());
        }
    }

    fn encode(handled: Handled<Reply>, form: ReplyForm, length_max: usize, body: &mut Vec<u8>) -> Status {
        let encoded = match handled {
            Ok(_) if form.is_one_way => return Status::Reply,
            Ok(reply) => caught(|| {
                if form.is_json {
                    return reply.to_json().map(|json| body.extend_from_slice(&json));
                }
                reply.encode_as(form.version, body)
            }),
            Err(Rejection::Refused(refusal)) => {
                write_refusal(&refusal, length_max, body);
                return Status::Refused;
            }
            Err(Rejection::Forward { route }) => {
                body.extend_from_slice(route.as_bytes());
                return Status::Forward;
            }
        };
        let reason = match encoded {
            Ok(Ok(())) => return Status::Reply,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic,
        };
        body.clear();
        body.extend_from_slice(reason.as_bytes());
        Status::BadReply
    }

    fn answer_about_itself(&self, claimed: Claimed, query: CopyQuery) {
        let body = match query {
            CopyQuery::Ping => String::new(),
            CopyQuery::Info => self.info.clone(),
            CopyQuery::Statistics => self.counters.statistics().to_json(),
        };
        let length_max = claimed.reply_length_max();
        // Not counted: it is no call of the route.
        if body.len() <= length_max {
            claimed.answer(Status::Reply, body.as_bytes());
        } else {
            claimed.answer(Status::BadReply, too_long(body.len(), length_max).as_bytes());
        }
    }

    fn answer(&self, claimed: Claimed, status: Status, body: &[u8]) {
        let is_heard = claimed.answer(status, body);
        self.counters.answered(status, is_heard);
    }
}

pub(crate) fn too_long(length: usize, length_max: usize) -> String {
    format!("it has {length} bytes; at most {length_max} are allowed on this route")
}

/// Trace of a request; a malformed one is ignored.
pub(crate) fn trace_of(header: &RequestHeader, headers: &mut Headers) -> TraceContext {
    let state = (header.flags & FLAG_TRACE_STATE != 0).then(|| headers.take_last(TRACE_STATE)).flatten();
    let trace = TraceContext::new(header.trace_id, header.span_id, header.trace_flags);
    match state.as_deref().map(str::from_utf8) {
        _ if trace.is_none() => TraceContext::NONE,
        Some(Ok(state)) => trace.with_state(state),
        Some(Err(_)) | None => trace,
    }
}
