//! `gapless events`: prints past and new events of instances and of the supervisor.

use super::SupervisorPath;
use super::lines::LogLines;
use crate::commands::{CommandResult, ExitError, interrupt, is_printed};
use crate::printable::escaped;
use clap::Args;
use gapless_agent::checked_file;
use gapless_supervisor::control::protocol::{EventRecord, EventSubject};
use gapless_supervisor::state_directory::StateDirectory;
use gapless_supervisor::supervision::event::{InstanceEvent, InstanceEventKind};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(50);

#[derive(Args)]
#[group(id = "supervised")]
pub(crate) struct Arguments {
    #[command(flatten)]
    at: SupervisorPath,

    /// Follow new events until Ctrl-C
    #[arg(short, long)]
    follow: bool,

    /// Number of last events
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "100")]
    lines: usize,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    let directory = StateDirectory::open_to_read(&arguments.at.directory()?)?;
    let log = directory.events();
    match checked_file::open(&log) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if !arguments.follow {
                let reason = format!("nothing has happened yet in {}", directory.path().display());
                return Err(Box::new(ExitError { code: 1, reason }));
            }
        }
        Err(error) => return Err(Box::new(ExitError { code: 1, reason: format!("{}: {error}", log.display()) })),
    }
    let interrupted = interrupt()?;
    let mut lines = LogLines::of(&log);
    let mut last = VecDeque::new();
    let mut is_begin = true;
    loop {
        let new_lines = lines.more();
        last.extend(new_lines.lines);
        if is_begin {
            let surplus = last.len().saturating_sub(arguments.lines);
            last.drain(..surplus);
        }
        if !new_lines.has_more {
            is_begin = false;
        }
        if !is_begin {
            let text: String = last.drain(..).filter_map(|line| shown(&line, arguments.json)).collect();
            if !is_printed(&text)? {
                return Ok(());
            }
            if !arguments.follow || interrupted.load(Ordering::Relaxed) {
                return Ok(());
            }
            if !new_lines.has_more {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// `None` if the line was not written completely, as on a full disk.
fn shown(line: &str, is_json: bool) -> Option<String> {
    let record = serde_json::from_str::<EventRecord>(line).ok()?;
    // Lines of earlier versions have other names.
    Some(if is_json {
        format!("{}\n", serde_json::to_string(&record).ok()?)
    } else {
        format!("{}\n", in_text(&record))
    })
}

fn in_text(record: &EventRecord) -> String {
    let (seconds, ms) = (record.unix_ms / 1000, record.unix_ms % 1000);
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    let what = match &record.subject {
        EventSubject::Instance(event) => of_instance(event),
        EventSubject::Supervisor { event } => event.to_string(),
    };
    // Text of an instance must stay in one line.
    let what = escaped(&what);
    format!("{hours:02}:{minutes:02}:{:02}.{ms:03}Z {what}", seconds % 60)
}

fn of_instance(event: &InstanceEvent) -> String {
    let what = match &event.what {
        InstanceEventKind::Starting => "starting".to_owned(),
        InstanceEventKind::Started { process_id } => format!("runs as process {process_id}"),
        InstanceEventKind::Standby => "stands by".to_owned(),
        InstanceEventKind::Active => "active".to_owned(),
        InstanceEventKind::Initialised => "initialised".to_owned(),
        InstanceEventKind::Ready => "ready".to_owned(),
        InstanceEventKind::Said { words } => format!("says: {words}"),
        InstanceEventKind::Stopping { reason } => format!("stopping: {reason}"),
        InstanceEventKind::Killed { reason } => format!("killed: {reason}"),
        InstanceEventKind::Ended { end } => end.to_string(),
        InstanceEventKind::Held => "held: it has ended too often; `gapless start` starts it again".to_owned(),
    };
    format!("{}: {what}", event.instance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_lines_are_read() {
        let line = r#"{"unix_ms":1,"copy":"a.1","what":"ready"}"#;
        let json = shown(line, true).unwrap();
        assert_eq!(json, "{\"unix_ms\":1,\"instance\":\"a.1\",\"what\":\"ready\"}\n");
        assert_eq!(shown(line, false).unwrap(), "00:00:00.001Z a.1: ready\n");
    }
}
