//! Connecting to a service that lets publishers in.

pub mod shared_memory;
pub mod tcp;

use crate::link::RingSizes;
use crate::seen::Seen;
use gapless_log::StreamIdentity;
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ConnectOptions {
    /// Sizes of the rings.
    pub link: RingSizes,
    /// The stream that must be there; zeros for any.
    pub identity: StreamIdentity,
    /// Whether the stream itself is to be read.
    pub reads: bool,
    /// What was seen of it.
    pub seen: Seen,
    /// How long the other side may take to answer.
    pub timeout: Duration,
}
