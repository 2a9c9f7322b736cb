//! [`BridgeConfig`]: the file of a bridge, as plain data. Nothing is offered or taken by default.
//!
//! ```
//! use gapless_kafka::config::BridgeConfig;
//! let text = r#"
//! offer = ["shop/**"]
//! take = ["bank/*"]
//! [kafka]
//! brokers = ["192.0.2.1:9092"]
//! name = "berlin"
//! "#;
//! let config = BridgeConfig::parse(text, "bridge.toml")?;
//! assert_eq!((config.prefix.as_str(), config.name.as_str()), ("gapless", "berlin"));
//! let refused = BridgeConfig::parse(&text.replace("bank/*", "/*"), "bridge.toml").unwrap_err().to_string();
//! assert!(refused.starts_with("bridge.toml:3: take: \"/*\" was found; a route's name is allowed"), "{refused}");
//! # Ok::<(), gapless_config::ConfigErrors>(())
//! ```

mod files;

use crate::record::SEGMENTS_MAX;
use crate::record::names::{BRIDGE_NAME_LENGTH_MAX, PREFIX_LENGTH_MAX, is_bridge_name, is_prefix, is_topic};
use crate::route_filter::RouteFilter;
use crate::segments::AssemblyLimits;
use gapless_agent::regular_file::read_text;
use gapless_config::{ConfigError, ConfigErrors, Document, Refusals, Table, Value, read_file};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

pub use files::FileCheck;
pub(crate) use files::is_secret;

/// Bytes of a payload at most, of requests and replies.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;
/// Bytes of a segment at least, where it is not the last.
pub const SEGMENT_BYTES_MIN: usize = 1 << 10;
/// Bytes below the broker's limit that `segment_bytes` leaves for headers.
pub const SEGMENT_HEADERS_BYTES: usize = 20 << 10;
const _: () = assert!(PAYLOAD_BYTES_MAX / SEGMENT_BYTES_MIN <= SEGMENTS_MAX as usize);
const UNFINISHED_SENDERS: u64 = 8;
const OWN_PROPERTIES: [&str; 13] = [
    "acks",
    "auto.offset.reset",
    "bootstrap.servers",
    "client.id",
    "enable.auto.commit",
    "enable.idempotence",
    "group.id",
    "isolation.level",
    "metadata.broker.list",
    "request.required.acks",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "transactional.id",
];

/// The file of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeConfig {
    /// `kafka.brokers`: `host:port` of some of the brokers, at least one.
    pub brokers: Vec<String>,
    /// `kafka.prefix`: prefix of topic names, shared by bridges that know each other; `gapless` by default.
    pub prefix: String,
    /// `kafka.name`: name of this bridge, unique in its prefix.
    pub name: String,
    /// `kafka.compression`: of sent records; none by default.
    pub compression: Compression,
    /// `[kafka.properties]`: further settings of the client, by its names.
    pub properties: Vec<(String, String)>,
    /// `[kafka.secrets]`: settings with values kept elsewhere.
    pub secrets: Vec<(String, SecretSource)>,
    /// `[domain]`: the domain whose routes it bridges.
    pub domain: DomainPlace,
    /// `offer`: routes of this domain that other bridges may call.
    pub offer: Vec<RouteFilter>,
    /// `take`: routes of other domains that this domain may call.
    pub take: Vec<RouteFilter>,
    /// `reply_topics`: topics in which programs that are no bridges may ask for replies; `PREFIX.reply.*` by default.
    pub reply_topics: Vec<TopicFilter>,
    /// `[limits]`.
    pub limits: BridgeLimits,
}

/// Compression of records; other forms need another build of librdkafka.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    #[default]
    None,
    Lz4,
    Snappy,
}

/// Place of a value that is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// The text of a file, without line breaks at its end.
    File(PathBuf),
    Environment(String),
}

/// The domain of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DomainPlace {
    #[default]
    Default,
    Name(String),
    Directory(PathBuf),
}

/// A topic's name, or a prefix of names followed by `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicFilter(String);

/// Limits and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeLimits {
    /// `calls_per_peer`: calls in flight to one bridge, and as many from it.
    pub calls_per_peer: u32,
    /// `bytes_per_peer`: request bytes in flight to one bridge, and as many from it.
    pub bytes_per_peer: u64,
    /// `segment_bytes`: longest payload of one record; below the broker's limit, with room for headers of 20 KiB.
    pub segment_bytes: usize,
    /// `lease_interval`: time between two leases, heartbeats and pings.
    pub lease_interval: Duration,
    /// `lease_time`: time without a sign of life after which a bridge or the broker counts as silent.
    pub lease_time: Duration,
    /// `segment_time`: time after which an incomplete payload without a deadline is given up.
    pub segment_time: Duration,
    /// `stop_time`: longest wait of a stop for calls in flight.
    pub stop_time: Duration,
}

impl BridgeLimits {
    pub(crate) const fn assembly(&self) -> AssemblyLimits {
        AssemblyLimits {
            payload_bytes: PAYLOAD_BYTES_MAX as u64,
            sender_bytes: self.bytes_per_peer,
            total_bytes: self.bytes_per_peer.saturating_mul(UNFINISHED_SENDERS),
            sender_payloads: self.calls_per_peer as usize,
            total_payloads: self.calls_per_peer as usize * UNFINISHED_SENDERS as usize,
        }
    }
}

impl Default for BridgeLimits {
    fn default() -> Self {
        Self {
            calls_per_peer: 1024,
            bytes_per_peer: 64 << 20,
            segment_bytes: 900_000,
            lease_interval: Duration::from_secs(1),
            lease_time: Duration::from_secs(5),
            segment_time: Duration::from_secs(30),
            stop_time: Duration::from_secs(10),
        }
    }
}

/// The machine, and the part of a file that the core needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreOptions {
    /// Prefix of the topics.
    pub prefix: String,
    /// Name of the bridge.
    pub name: String,
    /// The machine, for people.
    pub machine: String,
    /// The process, for people.
    pub process: String,
    /// Offered routes.
    pub offer: Vec<RouteFilter>,
    /// Taken routes.
    pub take: Vec<RouteFilter>,
    /// Topics for replies to programs that are no bridges.
    pub reply_topics: Vec<TopicFilter>,
    /// Limits and times.
    pub limits: BridgeLimits,
}

impl BridgeConfig {
    /// Reads the file `path`. Relative paths of secrets, of the domain, and of properties that end with `.location`,
    /// `.file` or `.keytab` are relative to its folder.
    ///
    /// # Errors
    /// One [`ConfigError::File`] if it cannot be read; as for [`BridgeConfig::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigErrors> {
        let path = path.as_ref();
        let mut config = Self::parse(&read_file(path)?, &path.display().to_string())?;
        let base = path.parent().unwrap_or(Path::new(""));
        config.resolve_paths(base);
        if let DomainPlace::Directory(directory) = &mut config.domain {
            *directory = base.join(&*directory);
        }
        Ok(config)
    }

    /// Reads a file's `text`; `name` is the file, for messages. Relative paths stay as they are.
    ///
    /// # Errors
    /// A [`ConfigError::Refused`] for each unknown or missing key, wrong type, value out of range and contradiction,
    /// with file, line, key, found and allowed value. A single one if the text is not TOML.
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigErrors> {
        let document = Document::new(name, text);
        let mut errors = Refusals::default();
        let mut file = document.tables()?;
        let mut kafka = table_of(&mut file, "kafka", &mut errors);
        let brokers = brokers_of(&mut kafka, &mut errors);
        let prefix = kafka.get("prefix", |value| checked(value, is_prefix, &prefix_rule()));
        let prefix = errors.optional(prefix).unwrap_or_else(|| "gapless".to_owned());
        let own_name = bridge_name(&mut kafka, &mut errors);
        let compression = kafka.get("compression", |value| {
            let choices = [("none", Compression::None), ("lz4", Compression::Lz4), ("snappy", Compression::Snappy)];
            value.choice(&choices)
        });
        let compression = errors.optional(compression).unwrap_or_default();
        let properties = properties(table_of(&mut kafka, "properties", &mut errors), &mut errors);
        let secrets = secrets(table_of(&mut kafka, "secrets", &mut errors), &mut errors);
        errors.extend(kafka.unknown());
        let domain = domain(&document, table_of(&mut file, "domain", &mut errors), &mut errors);
        let offer = list(&mut file, "offer", &mut errors).unwrap_or_default();
        let take = list(&mut file, "take", &mut errors).unwrap_or_default();
        let reply_topics = list(&mut file, "reply_topics", &mut errors);
        let reply_topics = reply_topics.unwrap_or_else(|| vec![TopicFilter(format!("{prefix}.reply.*"))]);
        let limits = limits(&document, table_of(&mut file, "limits", &mut errors), &mut errors);
        errors.extend(file.unknown());
        errors.or(Self {
            brokers,
            prefix,
            name: own_name,
            compression,
            properties,
            secrets,
            domain,
            offer,
            take,
            reply_topics,
            limits,
        })
    }

    /// The part that the core needs; `machine` and `process` name this process for people.
    #[must_use]
    pub fn core_options(&self, machine: impl Into<String>, process: impl Into<String>) -> CoreOptions {
        CoreOptions {
            prefix: self.prefix.clone(),
            name: self.name.clone(),
            machine: machine.into(),
            process: process.into(),
            offer: self.offer.clone(),
            take: self.take.clone(),
            reply_topics: self.reply_topics.clone(),
            limits: self.limits,
        }
    }
}

impl SecretSource {
    /// Reads the value, without line breaks at its end.
    ///
    /// # Errors
    /// The file or the variable, and why it cannot be read.
    pub fn read(&self) -> Result<String, String> {
        let value = match self {
            Self::File(path) => read_text(path).map_err(|error| format!("{}: {error}", path.display()))?,
            Self::Environment(name) => std::env::var(name).map_err(|error| format!("the variable {name}: {error}"))?,
        };
        Ok(value.trim_end_matches(['\r', '\n']).to_owned())
    }
}

impl TopicFilter {
    /// Matches a topic's name.
    #[must_use]
    pub fn matches(&self, topic: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => topic.starts_with(beginning),
            None => topic == self.0,
        }
    }
}

impl FromStr for TopicFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.strip_suffix('*').unwrap_or(text);
        // A star alone would let replies be written anywhere.
        if is_topic(name) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("{text:?} was found; a topic's name is allowed, or the beginning of one with * after it"))
    }
}

impl fmt::Display for TopicFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn name_rule() -> String {
    format!("a name of 1 to {BRIDGE_NAME_LENGTH_MAX} letters, digits, - and _ is allowed")
}

fn prefix_rule() -> String {
    format!("1 to {PREFIX_LENGTH_MAX} letters, digits, ., - and _ are allowed, the first a letter or a digit")
}

fn checked(value: &Value<'_>, is_allowed: fn(&str) -> bool, allowed: &str) -> Result<String, ConfigError> {
    let text = value.text()?;
    if is_allowed(text) { Ok(text.to_owned()) } else { Err(value.expected(allowed)) }
}

fn table_of<'a>(table: &mut Table<'a>, key: &'static str, errors: &mut Refusals) -> Table<'a> {
    let (found, error) = table.table_or_refusal(key);
    errors.extend(error);
    found
}

fn bridge_name(kafka: &mut Table<'_>, errors: &mut Refusals) -> String {
    let Some(value) = kafka.take("name") else {
        errors.add(kafka.missing("name", &name_rule()));
        return String::new();
    };
    errors.keep(checked(&value, is_bridge_name, &name_rule())).unwrap_or_default()
}

fn brokers_of(kafka: &mut Table<'_>, errors: &mut Refusals) -> Vec<String> {
    let allowed = "a list of \"host:port\" is allowed";
    let Some(value) = kafka.take("brokers") else {
        errors.add(kafka.missing("brokers", "a list of \"host:port\""));
        return Vec::new();
    };
    if !value.is_list() {
        errors.add(value.expected(allowed));
        return Vec::new();
    }
    let is_broker = |text: &str| {
        let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
        port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0)) && !text.contains([',', ' '])
    };
    let brokers = errors.keep(value.list()).unwrap_or_default();
    if brokers.is_empty() {
        errors.add(kafka.missing("brokers", "at least one \"host:port\""));
    }
    let checked = |each: &Value<'_>| errors.keep(checked(each, is_broker, "\"host:port\" is allowed"));
    brokers.iter().filter_map(checked).collect()
}

fn list<T: FromStr<Err: fmt::Display>>(
    file: &mut Table<'_>,
    key: &'static str,
    errors: &mut Refusals,
) -> Option<Vec<T>> {
    let values = errors.keep(file.take(key)?.list())?;
    Some(values.iter().filter_map(|each| errors.keep(each.read(str::parse))).collect())
}

fn properties(table: Table<'_>, errors: &mut Refusals) -> Vec<(String, String)> {
    let mut read = Vec::new();
    for (name, value) in table.named_values() {
        let text = property(&name, &value);
        read.extend(errors.keep(text).map(|text| (name, text)));
    }
    read
}

fn property(name: &str, value: &Value<'_>) -> Result<String, ConfigError> {
    check_property(name, value)?;
    if is_secret(name) {
        let example = "a secret is allowed in [kafka.secrets] alone, as { file = \"…\" } or { environment = \"…\" }";
        return Err(value.refuse(example));
    }
    match value.text() {
        Ok(text) => Ok(text.to_owned()),
        Err(refused) => match (value.number(), value.switch()) {
            (Some(number), _) => Ok(number.to_string()),
            (None, Ok(is)) => Ok(is.to_string()),
            (None, Err(_)) => Err(refused),
        },
    }
}

fn check_property(name: &str, value: &Value<'_>) -> Result<(), ConfigError> {
    if OWN_PROPERTIES.contains(&name) {
        return Err(value.refuse("the bridge sets it itself"));
    }
    Ok(())
}

fn secrets(table: Table<'_>, errors: &mut Refusals) -> Vec<(String, SecretSource)> {
    let mut read = Vec::new();
    for (name, value) in table.named_values() {
        if errors.keep(check_property(&name, &value)).is_none() {
            continue;
        }
        let Some(mut table) = errors.keep(value.table()) else { continue };
        let before = errors.count();
        let file = errors.optional(table.get("file", text));
        let variable = errors.optional(table.get("environment", text));
        match (file, variable) {
            (Some(file), None) => read.push((name, SecretSource::File(file.into()))),
            (None, Some(variable)) => read.push((name, SecretSource::Environment(variable))),
            _ if errors.count() > before => {}
            _ => errors.add(table.missing("file", "either file or environment")),
        }
        errors.extend(table.unknown());
    }
    read
}

fn text(value: &Value<'_>) -> Result<String, ConfigError> {
    value.text().map(str::to_owned)
}

fn domain(document: &Document<'_>, mut table: Table<'_>, errors: &mut Refusals) -> DomainPlace {
    let name = errors.optional(table.get("name", text));
    let directory = errors.optional(table.get("directory", text));
    errors.extend(table.unknown());
    match (name, directory) {
        (Some(_), Some(_)) => {
            let reason = "a domain has a name or a directory; both were found";
            errors.add(document.refuse("domain.directory", reason));
            DomainPlace::Default
        }
        (Some(name), None) => DomainPlace::Name(name),
        (None, Some(directory)) => DomainPlace::Directory(directory.into()),
        (None, None) => DomainPlace::Default,
    }
}

fn limits(document: &Document<'_>, mut table: Table<'_>, errors: &mut Refusals) -> BridgeLimits {
    const HOUR: Duration = Duration::from_secs(3600);
    const MOMENT: Duration = Duration::from_millis(50);
    let mut limits = BridgeLimits::default();
    let calls = table.set("calls_per_peer", &mut limits.calls_per_peer, |value| Ok(value.whole(1..=1 << 20)? as u32));
    errors.keep(calls);
    let bytes =
        table.set("bytes_per_peer", &mut limits.bytes_per_peer, |value| value.size(PAYLOAD_BYTES_MAX as u64..=1 << 40));
    errors.keep(bytes);
    let segment = table.set("segment_bytes", &mut limits.segment_bytes, |value| {
        Ok(value.size(SEGMENT_BYTES_MIN as u64..=PAYLOAD_BYTES_MAX as u64)? as usize)
    });
    errors.keep(segment);
    let before = errors.count();
    for (key, place) in [
        ("lease_interval", &mut limits.lease_interval),
        ("lease_time", &mut limits.lease_time),
        ("segment_time", &mut limits.segment_time),
        ("stop_time", &mut limits.stop_time),
    ] {
        errors.keep(table.set(key, place, |value| value.duration(MOMENT..=HOUR)));
    }
    // Not after an error: defaults stand in for refused times, and are not to be compared.
    if errors.count() == before && limits.lease_time < limits.lease_interval * 2 {
        let (interval, time) = (limits.lease_interval, limits.lease_time);
        let reason = format!("{time:?} was found; at least twice the lease_interval of {interval:?} is allowed");
        errors.add(document.refuse("limits.lease_time", reason));
    }
    errors.extend(table.unknown());
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
offer = ["shop/**", "calculator/add"]
take = ["bank/*"]
reply_topics = ["answers"]
[kafka]
brokers = ["a:9092", "[::1]:9093"]
prefix = "group.1"
name = "berlin-1"
compression = "lz4"
[kafka.properties]
"security.protocol" = "SASL_SSL"
"socket.timeout.ms" = 7000
"ssl.key.location" = "key.pem"
[kafka.secrets]
"sasl.password" = { file = "password.txt" }
"ssl.key.password" = { environment = "KEY" }
[domain]
directory = "domain"
[limits]
calls_per_peer = 7
bytes_per_peer = "16 MiB"
segment_bytes = "1 KiB"
lease_interval = "100 ms"
lease_time = "300 ms"
segment_time = 5
stop_time = "1 s"
"#;

    #[test]
    fn every_key_is_read() {
        let config = BridgeConfig::parse(FILE, "bridge.toml").unwrap();
        let text = str::to_owned;
        assert_eq!(config.brokers, ["a:9092", "[::1]:9093"]);
        assert_eq!((&*config.prefix, &*config.name, config.compression), ("group.1", "berlin-1", Compression::Lz4));
        let properties =
            [("security.protocol", "SASL_SSL"), ("socket.timeout.ms", "7000"), ("ssl.key.location", "key.pem")];
        assert_eq!(config.properties, properties.map(|(name, value)| (text(name), text(value))));
        assert_eq!(config.secrets[0], (text("sasl.password"), SecretSource::File("password.txt".into())));
        assert_eq!(config.secrets[1], (text("ssl.key.password"), SecretSource::Environment(text("KEY"))));
        assert_eq!(config.domain, DomainPlace::Directory("domain".into()));
        assert_eq!((config.offer.len(), config.take.len()), (2, 1));
        assert!(config.reply_topics[0].matches("answers") && !config.reply_topics[0].matches("answers2"));
        let expected = BridgeLimits {
            calls_per_peer: 7,
            bytes_per_peer: 16 << 20,
            segment_bytes: 1 << 10,
            lease_interval: Duration::from_millis(100),
            lease_time: Duration::from_millis(300),
            segment_time: Duration::from_secs(5),
            stop_time: Duration::from_secs(1),
        };
        assert_eq!(config.limits, expected);
    }

    #[test]
    fn defaults_offer_and_take_nothing() {
        let config = BridgeConfig::parse("[kafka]\nbrokers = [\"a:1\"]\nname = \"b\"", "x").unwrap();
        assert!(config.offer.is_empty() && config.take.is_empty() && config.properties.is_empty());
        assert_eq!((config.limits, config.domain), (BridgeLimits::default(), DomainPlace::Default));
        assert!(
            config.reply_topics[0].matches("gapless.reply.x") && !config.reply_topics[0].matches("gapless.presence")
        );
    }

    #[test]
    fn refusals_have_line_key_and_reason() {
        for (from, to, expected) in [
            (
                "offer = [\"shop/**\"",
                "offer = [\"shop/**/x\"",
                "x:2: offer: \"shop/**/x\" was found; a route's name is",
            ),
            ("take = [\"bank/*\"]", "take = \"bank\"", "x:3: take: \"bank\" was found; a list is allowed"),
            ("\"answers\"", "\"*\"", "x:4: reply_topics: \"*\" was found; a topic's name is allowed"),
            ("\"a:9092\"", "\"a\"", "x:6: kafka.brokers: \"a\" was found; \"host:port\" is allowed"),
            ("[\"a:9092\", \"[::1]:9093\"]", "[]", "x:5: kafka.brokers: missing; at least one"),
            ("\"group.1\"", "\".x\"", "x:7: kafka.prefix: \".x\" was found; 1 to 128 letters"),
            ("\"berlin-1\"", "\"a.b\"", "x:8: kafka.name: \"a.b\" was found; a name of 1 to 64 letters"),
            ("name = \"berlin-1\"", "", "x:5: kafka.name: missing; a name"),
            ("\"lz4\"", "\"zip\"", "x:9: kafka.compression: \"zip\" was found; \"none\", \"lz4\", \"snappy\" are"),
            ("compression", "compresion", "x:9: kafka.compresion: unknown;"),
            (
                "\"socket.timeout.ms\" = 7000",
                "\"group.id\" = \"x\"",
                "x:12: kafka.properties.group.id: the bridge sets",
            ),
            (
                "\"socket.timeout.ms\" = 7000",
                "\"isolation.level\" = \"read_committed\"",
                "x:12: kafka.properties.isolation.level: the bridge sets",
            ),
            (
                "\"socket.timeout.ms\" = 7000",
                "\"sasl.password\" = \"x\"",
                "x:12: kafka.properties.sasl.password: a secret is",
            ),
            ("{ file = \"password.txt\" }", "{}", "x:15: kafka.secrets.sasl.password.file: missing; either file or"),
            ("{ file = \"password.txt\" }", "\"x\"", "x:15: kafka.secrets.sasl.password: \"x\" was found; a table is"),
            (
                "directory = \"domain\"",
                "directory = \"d\"\nname = \"n\"",
                "x:18: domain.directory: a domain has a name or",
            ),
            (
                "calls_per_peer = 7",
                "calls_per_peer = 0",
                "x:20: limits.calls_per_peer: 0 was found; whole numbers from 1",
            ),
            ("\"300 ms\"", "\"199 ms\"", "x:24: limits.lease_time: 199ms was found; at least twice"),
        ] {
            assert!(FILE.contains(from), "{from}");
            let refused = BridgeConfig::parse(&FILE.replacen(from, to, 1), "x").unwrap_err().to_string();
            assert!(refused.starts_with(expected), "{refused}\nis not\n{expected}");
        }
    }

    #[test]
    fn all_errors_are_found_at_once() {
        let mut text = FILE.to_owned();
        for (from, to) in [
            ("\"calculator/add\"", "\"calculator/*x\", \"/\""),
            ("\"a:9092\"", "\"a\""),
            ("name = \"berlin-1\"", ""),
            ("\"lz4\"", "\"zip\""),
            ("\"socket.timeout.ms\" = 7000", "\"group.id\" = \"x\""),
            ("{ file = \"password.txt\" }", "{ file = 7, x = 1 }"),
            ("directory = \"domain\"", "directory = 7"),
            ("calls_per_peer = 7", "calls_per_pear = 7"),
            ("\"100 ms\"", "\"1 ms\""),
        ] {
            assert!(text.contains(from), "{from}");
            text = text.replacen(from, to, 1);
        }
        let errors = BridgeConfig::parse(&text, "x").unwrap_err();
        let expected = [
            "x:2: offer: \"calculator/*x\" was found",
            "x:2: offer: \"/\" was found",
            "x:5: kafka.name: missing",
            "x:6: kafka.brokers: \"a\" was found",
            "x:9: kafka.compression: \"zip\" was found",
            "x:12: kafka.properties.group.id: the bridge sets",
            "x:15: kafka.secrets.sasl.password.file: 7 was found",
            "x:15: kafka.secrets.sasl.password.x: unknown",
            "x:18: domain.directory: 7 was found",
            "x:20: limits.calls_per_pear: unknown",
            "x:23: limits.lease_interval: \"1 ms\" was found",
        ];
        let found: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        assert!(found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected)), "{found:#?}");
        assert_eq!(errors.to_string(), found.join("; "));
        let broken = BridgeConfig::parse("[kafka", "x").unwrap_err();
        assert_eq!(broken.iter().count(), 1, "{broken}");
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bridge.toml");
        std::fs::write(&path, FILE).unwrap();
        std::fs::write(folder.path().join("password.txt"), "s3cret\n").unwrap();
        let config = BridgeConfig::load(&path).unwrap();
        assert_eq!(config.domain, DomainPlace::Directory(folder.path().join("domain")));
        assert_eq!(config.secrets[0].1.read(), Ok("s3cret".to_owned()));
        let missing = BridgeConfig::load(folder.path().join("none.toml")).unwrap_err().to_string();
        assert!(missing.contains("none.toml"), "{missing}");
    }
}
