//! The assignment of the second process of `gapless bench link`.

use serde::{Deserialize, Serialize};

/// Number of parts of a run; the first warms up.
pub const PARTS: u64 = 6;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkAssignment {
    /// CPU of the process; `None` if both processes have to share one.
    pub cpu: Option<usize>,
    /// Length of each frame with its header, bytes.
    pub frame_length: usize,
    /// Number of messages, a multiple of [`PARTS`].
    pub messages: u64,
    pub task: LinkTask,
    #[serde(default)]
    pub transport: LinkTransport,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkTransport {
    /// TCP on loopback.
    #[default]
    Tcp,
    /// Two rings that both processes map.
    SharedMemory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkTask {
    /// Report the rate, messages a second.
    Read,
    /// Send each message back.
    Echo,
    /// Send the number of the last message of each poll.
    Acknowledge,
}
