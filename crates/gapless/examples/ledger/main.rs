//! A ledger that reads transfers from a CSV file, refuses bad ones with line and reason, and can be killed at any
//! moment: the next run continues where the journal ends, with nothing lost or duplicated.
//!
//! The report is printed by the run that reaches the end of the file, from the ledger's own state: every refused line
//! once, in order, regardless of the number of runs. Another run of the same file prints the same again.

#![forbid(unsafe_code)]

mod book;
mod import;
mod messages;
mod transfer;
mod transfer_file;

use book::Book;
use clap::Parser;
use gapless::prelude::*;
use import::ImportRun;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use transfer_file::{Failure, TransferFile};

/// Books the transfers of a CSV file; survives being killed at any moment.
///
/// The file's first line is `id,from,to,amount,note`. A line without a sender is a deposit, and opens
/// its account if it is new. Amounts have at most two decimals. A bad line is refused with its number
/// and the reason, and the others are booked; lines may be added at the end of a file and a further
/// run takes them.
#[derive(Parser)]
#[command(name = "ledger", after_help = EXAMPLES)]
struct Options {
    /// The transfers.
    file: PathBuf,
    /// Directory of the journal and the snapshots; created if missing. Remove it to start over.
    #[arg(long, default_value = "target/ledger")]
    directory: PathBuf,
    /// Durability of a line before it is booked: memory (nothing is kept), journal (survives the
    /// process), sync (survives the machine's power).
    #[arg(long, default_value_t)]
    tier: Tier,
    /// Take no more than so many lines a second, to have the time to kill it.
    #[arg(long, value_name = "LINES", value_parser = clap::value_parser!(u32).range(1..))]
    lines_per_second: Option<u32>,
}

const EXAMPLES: &str = "\
Examples:
  cargo run --release --example ledger -- crates/gapless/data/transfers.csv
  cargo run --release --example ledger -- crates/gapless/data/transfers.csv --lines-per-second 1000
      Kill it (Ctrl-C, or kill -9 from another terminal) and start it again: it goes on.
  cargo run --release --example ledger -- more.csv --directory /var/lib/ledger --tier sync

It ends with 0 when the file was read to its end, with 1 after an error, with 2 for a wrong
option, and with 130 when it was stopped; refused lines are no error.";

const STOPPED: u8 = 130;

fn main() -> ExitCode {
    run(&Options::parse()).unwrap_or_else(|failure| {
        eprintln!("error: {failure}");
        ExitCode::FAILURE
    })
}

fn run(options: &Options) -> Result<ExitCode, Failure> {
    let stop = stop_flag()?;
    let file = TransferFile::open(&options.file)?;
    let place = match options.tier {
        Tier::Memory => Host::in_memory(),
        tier => Host::in_directory(&options.directory).tier(tier),
    };
    // A snapshot holds all bookings, so only a few are taken per file; lines have about 40 bytes.
    let snapshot_every = (std::fs::metadata(&options.file)?.len() / 320).max(1000);
    let host = place.snapshot_every(snapshot_every).service(Book::default()).start()?;
    let mut import = ImportRun::resume(file, host.blocking_client()?)?;
    eprintln!("tier {}: going on after line {}", options.tier, import.file.number);
    let is_ended = import.send(&stop, options.lines_per_second);
    let is_ended = is_ended.map_err(|failure| host.status().failure.map_or(failure, Failure::from))?;
    let report = is_ended.then(|| import.report()).transpose()?;
    host.stop()?;
    let Some(report) = report else {
        eprintln!("stopped after line {}; run the same command again to go on", import.file.number);
        return Ok(ExitCode::from(STOPPED));
    };
    match std::io::stdout().write_all(report.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Set by Ctrl-C and SIGTERM; a second signal ends the program at once, which is no worse than a kill.
fn stop_flag() -> Result<Arc<AtomicBool>, ctrlc::Error> {
    let stop = Arc::<AtomicBool>::default();
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(STOPPED.into());
        }
    })?;
    Ok(stop)
}
