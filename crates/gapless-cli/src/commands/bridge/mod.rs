//! `gapless bridge`: offers routes of other machines in the domain of this one.

#[cfg(feature = "kafka")]
mod status;
#[cfg(feature = "kafka")]
mod text;

use super::CommandResult;
use super::domain::{DomainArguments, seconds};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: BridgeCommand,
}

#[derive(Subcommand)]
enum BridgeCommand {
    /// Offer routes of this domain to other machines over Kafka, and take theirs
    #[command(
        after_help = "Examples:\n  gapless bridge kafka bridge.toml\n  gapless bridge kafka bridge.toml --check\n  gapless bridge kafka bridge.toml --json | jq -r .text\n\nThe file names the brokers, this bridge, and the routes:\n\n  offer = [\"shop/**\"]\n  take = [\"bank/*\"]\n\n  [kafka]\n  brokers = [\"kafka-1:9092\"]\n  name = \"berlin\"\n\n  [kafka.secrets]\n  \"sasl.password\" = { file = \"kafka-password\" }\n\nKeys: offer, take, reply_topics. Of [kafka]: brokers, name, prefix, compression. [kafka.properties]: settings of librdkafka by their names. [kafka.secrets]: those with secret values, each { file = … } or { environment = … }. Of [domain]: name or directory. Of [limits]: calls_per_peer, bytes_per_peer, segment_bytes, segment_time, lease_interval, lease_time, stop_time. docs/guides/bridge.toml shows each with its default.\n\nRelative paths in it are relative to its folder. The bridge waits for an absent broker; `gapless bridge status` shows the progress. Ctrl-C lets calls in flight finish. Exit codes: 0 after Ctrl-C; 1 if it cannot run, or another bridge has its name; 2 for errors in the command line or the file."
    )]
    Kafka(KafkaArguments),
    /// Show the running bridges of a domain: broker, other bridges, routes, calls, counters
    #[command(
        after_help = "Examples:\n  gapless bridge status --domain shop\n  gapless bridge status berlin --watch\n  gapless bridge status --json | jq '.[].peers[] | select(.state != \"alive\")'\n\nPEER is another bridge of the prefix; HEARD is the age of its last lease; TO IT and FROM IT are calls in flight with the bytes of their requests. OFFERED are routes of this domain for other machines, TAKEN those of other machines for this domain. Exit codes: 0 if each bridge serves and has its broker; 1 if one does not, or does not answer in time; 2 for errors in the command line; 3 if none runs."
    )]
    Status(StatusArguments),
}

#[derive(Args)]
#[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "the command ends at once without the feature"))]
pub(crate) struct StatusArguments {
    /// Name of the bridge [default: all of the domain]
    name: Option<String>,

    #[command(flatten)]
    domain: DomainArguments,

    /// Seconds to wait for the answers
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds, allow_hyphen_values = true)]
    timeout: Duration,

    /// Print one JSON array per sample, with an object for each bridge
    #[arg(long)]
    json: bool,

    /// Print again every SECONDS, 1 without a value, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds, allow_negative_numbers = true)]
    watch: Option<Duration>,
}

#[derive(Args)]
pub(crate) struct KafkaArguments {
    /// Configuration file of the bridge
    file: PathBuf,

    /// Check the file and its secrets, certificates and keys, and report errors, without starting the bridge
    #[arg(long)]
    check: bool,

    /// Print events as JSON, one per line
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(crate) const fn is_status(&self) -> bool {
        matches!(self.command, BridgeCommand::Status(_))
    }
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    match &arguments.command {
        BridgeCommand::Kafka(kafka) => over_kafka(kafka),
        #[cfg(feature = "kafka")]
        BridgeCommand::Status(status) => status::run(status),
        #[cfg(not(feature = "kafka"))]
        BridgeCommand::Status(_) => Err(without_kafka("gapless bridge status")),
    }
}

#[cfg(not(feature = "kafka"))]
fn over_kafka(arguments: &KafkaArguments) -> CommandResult {
    let KafkaArguments { file, check: _, json: _ } = arguments;
    Err(without_kafka(&file.display().to_string()))
}

#[cfg(not(feature = "kafka"))]
pub(crate) fn without_kafka(what: &str) -> Box<dyn std::error::Error> {
    let build = "`cargo build --release --features kafka` builds one with it";
    Box::new(super::UsageError(format!("{what}: this program is built without Kafka; {build}")))
}

#[cfg(feature = "kafka")]
fn over_kafka(arguments: &KafkaArguments) -> CommandResult {
    use super::{UsageError, announce, interrupts};
    use gapless_kafka::bridge::{Bridge, BridgeEvent};
    use gapless_kafka::config::BridgeConfig;
    use std::sync::atomic::Ordering;
    use std::time::Instant;

    let config = BridgeConfig::load(&arguments.file).map_err(|error| UsageError(error.to_string()))?;
    if arguments.check {
        return check(&arguments.file, &config);
    }
    let is_json = arguments.json;
    let name = config.name.clone();
    let interrupts = interrupts()?;
    let bridge = Bridge::start(config, move |event: &BridgeEvent| {
        if is_json {
            announce(
                &serde_json::json!({ "bridge": name, "event": event.kind(), "text": event.to_string() }).to_string(),
            );
        } else {
            announce(&format!("{name}: {event}"));
        }
    })?;
    let is_over = || interrupts.load(Ordering::Relaxed) > 0 || bridge.has_ended();
    while super::watch::sleep_until(Instant::now() + Duration::from_secs(60), is_over) {}
    Ok(bridge.end()?)
}

#[cfg(feature = "kafka")]
fn check(file: &std::path::Path, config: &gapless_kafka::config::BridgeConfig) -> CommandResult {
    use super::{UsageError, announce, to_stderr};
    use crate::printable::escaped;
    use gapless_kafka::client::BrokerConnection;
    use gapless_kafka::config::FileCheck;

    let FileCheck { mut faults, warnings } = config.check_files();
    warnings.iter().for_each(|warning| to_stderr!("warning: {}", escaped(warning)));
    if faults.is_empty() {
        let checked =
            BrokerConnection::from_config(config).and_then(|connection| connection.check().map_err(|e| e.reason));
        faults.extend(checked.err());
    }
    if !faults.is_empty() {
        return Err(UsageError(format!("{}: {}", file.display(), faults.join("; "))).into());
    }
    announce(&format!("{}: nothing is wrong with it", file.display()));
    Ok(())
}
