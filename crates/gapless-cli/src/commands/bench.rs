//! `gapless bench`: one table over all systems, each of its benchmarks at length, and the parts of a message's path one
//! by one.

use super::{CommandResult, ExitError, INTERRUPTED, interrupt, print, to_stderr};
use crate::deferred::Deferred;
use crate::standard_streams;
use clap::{Args, Subcommand};
use gapless_bench::canonical;
use gapless_bench::commands::{self, CommandsArguments};
use gapless_bench::compare::{self, CompareArguments};
use gapless_bench::components::{
    self, ComponentArguments, link::LinkArguments, persistence::PersistenceArguments, storage::StorageArguments,
};
use gapless_bench::failover::{self, FailoverArguments};
#[cfg(feature = "kafka")]
use gapless_bench::network::{self, NetworkArguments};
use gapless_bench::options::CanonicalArguments;
use gapless_bench::overview::{self, OverviewArguments};
use gapless_bench::report::{self, ReportArguments};
use gapless_bench::roles::{self, ChildRole};
use gapless_bench::rpc::curve::{self, CurveArguments};
use gapless_bench::rpc::faults::{self, FaultsArguments};
use gapless_bench::rpc::payloads::{self, PayloadsArguments};
use gapless_bench::rpc::scenarios::{self, ScenariosArguments};
use gapless_bench::sequencer::{self, SequencerArguments};
use gapless_bench::supervisor::{self, SupervisorArguments};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Without a command: one table of all systems, with the floor of this machine and published figures.\n\nExamples:\n  gapless bench --json overview.json\n  gapless bench --quick\n  gapless bench --only calls,kills\n  gapless bench canonical\n\nExit codes: 0; 1 for a benchmark that cannot be run or whose check failed; 2 for errors in the command line, including result files that cannot be written; 3 if `compare` finds the second build slower; 130 after Ctrl-C, with the results so far."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    overview: OverviewArguments,
    #[command(subcommand)]
    benchmark: Option<Benchmark>,
}

/// Options of a benchmark that is not part of this build: any.
#[cfg(not(feature = "kafka"))]
#[derive(Args)]
struct NetworkArguments {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _options: Vec<String>,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Receive, decode, dispatch, process, persist, encode and send by one durable service
    Canonical(Deferred<Box<CanonicalArguments>>),
    /// Compare two builds: run pairs until the difference is certain
    #[command(after_help = compare::help())]
    Compare(Deferred<CompareArguments>),
    /// Write and read a Car, every field, in each of its four encodings
    #[command(after_help = "Example:\n  gapless bench serialization --json serialization.json")]
    Serialization(Deferred<ComponentArguments>),
    /// Send frames between two processes through ring and window, one way and there and back
    #[command(after_help = "Example:\n  gapless bench log --count 5000000")]
    Log(Deferred<ComponentArguments>),
    /// Send messages between two members of a cluster over TCP and shared memory: round trip, one way, acknowledged
    #[command(after_help = "Examples:\n  gapless bench link --json link.json\n  gapless bench link --quick")]
    Link(Deferred<LinkArguments>),
    /// Send messages from a client to a service and back, 72 bytes to 500 KB, and typed commands at the highest rate
    #[command(after_help = "Example:\n  gapless bench messaging --count 10000 --json messaging.json")]
    Messaging(Deferred<ComponentArguments>),
    /// Append to a journal (mapped, written, synced) and replay it
    #[command(after_help = "Example:\n  gapless bench persistence --log-location /var/lib/gapless")]
    Persistence(Deferred<PersistenceArguments>),
    /// Put, change, read and remove objects of a replicated state, apply them on a second store, write a snapshot
    #[command(
        after_help = "Examples:\n  gapless bench storage --json storage.json\n  gapless bench storage --objects 5000000\n  gapless bench storage --quick"
    )]
    Storage(Deferred<StorageArguments>),
    /// Measure nodes and a sequencer over shared memory, UDP, multicast and TCP: round trips, throughput, rewind of a
    /// late joiner
    #[command(
        after_help = "Examples:\n  gapless bench sequencer --json sequencer.json\n  gapless bench sequencer --full\n  gapless bench sequencer --only throughput --payload 1400 --mtu 1500,9000,65535\n  gapless bench sequencer --only latency --transport udp --payload 256,1024\n  gapless bench sequencer --only throughput --transport multicast\n  gapless bench sequencer --transport tcp --nodes 5 --tier sync\n  gapless bench sequencer --quick\n  gapless bench sequencer --stream /var/lib/gapless/market\n  gapless bench sequencer --command 10.0.0.5:9001 --request 10.0.0.5:9002 --group 239.1.1.1:9003 --interface eth0\n  gapless bench sequencer --command 10.0.0.5:9001 --request 10.0.0.5:9002 --username anna --password swordfish"
    )]
    Sequencer(Deferred<Box<SequencerArguments>>),
    /// Measure interruptions of clients during a cluster's failover, transfer, restarts and snapshot, and the catch-up of a
    /// follower
    #[command(
        after_help = "Examples:\n  gapless bench failover --json failover.json --plot failover.svg\n  gapless bench failover --members witness --repeat 10\n  gapless bench failover --only catch-up --behind-frames 5000000\n  gapless bench failover --quick"
    )]
    Failover(Deferred<FailoverArguments>),
    /// Measure the command bus: published ladder next to ours and Axon's, throughput, latency, replay of events
    #[command(
        after_help = "Examples:\n  gapless bench commands --json commands.json --plot commands.svg\n  gapless bench commands --full\n  gapless bench commands --only ladder --turns 3\n  gapless bench commands --only ladder --buses disruptor --identifiers time-ordered\n  gapless bench commands --only throughput --tiers memory,journal --drives direct\n  gapless bench commands --only replay --replayed-events 50000000\n  gapless bench commands --quick"
    )]
    Commands(Deferred<CommandsArguments>),
    /// Compare calls between processes with those of other systems
    #[command(subcommand)]
    Rpc(RpcBenchmark),
    /// Measure calls between two domains over Kafka bridges, next to bare clients of the broker and plain Java clients
    #[command(
        after_help = "A broker and the Java clients are started by benchmarks/peers/kafka/broker, which needs Java and, the first time, Maven; --brokers takes one that runs, and removes the topics of the run at its end.\n\nExamples:\n  gapless bench network --json network.json --plot network.svg\n  gapless bench network --brokers kafka-1:9092\n  gapless bench network --systems gapless\n  gapless bench network --quick"
    )]
    Network(Deferred<NetworkArguments>),
    /// Measure the cost of guardian and supervisor with idle instances, and their reaction times after deaths
    #[command(
        after_help = "Examples:\n  gapless bench supervisor --json supervisor.json\n  gapless bench supervisor --full\n  gapless bench supervisor --copies 200 --kills 50\n  gapless bench supervisor --quick"
    )]
    Supervisor(Deferred<SupervisorArguments>),
    /// Write an HTML page from --json results: published figures, ours, other systems of the same run, plots
    #[command(
        after_help = "A directory stands for every .json file in it and below it; of each benchmark the newest run counts, by the day that its folder is named after. An unknown benchmark's file is omitted with a warning; any other file that is no benchmark JSON is an error. Nothing is measured, and the page needs neither network nor JavaScript.\n\nExamples:\n  gapless bench report benchmarks\n  gapless bench report benchmarks/2026-11-26 sequencer.json --output page.html\n  gapless bench report benchmarks --output - > page.html"
    )]
    Report(Deferred<ReportArguments>),
    /// Measure the cost of reading each clock
    #[command(after_help = "Example:\n  gapless bench time --json -")]
    Time(Deferred<ComponentArguments>),
    /// Child process of a benchmark
    #[command(hide = true)]
    Child {
        role: ChildRole,
        /// Order for the child process, as JSON
        order: String,
    },
}

#[derive(Subcommand)]
enum RpcBenchmark {
    /// Increment each byte and answer: calls a second, latency and CPU time of every process against the size; one way, too
    #[command(
        after_help = "Brokers are found on the PATH, started on free ports with their files in a temporary folder, and stopped.\n\nExamples:\n  gapless bench rpc curve --json curve.json --plot curve.svg\n  gapless bench rpc curve --full\n  gapless bench rpc curve --systems nats --sizes 64,1024 --waiting blocking\n  gapless bench rpc curve --compare curve.json\n  gapless bench rpc curve --quick\n\nNext to a plot curve.svg, curve-one-way.svg shows messages without an answer."
    )]
    Curve(Deferred<CurveArguments>),
    /// One way and there and back, 72 bytes to 500 KB, 200 workers: calls and bytes a second, in one process and between two
    #[command(
        after_help = "Examples:\n  gapless bench rpc payloads --json payloads.json --plot payloads.svg\n  gapless bench rpc payloads --quick"
    )]
    Payloads(Deferred<PayloadsArguments>),
    /// Load one process: parallel calls, more than memory takes, 2,000 callbacks, and one call during a flood
    #[command(
        after_help = "Examples:\n  gapless bench rpc scenarios --json scenarios.json --plot probe.svg\n  gapless bench rpc scenarios --directory /var/tmp --probes 50000\n  gapless bench rpc scenarios --quick"
    )]
    Scenarios(Deferred<ScenariosArguments>),
    /// Instances of a route, RabbitMQ's servers and broker, killed at random under calls: what fails, the silence, when callers know
    #[command(
        after_help = "RabbitMQ is found on the PATH, started on free ports with its files in a temporary folder, and stopped.\n\nExamples:\n  gapless bench rpc faults --json faults.json --plot faults.svg\n  gapless bench rpc faults --full\n  gapless bench rpc faults --kills 1000 --seed 42\n  gapless bench rpc faults --quick"
    )]
    Faults(Deferred<FaultsArguments>),
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    // A measurement takes minutes.
    standard_streams::check_output()?;
    let interrupted = match arguments.benchmark {
        // Ctrl-C reaches the child, too, but its parent ends it after collecting the results.
        Some(Benchmark::Child { .. }) => {
            interrupt()?;
            Arc::default()
        }
        Some(Benchmark::Report(_)) => Arc::default(),
        _ => interrupt()?,
    };
    let outcome = match &arguments.benchmark {
        Some(benchmark) => measure(benchmark, &interrupted),
        None => {
            let (text, outcome) = overview::run(&arguments.overview, &interrupted);
            print(&text)?;
            outcome.map_err(Into::into)
        }
    };
    let is_server = matches!(&arguments.benchmark, Some(Benchmark::Canonical(arguments)) if arguments.is_backup());
    if is_server || !interrupted.load(Ordering::Relaxed) {
        return outcome;
    }
    let reason = match outcome {
        Ok(()) => "interrupted; what was measured before is all that there is".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Box::new(ExitError { code: INTERRUPTED, reason }))
}

fn measure(benchmark: &Benchmark, interrupted: &Arc<AtomicBool>) -> CommandResult {
    let text = match benchmark {
        Benchmark::Canonical(arguments) => return Ok(canonical::run(arguments, interrupted)?),
        Benchmark::Child { role, order } => return Ok(roles::run(*role, order)?),
        Benchmark::Compare(arguments) => {
            let (text, outcome) = compare::run(arguments, interrupted)?;
            print(&text)?;
            return Ok(outcome?);
        }
        Benchmark::Commands(arguments) => commands::run(arguments, interrupted),
        Benchmark::Report(arguments) => return report(arguments),
        #[cfg(feature = "kafka")]
        Benchmark::Network(arguments) => network::run(arguments, interrupted),
        #[cfg(not(feature = "kafka"))]
        Benchmark::Network(_) => return Err(super::bridge::without_kafka("gapless bench network")),
        Benchmark::Failover(arguments) => failover::run(arguments, interrupted),
        Benchmark::Sequencer(arguments) => sequencer::run(arguments, interrupted),
        Benchmark::Rpc(RpcBenchmark::Curve(arguments)) => curve::run(arguments, interrupted),
        Benchmark::Rpc(RpcBenchmark::Faults(arguments)) => {
            let (text, outcome) = faults::run(arguments, interrupted)?;
            print(&text)?;
            return Ok(outcome?);
        }
        Benchmark::Rpc(RpcBenchmark::Payloads(arguments)) => payloads::run(arguments, interrupted),
        Benchmark::Rpc(RpcBenchmark::Scenarios(arguments)) => scenarios::run(arguments, interrupted),
        Benchmark::Serialization(arguments) => components::serialization::run(arguments, interrupted),
        Benchmark::Log(arguments) => components::log::run(arguments, interrupted),
        Benchmark::Link(arguments) => components::link::run(arguments, interrupted),
        Benchmark::Messaging(arguments) => components::messaging::run(arguments, interrupted),
        Benchmark::Persistence(arguments) => components::persistence::run(arguments, interrupted),
        Benchmark::Storage(arguments) => components::storage::run(arguments, interrupted),
        Benchmark::Supervisor(arguments) => supervisor::run(arguments, interrupted),
        Benchmark::Time(arguments) => components::clocks::run(arguments, interrupted),
    }?;
    print(&text)
}

fn report(arguments: &ReportArguments) -> CommandResult {
    let (text, warnings) = report::run(arguments)?;
    for warning in warnings {
        to_stderr!("warning: {warning}");
    }
    if text.is_empty() { Ok(()) } else { print(&text) }
}
