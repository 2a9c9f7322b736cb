//! `ClientEnvironment`: time, sleep and connections of a client, replaceable by a simulation.

use crate::ClientError;
use gapless_transport::publisher_link::PublisherLink;
use std::time::{Duration, Instant};

/// Time, sleep and connections of one client, replaceable by a simulation.
pub trait ClientEnvironment: Send {
    /// Current time; it never goes back.
    fn now(&self) -> Instant;

    /// Sleeps until something has arrived for the client, or for `timeout`.
    fn sleep(&mut self, timeout: Duration);

    /// Tries to connect once, for at most `timeout`; replaces an earlier connection.
    ///
    /// # Errors
    /// Connection refused; no answer in time.
    fn connect(&mut self, timeout: Duration) -> Result<PublisherLink, ClientError>;
}
