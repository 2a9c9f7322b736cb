//! [`StreamNodeOptions`]: how a node publishes and reads, with the defaults.

use super::link::Start;
use super::publishing_session::PublisherOptions;
use gapless_log::StreamIdentity;
use gapless_transport::token::random_token;

/// How a node publishes and reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamNodeOptions {
    /// Where it begins to read.
    pub start: Start,
    /// How it publishes; `None` for one that only reads.
    pub publisher: Option<PublisherOptions>,
    /// The stream and the life of it that must be there; zeros for any.
    pub identity: StreamIdentity,
}

impl Default for PublisherOptions {
    /// A session of its own, under a random token.
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
    /// Publishes under a random token, and reads from the first frame on.
    fn default() -> Self {
        Self { start: Start::First, publisher: Some(PublisherOptions::default()), identity: StreamIdentity::default() }
    }
}

impl StreamNodeOptions {
    /// Reads from `start` on and publishes nothing.
    #[must_use]
    pub fn reading(start: Start) -> Self {
        Self { start, publisher: None, identity: StreamIdentity::default() }
    }

    /// As [`StreamNodeOptions::default`], under `token`.
    #[must_use]
    pub fn with_token(token: u128) -> Self {
        Self { publisher: Some(PublisherOptions { token, ..PublisherOptions::default() }), ..Self::default() }
    }
}
