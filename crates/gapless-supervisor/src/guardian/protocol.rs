//! Protocol between supervisor and guardian: one JSON value for each packet. An instance is `copy` on the wire, as in
//! earlier versions.

use crate::end_status::EndStatus;
use crate::instance_name::InstanceName;
pub use crate::packets::PACKET_BYTES_MAX;
use serde::{Deserialize, Serialize};

/// Protocol version. Other versions are refused with an error that names both.
pub const VERSION: u32 = 4;
/// Limit of children in one packet; each has a name of up to 75 bytes and a few numbers.
pub const CHILDREN_PER_PACKET: usize = 200;

/// Request of a supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum GuardianRequest {
    /// First packet of a connection.
    Hello {
        version: u32,
    },
    /// Fork a launcher for the launch plan of this incarnation. Idempotent: a repeated request gets the same answer.
    Start {
        #[serde(rename = "copy")]
        instance: InstanceName,
        incarnation: u64,
    },
    List,
    /// Acknowledge the end of a child.
    Forget {
        #[serde(rename = "copy")]
        instance: InstanceName,
        incarnation: u64,
    },
    /// Liveness probe. A supervisor that has sent one is expected to send one every second.
    #[serde(rename = "hears")]
    Ping,
    /// Exit once no instance is alive, and start no instances or supervisors until then. Void if the supervisor
    /// disconnects first.
    End,
}

/// Message of the guardian.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum GuardianMessage {
    /// Answer to the first packet, with a duplicate of the notification socket.
    Welcome { version: u32, process_id: u32 },
    /// Answer to an invalid packet, after which the connection is closed.
    Refused { reason: String },
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
        /// The machine lacks resources.
        #[serde(default)]
        is_shortage: bool,
    },
    /// Part of the list of children.
    Children {
        /// Sorted by name.
        children: Vec<ChildReport>,
        /// Another part follows.
        more: bool,
    },
    /// A child has ended. Sent once to the connected supervisor, and listed to later ones until it is acknowledged.
    Ended {
        #[serde(rename = "copy")]
        instance: InstanceName,
        incarnation: u64,
        process_id: u32,
        status: EndStatus,
    },
    /// A descendant of a child has ended that the guardian had inherited.
    OrphanEnded { process_id: u32 },
    #[serde(rename = "hears")]
    Pong,
    /// The guardian has received SIGTERM and requests a shutdown. Repeated to each supervisor.
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
