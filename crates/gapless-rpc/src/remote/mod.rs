//! The reach between processes: requests and replies in shared memory, with nobody in the middle.
//!
//! | module | what lives there |
//! |---|---|
//! | [`call`] | [`RemoteCall`](call::RemoteCall): one call, from its offer to its outcome |
//! | [`table`] | [`RouteTable`](table::RouteTable): the calling process's side of one route |
//! | [`copy`] | [`ServedCallers`](copy::ServedCallers): a copy's side: requests of all its callers, and answers |
//! | `watching` | handlers that wait to be told that their calls were given up |
//! | [`status`] | what a reply says of itself |
//!
//! Who connects whom is the registry's business. A table knows its copies by numbers that it gives and never gives again.

pub(crate) mod call;
pub(crate) mod copy;
pub(crate) mod status;
pub(crate) mod table;
mod watching;

#[cfg(test)]
mod tests;
