//! `gapless bench`: the canonical benchmark, and its parts one by one.

use super::Outcome;
use clap::{Args, Subcommand};
use gapless_bench::canonical;
use gapless_bench::options::CanonicalArguments;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Receive, decode, dispatch, process, persist, encode and send on one durable node
    Canonical(Box<CanonicalArguments>),
    /// The driver of `canonical` in a process of its own
    #[command(name = canonical::client_process::SUBCOMMAND, hide = true)]
    CanonicalClient {
        /// What to do, as JSON
        order: String,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.benchmark {
        Benchmark::Canonical(arguments) => Ok(canonical::run(arguments, &interrupt()?)?),
        Benchmark::CanonicalClient { order } => Ok(canonical::client_process::main(order)?),
    }
}

/// Set by Ctrl-C; the second one ends the program at once.
fn interrupt() -> Result<Arc<AtomicBool>, ctrlc::Error> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })?;
    Ok(interrupted)
}
