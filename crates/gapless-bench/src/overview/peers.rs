//! Other systems beside our rows: named with the command that installs them where they are missing, and measured while there is time.

use super::Overview;
use super::arguments::Part;
use super::calls::{SIZES, call_row, one_way_row, point};
use super::line::{Peer, Shown, add_peer};
use crate::commands::{AXON_BUILDS, Axon, CommandsArguments, axon_programs, one_of_axon};
use crate::rpc::faults::{FaultsArguments, broker_killed};
use crate::{BenchError, Result};
use gapless_load::peers::PeerError;
use gapless_load::peers::{nats, rabbitmq};
use gapless_load::rpc::subject::{System, Waiting};
use gapless_measure::Row;
use gapless_measure::reporting::{config_number, is_set, number, of_config};
use std::time::Duration;

/// Another system in one of its uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    NatsCalls,
    RabbitMqCalls,
    RabbitMqKilled,
    Axon,
}

impl Other {
    /// In the order in which they are measured: the system that is beside the published calls first.
    const ALL: [Self; 4] = [Self::RabbitMqCalls, Self::NatsCalls, Self::Axon, Self::RabbitMqKilled];

    /// The part of the table that it stands beside.
    const fn part(self) -> Part {
        match self {
            Self::NatsCalls | Self::RabbitMqCalls => Part::Calls,
            Self::RabbitMqKilled => Part::Kills,
            Self::Axon => Part::Commands,
        }
    }

    /// An error that says how it is installed.
    fn find(self) -> std::result::Result<(), PeerError> {
        match self {
            Self::NatsCalls => nats::find_server().map(drop),
            Self::RabbitMqCalls | Self::RabbitMqKilled => rabbitmq::find_node().map(drop),
            Self::Axon => axon_programs().map(drop),
        }
    }

    /// Its time on a slow machine, the start of its processes included.
    const fn estimate(self) -> Duration {
        Duration::from_secs(match self {
            Self::NatsCalls => 15,
            Self::RabbitMqCalls => 40,
            Self::RabbitMqKilled => 25,
            // Java compiles what is hot only while it runs.
            Self::Axon => 12,
        })
    }

    /// The command that measures it at length.
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

/// Measures those that are installed, beside the rows that are there.
pub(super) fn measure(overview: &mut Overview<'_>) {
    for other in Other::ALL {
        if !overview.plan.parts.contains(&other.part()) {
            continue;
        }
        if let Err(missing) = other.find() {
            let note = format!("not measured: {missing}");
            if !overview.report.notes.contains(&note) {
                overview.report.notes.push(note);
            }
            continue;
        }
        if overview.plan.is_quick || !overview.has_time_for(other.estimate()) {
            overview.report.notes.push(format!("{} is installed, and measured by: {}", other.name(), other.command()));
            continue;
        }
        let measured = match other {
            Other::NatsCalls => calls(overview, System::Nats),
            Other::RabbitMqCalls => calls(overview, System::Rabbitmq),
            Other::RabbitMqKilled => killed_broker(overview),
            Other::Axon => axon(overview),
        };
        if is_set(overview.interrupted) {
            return;
        }
        if let Err(error) = measured {
            overview.report.notes.push(format!("{} could not be measured: {error}", other.name()));
        }
    }
}

/// One row of Axon's disruptor, where its program was built by hand: building it may ask the network.
fn axon(overview: &mut Overview<'_>) -> Result<()> {
    let Some(built) = Axon::built().map_err(|error| BenchError::measurement("overview", error))? else {
        let (name, command) = (Other::Axon.name(), Other::Axon.command());
        let note = format!("{name} is not built; in the project's folder: {AXON_BUILDS}; at length: {command}");
        overview.report.notes.push(note);
        return Ok(());
    };
    overview.next("axon")?;
    let (_, seconds) = overview.plan.command_turns;
    let arguments = CommandsArguments { seconds: Some(seconds), ..CommandsArguments::default() };
    let found = one_of_axon(&built, &arguments, overview.interrupted)?;
    if let Some(figure) = found.throughput_per_s.filter(|_| found.verified == Some(true)) {
        add(overview, "axon's disruptor", figure, |row| {
            of_config(row, "drive") == "pipelined" && config_number(row, "aggregates") == Some(1)
        });
    }
    Ok(())
}

/// Calls of another system at each size of our rows.
fn calls(overview: &mut Overview<'_>, system: System) -> Result<()> {
    for (bytes, _) in SIZES {
        let report = point(overview, system, Waiting::Blocking, bytes)?;
        let is_call = |row: &Row| {
            config_number(row, "in_flight") == Some(1) && of_config(row, "waiting") == "blocking" && is_ours(row, bytes)
        };
        beside(overview, call_row(&report), is_call);
        beside(overview, one_way_row(&report), |row: &Row| {
            row.config.mode.as_deref() == Some("one_way") && is_ours(row, bytes)
        });
    }
    Ok(())
}

/// Whether it is a row of calls of this size.
fn is_ours(row: &Row, bytes: u64) -> bool {
    of_config(row, "system") == "gapless" && row.config.payload_bytes == Some(bytes)
}

/// Sets the rate of `found` beside our rows of which `is_its` is true.
fn beside(overview: &mut Overview<'_>, found: Option<&Row>, is_its: impl Fn(&Row) -> bool) {
    let Some((found, figure)) = found.and_then(|row| Some((row, row.throughput_per_s?))) else { return };
    if found.verified == Some(true) {
        let acknowledgement = of_config(found, "acknowledgement");
        let system = of_config(found, "system");
        add(overview, &[system, acknowledgement].join(" "), figure, is_its);
    }
}

fn add(overview: &mut Overview<'_>, system: &str, figure: f64, is_its: impl Fn(&Row) -> bool) {
    let peer = Peer { system: system.trim().to_owned(), figure };
    for row in overview.report.rows.iter_mut().filter(|row| is_its(row)) {
        add_peer(row, &peer);
        if let Some(shown) = Shown::of(row) {
            let (what, figure) = (row.config.name.as_deref().unwrap_or_default(), shown.unit.text(figure));
            overview.progress.line(&format!("{:<10} {what:<48} {figure:>20}  {}", "", peer.system));
        }
    }
}

/// The silence of callers whose broker is killed, beside that of our supervisor.
fn killed_broker(overview: &mut Overview<'_>) -> Result<()> {
    // A broker takes seconds to start again.
    let mut arguments = FaultsArguments { kills: Some(1), ..FaultsArguments::default() };
    arguments.output.quick = true;
    let mut run = overview.part("rpc faults");
    broker_killed(&arguments, &mut run)?;
    let Some(row) = run.report.rows.first() else { return Ok(()) };
    if let Some(ns) = number(row, "longest_silence_ns") {
        let failed = row.lost.unwrap_or(0);
        let system = format!("rabbitmq's broker killed once, {failed} failed:");
        add(overview, &system, ns, |row| {
            row.extra.get("shown").is_some_and(|shown| shown["figure"] == "longest_silence_ns")
        });
    }
    Ok(())
}
