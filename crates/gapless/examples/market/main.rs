//! A small market: three order-entry nodes, one matching service in two instances, a sequencer, and a market-data
//! reader, each a process of its own, started by one command and seen in one terminal.
//!
//! Path of an order: `entry` publishes it → the sequencer gives it a place in the order → both instances of `matching`
//! publish the same outcome and trades → the sequencer drops the duplicates → every process reads each once. The parent,
//! `floor`, is the reader: its `depth` rebuilds the book from these messages, independently of `book`.

#![forbid(unsafe_code)]

mod audit;
mod book;
mod depth;
mod entry;
mod floor;
mod instance;
mod matching;
mod messages;
mod orders;
mod stream;

use clap::Parser;
use std::fmt::Display;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

type Failure = Box<dyn std::error::Error>;

/// Finished when the parent has closed the standard input of this process, at the latest by its own end.
type Lifeline = JoinHandle<()>;

/// Lets three order-entry nodes trade at a matching service in two instances, and looks at the end whether everything
/// adds up.
///
/// It ends with 0 if so, with 1 if not or after an error, with 2 for a wrong option, and with 130 after Ctrl-C. Its files
/// are in a temporary directory, which it removes.
#[derive(Parser)]
#[command(name = "market")]
struct Options {
    /// Transport of the stream.
    #[arg(long, default_value = "shared-memory", value_parser = ["shared-memory", "udp", "multicast", "tcp"])]
    transport: String,

    /// Number of requests of each entry node, orders and cancels.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    orders: u64,

    /// Requests per second of each entry node; 0 for no limit.
    #[arg(long, value_name = "RATE", default_value_t = 2_000)]
    orders_per_second: u64,

    /// Kill an instance of the matching service in the middle, look whether the market goes on, start it again.
    #[arg(long)]
    kill_an_instance: bool,

    /// Orders follow from it; how the nodes' orders come to lie between each other does not.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Name of this process among the parent's.
    #[arg(long, hide = true)]
    process: Option<String>,
}

fn main() -> ExitCode {
    run(&Options::parse()).unwrap_or_else(|failure| {
        eprintln!("error: {failure}");
        ExitCode::from(if floor::IS_STOPPED.load(Ordering::Relaxed) { 130 } else { 1 })
    })
}

fn run(options: &Options) -> Result<ExitCode, Failure> {
    let Some(name) = options.process.as_deref() else { return floor::run(options) };
    let lifeline = std::thread::spawn(|| _ = std::io::stdin().read_to_end(&mut Vec::new()));
    match name.split_once('-') {
        Some(("entry", number)) => entry::run(options, name, number.parse()?, &lifeline)?,
        Some(("matching", _)) => instance::run(name, &lifeline)?,
        _ => stream::sequence(name, &lifeline)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Standard output may be closed: the market ends in order in any case.
fn say(name: &str, line: impl Display) {
    let _ = writeln!(std::io::stdout().lock(), "{name:<10} | {line}");
}
