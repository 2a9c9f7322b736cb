//! [`Effect`]: an order of a core to its owner, carried out in list order.

use crate::outcome::CallOutcome;
use crate::presence::PEERS_MAX;
use crate::record::{KafkaRecord, RequestHead, Topic};
use gapless_message::described::TypeDescription;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Name of a relayed request, given by the core's owner and never used again in the same process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Name of a call in the own domain, given by the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

pub(crate) const KIND_BITS: u32 = 3;
pub(crate) const KIND_MASK: u64 = (1 << KIND_BITS) - 1;
pub(crate) const BUNDLE_KIND: u64 = 6;

/// Name of a record that was sent, for its delivery report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryToken {
    Mark(u64),
    Lease(u64),
    Request(RequestId),
    Reply(u64),
    Ping,
    /// A record whose loss has no consequence of its own.
    Control,
}

impl DeliveryToken {
    /// Converts the token to one number, which a producer carries with each record.
    #[must_use]
    pub const fn to_number(self) -> u64 {
        let (kind, number) = match self {
            Self::Mark(number) => (1, number),
            Self::Lease(number) => (2, number),
            Self::Request(RequestId(number)) => (3, number),
            Self::Reply(number) => (4, number),
            Self::Ping => (5, 0),
            Self::Control => (0, 0),
        };
        number << KIND_BITS | kind
    }

    /// Inverse of [`DeliveryToken::to_number`]; [`DeliveryToken::Control`] for other numbers.
    #[must_use]
    pub const fn from_number(number: u64) -> Self {
        match number & KIND_MASK {
            1 => Self::Mark(number >> KIND_BITS),
            2 => Self::Lease(number >> KIND_BITS),
            3 => Self::Request(RequestId(number >> KIND_BITS)),
            4 => Self::Reply(number >> KIND_BITS),
            5 => Self::Ping,
            _ => Self::Control,
        }
    }
}

/// A record to be appended to partition 0 of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingRecord {
    /// Name for the delivery report; each record gets exactly one.
    pub token: DeliveryToken,
    /// Topic.
    pub topic: Arc<str>,
    /// Content.
    pub record: KafkaRecord,
    /// Relayed request that begins with this record. The owner calls its `begin` immediately before the hand-over; if
    /// refused, it hands over no record with this token and reports
    /// [`BridgeInput::Withheld`](crate::bridge_core::BridgeInput::Withheld).
    pub begins: Option<RequestId>,
}

/// A call to be made in the own domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingCall {
    /// Name for its outcome.
    pub call: CallId,
    /// The request as in its record; key, instance, query, headers, trace and types are handed on.
    pub head: Box<RequestHead>,
    /// Payload.
    pub payload: Vec<u8>,
    /// Time that the call has; `None` without end.
    pub timeout: Option<Duration>,
}

/// A route that other bridges offer and this one takes: a relay is to stand for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteRoute {
    /// Name.
    pub route: String,
    /// The application's version of it.
    pub version: String,
    /// Names and values by which the application describes it.
    pub metadata: Vec<(String, String)>,
    /// Type of the request.
    pub request: TypeDescription,
    /// Type of the reply.
    pub reply: TypeDescription,
    /// Workers of all instances.
    pub workers: u32,
    /// Open instances, by their identity.
    pub instances: Vec<RemoteInstance>,
}

/// An instance of a route in another domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteInstance {
    /// Identity, the same in every domain.
    pub identity: u64,
    /// `machine/process`.
    pub name: String,
}

/// An order of a core to its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    ReadPresence,
    /// Read the own inbox from this offset, and nothing before it.
    ReadInbox {
        offset: i64,
    },
    /// Report [`BridgeInput::InboxLost`](crate::bridge_core::BridgeInput::InboxLost) when the inbox is there.
    ReopenInbox {
        reason: String,
    },
    SkipLeases,
    PurgeQueue,
    Send(OutgoingRecord),
    Start(IncomingCall),
    /// No outcome is expected.
    Cancel(CallId),
    End {
        request: RequestId,
        /// Empty reply for a one-way request that was sent.
        outcome: CallOutcome,
    },
    Relay(RemoteRoute),
    Withdraw {
        route: String,
    },
    Notice(BridgeNotice),
    /// End: the bridge has stopped, or must.
    Ended(Result<(), BridgeError>),
}

/// The end of a bridge that was not asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BridgeError {
    /// Another process has begun under the same name. Give each bridge its own name.
    #[error(
        "the bridge {name} began a second time as {other}; this one, {own}, ends: two bridges of one prefix need two names"
    )]
    NameTaken {
        name: String,
        /// This process, as `machine/process (incarnation)`.
        own: String,
        other: String,
    },
}

/// An event for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeNotice {
    Serving,
    /// A bridge has come, or begun again.
    PeerBegan {
        bridge: String,
        machine: String,
    },
    PeerStopped {
        bridge: String,
    },
    PeerSilent {
        bridge: String,
        /// Missing sign of life.
        reason: String,
    },
    PeerBack {
        bridge: String,
    },
    BadLease {
        bridge: String,
        reason: String,
    },
    /// The prefix has [`PEERS_MAX`] others; told once.
    PrefixFull {
        bridge: String,
    },
    Unreadable {
        topic: Topic,
        reason: String,
    },
    /// The broker gives no own record back.
    BrokerLost {
        reason: String,
    },
    BrokerBack,
    LeaseFull {
        routes: usize,
    },
}

impl fmt::Display for BridgeNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serving => f.write_str("serving"),
            Self::PeerBegan { bridge, machine } => write!(f, "bridge {bridge} on {machine} has begun"),
            Self::PeerStopped { bridge } => write!(f, "bridge {bridge} has stopped"),
            Self::PeerSilent { bridge, reason } => write!(f, "bridge {bridge} is silent: {reason}"),
            Self::PeerBack { bridge } => write!(f, "bridge {bridge} is back"),
            Self::BadLease { bridge, reason } => write!(f, "bridge {bridge} is not used: {reason}"),
            Self::PrefixFull { bridge } => {
                write!(f, "bridge {bridge} is not used: the prefix has {PEERS_MAX} others; further ones are not named")
            }
            Self::Unreadable { topic: Topic::Inbox, reason } => {
                write!(f, "a record of the inbox cannot be read: {reason}")
            }
            Self::Unreadable { topic: Topic::Presence, reason } => write!(f, "a lease cannot be read: {reason}"),
            Self::BrokerLost { reason } => write!(f, "the broker is lost: {reason}"),
            Self::BrokerBack => f.write_str("the broker is back"),
            Self::LeaseFull { routes } => {
                write!(f, "{routes} routes are not offered: a lease with them is longer than a record may be")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_numbers() {
        let request = DeliveryToken::Request(RequestId(1 << 60));
        for token in [
            DeliveryToken::Mark(1),
            DeliveryToken::Lease(2),
            request,
            DeliveryToken::Reply(0),
            DeliveryToken::Ping,
            DeliveryToken::Control,
        ] {
            assert_eq!(DeliveryToken::from_number(token.to_number()), token);
        }
    }
}
