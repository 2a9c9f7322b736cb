//! The simulator's program: runs seeds, says which failed and how to replay them.

use clap::Parser;
use gapless_sim::{ApplicationKind, ClusterShape, Options, SecondPass, SimulationFailure, Tally, simulate_own};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing_subscriber::filter::LevelFilter;

/// Runs whole clusters of shipped members on virtual time and a virtual network, with all faults, each from one seed.
///
/// Ends with 1 if a promise was not kept. The same seed gives the same run.
#[derive(Parser)]
#[command(
    name = "gapless-sim",
    version,
    after_help = "Examples:\n  cargo run --release -p gapless-sim --features program -- --seeds 1000\n  cargo run --release -p gapless-sim --features program -- --seed 107 --trace\n  cargo run --release -p gapless-sim --features program -- --seeds 1000 --members 2+witness --json"
)]
struct Arguments {
    /// Number of seeds to run
    #[arg(long, default_value_t = 100, conflicts_with = "seed")]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 1, conflicts_with = "seed")]
    first: u64,
    /// Run this one alone
    #[arg(long)]
    seed: Option<u64>,
    /// Print what happens, and what the members say
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Members of the cluster: 3, 5 or 2+witness [default: by the seed]
    #[arg(long)]
    members: Option<ClusterShape>,
    /// Workload of the cluster: service, state (a service whose state is replicated), event-stream or commands (a command
    /// bus) [default: by the seed, one of the first three]
    #[arg(long)]
    offer: Option<ApplicationKind>,
    /// Messages of each publisher
    #[arg(long, default_value_t = Options::default().messages)]
    messages: u64,
    /// Duration of the faults, ms of virtual time
    #[arg(long, default_value_t = Options::default().faults_ms)]
    faults_ms: u64,
    /// Threads that run seeds [default: one for each core]
    #[arg(long)]
    threads: Option<usize>,
    /// End with the first run that fails
    #[arg(long)]
    stop_at_first: bool,
    /// Do not do each run again in a second process, at another time of day
    #[arg(long)]
    no_second_pass: bool,
    /// Of a run that failed, print also how the members and their consensus stood
    #[arg(long)]
    internals: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A closed pipe is no error: the exit code tells the result.
macro_rules! say {
    ($($words:tt)*) => {
        let _unread = writeln!(std::io::stdout(), $($words)*);
    };
}

#[derive(Serialize)]
struct Summary {
    seeds: u64,
    failures: Vec<SimulationFailure>,
    tally: Tally,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.trace {
        tracing_subscriber::fmt().without_time().with_ansi(false).with_max_level(LevelFilter::DEBUG).init();
    }
    let seeds = arguments
        .seed
        .map_or(arguments.first..arguments.first.saturating_add(arguments.seeds), |seed| seed..seed.saturating_add(1));
    let options = Options {
        shape: arguments.members,
        messages: arguments.messages,
        faults_ms: arguments.faults_ms,
        prints_trace: arguments.trace,
        ..Options::default()
    };
    let summary = run(seeds, &options, &arguments);
    if arguments.json {
        match serde_json::to_string_pretty(&summary) {
            Ok(text) => {
                say!("{text}");
            }
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        }
    } else {
        print(&summary, &arguments);
    }
    if summary.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(seeds: Range<u64>, options: &Options, arguments: &Arguments) -> Summary {
    let count = seeds.end - seeds.start;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.unwrap_or(cores).max(1);
    let bar = if options.prints_trace || arguments.json { ProgressBar::hidden() } else { ProgressBar::new(count) };
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos} of {len} seeds, {eta} left {msg}") {
        bar.set_style(style);
    }
    let next = AtomicU64::new(seeds.start);
    let summary = Mutex::new(Summary { seeds: 0, failures: Vec::new(), tally: Tally::default() });
    let work = || {
        loop {
            // Relaxed: the number itself is the only shared data.
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let second_pass = if arguments.no_second_pass {
                SecondPass::Off
            } else {
                SecondPass::With(again(arguments, seed).into_iter().map(OsString::from).collect())
            };
            let outcome = simulate_own(arguments.offer, &Options { second_pass, ..options.clone() }, seed);
            let mut summary = summary.lock().expect("nobody panics with it");
            summary.seeds += 1;
            match outcome {
                Ok(tally) if count == 1 => summary.tally = tally,
                Ok(tally) => summary.tally.add(&tally),
                Err(failure) => {
                    bar.println(format!("FAILED: {}", text_of(&failure, arguments)));
                    summary.tally.add(&failure.tally);
                    summary.failures.push(*failure);
                    bar.set_message(format!("{} failed", summary.failures.len()));
                    if arguments.stop_at_first {
                        // Relaxed: as above.
                        next.store(seeds.end, Ordering::Relaxed);
                    }
                }
            }
            bar.inc(1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    bar.finish_and_clear();
    let mut summary = summary.into_inner().expect("nobody panics with it");
    summary.failures.sort_by_key(|failure| failure.seed);
    summary
}

/// Returns the arguments with which another process reaches that run.
fn again(arguments: &Arguments, seed: u64) -> Vec<String> {
    let mut words = vec![format!("--seed={seed}"), format!("--messages={}", arguments.messages)];
    words.push(format!("--faults-ms={}", arguments.faults_ms));
    words.extend(arguments.members.map(|shape| format!("--members={shape}")));
    words.extend(arguments.offer.map(|offer| format!("--offer={offer}")));
    words
}

fn text_of(failure: &SimulationFailure, arguments: &Arguments) -> String {
    if arguments.internals { format!("{failure:#}") } else { failure.to_string() }
}

fn print(summary: &Summary, arguments: &Arguments) {
    let Summary { seeds, failures, tally } = summary;
    let seconds = tally.virtual_ns as f64 / 1e9;
    say!("{seeds} seeds, {seconds:.1} s of virtual time, {} events", tally.events);
    let Tally { released, acknowledged, repeated, resolved, notices, timers, terms, times_kept, .. } = tally;
    say!(
        "  {released} frames released, {acknowledged} messages acknowledged, {repeated} replies given once more, {resolved} \
         outcomes told to clients started anew, {timers} timers, {notices} notices, {terms} terms with a leader, of which \
         {times_kept} went on with the time of the one before"
    );
    let Tally {
        crashes,
        kills,
        power_losses,
        flips,
        disks,
        copies,
        exchanges,
        found_out,
        fetched,
        full_disks,
        disk_errors,
        pauses,
        cuts,
        broken,
        jumps,
        transfers,
        changes,
        publishers,
        ..
    } = tally;
    say!(
        "  {crashes} members killed between turns, {kills} in the middle of one, {power_losses} losses of power, {flips} bits \
         changed, {disks} disks lost, {copies} older copies of directories put back and {exchanges} exchanged, {found_out} members stopped by that, {fetched} states fetched, {full_disks} members stopped by full disks and {disk_errors} by failing ones, {pauses} pauses, {cuts} cuts of the network, {broken} connections broken, {jumps} jumps of clocks, {transfers} leaders \
         asked to hand over, {changes} changes of members, {publishers} publishers started anew"
    );
    if *seeds == 1 && failures.is_empty() {
        say!("  trace {:016x}", tally.trace);
    }
    for failure in failures {
        say!("FAILED: {}", text_of(failure, arguments));
        say!(
            "  replay it: cargo run --release -p gapless-sim --features program -- --trace {}",
            again(arguments, failure.seed).join(" ")
        );
    }
    if failures.is_empty() {
        say!("all promises were kept");
    }
}
