//! `gapless top`: current state and rates of the nodes, streams, cluster members and routes of this machine.

mod directories;
mod keys;
mod screen;
mod source;
mod table;
mod text;

use super::watch::sleep_until;
use super::{CommandResult, closed_is_fine, interrupt};
use clap::Args;
use source::{DirectoryReading, ReadingSource};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Directories of nodes, streams, members and domains, or directories that hold such [default: the
    /// domain that GAPLESS_DOMAIN names, else this directory]
    #[arg(value_name = "DIRECTORY")]
    directories: Vec<PathBuf>,

    /// Show also the routes of a domain, by name or absolute path: calls, outcomes, queue and times
    #[arg(long, value_name = "NAME")]
    domain: Vec<String>,

    /// Directory of a further domain, as in the commands for calls
    #[arg(long, value_name = "PATH")]
    directory: Vec<PathBuf>,

    /// Seconds between two samples
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds, allow_hyphen_values = true)]
    interval: Duration,

    /// Print one sample, with rates over half a second
    #[arg(long)]
    once: bool,

    /// Print one JSON object per sample
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.05..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "0.05 to 86400 seconds are possible".to_owned())
}

const SAMPLE: Duration = Duration::from_millis(500);

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    let given: Vec<PathBuf> = arguments.directories.iter().chain(&arguments.directory).cloned().collect();
    let directories = directories::of(&given, &arguments.domain)?;
    let mut sources: Vec<ReadingSource> = directories.iter().map(|directory| ReadingSource::new(directory)).collect();
    let interrupted = interrupt()?;
    let is_interrupted = || interrupted.load(Ordering::Relaxed);
    let is_screen = !arguments.once && !arguments.json && io::stdout().is_terminal() && io::stdin().is_terminal();
    if is_screen {
        let watch = ReadingThreads::start(sources, arguments.interval)?;
        return Ok(screen::run(&watch, arguments.interval, is_interrupted)?);
    }
    read(&mut sources);
    let interval = if arguments.once { SAMPLE.min(arguments.interval) } else { arguments.interval };
    let mut is_first = true;
    loop {
        if !sleep_until(Instant::now() + interval, is_interrupted) {
            return Ok(());
        }
        let readings = read(&mut sources);
        let gap = if is_first { "" } else { "\n" };
        let text =
            if arguments.json { text::in_json(&readings)? } else { format!("{gap}{}", text::in_text(&readings)) };
        let mut stdout = io::stdout().lock();
        let is_read = closed_is_fine(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))?;
        if arguments.once {
            return problem_of(&readings);
        }
        if !is_read {
            return Ok(());
        }
        is_first = false;
    }
}

/// Ends `--once`: there is no later read.
fn problem_of(readings: &[DirectoryReading]) -> CommandResult {
    let unreadable = |reading: &DirectoryReading| reading.unreadable.first().map(ToString::to_string);
    match readings.iter().find_map(|reading| reading.problem.clone().or_else(|| unreadable(reading))) {
        Some(problem) => Err(table::clean(&problem).into()),
        None => Ok(()),
    }
}

/// All at once, so that several silent ones delay it no more than one.
fn read(sources: &mut [ReadingSource]) -> Vec<DirectoryReading> {
    std::thread::scope(|scope| {
        let looks: Vec<_> = sources.iter_mut().map(|source| scope.spawn(|| source.read())).collect();
        looks.into_iter().map(|look| look.join().expect("looking does not panic")).collect()
    })
}

/// A thread for each directory, so that a silent one delays neither others nor the keys.
struct ReadingThreads {
    readings: Receiver<(usize, DirectoryReading)>,
    directories: usize,
    stopping: Arc<AtomicBool>,
}

impl ReadingThreads {
    fn start(sources: Vec<ReadingSource>, interval: Duration) -> io::Result<Self> {
        let directories = sources.len();
        // A full channel blocks the sender, so a stopped screen accumulates nothing.
        let (sender, readings) = sync_channel(directories);
        let stopping = Arc::<AtomicBool>::default();
        for (at, mut source) in sources.into_iter().enumerate() {
            let (sender, stopping) = (sender.clone(), Arc::clone(&stopping));
            std::thread::Builder::new().name("gapless-top".to_owned()).spawn(move || {
                let is_stopping = || stopping.load(Ordering::Relaxed);
                loop {
                    let until = Instant::now() + interval;
                    if sender.send((at, source.read())).is_err() || !sleep_until(until, is_stopping) {
                        return;
                    }
                }
            })?;
        }
        Ok(Self { readings, directories, stopping })
    }

    fn directories(&self) -> usize {
        self.directories
    }

    fn next(&self) -> Option<(usize, DirectoryReading)> {
        self.readings.try_recv().ok()
    }
}

impl Drop for ReadingThreads {
    /// Threads are not joined, because one may wait for an answer.
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}
