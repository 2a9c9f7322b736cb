//! `StreamNodeOptions`: options of publishing and reading, with the defaults.

use super::link::Start;
use super::publishing_session::PublisherOptions;
use gapless_log::StreamIdentity;
use gapless_transport::token::random_token;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamNodeOptions {
    pub start: Start,
    /// `None` for a node that only reads.
    pub publisher: Option<PublisherOptions>,
    /// Required of the sequencer; zeros for any.
    pub identity: StreamIdentity,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        Self {
            token: random_token(),
            shared: false,
            window_messages: 1 << 16,
            kept_bytes_max: 64 << 20,
            throttle: None,
            resend_interval_ns: 20_000_000,
        }
    }
}

impl Default for StreamNodeOptions {
    /// Publishes under a random token, and reads from the first frame.
    fn default() -> Self {
        Self { start: Start::First, publisher: Some(PublisherOptions::default()), identity: StreamIdentity::default() }
    }
}

impl StreamNodeOptions {
    /// Reads from `start` and publishes nothing.
    #[must_use]
    pub fn reading(start: Start) -> Self {
        Self { start, publisher: None, identity: StreamIdentity::default() }
    }

    /// Defaults under `token`.
    #[must_use]
    pub fn with_token(token: u128) -> Self {
        Self { publisher: Some(PublisherOptions { token, ..PublisherOptions::default() }), ..Self::default() }
    }
}
