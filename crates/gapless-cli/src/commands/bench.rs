//! `gapless bench`: the canonical benchmark, its parts one by one, and event streams.

use super::{Outcome, interrupt, print};
use clap::{Args, Subcommand};
use gapless_bench::canonical;
use gapless_bench::options::CanonicalArguments;
use gapless_bench::parts::{self, PartArguments, persistence::PersistenceArguments};
use gapless_bench::sequencer::{self, SequencerArguments};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Receive, decode, dispatch, process, persist, encode and send on one durable node
    Canonical(Box<CanonicalArguments>),
    /// Write and read a Car, every field, in each of its four encodings
    #[command(after_help = "Example:\n  gapless bench serialization --json serialization.json")]
    Serialization(PartArguments),
    /// Frames between two processes through ring and window, one way and there and back
    #[command(after_help = "Example:\n  gapless bench log --count 5000000")]
    Log(PartArguments),
    /// From a client to a node at tier memory and back, 72 bytes to 500 KB
    #[command(after_help = "Example:\n  gapless bench messaging --count 10000 --json messaging.json")]
    Messaging(PartArguments),
    /// Append to a journal (mapped, written, synced) and replay it
    #[command(after_help = "Example:\n  gapless bench persistence --log-location /var/lib/gapless")]
    Persistence(PersistenceArguments),
    /// Nodes and a sequencer, each a process: round trips, throughput and rewind over every transport
    #[command(
        after_help = "Examples:\n  gapless bench sequencer --json sequencer.json\n  gapless bench sequencer --only latency --transport udp --payload 256,1024\n  gapless bench sequencer --only throughput --transport multicast\n  gapless bench sequencer --quick\n  gapless bench sequencer --stream /var/lib/gapless/market\n  gapless bench sequencer --command 10.0.0.5:9001 --request 10.0.0.5:9002 --group 239.1.1.1:9003 --interface eth0\n  gapless bench sequencer --command 10.0.0.5:9001 --request 10.0.0.5:9002 --username anna --password swordfish"
    )]
    Sequencer(Box<SequencerArguments>),
    /// What it costs to read each clock
    #[command(after_help = "Example:\n  gapless bench time --json -")]
    Time(PartArguments),
    /// A process of `sequencer`
    #[command(name = sequencer::process::SUBCOMMAND, hide = true)]
    SequencerProcess {
        /// What to do, as JSON
        order: String,
    },
    /// The second process of `log`
    #[command(name = parts::log::partner::SUBCOMMAND, hide = true)]
    LogPartner {
        /// What to do, as JSON
        order: String,
    },
    /// The driver of `canonical` in a process of its own
    #[command(name = canonical::client_process::SUBCOMMAND, hide = true)]
    CanonicalClient {
        /// What to do, as JSON
        order: String,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let text = match &arguments.benchmark {
        Benchmark::Canonical(arguments) => return Ok(canonical::run(arguments, &interrupt()?)?),
        Benchmark::CanonicalClient { order } => return Ok(canonical::client_process::main(order)?),
        Benchmark::LogPartner { order } => return Ok(parts::log::partner::main(order)?),
        Benchmark::SequencerProcess { order } => return Ok(sequencer::process::main(order)?),
        Benchmark::Sequencer(arguments) => sequencer::run(arguments, &*interrupt()?),
        Benchmark::Serialization(arguments) => parts::serialization::run(arguments, &*interrupt()?),
        Benchmark::Log(arguments) => parts::log::run(arguments, &*interrupt()?),
        Benchmark::Messaging(arguments) => parts::messaging::run(arguments, &*interrupt()?),
        Benchmark::Persistence(arguments) => parts::persistence::run(arguments, &*interrupt()?),
        Benchmark::Time(arguments) => parts::clocks::run(arguments, &*interrupt()?),
    }?;
    print(&text)
}
