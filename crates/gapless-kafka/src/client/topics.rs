//! Creating and describing topics; blocking, for the start.

use super::callbacks::{self, ErrorContext, LoggingContext};
use super::errors::{BrokerError, BrokerErrorKind};
use super::settings::BrokerConnection;
use crate::config::Compression;
use rdkafka::ClientContext;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

const TURN: Duration = Duration::from_millis(200);

/// A topic that is to exist, with one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSpec {
    /// Name.
    pub name: String,
    /// Copies of each record, or the broker's default.
    pub replicas: Option<u16>,
    /// Settings by Kafka's names, such as `cleanup.policy`.
    pub settings: Vec<(String, String)>,
}

impl TopicSpec {
    /// An inbox: the broker's append times, records kept for `retention`. The broker converts foreign records to
    /// `compression`, because this build does not read every form.
    pub fn inbox(name: &str, retention: Duration, compression: Compression) -> Self {
        let settings = [
            ("message.timestamp.type", "LogAppendTime".to_owned()),
            ("cleanup.policy", "delete".to_owned()),
            ("retention.ms", retention.as_millis().to_string()),
            ("compression.type", compression.topic_setting().to_owned()),
        ];
        Self::with_settings(name, settings)
    }

    /// Leases: append times of the broker, the newest record of each key is kept.
    pub fn compacted(name: &str) -> Self {
        let settings = [
            ("message.timestamp.type", "LogAppendTime".to_owned()),
            ("cleanup.policy", "compact".to_owned()),
            ("compression.type", Compression::None.topic_setting().to_owned()),
        ];
        Self::with_settings(name, settings)
    }

    fn with_settings<const N: usize>(name: &str, settings: [(&str, String); N]) -> Self {
        let settings = settings.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Self { name: name.to_owned(), replicas: None, settings }
    }
}

/// A topic as the broker has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDescription {
    /// Number of its partitions.
    pub partitions: usize,
    /// All its settings, those by default among them, as Kafka names them.
    pub settings: BTreeMap<String, String>,
}

/// Result of [`Topics::ensure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicCreation {
    New,
    /// The topic existed. Differences from the specification; none if it is as specified.
    Existing(Vec<TopicDifference>),
}

/// A setting of a topic that is not as specified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDifference {
    /// Name of the setting, or `partitions`.
    pub setting: String,
    /// The topic's value; `None` where the broker does not know the setting.
    pub found: Option<String>,
    /// The specified value.
    pub expected: String,
    /// The protocol of bridges does not hold with it.
    pub is_fatal: bool,
}

impl TopicDifference {
    fn new(setting: &str, found: Option<&str>, expected: &str) -> Self {
        let is_fatal = match setting {
            // Deadlines need the broker's time; leases must be kept.
            "message.timestamp.type" | "cleanup.policy" => true,
            // A form that this build does not read would stop its reader.
            "compression.type" => found.is_some_and(|found| !["uncompressed", "lz4", "snappy"].contains(&found)),
            _ => false,
        };
        let (found, expected) = (found.map(str::to_owned), expected.to_owned());
        Self { setting: setting.to_owned(), found, expected, is_fatal }
    }
}

impl fmt::Display for TopicDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, found, expected, .. } = self;
        match found {
            Some(found) => write!(f, "{setting} is {found}; expected {expected}"),
            None => write!(f, "{setting} is unknown to the broker; expected {expected}"),
        }
    }
}

struct ProbeCallbacks {
    last: Mutex<Option<BrokerError>>,
    error_context: ErrorContext,
    was_called: AtomicBool,
}

impl ClientContext for ProbeCallbacks {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        self.was_called.store(true, Ordering::Relaxed);
        callbacks::log(level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let error = self.error_context.error(&error, reason);
        if let Ok(mut last) = self.last.lock() {
            // The reason of a refusal is followed by errors that only say that no broker is left.
            let is_refusal = |error: &BrokerError| error.kind == BrokerErrorKind::Authentication;
            if !last.as_ref().is_some_and(is_refusal) || is_refusal(&error) {
                *last = Some(error);
            }
        }
    }
}

impl ConsumerContext for ProbeCallbacks {}

/// Topics of the brokers. All functions block, each for about its `timeout`; made for the start of a bridge, to be
/// dropped then.
pub struct Topics {
    admin: AdminClient<LoggingContext>,
    /// Creates no topic, unlike a producer, and its errors can be read, unlike the admin client's.
    probe: BaseConsumer<ProbeCallbacks>,
}

impl Topics {
    /// Connects to a broker.
    ///
    /// # Errors
    /// [`Authentication`](BrokerErrorKind::Authentication) as soon as the broker refuses this client;
    /// [`Unreachable`](BrokerErrorKind::Unreachable) or [`TimedOut`](BrokerErrorKind::TimedOut), with the last reason,
    /// after `timeout`; [`Configuration`](BrokerErrorKind::Configuration).
    pub fn connect(connection: &BrokerConnection, timeout: Duration) -> Result<Self, BrokerError> {
        let config = connection.config(&[], &[("allow.auto.create.topics", "false")])?;
        let opened = |error: KafkaError| BrokerError::from_kafka("connect", &error);
        let callbacks = ProbeCallbacks {
            last: Mutex::new(None),
            error_context: ErrorContext::new("connect".to_owned()),
            was_called: AtomicBool::new(false),
        };
        let probe: BaseConsumer<ProbeCallbacks> = config.create_with_context(callbacks).map_err(opened)?;
        let admin = config.create_with_context(LoggingContext).map_err(opened)?;
        let topics = Self { admin, probe };
        topics.retry("connect", timeout, |turn| topics.probe.client().fetch_metadata(None, turn).map(drop))?;
        Ok(topics)
    }

    /// Creates a missing topic, compares an existing one. A user who may create none uses existing ones.
    ///
    /// # Errors
    /// The broker's refusal; [`TimedOut`](BrokerErrorKind::TimedOut).
    pub fn ensure(&self, topic: &TopicSpec, timeout: Duration) -> Result<TopicCreation, BrokerError> {
        let operation = format!("create topic {}", topic.name);
        let replicas = topic.replicas.map_or(-1, i32::from);
        let mut new = NewTopic::new(&topic.name, 1, TopicReplication::Fixed(replicas));
        for (name, value) in &topic.settings {
            new = new.set(name, value);
        }
        let options = AdminOptions::new().request_timeout(Some(timeout)).operation_timeout(Some(timeout));
        let results = wait(&operation, self.admin.create_topics([&new], &options), timeout)?;
        match results.into_iter().next() {
            Some(Ok(_)) => Ok(TopicCreation::New),
            Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => {
                let found = self.describe(&topic.name, timeout)?;
                let gone = || BrokerError::from_code(&operation, RDKafkaErrorCode::UnknownTopicOrPartition, None);
                Ok(TopicCreation::Existing(differences(topic, &found.ok_or_else(gone)?)))
            }
            Some(Err((_, code))) => {
                let refusal = BrokerError::from_code(&operation, code, None);
                match refusal.kind {
                    BrokerErrorKind::NotAuthorized => match self.describe(&topic.name, timeout) {
                        Ok(Some(found)) => Ok(TopicCreation::Existing(differences(topic, &found))),
                        _ => Err(refusal),
                    },
                    _ => Err(refusal),
                }
            }
            None => Err(BrokerError::from_code(&operation, RDKafkaErrorCode::Unknown, None)),
        }
    }

    /// A topic as the broker has it; `None` if it has none of that name.
    ///
    /// # Errors
    /// The broker's refusal; [`TimedOut`](BrokerErrorKind::TimedOut).
    pub fn describe(&self, name: &str, timeout: Duration) -> Result<Option<TopicDescription>, BrokerError> {
        let operation = format!("describe topic {name}");
        let options = AdminOptions::new().request_timeout(Some(timeout));
        let topic = ResourceSpecifier::Topic(name);
        let asked = self.admin.describe_configs([&topic], &options);
        let answers = match wait(&operation, asked, timeout) {
            Err(error) if error.kind == BrokerErrorKind::UnknownTopic => return Ok(None),
            answers => answers?,
        };
        let settings = match answers.into_iter().next() {
            Some(Ok(found)) => {
                let entries = found.entries.into_iter();
                entries.filter_map(|entry| Some((entry.name, entry.value?))).collect()
            }
            Some(Err(RDKafkaErrorCode::UnknownTopicOrPartition)) => return Ok(None),
            Some(Err(code)) => return Err(BrokerError::from_code(&operation, code, None)),
            None => return Err(BrokerError::from_code(&operation, RDKafkaErrorCode::Unknown, None)),
        };
        match self.partitions(&operation, name, timeout) {
            Ok(partitions) => Ok(Some(TopicDescription { partitions, settings })),
            // Some brokers report default settings for a missing topic.
            Err(error) if error.kind == BrokerErrorKind::UnknownTopic => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Offsets of partition 0: from the oldest record to the next one.
    ///
    /// # Errors
    /// [`UnknownTopic`](BrokerErrorKind::UnknownTopic), [`NotAuthorized`](BrokerErrorKind::NotAuthorized) and others of
    /// the broker; [`TimedOut`](BrokerErrorKind::TimedOut).
    pub fn offsets(&self, name: &str, timeout: Duration) -> Result<Range<i64>, BrokerError> {
        let operation = format!("ask for the offsets of {name}");
        // The error of this call has the reason, unlike that of the next one.
        self.partitions(&operation, name, timeout)?;
        self.retry(&operation, timeout, |turn| {
            let (oldest, next) = self.probe.client().fetch_watermarks(name, 0, turn)?;
            Ok(oldest..next)
        })
    }

    /// Removes a topic with its records.
    ///
    /// # Errors
    /// [`UnknownTopic`](BrokerErrorKind::UnknownTopic) and others of the broker; [`TimedOut`](BrokerErrorKind::TimedOut).
    pub fn remove(&self, name: &str, timeout: Duration) -> Result<(), BrokerError> {
        let operation = format!("remove topic {name}");
        let options = AdminOptions::new().request_timeout(Some(timeout)).operation_timeout(Some(timeout));
        match wait(&operation, self.admin.delete_topics(&[name], &options), timeout)?.into_iter().next() {
            Some(Ok(_)) => Ok(()),
            Some(Err((_, code))) => Err(BrokerError::from_code(&operation, code, None)),
            None => Err(BrokerError::from_code(&operation, RDKafkaErrorCode::Unknown, None)),
        }
    }

    fn partitions(&self, operation: &str, name: &str, timeout: Duration) -> Result<usize, BrokerError> {
        self.retry(operation, timeout, |turn| {
            let metadata = self.probe.client().fetch_metadata(Some(name), turn)?;
            let topic = metadata.topics().iter().find(|topic| topic.name() == name);
            match topic.map(|topic| (topic.error(), topic)) {
                Some((None, topic)) => Ok(topic.partitions().len()),
                Some((Some(error), _)) => Err(KafkaError::MetadataFetch(error.into())),
                None => Err(KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopicOrPartition)),
            }
        })
    }

    fn retry<T>(
        &self,
        operation: &str,
        timeout: Duration,
        mut ask: impl FnMut(Duration) -> Result<T, KafkaError>,
    ) -> Result<T, BrokerError> {
        let begun = Instant::now();
        loop {
            let since = Instant::now();
            let error = match ask(TURN.min(timeout)) {
                Ok(answer) => return Ok(answer),
                Err(error) => BrokerError::from_kafka(operation, &error),
            };
            while callbacks::poll(&self.probe, &self.probe.context().was_called).is_some() {}
            let reported = self.probe.context().last.lock().ok().and_then(|mut last| last.take());
            let reported = reported.map(|reported| BrokerError { operation: operation.to_owned(), ..reported });
            let is_refusal = reported.as_ref().is_some_and(|reported| reported.kind == BrokerErrorKind::Authentication);
            let is_passing = matches!(error.kind, BrokerErrorKind::Unreachable | BrokerErrorKind::TimedOut);
            if is_refusal || begun.elapsed() >= timeout {
                return Err(reported.unwrap_or(error));
            }
            if !is_passing {
                return Err(error);
            }
            std::thread::sleep(TURN.saturating_sub(since.elapsed()).min(timeout));
        }
    }
}

fn differences(wanted: &TopicSpec, found: &TopicDescription) -> Vec<TopicDifference> {
    let partitions = found.partitions.to_string();
    let partitions = (partitions != "1").then(|| TopicDifference::new("partitions", Some(&partitions), "1"));
    let settings = wanted.settings.iter().filter_map(|(name, expected)| {
        let found = found.settings.get(name).map(String::as_str);
        (found != Some(expected)).then(|| TopicDifference::new(name, found, expected))
    });
    partitions.into_iter().chain(settings).collect()
}

struct AdminWaker(Thread);

impl Wake for AdminWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait<T>(
    operation: &str,
    asked: impl Future<Output = Result<T, KafkaError>>,
    timeout: Duration,
) -> Result<T, BrokerError> {
    let (mut asked, deadline) = (pin!(asked), Instant::now() + timeout + Duration::from_secs(1));
    let waker = Waker::from(Arc::new(AdminWaker(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(answer) = asked.as_mut().poll(&mut context) {
            return answer.map_err(|error| BrokerError::from_kafka(operation, &error));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(BrokerError::from_code(operation, RDKafkaErrorCode::OperationTimedOut, None));
        }
        std::thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_words_and_weight() {
        let wanted = TopicSpec::inbox("a", Duration::from_secs(60), Compression::Lz4);
        let mut settings: BTreeMap<String, String> = wanted.settings.iter().cloned().collect();
        let found = TopicDescription { partitions: 1, settings: settings.clone() };
        assert_eq!(differences(&wanted, &found), []);
        settings.insert("retention.ms".to_owned(), "5".to_owned());
        settings.remove("cleanup.policy");
        settings.insert("compression.type".to_owned(), "producer".to_owned());
        let found = TopicDescription { partitions: 3, settings };
        let expected = [
            ("partitions is 3; expected 1", false),
            ("cleanup.policy is unknown to the broker; expected delete", true),
            ("retention.ms is 5; expected 60000", false),
            ("compression.type is producer; expected lz4", true),
        ];
        let expected = expected.map(|(words, is_fatal)| (words.to_owned(), is_fatal));
        let differences = differences(&wanted, &found);
        let found: Vec<_> = differences.iter().map(|each| (each.to_string(), each.is_fatal)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn unread_compression_is_fatal() {
        let is_fatal = |setting, found| TopicDifference::new(setting, Some(found), "lz4").is_fatal;
        assert!(is_fatal("compression.type", "zstd") && is_fatal("compression.type", "producer"));
        assert!(!is_fatal("compression.type", "snappy") && is_fatal("message.timestamp.type", "CreateTime"));
    }
}
