//! The subcommands, one file each.

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

/// Ignores a closed standard error and a full disk.
macro_rules! to_stderr {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}
pub(crate) use to_stderr;

pub(crate) type CommandResult = Result<(), Box<dyn std::error::Error>>;

/// Exits with 2.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

pub(crate) fn check_order(from: Option<u64>, to: Option<u64>) -> Result<(), UsageError> {
    match from.zip(to) {
        Some((from, to)) if from > to => Err(UsageError(format!("--from {from} lies behind --to {to}"))),
        _ => Ok(()),
    }
}

#[derive(Debug)]
pub(crate) struct ExitError {
    pub(crate) code: u8,
    pub(crate) reason: String,
}

impl std::fmt::Display for ExitError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.reason)
    }
}

impl std::error::Error for ExitError {}

/// A lack of room, memory or descriptors has its own exit code, by which a supervisor recognises a shortage.
pub(crate) fn of_host(outcome: CommandResult) -> CommandResult {
    outcome.map_err(|error| match shortage::is_shortage(&*error) {
        true => ExitError { code: shortage::EXIT_CODE, reason: error.to_string() }.into(),
        false => error,
    })
}

/// Counts Ctrl-C, SIGTERM and SIGHUP. The third ends the program at once.
pub(crate) fn interrupts() -> Result<Arc<AtomicU32>, ctrlc::Error> {
    let count = Arc::<AtomicU32>::default();
    let counted = Arc::clone(&count);
    signals::kept_ignored(|| {
        ctrlc::set_handler(move || {
            if counted.fetch_add(1, Ordering::Relaxed) >= 2 {
                std::process::exit(INTERRUPTED.into());
            }
        })
    })?;
    Ok(count)
}

/// Exit code of a status command.
pub(crate) const UNHEALTHY: u8 = 1;
/// Exit code of a status command.
pub(crate) const NOT_RUNNING: u8 = 3;

pub(crate) const INTERRUPTED: u8 = 130;

/// Set by Ctrl-C, which also ends a [`std::thread::park_timeout`] of the calling thread. The second Ctrl-C ends the
/// program at once.
pub(crate) fn interrupt() -> Result<Arc<AtomicBool>, ctrlc::Error> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    // Counted here: a child process that ends by the same Ctrl-C may set the flag, too.
    let mut is_second = false;
    let asking = std::thread::current();
    signals::kept_ignored(|| {
        ctrlc::set_handler(move || {
            if std::mem::replace(&mut is_second, true) {
                std::process::exit(INTERRUPTED.into());
            }
            flag.store(true, Ordering::Relaxed);
            asking.unpark();
        })
    })?;
    Ok(interrupted)
}

/// A reader that has gone, as `head` does, ends the output and is not an error.
pub(crate) fn print(text: &str) -> CommandResult {
    is_printed(text)?;
    Ok(())
}

/// The command continues after a failed write: the disk may be full, standard output closed. The next printed line
/// gives the number of lost ones.
pub(crate) fn announce(line: &str) {
    static LOST: AtomicU32 = AtomicU32::new(0);
    let lost = LOST.load(Ordering::Relaxed);
    let before =
        if lost == 0 { String::new() } else { format!("({lost} lines before this one could not be printed)\n") };
    match is_printed(&format!("{before}{line}\n")) {
        Ok(_) => LOST.store(0, Ordering::Relaxed),
        Err(_) => LOST.store(lost + 1, Ordering::Relaxed),
    }
}

/// `false` if the reader has gone.
pub(crate) fn is_printed(text: &str) -> io::Result<bool> {
    let mut stdout = io::stdout().lock();
    closed_is_fine(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// `false` if standard output is a pipe whose reader has gone.
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
