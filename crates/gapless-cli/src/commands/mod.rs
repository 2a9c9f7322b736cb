//! The subcommands, one file each. What they share: `pipe` of standard output, `watch` of printing again, `time_text` of times; those for calls `domain`,
//! `domain_directory`, `request` and `call_end`.

pub(crate) mod bench;
pub(crate) mod bridge;
pub(crate) mod broadcast;
pub(crate) mod call;
pub(crate) mod call_end;
pub(crate) mod cluster;
pub(crate) mod counters;
pub(crate) mod domain;
pub(crate) mod domain_directory;
pub(crate) mod events;
pub(crate) mod journal;
pub(crate) mod pipe;
pub(crate) mod request;
pub(crate) mod routes;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod stream;
pub(crate) mod supervisor;
mod time_text;
pub(crate) mod top;
pub(crate) mod validate;
pub(crate) mod watch;

use crate::{signals, standard_streams};
use gapless_agent::shortage;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// As `eprintln!`, and goes on where standard error is closed or its disk is full.
macro_rules! to_stderr {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}
pub(crate) use to_stderr;

/// The result of a subcommand.
pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Options that make no sense together; the program ends with 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// That the first of some sequences does not lie behind the last, as `--from` and `--to` name them.
pub(crate) fn check_order(from: Option<u64>, to: Option<u64>) -> Result<(), Usage> {
    match from.zip(to) {
        Some((from, to)) if from > to => Err(Usage(format!("--from {from} lies behind --to {to}"))),
        _ => Ok(()),
    }
}

/// An outcome with an exit code of its own.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: u8,
    pub(crate) reason: String,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.reason)
    }
}

impl std::error::Error for Ended {}

/// The outcome of a command that runs until it is stopped. One that ends for want of room, memory or descriptors has an exit code of its own, by
/// which a supervisor knows that it is nobody's fault.
pub(crate) fn of_host(outcome: Outcome) -> Outcome {
    outcome.map_err(|error| match shortage::is_shortage(&*error) {
        true => Ended { code: shortage::EXIT_CODE, reason: error.to_string() }.into(),
        false => error,
    })
}

/// How often Ctrl-C has come, or SIGTERM, or SIGHUP: for a command that has something to end at the second one, too. The third one ends
/// the program at once.
pub(crate) fn interrupts() -> Result<Arc<AtomicU32>, ctrlc::Error> {
    let count = Arc::<AtomicU32>::default();
    let counted = Arc::clone(&count);
    signals::kept_ignored(|| {
        ctrlc::set_handler(move || {
            // Relaxed: the count guards no data; a poll sees it some time later.
            if counted.fetch_add(1, Ordering::Relaxed) >= 2 {
                std::process::exit(INTERRUPTED.into());
            }
        })
    })?;
    Ok(count)
}

/// The exit code of a command that shows the state of something, where it is not well; 0 where it is.
pub(crate) const UNHEALTHY: u8 = 1;
/// Where it does not run.
pub(crate) const NOT_RUNNING: u8 = 3;

/// The exit code of a program that Ctrl-C has ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// Set by Ctrl-C, which also ends the present [`std::thread::park_timeout`] of the thread that asks for the flag; the
/// second one ends the program at once.
pub(crate) fn interrupt() -> Result<Arc<AtomicBool>, ctrlc::Error> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    // Counted here: the flag may be set by others, too, as when a child process ends by the same Ctrl-C.
    let mut is_second = false;
    let asking = std::thread::current();
    signals::kept_ignored(|| {
        ctrlc::set_handler(move || {
            if std::mem::replace(&mut is_second, true) {
                std::process::exit(INTERRUPTED.into());
            }
            // Relaxed: the flag guards no data; a poll sees it some time later.
            flag.store(true, Ordering::Relaxed);
            asking.unpark();
        })
    })?;
    Ok(interrupted)
}

/// Prints to stdout. A reader that has gone, as `head` does, ends the program's output and is no error.
pub(crate) fn print(text: &str) -> Outcome {
    is_printed(text)?;
    Ok(())
}

/// Prints a line of a command that goes on whatever becomes of it: the disk may be full, the reader gone, standard output closed. The
/// next line that can be printed says how many were lost.
pub(crate) fn announce(line: &str) {
    static LOST: AtomicU32 = AtomicU32::new(0);
    // Relaxed: the count guards no data.
    let lost = LOST.load(Ordering::Relaxed);
    let before =
        if lost == 0 { String::new() } else { format!("({lost} lines before this one could not be printed)\n") };
    match is_printed(&format!("{before}{line}\n")) {
        Ok(_) => LOST.store(0, Ordering::Relaxed),
        Err(_) => LOST.store(lost + 1, Ordering::Relaxed),
    }
}

/// As [`print`], for text that is printed again and again; `false` if the reader has gone.
pub(crate) fn is_printed(text: &str) -> io::Result<bool> {
    let mut stdout = io::stdout().lock();
    closed_is_fine(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// What was written to standard output; `false` if it is a pipe whose reader has gone.
///
/// # Errors
/// Standard output was closed from the beginning, or cannot be written.
pub(crate) fn closed_is_fine(written: io::Result<()>) -> io::Result<bool> {
    standard_streams::check_output()?;
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(io::Error::new(error.kind(), format!("standard output: {error}"))),
    }
}
