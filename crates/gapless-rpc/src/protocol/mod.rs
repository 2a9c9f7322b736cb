//! Words of a request's header and of a reply that callers and instances share.
//!
//! | module | what lives there |
//! |---|---|
//! | [`request_flags`] | kinds and flags of a request's header |
//! | [`ended`] | the error with which a relay ends a call, as bytes |
//! | [`status`] | the status of a reply |

pub(crate) mod ended;
pub(crate) mod request_flags;
pub(crate) mod status;
