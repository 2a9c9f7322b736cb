//! Kinds and flags of a request's header; [`RequestHeader`](gapless_log::call_table::RequestHeader) has the layout.

use gapless_log::call_table::RequestHeader;

pub(crate) const KIND_CALL: u8 = 0;

/// Query of an instance, as a kind in the request's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum InstanceQuery {
    /// Whether the instance answers at all.
    Ping = 1,
    /// Description of the instance, as JSON.
    Info = 2,
    /// Statistics of the instance, as JSON.
    Statistics = 3,
}

impl InstanceQuery {
    pub(crate) const fn from_value(value: u8) -> Option<Self> {
        Some(match value {
            1 => Self::Ping,
            2 => Self::Info,
            3 => Self::Statistics,
            _ => return None,
        })
    }
}

/// The payload is JSON, and so must be the reply.
pub(crate) const FLAG_JSON: u32 = 1;
pub(crate) const FLAG_ONE_WAY: u32 = 2;
/// The last user header is [`TRACE_STATE`], which belongs to the trace and not to the caller.
pub(crate) const FLAG_TRACE_STATE: u32 = 4;
/// The caller gave a key, which may be 0.
pub(crate) const FLAG_KEY: u32 = 8;
pub(crate) const TRACE_STATE: &str = "tracestate";

/// First bit of the number of notice types the caller receives.
pub(crate) const NOTICES_SHIFT: u32 = 24;

/// Earlier versions do not set the flag, so their key 0 means none.
pub(crate) fn key_of(header: &RequestHeader) -> Option<u64> {
    (header.flags & FLAG_KEY != 0 || header.key != 0).then_some(header.key)
}
