//! Records of one topic from an offset, without a group.

use super::callbacks::{self, ErrorContext};
use super::errors::BrokerError;
use super::native::{self, KafkaHeader};
use super::settings::{BrokerConnection, ConsumerOptions, StartOffset};
use super::waiting_task::WaitingTask;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::{BorrowedMessage, Message, Timestamp};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

/// A received record, in the consumer's memory: reading ahead pauses while records are held.
pub struct ReceivedRecord<'a> {
    message: BorrowedMessage<'a>,
    /// The first caller that asks parses the headers.
    not_sync: PhantomData<Cell<()>>,
}

impl ReceivedRecord<'_> {
    /// Offset in the topic; offsets grow, with holes.
    pub fn offset(&self) -> i64 {
        self.message.offset()
    }

    /// The broker's time of its append in ms since 1970; `None` where the topic has the times of its producers.
    pub fn append_time_ms(&self) -> Option<i64> {
        match self.message.timestamp() {
            Timestamp::LogAppendTime(time_ms) => Some(time_ms),
            _ => None,
        }
    }

    /// Key, any bytes.
    pub fn key(&self) -> Option<&[u8]> {
        self.message.key()
    }

    /// Payload, any bytes; `None` is a tombstone.
    pub fn payload(&self) -> Option<&[u8]> {
        self.message.payload()
    }

    /// Headers in their order, any bytes; `None` if they do not decode.
    pub fn headers(&self) -> Option<Vec<KafkaHeader<'_>>> {
        native::headers(&self.message)
    }
}

/// Event of a [`Consumer`].
pub enum ConsumerEvent<'a> {
    Record(ReceivedRecord<'a>),
    /// All present records of the topic were taken; only with [`reports_end`](ConsumerOptions::reports_end).
    End,
    /// The connection was lost, the broker refuses, or the offset is gone. The consumer goes on by itself, except:
    /// after [`OffsetOutOfRange`](super::BrokerErrorKind::OffsetOutOfRange) it needs [`restart`](Consumer::restart);
    /// after [`Unreadable`](super::BrokerErrorKind::Unreadable), which repeats, open another one at a later offset;
    /// after a fatal error it is unusable.
    Trouble(BrokerError),
}

struct ConsumerCallbacks {
    error_context: ErrorContext,
    was_called: AtomicBool,
    last: Mutex<Option<BrokerError>>,
}

impl ClientContext for ConsumerCallbacks {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        self.was_called.store(true, Ordering::Relaxed);
        callbacks::log(level, facility, line);
    }

    fn stats_raw(&self, _: &[u8]) {
        self.was_called.store(true, Ordering::Relaxed);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let trouble = self.error_context.error(&error, reason);
        if let Ok(mut last) = self.last.lock() {
            *last = Some(trouble);
        }
    }
}

impl ConsumerContext for ConsumerCallbacks {}

/// Reads partition 0 of a topic from an offset on, reading ahead in the background, without group or commits.
/// librdkafka is silent about a topic that this user may not describe: ask [`Topics::offsets`](super::Topics::offsets)
/// before.
pub struct Consumer {
    base: BaseConsumer<ConsumerCallbacks>,
    task: Arc<WaitingTask>,
    topic: String,
}

impl Consumer {
    /// Opens it; connections come later, by themselves.
    ///
    /// # Errors
    /// [`Configuration`](super::BrokerErrorKind::Configuration): a property or option that librdkafka does not accept, by its name.
    pub fn open(connection: &BrokerConnection, options: &ConsumerOptions) -> Result<Self, BrokerError> {
        let config = config(connection, options)?;
        let task = Arc::<WaitingTask>::default();
        let topic = options.topic.clone();
        let callbacks = ConsumerCallbacks {
            error_context: ErrorContext::new(format!("read {topic}")),
            was_called: AtomicBool::new(false),
            last: Mutex::new(None),
        };
        let base = config.create_with_context(callbacks);
        let mut base: BaseConsumer<ConsumerCallbacks> =
            base.map_err(|error| BrokerError::from_kafka("open a consumer", &error))?;
        let waker = Arc::clone(&task);
        base.set_nonempty_callback(move || waker.wake());
        let consumer = Self { base, task, topic };
        consumer.restart(options.start)?;
        Ok(consumer)
    }

    /// Continues at `start`; records that were read ahead are dropped.
    ///
    /// # Errors
    /// A name of a topic or an offset that librdkafka does not accept.
    pub fn restart(&self, start: StartOffset) -> Result<(), BrokerError> {
        let offset = match start {
            StartOffset::Beginning => Offset::Beginning,
            StartOffset::End => Offset::End,
            StartOffset::Offset(offset) => Offset::Offset(offset),
        };
        let mut list = TopicPartitionList::new();
        let assigned = list.add_partition_offset(&self.topic, 0, offset).and_then(|()| self.base.assign(&list));
        assigned.map_err(|error| BrokerError::from_kafka(&format!("read {}", self.topic), &error))
    }

    /// The next event that is here.
    pub fn take(&self) -> Option<ConsumerEvent<'_>> {
        Some(match self.next()? {
            Ok(message) => ConsumerEvent::Record(ReceivedRecord { message, not_sync: PhantomData }),
            Err(KafkaError::PartitionEOF(_)) => {
                self.last_error();
                ConsumerEvent::End
            }
            Err(error) => {
                let plain = BrokerError::from_kafka(&format!("read {}", self.topic), &error);
                let reported = self.last_error().unwrap_or_else(|| plain.clone());
                ConsumerEvent::Trouble(BrokerError { is_fatal: plain.is_fatal, ..reported })
            }
        })
    }

    /// Omits group errors: librdkafka looks for a coordinator although no one joins.
    fn next(&self) -> Option<KafkaResult<BorrowedMessage<'_>>> {
        loop {
            let event = callbacks::poll(&self.base, &self.base.context().was_called)?;
            if !event.as_ref().is_err_and(is_of_group) {
                return Some(event);
            }
            self.last_error();
        }
    }

    fn last_error(&self) -> Option<BrokerError> {
        self.base.context().last.lock().ok()?.take()
    }

    /// Polls for the next event, by one task at a time.
    pub fn poll_take(&self, context: &mut Context<'_>) -> Poll<ConsumerEvent<'_>> {
        if let Some(event) = self.take() {
            return Poll::Ready(event);
        }
        self.task.watch(context.waker());
        // An event that came before the waker was kept has woken no one.
        self.take().map_or(Poll::Pending, Poll::Ready)
    }
}

fn config(connection: &BrokerConnection, options: &ConsumerOptions) -> Result<ClientConfig, BrokerError> {
    let reports_end = if options.reports_end { "true" } else { "false" };
    let fixed = [
        // Assignments need a name; its group is never joined.
        ("group.id", "gapless-bridge"),
        ("enable.auto.commit", "false"),
        ("enable.auto.offset.store", "false"),
        ("enable.partition.eof", reports_end),
        ("auto.offset.reset", "error"),
        ("allow.auto.create.topics", "false"),
        // The default waits at an open transaction, which any program may leave.
        ("isolation.level", "read_uncommitted"),
    ];
    connection.config(&options.properties(), &fixed)
}

fn is_of_group(error: &KafkaError) -> bool {
    let code = error.rdkafka_error_code();
    matches!(
        code,
        Some(
            Code::GroupAuthorizationFailed
                | Code::CoordinatorNotAvailable
                | Code::CoordinatorLoadInProgress
                | Code::NotCoordinator
                | Code::InvalidGroupId
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_transactions_hold_no_reader() {
        let connection = BrokerConnection::new("a:1", "b").with("isolation.level", "read_committed");
        let config = config(&connection, &ConsumerOptions::new("x", StartOffset::Beginning)).unwrap();
        assert_eq!(config.get("isolation.level"), Some("read_uncommitted"));
    }
}
