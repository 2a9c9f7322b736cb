//! `gapless events`: prints past and new events of instances and of the supervisor.

use super::At;
use super::lines::Lines;
use crate::commands::{Ended, Outcome, interrupt, is_printed};
use crate::printable::escaped;
use clap::Args;
use gapless_agent::checked_file;
use gapless_supervisor::control::protocol::{EventRecord, Recorded};
use gapless_supervisor::state_directory::StateDirectory;
use gapless_supervisor::supervision::event::{Happening, What};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(50);

#[derive(Args)]
#[group(id = "supervised")]
pub(crate) struct Arguments {
    #[command(flatten)]
    at: At,

    /// Print what comes, too, until Ctrl-C
    #[arg(short, long)]
    follow: bool,

    /// So many of the last events
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "100")]
    lines: usize,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let directory = StateDirectory::look(&arguments.at.directory()?)?;
    let log = directory.events();
    match checked_file::open(&log) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if !arguments.follow {
                let reason = format!("nothing has happened yet in {}", directory.path().display());
                return Err(Box::new(Ended { code: 1, reason }));
            }
        }
        Err(error) => return Err(Box::new(Ended { code: 1, reason: format!("{}: {error}", log.display()) })),
    }
    let interrupted = interrupt()?;
    let mut lines = Lines::of(&log);
    let mut last = VecDeque::new();
    let mut is_begin = true;
    loop {
        let come = lines.more();
        last.extend(come.lines);
        if is_begin {
            let surplus = last.len().saturating_sub(arguments.lines);
            last.drain(..surplus);
        }
        if !come.has_more {
            is_begin = false;
        }
        if !is_begin {
            let text: String = last.drain(..).filter_map(|line| shown(&line, arguments.json)).collect();
            if !is_printed(&text)? {
                return Ok(());
            }
            // Relaxed: the flag guards no data.
            if !arguments.follow || interrupted.load(Ordering::Relaxed) {
                return Ok(());
            }
            if !come.has_more {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Formats a line of the log; `None` if it was not written completely, as on a full disk.
fn shown(line: &str, is_json: bool) -> Option<String> {
    let record = serde_json::from_str::<EventRecord>(line).ok()?;
    Some(if is_json { format!("{line}\n") } else { format!("{}\n", in_text(&record)) })
}

fn in_text(record: &EventRecord) -> String {
    let (seconds, ms) = (record.unix_ms / 1000, record.unix_ms % 1000);
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    let what = match &record.happening {
        Recorded::Copy(happening) => of_copy(happening),
        Recorded::Supervisor { event } => event.to_string(),
    };
    // Some of the text comes from an instance; an event must stay in one line.
    let what = escaped(&what);
    format!("{hours:02}:{minutes:02}:{:02}.{ms:03}Z {what}", seconds % 60)
}

fn of_copy(happening: &Happening) -> String {
    let what = match &happening.what {
        What::Starting => "starting".to_owned(),
        What::Started { process_id } => format!("runs as process {process_id}"),
        What::Standby => "stands by".to_owned(),
        What::Active => "active".to_owned(),
        What::Initialised => "initialised".to_owned(),
        What::Ready => "ready".to_owned(),
        What::Said { words } => format!("says: {words}"),
        What::Stopping { reason } => format!("stopping: {reason}"),
        What::Killed { reason } => format!("killed: {reason}"),
        What::Ended { end } => end.to_string(),
        What::Held => "held: it has ended too often; `gapless start` starts it again".to_owned(),
    };
    format!("{}: {what}", happening.copy)
}
