//! Addresses, properties, options of producer and consumer.

use super::errors::{BrokerError, BrokerErrorKind};
use crate::config::{BridgeConfig, Compression};
use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Brokers and properties that all clients of a bridge share.
#[derive(Clone)]
pub struct BrokerConnection {
    /// Addresses of some brokers, `host:port`, with commas between them.
    pub brokers: String,
    /// Name of this client in the broker's logs and quotas.
    pub client_id: String,
    /// Longest wait for a broker's answer; 1 to 300 s, 10 s by default.
    pub request_timeout: Duration,
    /// Longest pause before another attempt to connect; up to 1 h, 1 s by default.
    pub reconnect_pause_max: Duration,
    /// Time until a topic unknown to all brokers fails its records and is told to its readers; up to 1 h, 5 s by
    /// default. A new topic needs some time.
    pub unknown_topic_after: Duration,
    /// Properties of librdkafka (its `CONFIGURATION.md`), passed through, such as `security.protocol`. They override
    /// this module's options, except `bootstrap.servers`, `group.id`, `enable.auto.commit`, `enable.partition.eof`,
    /// `auto.offset.reset` and `isolation.level`.
    pub properties: Vec<(String, String)>,
}

impl BrokerConnection {
    /// Brokers and a name, all else by default.
    pub fn new(brokers: &str, client_id: &str) -> Self {
        Self {
            brokers: brokers.to_owned(),
            client_id: client_id.to_owned(),
            request_timeout: Duration::from_secs(10),
            reconnect_pause_max: Duration::from_secs(1),
            unknown_topic_after: Duration::from_secs(5),
            properties: Vec::new(),
        }
    }

    /// Brokers, properties and secrets of a bridge's file.
    ///
    /// # Errors
    /// A secret that cannot be read, by its place, and why.
    pub fn from_config(config: &BridgeConfig) -> Result<Self, String> {
        let mut connection = Self::new(&config.brokers.join(","), &format!("gapless-bridge-{}", config.name));
        connection.properties.clone_from(&config.properties);
        for (name, secret) in &config.secrets {
            connection.properties.push((name.clone(), secret.read()?));
        }
        Ok(connection)
    }

    /// Checks the properties with librdkafka, without asking a broker.
    ///
    /// # Errors
    /// [`Configuration`](BrokerErrorKind::Configuration): a property, by its name, that librdkafka does not accept or
    /// that needs another build.
    pub fn check(&self) -> Result<(), BrokerError> {
        let native = self.config(&[], &[])?.create_native_config();
        native.map(drop).map_err(|error| BrokerError::from_kafka("read the properties", &error))
    }

    /// Adds a property.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.properties.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Later ones override: defaults, `options`, the user's properties, `fixed`.
    pub(super) fn config(
        &self,
        options: &[(&str, String)],
        fixed: &[(&str, &str)],
    ) -> Result<ClientConfig, BrokerError> {
        let request_ms = milliseconds("request_timeout", self.request_timeout, 1_000..=300_000)?;
        let pause_ms = milliseconds("reconnect_pause_max", self.reconnect_pause_max, 1..=3_600_000)?;
        let unknown_ms = milliseconds("unknown_topic_after", self.unknown_topic_after, 0..=3_600_000)?;
        let mut config = ClientConfig::new();
        config.set_log_level(RDKafkaLogLevel::Info);
        for (name, value) in [
            ("client.id", self.client_id.clone()),
            ("socket.timeout.ms", request_ms.to_string()),
            ("reconnect.backoff.ms", pause_ms.min(100).to_string()),
            ("reconnect.backoff.max.ms", pause_ms.to_string()),
            ("topic.metadata.propagation.max.ms", unknown_ms.to_string()),
            ("socket.nagle.disable", "true".to_owned()),
            ("socket.keepalive.enable", "true".to_owned()),
            ("log.connection.close", "false".to_owned()),
        ] {
            config.set(name, value);
        }
        for (name, value) in options {
            config.set(*name, value.as_str());
        }
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        config.set("bootstrap.servers", &self.brokers);
        for (name, value) in fixed {
            config.set(*name, *value);
        }
        Ok(config)
    }
}

/// Shows properties without their values: some are passwords.
impl fmt::Debug for BrokerConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.properties.iter().map(|(name, _)| name).collect::<Vec<_>>();
        let mut form = formatter.debug_struct("BrokerConnection");
        form.field("brokers", &self.brokers).field("client_id", &self.client_id).field("properties", &names);
        form.finish_non_exhaustive()
    }
}

impl Compression {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
        }
    }

    pub(super) fn topic_setting(self) -> &'static str {
        match self {
            Self::None => "uncompressed",
            other => other.name(),
        }
    }
}

/// Options of a [`Producer`](super::Producer).
#[derive(Clone, Debug)]
pub struct ProducerOptions {
    /// Longest wait of a record for others of its batch; up to 900 s, none by default.
    pub linger: Duration,
    /// Bytes of a batch at most; 1 byte to 2 GiB, 1,000,000 by default.
    pub batch_bytes_max: usize,
    /// Time until an unacknowledged record is reported as lost, with retries; 1 ms to 24 d, 30 s by default.
    pub delivery_timeout: Duration,
    /// Bytes of a record at most, with headers; 1,000 to 1,000,000,000, 1,000,000 by default. The broker's own limit is
    /// a little above 1 MiB by default.
    pub record_bytes_max: usize,
    /// Bytes that wait for the broker at most; 1 KiB to 2 TiB, 256 MiB by default. [`BrokerErrorKind::QueueFull`] beyond.
    pub queue_bytes_max: u64,
    /// Compression of batches.
    pub compression: Compression,
    /// Retries neither repeat a record nor change the order; on by default.
    pub is_idempotent: bool,
}

impl Default for ProducerOptions {
    fn default() -> Self {
        Self {
            linger: Duration::ZERO,
            batch_bytes_max: 1_000_000,
            delivery_timeout: Duration::from_secs(30),
            record_bytes_max: 1_000_000,
            queue_bytes_max: 256 << 20,
            compression: Compression::None,
            is_idempotent: true,
        }
    }
}

impl ProducerOptions {
    pub(super) fn properties(&self) -> Result<Vec<(&'static str, String)>, BrokerError> {
        let delivery_ms = milliseconds("delivery_timeout", self.delivery_timeout, 1..=2_147_483_647)?;
        let linger_ms = milliseconds("linger", self.linger, 0..=900_000)?;
        if linger_ms > delivery_ms {
            let reason = format!("linger: {linger_ms} ms are more than the delivery_timeout of {delivery_ms} ms");
            return Err(BrokerError::plain(BrokerErrorKind::Configuration, "open a client", "InvalidArgument", reason));
        }
        Ok(vec![
            ("linger.ms", linger_ms.to_string()),
            ("batch.size", self.batch_bytes_max.to_string()),
            ("queue.buffering.max.messages", "10000000".to_owned()),
            ("queue.buffering.max.kbytes", (self.queue_bytes_max >> 10).to_string()),
            ("message.timeout.ms", delivery_ms.to_string()),
            ("message.max.bytes", self.record_bytes_max.to_string()),
            ("compression.type", self.compression.name().to_owned()),
            ("enable.idempotence", self.is_idempotent.to_string()),
            ("acks", "all".to_owned()),
        ])
    }
}

/// First record of a [`Consumer`](super::Consumer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartOffset {
    Beginning,
    /// The first record appended after the consumer has asked the broker for the end, some time after its start.
    End,
    Offset(i64),
}

/// Options of a [`Consumer`](super::Consumer).
#[derive(Clone, Debug)]
pub struct ConsumerOptions {
    /// Topic of which partition 0 is read.
    pub topic: String,
    /// First record.
    pub start: StartOffset,
    /// Bytes that are read ahead, about; 1 KiB to 2 GiB, 16 MiB by default.
    pub buffer_bytes: u32,
    /// Bytes of a record at most before the connection is given up; 1,000 to 1,000,000,000, 100,000,000 by default.
    pub fetch_bytes_max: u32,
    /// Each arrival at the end of the topic is an event.
    pub reports_end: bool,
}

impl ConsumerOptions {
    /// Of a topic, all else by default.
    pub fn new(topic: &str, start: StartOffset) -> Self {
        Self {
            topic: topic.to_owned(),
            start,
            buffer_bytes: 16 << 20,
            fetch_bytes_max: 100_000_000,
            reports_end: false,
        }
    }

    pub(super) fn properties(&self) -> Vec<(&'static str, String)> {
        vec![
            ("queued.max.messages.kbytes", (self.buffer_bytes >> 10).to_string()),
            ("queued.min.messages", "100000".to_owned()),
            ("receive.message.max.bytes", (u64::from(self.fetch_bytes_max) + 512).to_string()),
            ("fetch.message.max.bytes", (self.buffer_bytes / 2).max(1_000_000).to_string()),
            ("fetch.max.bytes", self.fetch_bytes_max.to_string()),
            // A buffer that was full is filled again at once, not a second later.
            ("fetch.queue.backoff.ms", "1".to_owned()),
            ("fetch.error.backoff.ms", "100".to_owned()),
            ("fetch.wait.max.ms", "500".to_owned()),
            // A damaged batch is told, instead of a reader waiting for ever.
            ("check.crcs", "true".to_owned()),
        ]
    }
}

fn milliseconds(name: &str, time: Duration, allowed: RangeInclusive<u128>) -> Result<u128, BrokerError> {
    let found = time.as_millis();
    if allowed.contains(&found) {
        return Ok(found);
    }
    let reason = format!("{name}: {found} ms; expected {} to {} ms", allowed.start(), allowed.end());
    Err(BrokerError::plain(BrokerErrorKind::Configuration, "open a client", "InvalidArgument", reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn property_values_are_not_printed() {
        let connection = BrokerConnection::new("a:1", "b").with("sasl.password", "hidden");
        let printed = format!("{connection:?}");
        assert!(printed.contains("sasl.password") && !printed.contains("hidden"), "{printed}");
    }

    #[test]
    fn properties_go_before_options() {
        let connection = BrokerConnection::new("a:1", "b").with("linger.ms", "7").with("bootstrap.servers", "c:2");
        let options = ProducerOptions::default().properties().unwrap();
        let config = connection.config(&options, &[("group.id", "d")]).unwrap();
        assert_eq!(config.get("linger.ms"), Some("7"));
        assert_eq!(config.get("bootstrap.servers"), Some("a:1"));
        assert_eq!(config.get("group.id"), Some("d"));
    }

    #[test]
    fn properties_need_no_broker() {
        let file = |property: &str| {
            let text = format!("[kafka]\nbrokers = [\"a:1\", \"b:2\"]\nname = \"c\"\n[kafka.properties]\n{property}\n");
            BrokerConnection::from_config(&BridgeConfig::parse(&text, "bridge.toml").unwrap()).unwrap()
        };
        let connection = file("\"linger.ms\" = 7");
        assert_eq!((&*connection.brokers, &*connection.client_id), ("a:1,b:2", "gapless-bridge-c"));
        assert_eq!(connection.check(), Ok(()));
        for (property, expected) in [
            ("\"linger.mss\" = 7", "property linger.mss: No such configuration property"),
            ("\"security.protocol\" = \"tls\"", "property security.protocol: Invalid value \"tls\""),
        ] {
            let refused = file(property).check().unwrap_err();
            assert!(refused.reason.starts_with(expected), "{refused}");
        }
    }

    #[test]
    fn times_out_of_range_are_refused() {
        let linger = Duration::from_secs(31);
        let error = ProducerOptions { linger, ..ProducerOptions::default() }.properties().unwrap_err();
        assert!(error.reason.contains("31000 ms are more than"), "{error}");
        let short = BrokerConnection { request_timeout: Duration::from_millis(1), ..BrokerConnection::new("a:1", "b") };
        let error = short.config(&[], &[]).unwrap_err();
        assert_eq!(error.reason, "request_timeout: 1 ms; expected 1000 to 300000 ms");
    }
}
