//! What a supervisor and its guardian say to each other: JSON, a packet each.

use crate::copy_name::CopyName;
use crate::end_status::EndStatus;
pub use crate::packets::PACKET_BYTES_MAX;
use serde::{Deserialize, Serialize};

/// The version of this protocol. Another one is refused, with both numbers.
pub const VERSION: u32 = 4;
/// Children in one packet at most: each has a name of 75 bytes and some numbers.
pub const CHILDREN_A_PACKET: usize = 200;

/// What a supervisor asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// The first packet.
    Hello {
        /// [`VERSION`].
        version: u32,
    },
    /// To fork a launcher for the intent of that incarnation. Asked again for the same one, nothing is forked, and the
    /// answer is the same.
    Start {
        /// The copy.
        copy: CopyName,
        /// Its intent.
        incarnation: u64,
    },
    /// All children that it knows.
    List,
    /// To know no more of one that has ended.
    Forget {
        /// The copy.
        copy: CopyName,
        /// Its intent.
        incarnation: u64,
    },
    /// To say that it hears. Who asks so is expected to go on, once a second.
    Hears,
    /// To end when none of its copies lives any more, and to start neither copies nor supervisors until then. If whoever
    /// asked goes before, nobody has asked.
    End,
}

/// What a guardian tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum Told {
    /// To the first packet. With it comes a duplicate of the notify socket.
    Welcome {
        /// The guardian's [`VERSION`].
        version: u32,
        /// Its process.
        process_id: u32,
    },
    /// To a packet that it does not take; the connection is closed behind it.
    Refused {
        /// Why.
        reason: String,
    },
    /// A launcher was forked.
    Started {
        /// The copy.
        copy: CopyName,
        /// Its intent.
        incarnation: u64,
        /// Its process.
        process_id: u32,
    },
    /// None was.
    NotStarted {
        /// The copy.
        copy: CopyName,
        /// Its intent.
        incarnation: u64,
        /// Why not.
        reason: String,
        /// Whether the machine lacks something.
        #[serde(default)]
        is_shortage: bool,
    },
    /// Some of its children.
    Children {
        /// In the order of their names.
        children: Vec<ChildReport>,
        /// Whether another such packet follows.
        more: bool,
    },
    /// A child has ended. Kept until it is to be forgotten: told once to the supervisor that is connected, and in the list
    /// to later ones.
    Ended {
        /// The copy.
        copy: CopyName,
        /// Its intent.
        incarnation: u64,
        /// The process that it was.
        process_id: u32,
        /// How.
        status: EndStatus,
    },
    /// A process has ended that one of its children had forked and left behind.
    OrphanEnded {
        /// The process that it was.
        process_id: u32,
    },
    /// It hears.
    Hears,
    /// The guardian was asked by SIGTERM to end, and so asks for everything to be stopped. Told again to each supervisor.
    EndWanted,
}

/// A child of the guardian.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildReport {
    /// The copy.
    pub copy: CopyName,
    /// Its intent.
    pub incarnation: u64,
    /// Its process.
    pub process_id: u32,
    /// How it has ended, if it has.
    pub ended: Option<EndStatus>,
}
