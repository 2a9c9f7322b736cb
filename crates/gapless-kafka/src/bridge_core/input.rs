//! `BridgeInput`: an event for a core.

use crate::calls_out::{AppendFailure, OutgoingCall, RecordPlace};
use crate::effects::{CallId, DeliveryToken, RequestId};
use crate::outcome::CallOutcome;
use crate::presence::OfferedRoute;
use crate::record::KafkaRecord;
pub use crate::record::Topic;

/// A record that was read from partition 0 of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRecord {
    /// Topic.
    pub topic: Topic,
    /// Offset.
    pub offset: i64,
    /// Append time, ms since 1970.
    pub append_time_ms: i64,
    /// Content.
    pub record: KafkaRecord,
}

/// An event for a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeInput {
    Start,
    /// In the order of the topic's offsets.
    Record(ReadRecord),
    /// Report on a record of [`Effect::Send`](crate::effects::Effect::Send); none for [`BridgeInput::Withheld`].
    Delivered {
        token: DeliveryToken,
        result: Result<RecordPlace, AppendFailure>,
    },
    /// A relay took a request, which gets one [`Effect::End`](crate::effects::Effect::End).
    Request(OutgoingCall),
    /// The caller no longer waits; no [`Effect::End`](crate::effects::Effect::End) follows.
    GivenUp(RequestId),
    /// The caller refused to let its request begin: no record was handed over, no report and no
    /// [`Effect::End`](crate::effects::Effect::End) follow.
    Withheld(RequestId),
    CallEnded {
        call: CallId,
        outcome: CallOutcome,
    },
    /// Ordinary instances of all routes of the own domain, offered or not: at the start and when they change.
    Offers(Vec<OfferedRoute>),
    /// The client's words; used in later reasons only.
    BrokerTrouble {
        reason: String,
    },
    Unreadable {
        topic: Topic,
        reason: String,
    },
    /// The topic of the inbox was made again or has deleted unread records: the bridge begins again as another
    /// incarnation.
    InboxLost {
        incarnation: u64,
        reason: String,
    },
    Stop,
    Tick,
}
