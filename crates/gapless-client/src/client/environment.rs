//! [`ClientEnvironment`]: the facts that a client takes from its machine, so that a simulation decides.

use crate::ClientError;
use gapless_transport::publisher_link::PublisherLink;
use std::time::{Duration, Instant};

/// Time, sleep and connections of one client. One that has none of these has its machine's own.
pub trait ClientEnvironment: Send {
    /// The current time; it never goes back.
    fn now(&self) -> Instant;

    /// Lets time go by until something has come for the client, or for `timeout`. However short that is, the work
    /// beside the client goes on.
    fn sleep(&mut self, timeout: Duration);

    /// One attempt to connect, of at most `timeout`. The connection before, if there is one, is no longer used.
    ///
    /// # Errors
    /// Nobody is there; no answer in time.
    fn connect(&mut self, timeout: Duration) -> Result<PublisherLink, ClientError>;
}
