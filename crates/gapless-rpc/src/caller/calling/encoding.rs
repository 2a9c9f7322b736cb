//! Encoding of requests with their terms, and decoding of replies.

use super::{Caller, RelayedBytes};
use crate::caller::inherited::Inherited;
use crate::caller::remote_call::{Destination, Terms};
use crate::context::Headers;
use crate::message::{Encoding, Message, version_of};
use crate::options::{CallOptions, Retry};
use crate::outcome::CallError;
use crate::remote::request_words::{FLAG_JSON, FLAG_KEY, FLAG_ONE_WAY, FLAG_TRACE_STATE, NOTICES_SHIFT, TRACE_STATE};
use crate::remote::table::{End, RemoteOffer};
use gapless_agent::foreign::caught;
use gapless_log::call_table::RequestHeader;
use std::any::TypeId;
use std::cell::Cell;

/// Buffer capacity that a thread keeps between two requests, bytes.
const BYTES_KEPT_MAX: usize = 1 << 20;

thread_local! {
    /// User headers and payload of the request being encoded.
    static SCRATCH: Cell<(Vec<u8>, Vec<u8>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

impl<Request: Message, Reply: Message> Caller<Request, Reply> {
    /// Encodes a request for `then`: to the route, or to one instance if `copy` is not 0.
    pub(super) fn encoded<Made>(
        &self,
        request: &Request,
        options: &CallOptions,
        flags: u32,
        copy: u32,
        then: impl FnOnce(&Destination, Terms, (&[u8], &[u8])) -> Result<Made, CallError>,
    ) -> Result<Made, CallError> {
        let Some(routes) = &self.shared.remote_routes else {
            return Err(CallError::no_route(self.route()));
        };
        let inherited = Inherited::of(options);
        let to = self.destination(routes, options, &inherited);
        let to = to.inspect_err(|error| self.count_tableless(routes, End::of(error)))?;
        // Taken rather than borrowed: offering may wake tasks, which may call. An ending thread may have no buffer any
        // more.
        let (mut user_headers, mut payload) = SCRATCH.try_with(Cell::take).unwrap_or_default();
        let asked = (request, options, inherited);
        let encoded = self.encode(to, asked, (flags, copy), (&mut user_headers, &mut payload));
        let made = encoded.and_then(|(terms, payload)| then(to, terms, (&user_headers, payload)));
        payload.clear();
        payload.shrink_to(BYTES_KEPT_MAX);
        let _ = SCRATCH.try_with(|scratch| scratch.set((user_headers, payload)));
        made
    }

    fn encode<'bytes>(
        &self,
        to: &Destination,
        (request, options, inherited): (&'bytes Request, &CallOptions, Inherited),
        (flags, copy): (u32, u32),
        (user_headers, payload): (&mut Vec<u8>, &'bytes mut Vec<u8>),
    ) -> Result<(Terms, &'bytes [u8]), CallError> {
        let table = &to.table;
        let bad = |reason: String| CallError::bad_request_here(self.route().to_owned(), &reason);
        user_headers.clear();
        payload.clear();
        options.headers.encode(user_headers).map_err(bad)?;
        let state = inherited.trace.state();
        if let Some(state) = state {
            Headers::default().with(TRACE_STATE, state).encode(user_headers).map_err(bad)?;
        }
        let fingerprint = table.request_fingerprint();
        let version = version_of::<Request>(fingerprint).unwrap_or(Request::VERSION);
        // Application code: a panic fails only this call.
        let encoded = caught(|| match request.encoded() {
            Some(bytes) if version == Request::VERSION => Ok(Some(bytes)),
            _ => request.encode_as(version, payload).map(|()| None),
        });
        let encoded = encoded.map_err(bad)?.map_err(|error| bad(error.to_string()))?;
        let payload = encoded.unwrap_or(payload);
        table.check_request(user_headers.len(), payload.len()).map_err(bad)?;
        let flags = flags | u32::from(self.shared.local_routes.notices()) << NOTICES_SHIFT;
        let flags = if state.is_some() { flags | FLAG_TRACE_STATE } else { flags };
        let flags = if options.key.is_some() { flags | FLAG_KEY } else { flags };
        let header = RequestHeader {
            class: options.priority as u8,
            hops: self.shared.hops,
            flags: if Request::ENCODING == Encoding::Json { flags | FLAG_JSON } else { flags },
            encoding: Request::ENCODING as u32,
            call: inherited.sent_ns,
            sent_ns: inherited.sent_ns,
            key: options.key.unwrap_or(0),
            deadline_ns: inherited.deadline_ns,
            fingerprint,
            trace_id: inherited.trace.trace_id,
            span_id: inherited.trace.span_id,
            trace_flags: inherited.trace.flags,
            ..RequestHeader::default()
        };
        let one_way = flags & FLAG_ONE_WAY != 0;
        let mut terms = Terms {
            offer: RemoteOffer {
                header,
                target: copy,
                one_way,
                precedes_copy: self.shared.precedes_copies,
                ..RemoteOffer::default()
            },
            retry: if copy == 0 { options.retry } else { Retry::Never },
            affinity: options.key.filter(|_| copy == 0),
            timeout: inherited.timeout,
            wait_for_route: options.wait_for_route.unwrap_or_default(),
        };
        if let Some(relayed) = RelayedBytes::of(request) {
            relayed.put_terms(&to.key, table, &mut terms)?;
        }
        Ok((terms, payload))
    }
}

/// Decoder of a reply: a JSON request gets a JSON reply.
pub(super) fn decoder<Request: Message, Reply: Message>() -> fn(&mut Vec<u8>, u32) -> Result<Reply, String> {
    if Request::ENCODING == Encoding::Json {
        return |bytes, _| Reply::from_json(bytes).map_err(|error| error.to_string());
    }
    if TypeId::of::<Request>() == TypeId::of::<RelayedBytes>() {
        // The bytes have the version of another program.
        return |bytes, _| Reply::decode_owned(Reply::VERSION, bytes).map_err(|error| error.to_string());
    }
    |bytes, version| Reply::decode_owned(version, bytes).map_err(|error| error.to_string())
}
