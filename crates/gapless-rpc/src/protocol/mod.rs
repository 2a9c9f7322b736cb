//! Words of a request's header and of a reply that callers and instances share.

pub(crate) mod ended;
pub(crate) mod request_flags;
pub(crate) mod status;
