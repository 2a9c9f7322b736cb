//! What the words of a request's header mean to callers and copies: its kind, its flags, and the user header that is the library's.
//! Where they lie is said by [`RequestHeader`](gapless_log::call_table::RequestHeader).

use gapless_log::call_table::RequestHeader;

/// In a request's header: a call of the handler, and nothing that is asked of the copy itself.
pub(crate) const KIND_CALL: u8 = 0;

/// What is asked of a copy, in a request's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CopyQuery {
    /// Whether the copy answers at all.
    Ping = 1,
    /// What the copy says of itself, as JSON.
    Info = 2,
    /// What it has counted, as JSON.
    Statistics = 3,
}

impl CopyQuery {
    pub(crate) const fn from_value(value: u8) -> Option<Self> {
        Some(match value {
            1 => Self::Ping,
            2 => Self::Info,
            3 => Self::Statistics,
            _ => return None,
        })
    }
}

/// In a header's flags: the payload is JSON, and so shall be the reply.
pub(crate) const FLAG_JSON: u32 = 1;
/// In a header's flags: nobody waits for the reply.
pub(crate) const FLAG_ONE_WAY: u32 = 2;
/// In a header's flags: the last of the user headers is [`TRACE_STATE`], which belongs to the trace and is none of the caller's.
pub(crate) const FLAG_TRACE_STATE: u32 = 4;
/// In a header's flags: the caller gave a key, which may be 0.
pub(crate) const FLAG_KEY: u32 = 8;
/// Name of the header that has the trace's state.
pub(crate) const TRACE_STATE: &str = "tracestate";

/// In a header's flags, from this bit on: how many kinds of notices the caller receives.
pub(crate) const NOTICES_SHIFT: u32 = 24;

/// The affinity key that the caller gave. Callers of earlier versions do not say so of a key 0.
pub(crate) fn key_of(header: &RequestHeader) -> Option<u64> {
    (header.flags & FLAG_KEY != 0 || header.key != 0).then_some(header.key)
}
