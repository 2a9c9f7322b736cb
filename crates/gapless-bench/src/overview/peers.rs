//! Other systems next to our rows: measured while there is time; missing ones are named with their install command.

use super::Overview;
use super::arguments::OverviewPart;
use super::calls::{SIZES, points};
use super::kills::LONGEST_SILENCE;
use super::line::{LineFigures, OverviewPeer, add_peer};
use crate::commands::{AXON_BUILDS, Axon, CommandsArguments, axon_programs, one_of_axon};
use crate::rpc::faults::{FaultsArguments, broker_killed};
use crate::{BenchError, Result};
use gapless_load::peers::PeerError;
use gapless_load::peers::{nats, rabbitmq};
use gapless_load::rpc::subject::{RpcSystem, WaitMode};
use gapless_measure::Row;
use gapless_measure::reporting::{NOT_MEASURED, config_number, is_set, number, of_config};
use serde_json::Value;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerRun {
    NatsCalls,
    RabbitMqCalls,
    RabbitMqKilled,
    Axon,
}

impl PeerRun {
    const ALL: [Self; 4] = [Self::RabbitMqCalls, Self::NatsCalls, Self::Axon, Self::RabbitMqKilled];

    const fn part(self) -> OverviewPart {
        match self {
            Self::NatsCalls | Self::RabbitMqCalls => OverviewPart::Calls,
            Self::RabbitMqKilled => OverviewPart::Kills,
            Self::Axon => OverviewPart::Commands,
        }
    }

    /// The error says how it is installed.
    fn find(self) -> std::result::Result<(), PeerError> {
        match self {
            Self::NatsCalls => nats::find_server().map(drop),
            Self::RabbitMqCalls | Self::RabbitMqKilled => rabbitmq::find_node().map(drop),
            Self::Axon => axon_programs().map(drop),
        }
    }

    /// Time on a slow machine, the start of its processes included.
    const fn estimate(self) -> Duration {
        Duration::from_secs(match self {
            Self::NatsCalls => 15,
            Self::RabbitMqCalls | Self::RabbitMqKilled => 25,
            // Java compiles hot code only while it runs.
            Self::Axon => 12,
        })
    }

    const fn command(self) -> &'static str {
        match self {
            Self::NatsCalls => "gapless bench rpc curve --systems gapless,nats",
            Self::RabbitMqCalls => "gapless bench rpc curve --systems gapless,rabbitmq",
            Self::RabbitMqKilled => "gapless bench rpc faults",
            Self::Axon => "gapless bench commands --only ladder",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::NatsCalls => "NATS",
            Self::RabbitMqCalls => "RabbitMQ",
            Self::RabbitMqKilled => "RabbitMQ (its broker killed)",
            Self::Axon => "Axon Framework",
        }
    }
}

pub(super) fn measure(overview: &mut Overview<'_>) {
    for peer in PeerRun::ALL {
        if !overview.plan.parts.contains(&peer.part()) {
            continue;
        }
        if let Err(missing) = peer.find() {
            overview.note(format!("not measured: {missing}"));
            continue;
        }
        if overview.plan.is_quick || !overview.has_time_for(peer.estimate()) {
            overview.note(format!("{} is installed, and measured by: {}", peer.name(), peer.command()));
            continue;
        }
        let measured = match peer {
            PeerRun::NatsCalls => calls(overview, RpcSystem::Nats),
            PeerRun::RabbitMqCalls => calls(overview, RpcSystem::Rabbitmq),
            PeerRun::RabbitMqKilled => killed_broker(overview),
            PeerRun::Axon => axon(overview),
        };
        if is_set(overview.interrupted) {
            return;
        }
        if let Err(error) = measured {
            overview.note(format!("{} could not be measured: {error}", peer.name()));
        }
    }
}

/// Requires a program that was built by hand: a build may use the network.
fn axon(overview: &mut Overview<'_>) -> Result<()> {
    let Some(built) = Axon::built().map_err(|error| BenchError::measurement("overview", error))? else {
        let (name, command) = (PeerRun::Axon.name(), PeerRun::Axon.command());
        overview.note(format!("{name} is not built; in the project's folder: {AXON_BUILDS}; at length: {command}"));
        return Ok(());
    };
    overview.next("axon")?;
    let (_, seconds) = overview.plan.command_turns;
    let arguments = CommandsArguments { seconds: Some(seconds), ..CommandsArguments::default() };
    let found = one_of_axon(&built, &arguments, overview.interrupted)?;
    let is_of_one = |row: &Row| of_config(row, "drive") == "pipelined" && config_number(row, "aggregates") == Some(1);
    add(overview, checked(&found, "axon's disruptor".to_owned(), found.throughput_per_s), is_of_one);
    Ok(())
}

fn calls(overview: &mut Overview<'_>, system: RpcSystem) -> Result<()> {
    let report = points(overview, system, WaitMode::Blocking, &SIZES.map(|(bytes, _)| bytes))?;
    for found in &report.rows {
        let system = [of_config(found, "system"), of_config(found, "acknowledgement")].join(" ");
        let peer = checked(found, system.trim().to_owned(), found.throughput_per_s);
        add(overview, peer, |ours| is_same_call(ours, found));
    }
    Ok(())
}

fn is_same_call(ours: &Row, theirs: &Row) -> bool {
    let of_call = |row: &Row| {
        let keys = ["mode", "payload_bytes", "in_flight", "waiting", "connected"];
        keys.map(|key| row.config.value(key))
    };
    of_config(ours, "system") == "gapless" && of_call(ours) == of_call(theirs)
}

fn checked(row: &Row, system: String, figure: Option<f64>) -> std::result::Result<OverviewPeer, String> {
    if let Some(reason) = row.extra.get(NOT_MEASURED).and_then(Value::as_str) {
        return Err(format!("{system} could not be measured: {reason}"));
    }
    match (row.verified, figure) {
        (Some(true), Some(figure)) => Ok(OverviewPeer { system, figure }),
        (Some(true), None) => Err(format!("{system}: a row without a figure")),
        _ => Err(format!("{system}: {}", row.failure().unwrap_or_else(|| "a row that was not checked".to_owned()))),
    }
}

/// Adds the figure to our rows, or its reason to the notes.
fn add(overview: &mut Overview<'_>, peer: std::result::Result<OverviewPeer, String>, is_of: impl Fn(&Row) -> bool) {
    let peer = match peer {
        Ok(peer) => peer,
        Err(reason) => return overview.note(reason),
    };
    for row in overview.report.rows.iter_mut().filter(|row| is_of(row)) {
        add_peer(row, &peer);
        if let Some(shown) = LineFigures::of(row) {
            let (what, figure) = (row.config.name.as_deref().unwrap_or_default(), shown.unit.text(peer.figure));
            overview.progress.line(&format!("{:<10} {what:<48} {figure:>20}  {}", "", peer.system));
        }
    }
}

fn killed_broker(overview: &mut Overview<'_>) -> Result<()> {
    // A broker takes seconds to start again.
    let mut arguments = FaultsArguments { kills: Some(1), ..FaultsArguments::default() };
    arguments.output.quick = true;
    let mut run = overview.part("rpc faults");
    broker_killed(&arguments, &mut run)?;
    for row in &overview.finish_part(run).rows {
        let is_silence = |row: &Row| LineFigures::of(row).is_some_and(|shown| shown.figure == LONGEST_SILENCE);
        add(overview, checked(row, broker_words(row), number(row, LONGEST_SILENCE)), is_silence);
    }
    Ok(())
}

fn broker_words(row: &Row) -> String {
    let failed = row.lost.map_or_else(String::new, |failed| format!(", {failed} failed"));
    format!("rabbitmq's broker killed once{failed}:")
}

#[cfg(test)]
mod tests {
    use super::super::tests::overview;
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn call(system: &str, per_s: f64, key: &str, value: &Value) -> Row {
        let mut config = json!({ "mode": "call", "payload_bytes": 256, "in_flight": 1, "waiting": "blocking",
            "connected": 1, "system": system });
        config[key] = value.clone();
        let config = serde_json::from_value(config).unwrap();
        Row { config, throughput_per_s: Some(per_s), verified: Some(true), ..Row::default() }
    }

    #[test]
    fn peers_are_next_to_the_same_calls() {
        let ours = call("gapless", 9e4, "in_flight", &json!(1));
        let theirs = call("rabbitmq", 3e3, "acknowledgement", &json!("explicit"));
        assert!(is_same_call(&ours, &theirs) && !is_same_call(&theirs, &ours));
        for (key, other) in [("payload_bytes", json!(1024)), ("in_flight", json!(64)), ("mode", json!("one_way"))] {
            assert!(!is_same_call(&ours, &call("rabbitmq", 3e3, key, &other)), "{key}");
        }
    }

    #[test]
    fn unknown_failures_are_not_zero() {
        let words = |lost| broker_words(&Row { lost, ..Row::default() });
        assert_eq!(words(None), "rabbitmq's broker killed once:");
        assert_eq!(words(Some(3)), "rabbitmq's broker killed once, 3 failed:");
    }

    #[test]
    fn peers_without_a_figure_are_notes() {
        let interrupted = Arc::default();
        let mut overview = overview(&interrupted);
        overview.report.rows.push(call("gapless", 9e4, "in_flight", &json!(1)));
        let sound = call("nats", 2e4, "in_flight", &json!(1));
        let wrong = Row { verified: Some(false), notes: vec!["3 are wrong".to_owned()], ..sound.clone() };
        let unchecked = Row { verified: None, ..sound.clone() };
        let mut missing = Row::default();
        missing.extra.insert(NOT_MEASURED.to_owned(), "no broker".into());
        for row in [&wrong, &unchecked, &missing, &sound] {
            add(&mut overview, checked(row, "nats".to_owned(), row.throughput_per_s), |_| true);
        }
        let notes = ["check failed: 3 are wrong", "was not checked", "could not be measured: no broker"];
        assert_eq!(overview.report.notes.len(), notes.len(), "{:?}", overview.report.notes);
        assert!(overview.report.notes.iter().zip(notes).all(|(note, words)| note.contains(words)));
        assert_eq!(overview.report.rows[0].extra["peers"], json!([{ "system": "nats", "figure": 2e4 }]));
    }
}
