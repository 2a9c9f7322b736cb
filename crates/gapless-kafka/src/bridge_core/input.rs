//! [`BridgeInput`]: an event for a core.

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
    /// The first one.
    Start,
    /// A record was read, in the order of the topic's offsets.
    Record(ReadRecord),
    /// The producer's report on a record of [`Effect::Send`](crate::effects::Effect::Send): one for each, but for those of
    /// [`BridgeInput::Withheld`].
    Delivered {
        /// Name of the record.
        token: DeliveryToken,
        /// Place of the record, or why it has none.
        result: Result<RecordPlace, AppendFailure>,
    },
    /// A relay took a request. It gets one [`Effect::End`](crate::effects::Effect::End).
    Request(OutgoingCall),
    /// The caller of a request no longer waits. It gets no [`Effect::End`](crate::effects::Effect::End) any more.
    GivenUp(RequestId),
    /// The caller of a request would not let it begin: none of its records was handed over, and none has a report. It gets no
    /// [`Effect::End`](crate::effects::Effect::End) any more.
    Withheld(RequestId),
    /// A call of [`Effect::Start`](crate::effects::Effect::Start) has ended.
    CallEnded {
        /// Call.
        call: CallId,
        /// Outcome.
        outcome: CallOutcome,
    },
    /// The ordinary instances of all routes of the own domain, whether offered or not: at the start, and when they change.
    Offers(Vec<OfferedRoute>),
    /// The client's words about a broker that it cannot reach. Only later reasons name them.
    BrokerTrouble {
        /// Words.
        reason: String,
    },
    /// The next record of a topic cannot be read, and those after it only without it.
    Unreadable {
        /// Topic.
        topic: Topic,
        /// The client's words.
        reason: String,
    },
    /// Records of the own inbox were lost before they were read: the topic was made again, or has deleted them. The bridge begins again
    /// under another incarnation.
    InboxLost {
        /// Random number.
        incarnation: u64,
        /// Reason.
        reason: String,
    },
    /// The bridge is to stop.
    Stop,
    /// Time has passed.
    Tick,
}
