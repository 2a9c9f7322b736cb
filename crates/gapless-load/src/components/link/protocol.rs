//! The assignment of the second process of `gapless bench link`.

use serde::{Deserialize, Serialize};

/// Parts of a run; the first warms up.
pub const PARTS: u64 = 6;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkAssignment {
    pub cpu: Option<usize>,
    /// Length with the header.
    pub frame_length: usize,
    /// A multiple of [`PARTS`].
    pub messages: u64,
    pub task: LinkTask,
    #[serde(default)]
    pub transport: LinkTransport,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkTransport {
    #[default]
    Tcp,
    SharedMemory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkTask {
    /// Report the rate, messages a second.
    Read,
    Echo,
    /// One answer per poll, with the number of the last message.
    Acknowledge,
}
