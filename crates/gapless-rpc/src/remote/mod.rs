//! The reach between processes: requests and replies in shared memory, with nobody in the middle.
//!
//! | module | what lives there |
//! |---|---|
//! | [`attempt`] | [`Attempt`](attempt::Attempt): one attempt of a call, from its offer to its outcome |
//! | [`table`] | [`RouteTable`](table::RouteTable): the calling process's side of one route |
//! | [`copy`] | [`ServedCallers`](copy::ServedCallers): a copy's side: requests of all its callers, and answers |
//! | `watching` | handlers that wait to be told that their calls were given up |
//! | [`request_words`] | what the words of a request's header mean |
//! | [`ended`] | the error with which a relay ends a call, as bytes |
//! | [`status`] | what a reply says of itself |
//!
//! The registry connects processes. A table knows its copies by numbers that it gives and never gives again.

pub(crate) mod attempt;
pub(crate) mod copy;
pub(crate) mod ended;
pub(crate) mod request_words;
pub(crate) mod status;
pub(crate) mod table;
mod watching;

#[cfg(test)]
mod tests;
