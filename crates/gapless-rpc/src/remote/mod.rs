//! Calls between processes: requests and replies in shared memory, without a broker.
//!
//! | module | what lives there |
//! |---|---|
//! | [`attempt`] | [`Attempt`](attempt::Attempt): one attempt of a call, from its offer to its outcome |
//! | [`table`] | [`RouteTable`](table::RouteTable): the calling process's side of one route |
//! | [`copy`] | [`ServedCallers`](copy::ServedCallers): the serving instance's side: requests of all callers, and answers |
//! | `watching` | handlers that wait for the cancellation of their calls |
//! | [`request_words`] | kinds and flags of a request's header |
//! | [`ended`] | the error with which a relay ends a call, as bytes |
//! | [`status`] | the status of a reply |
//!
//! The registry connects processes. A table knows its instances by numbers that are never reused.

pub(crate) mod attempt;
pub(crate) mod copy;
pub(crate) mod ended;
pub(crate) mod request_words;
pub(crate) mod status;
pub(crate) mod table;
mod watching;

#[cfg(test)]
mod tests;
