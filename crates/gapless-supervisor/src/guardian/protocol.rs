//! One JSON value for each packet; an instance is `copy` on the wire.

use crate::end_status::EndStatus;
use crate::instance_name::InstanceName;
pub use crate::packets::PACKET_BYTES_MAX;
use serde::{Deserialize, Serialize};

/// Protocol version; others are refused with an error that names both.
pub const VERSION: u32 = 4;
/// Limit of children in one packet; each has a name of up to 75 bytes and a few numbers.
pub const CHILDREN_PER_PACKET: usize = 200;

/// Request of a supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum GuardianRequest {
    Hello {
        version: u32,
    },
    /// A repeated request gets the same answer.
    Start {
        #[serde(rename = "copy")]
        instance: InstanceName,
        incarnation: u64,
    },
    List,
    Forget {
        #[serde(rename = "copy")]
        instance: InstanceName,
        incarnation: u64,
    },
    /// Liveness probe; after the first, one is expected every second.
    #[serde(rename = "hears")]
    Ping,
    /// Exit once no instance is alive; void if the supervisor disconnects first.
    End,
}

/// Message of the guardian.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum GuardianMessage {
    Welcome {
        version: u32,
        process_id: u32,
    },
    Refused {
        reason: String,
    },
    Started {
        #[serde(rename = "copy")]
        instance: InstanceName,
        incarnation: u64,
        process_id: u32,
    },
    NotStarted {
        #[serde(rename = "copy")]
        instance: InstanceName,
        incarnation: u64,
        reason: String,
        #[serde(default)]
        is_shortage: bool,
    },
    Children {
        children: Vec<ChildReport>,
        more: bool,
    },
    /// Sent once, and listed to later supervisors until acknowledged.
    Ended {
        #[serde(rename = "copy")]
        instance: InstanceName,
        incarnation: u64,
        process_id: u32,
        status: EndStatus,
    },
    OrphanEnded {
        process_id: u32,
    },
    #[serde(rename = "hears")]
    Pong,
    /// The guardian has received SIGTERM; repeated to each supervisor.
    EndWanted,
}

/// Child of the guardian.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildReport {
    #[serde(rename = "copy")]
    pub instance: InstanceName,
    pub incarnation: u64,
    pub process_id: u32,
    /// `None` while it is alive.
    pub ended: Option<EndStatus>,
}
