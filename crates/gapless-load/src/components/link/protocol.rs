//! The assignment of the second process of `gapless bench link`.

use serde::{Deserialize, Serialize};

/// A run is split into this many parts; the first warms up.
pub const PARTS: u64 = 6;

/// The assignment of the second process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Its CPU; none if both processes have to share one.
    pub cpu: Option<usize>,
    /// Bytes of each frame, with its header.
    pub frame_length: usize,
    /// Messages that will come, a multiple of [`PARTS`].
    pub messages: u64,
    pub task: Task,
    #[serde(default)]
    pub transport: Transport,
}

/// The transport of the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// TCP on loopback.
    #[default]
    Tcp,
    /// Two rings that both processes map.
    SharedMemory,
}

/// The use that it makes of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Answer how many there were a second.
    Read,
    /// Send each back.
    Echo,
    /// Send the number of the last one that a look brought.
    Acknowledge,
}
