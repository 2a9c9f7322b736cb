//! Sending records, with a report for each.

use super::callbacks::{self, ErrorContext};
use super::errors::BrokerError;
use super::native::{self, RecordPersistence};
use super::settings::{BrokerConnection, ProducerOptions};
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Header, Message, OwnedHeaders, Timestamp};
use rdkafka::producer::{
    BaseProducer, BaseRecord, DeliveryResult, NoCustomPartitioner, Producer as _, ProducerContext, PurgeConfig,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const RETRY_PAUSE_MS: &str = "100";
/// A record reported sooner than this had one attempt at most.
const FIRST_ATTEMPT_US: u64 = 75_000;
const TROUBLES_MAX: usize = 16;

/// A record to be sent to partition 0 of a topic.
#[derive(Clone, Copy, Debug)]
pub struct ProduceRequest<'a> {
    /// Topic.
    pub topic: &'a str,
    /// Key, by which a compacted topic keeps the newest.
    pub key: Option<&'a [u8]>,
    /// Payload; `None` is the tombstone of a compacted topic.
    pub payload: Option<&'a [u8]>,
    /// Headers in their order.
    pub headers: &'a [(&'a str, &'a [u8])],
}

/// Report on one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryReport {
    /// Number that was given to [`Producer::send`].
    pub token: usize,
    /// Persistence in the broker's log.
    pub persistence: RecordPersistence,
    /// Sent once at most: its error is the only answer of any broker.
    pub is_first_attempt: bool,
    /// Offset of an acknowledged record; `None` if its first acknowledgement was lost and a retry was acknowledged.
    pub offset: Option<i64>,
    /// The broker's append time in ms since 1970, if acknowledged and the topic has append times.
    pub append_time_ms: Option<i64>,
    /// Reason, where it was not acknowledged.
    pub error: Option<BrokerError>,
}

/// Report of a [`Producer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProducerEvent {
    Delivery(DeliveryReport),
    /// No broker reached, user refused; records wait on, unless [`is_fatal`](BrokerError::is_fatal).
    Trouble(BrokerError),
}

#[derive(Default)]
struct ReportQueue(Mutex<VecDeque<ProducerEvent>>);

impl ReportQueue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<ProducerEvent>> {
        // No code that panics runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ProducerCallbacks {
    reports: Arc<ReportQueue>,
    error_context: ErrorContext,
}

impl ClientContext for ProducerCallbacks {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        callbacks::log(level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let trouble = ProducerEvent::Trouble(self.error_context.error(&error, reason));
        let mut reports = self.reports.lock();
        let mut troubles = reports.iter().filter(|event| matches!(event, ProducerEvent::Trouble(_)));
        // `rdkafka` calls this twice for each error.
        if troubles.clone().count() < TROUBLES_MAX && troubles.next_back() != Some(&trouble) {
            reports.push_back(trouble);
        }
    }
}

impl ProducerContext<NoCustomPartitioner> for ProducerCallbacks {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, token: usize) {
        let (message, error) = match result {
            Ok(message) => (message, None),
            Err((error, message)) => (message, Some(error)),
        };
        self.reports.lock().push_back(ProducerEvent::Delivery(delivery(message, error, token)));
    }
}

fn delivery(message: &BorrowedMessage<'_>, error: Option<&KafkaError>, token: usize) -> DeliveryReport {
    let error = error.map(|error| BrokerError::from_kafka(&format!("send to {}", message.topic()), error));
    let is_acknowledged = error.is_none();
    DeliveryReport {
        token,
        persistence: native::persistence(message),
        is_first_attempt: native::latency_us(message).is_some_and(|latency_us| latency_us < FIRST_ATTEMPT_US),
        offset: is_acknowledged.then(|| message.offset()).filter(|offset| *offset >= 0),
        append_time_ms: match message.timestamp() {
            Timestamp::LogAppendTime(time_ms) if is_acknowledged => Some(time_ms),
            _ => None,
        },
        error,
    }
}

/// Sends records to any topics and reports on each, in no order between topics. A report wakes no thread: call
/// [`take`](Producer::take) while any is [`pending`](Producer::pending). Without a broker, records wait for
/// [`delivery_timeout`](ProducerOptions::delivery_timeout). Dropping it discards unreported records; call
/// [`flush`](Producer::flush) before to keep them.
pub struct Producer {
    base: BaseProducer<ProducerCallbacks>,
    reports: Arc<ReportQueue>,
}

impl Producer {
    /// Opens it; connections come later, by themselves.
    ///
    /// # Errors
    /// [`Configuration`](super::BrokerErrorKind::Configuration): a property or option that librdkafka does not accept, by its name.
    pub fn open(connection: &BrokerConnection, options: &ProducerOptions) -> Result<Self, BrokerError> {
        const OPENING: &str = "open a producer";
        let reports = Arc::<ReportQueue>::default();
        let fixed = [
            // A missing topic must not be created with default settings.
            ("allow.auto.create.topics", "false"),
            ("retry.backoff.ms", RETRY_PAUSE_MS),
            ("retry.backoff.max.ms", "1000"),
        ];
        let config = connection.config(&options.properties()?, &fixed)?;
        let base = config.create_with_context(ProducerCallbacks {
            reports: Arc::clone(&reports),
            error_context: ErrorContext::new("produce".to_owned()),
        });
        Ok(Self { base: base.map_err(|error| BrokerError::from_kafka(OPENING, &error))?, reports })
    }

    /// Hands over a copy of a record and returns at once. A [`DeliveryReport`] with `token` always follows while this
    /// producer lives.
    ///
    /// # Errors
    /// No delivery follows. [`QueueFull`](super::BrokerErrorKind::QueueFull),
    /// [`TooLarge`](super::BrokerErrorKind::TooLarge), [`UnknownTopic`](super::BrokerErrorKind::UnknownTopic) and
    /// [`NotAuthorized`](super::BrokerErrorKind::NotAuthorized) where already known; an earlier fatal error.
    pub fn send(&self, record: &ProduceRequest<'_>, token: usize) -> Result<(), BrokerError> {
        let mut headers = OwnedHeaders::new_with_capacity(record.headers.len());
        for (key, value) in record.headers {
            headers = headers.insert(Header { key, value: Some(*value) });
        }
        let sent = BaseRecord::<[u8], [u8], usize> {
            topic: record.topic,
            partition: Some(0),
            payload: record.payload,
            key: record.key,
            timestamp: None,
            headers: (!record.headers.is_empty()).then_some(headers),
            delivery_opaque: token,
        };
        self.base.send(sent).map_err(|(error, _)| BrokerError::from_kafka(&format!("send to {}", record.topic), &error))
    }

    /// The oldest report.
    pub fn take(&self) -> Option<ProducerEvent> {
        let taken = self.reports.lock().pop_front();
        let taken = taken.or_else(|| {
            self.base.poll(Duration::ZERO);
            self.reports.lock().pop_front()
        });
        taken.map(|event| self.with_end(event))
    }

    /// A fatal error comes with the code of its cause.
    fn with_end(&self, event: ProducerEvent) -> ProducerEvent {
        match event {
            ProducerEvent::Trouble(error) => {
                let is_fatal = error.is_fatal || self.base.client().fatal_error().is_some();
                ProducerEvent::Trouble(BrokerError { is_fatal, ..error })
            }
            event @ ProducerEvent::Delivery(_) => event,
        }
    }

    /// Records without a report.
    pub fn pending(&self) -> usize {
        usize::try_from(self.base.in_flight_count()).unwrap_or_default()
    }

    /// Withdraws unsent records, as [`discard`](Producer::discard) does, and returns at once; records of the next
    /// moments may be withdrawn, too.
    pub fn withdraw(&self) {
        self.base.purge(PurgeConfig::default().queue().non_blocking());
    }

    /// Withdraws all records, also those on their way. Each is reported as
    /// [`Discarded`](super::BrokerErrorKind::Discarded), with its persistence.
    pub fn discard(&self) {
        self.base.purge(PurgeConfig::default().queue().inflight());
    }

    #[cfg(test)]
    pub(super) fn native_ptr(&self) -> *mut rdkafka::bindings::rd_kafka_t {
        self.base.client().native_ptr()
    }

    /// Blocks until each record has its report, without lingering; take the reports then.
    ///
    /// # Errors
    /// [`TimedOut`](super::BrokerErrorKind::TimedOut): some have none yet.
    pub fn flush(&self, timeout: Duration) -> Result<(), BrokerError> {
        self.base.flush(timeout).map_err(|error| BrokerError::from_kafka("flush a producer", &error))
    }
}
