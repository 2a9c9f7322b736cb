//! A ledger that reads transfers from a CSV file, refuses bad ones with line and reason, and can be killed at any
//! moment: the next run continues where the journal ends, with nothing lost or duplicated.
//!
//! The report is printed by the run that reaches the end of the file, from the ledger's own state: every refused line
//! once, in order, regardless of the number of runs. Another run of the same file prints the same again.

#![forbid(unsafe_code)]

mod book;
mod fnv;
mod import;
mod lines;
mod messages;
mod progress;
mod reason;
mod report;
mod transfer;
mod transfer_file;

use book::Book;
use clap::Parser;
use gapless::prelude::*;
use import::Import;
use progress::{ProgressLine, ProgressMode};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use transfer::with_commas;
use transfer_file::Failure;

/// Books the transfers of a CSV file; survives being killed at any moment.
///
/// The file's first line is `id,from,to,amount,note`. A line without a sender is a deposit, and opens
/// its account if it is new. Amounts have at most two decimals. A bad line is refused with its number
/// and the reason, and the others are booked; lines may be added at the end of a file and a further
/// run takes them.
#[derive(Debug, Parser)]
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

    /// When to show progress on standard error.
    #[arg(long, value_enum, default_value_t)]
    progress: ProgressMode,
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
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<ExitCode, Failure> {
    let stop = stop_flag()?;
    let lines = transfer_file::open(&options.file)?;
    let file_bytes = std::fs::metadata(&options.file)?.len();
    if options.directory.exists() && !options.directory.is_dir() {
        let directory = options.directory.display();
        return Err(format!("{directory} is not a directory; choose another with --directory").into());
    }
    let host = place(options, file_bytes).service(Book::default()).start()?;
    let (mut import, line) = Import::resume(&host, &options.file, lines, options.lines_per_second)?;
    match options.tier {
        Tier::Memory => eprintln!("the ledger is in memory: nothing of it is kept"),
        tier => {
            let begin = if line == 1 { "beginning" } else { "going on" };
            let (directory, line) = (options.directory.display(), with_commas(line.into()));
            eprintln!("the ledger is in {directory}, tier {tier}; {begin} behind line {line}");
        }
    }
    let mut progress = ProgressLine::new(options.progress, file_bytes, line);
    if !import.run(&stop, &mut progress)? {
        let line = with_commas(import.line().into());
        host.stop()?;
        eprintln!("stopped behind line {line}; run the same command again to go on");
        return Ok(ExitCode::from(STOPPED));
    }
    let report = import.report()?;
    host.stop()?;
    print(&report)?;
    Ok(ExitCode::SUCCESS)
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

fn place(options: &Options, file_bytes: u64) -> Host {
    if options.tier == Tier::Memory {
        return Host::in_memory();
    }
    Host::in_directory(&options.directory)
        .tier(options.tier)
        .socket(None)
        .persistence(Persistence { segment_length_bytes: 16 << 20, ..Persistence::default() })
        // A snapshot holds all bookings, so only a few are taken per file; lines have about 40 bytes.
        .snapshot_every((file_bytes / 320).max(1000))
}

fn print(report: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(report.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
