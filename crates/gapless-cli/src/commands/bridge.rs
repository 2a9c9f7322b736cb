//! `gapless bridge`: routes of other machines in the domain of this one.

use super::Outcome;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    over: Over,
}

#[derive(Subcommand)]
enum Over {
    /// Over Kafka: offer routes of this domain to other machines, and take theirs
    #[command(
        after_help = "Examples:\n  gapless bridge kafka bridge.toml\n  gapless bridge kafka bridge.toml --check\n  gapless bridge kafka bridge.toml --json | jq -r .text\n\nThe file names the brokers, this bridge, and the routes:\n\n  offer = [\"shop/**\"]\n  take = [\"bank/*\"]\n\n  [kafka]\n  brokers = [\"kafka-1:9092\"]\n  name = \"berlin\"\n\nIt waits for the broker where that is not there yet. Ctrl-C lets calls under way end. Exit codes: 0 after Ctrl-C; 1 if it cannot run, or another bridge has its name; 2 for what is wrong in the command line or the file."
    )]
    Kafka(KafkaArguments),
}

#[derive(Args)]
pub(crate) struct KafkaArguments {
    /// The file of the bridge
    file: PathBuf,

    /// Only read the file, and say what is wrong with it
    #[arg(long)]
    check: bool,

    /// Print events as JSON, one in a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.over {
        Over::Kafka(kafka) => over_kafka(kafka),
    }
}

#[cfg(not(feature = "kafka"))]
fn over_kafka(arguments: &KafkaArguments) -> Outcome {
    let KafkaArguments { file, check: _, json: _ } = arguments;
    Err(without_kafka(&file.display().to_string()))
}

/// The end of a command that needs Kafka, in a program that is built without it.
#[cfg(not(feature = "kafka"))]
pub(crate) fn without_kafka(what: &str) -> Box<dyn std::error::Error> {
    let build = "`cargo build --release --features kafka` builds one with it";
    Box::new(super::Usage(format!("{what}: this program is built without Kafka; {build}")))
}

#[cfg(feature = "kafka")]
fn over_kafka(arguments: &KafkaArguments) -> Outcome {
    use super::{Usage, announce, interrupts};
    use gapless_kafka::bridge::{Bridge, BridgeEvent};
    use gapless_kafka::config::BridgeConfig;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    let config = BridgeConfig::load(&arguments.file).map_err(|error| Usage(error.to_string()))?;
    if arguments.check {
        announce(&format!("{}: nothing is wrong with it", arguments.file.display()));
        return Ok(());
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
    // Relaxed: the count guards no data.
    let is_over = || interrupts.load(Ordering::Relaxed) > 0 || bridge.has_ended();
    while super::watch::sleep_until(Instant::now() + Duration::from_secs(60), is_over) {}
    Ok(bridge.end()?)
}
