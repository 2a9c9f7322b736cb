//! `gapless logs`: prints the output of instances.

use super::At;
use super::lines::{Come, Lines};
use crate::commands::{Ended, Outcome, Usage, interrupt, is_printed};
use clap::Args;
use gapless_supervisor::state_directory::StateDirectory;
use gapless_supervisor::{CopyName, SupervisorConfig};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(50);
const LOOK_AT_SUPERVISOR: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct Arguments {
    /// Processes of the file, or copies as NAME.1; all without any
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Print what comes, too, until Ctrl-C
    #[arg(short, long)]
    follow: bool,

    /// So many lines of each log
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "100")]
    lines: usize,

    /// Print one JSON object a line: copy and line, or how many bytes between two lines are not kept any more
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    at: At,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let directory = StateDirectory::look(&arguments.at.directory()?)?;
    let mut known = Known::of(&directory)?;
    for name in &arguments.names {
        let process = name.parse::<CopyName>().map_or_else(|_| name.clone(), |copy| copy.process().to_owned());
        if !known.processes.contains(&process) {
            let reason = format!("{name:?} is no process of the file; {} are", known.processes.join(", "));
            return Err(Box::new(Usage(reason)));
        }
    }
    // With --follow, a log may appear later.
    let is_missing = |name: &&String| name.parse::<CopyName>().is_ok_and(|copy| !known.logs.contains_key(&copy));
    if let Some(name) = arguments.names.iter().find(is_missing).filter(|_| !arguments.follow) {
        return Err(Box::new(Ended { code: 1, reason: format!("{name} has no log") }));
    }
    let interrupted = interrupt()?;
    let mut followed = BTreeMap::new();
    let mut next_look = Instant::now() + known.look_interval;
    loop {
        let is_meant = |copy: &CopyName| {
            let mut names = arguments.names.iter();
            arguments.names.is_empty() || names.any(|name| *name == copy.process() || *name == copy.to_string())
        };
        let logs: Vec<_> = known.logs.iter().filter(|(copy, _)| is_meant(copy)).collect();
        let is_one = logs.len() == 1;
        let mut has_more = false;
        for (copy, path) in logs {
            let is_new = !followed.contains_key(copy);
            let lines = followed.entry(copy.clone()).or_insert_with(|| Lines::of(path));
            let shown = Shown { copy, is_one, is_json: arguments.json };
            let come = if is_new { last(lines, arguments.lines) } else { lines.more() };
            has_more |= come.has_more;
            if !is_printed(&shown.text(&come))? {
                return Ok(());
            }
        }
        if !arguments.follow {
            let is_one = followed.len() == 1;
            for (copy, lines) in followed {
                let shown = Shown { copy: &copy, is_one, is_json: arguments.json };
                let rest = lines.rest().filter(|_| arguments.lines > 0);
                is_printed(&shown.text(&Come { lines: rest.into_iter().collect(), skipped: 0, has_more: false }))?;
            }
            return Ok(());
        }
        // Relaxed: the flag guards no data.
        if interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        if !has_more {
            std::thread::sleep(PAUSE);
        }
        // Another file may be in force by now; after everything has ended, the last one counts.
        if Instant::now() >= next_look {
            if let Ok(new) = Known::of(&directory) {
                known = new;
            }
            next_look = Instant::now() + known.look_interval;
        }
    }
}

struct Known {
    processes: Vec<String>,
    logs: BTreeMap<CopyName, PathBuf>,
    look_interval: Duration,
}

impl Known {
    fn of(directory: &StateDirectory) -> Result<Self, Box<dyn std::error::Error>> {
        if directory.is_own() { Self::of_file(directory) } else { Self::of_supervisor(directory) }
    }

    /// Logs according to the file in force.
    fn of_file(directory: &StateDirectory) -> Result<Self, Box<dyn std::error::Error>> {
        let Some(in_force) = directory.read_config_in_force()? else {
            let reason = format!("no file is in force in {}", directory.path().display());
            return Err(Box::new(Ended { code: 1, reason }));
        };
        let config = SupervisorConfig::parse_in_force(&in_force.text, &in_force.path)?;
        let processes = config.processes.iter().map(|process| process.name.clone()).collect();
        Ok(Self { processes, logs: logs(&config), look_interval: PAUSE })
    }

    /// Logs according to the supervisor, for members of its group, who may not read the file.
    fn of_supervisor(directory: &StateDirectory) -> Result<Self, Box<dyn std::error::Error>> {
        let copies = super::connect(directory.path())?.status()?.copies;
        let mut processes: Vec<String> = copies.iter().map(|copy| copy.copy.process().to_owned()).collect();
        processes.dedup();
        let logs = copies.into_iter().filter_map(|copy| Some((copy.copy, copy.log?)));
        Ok(Self { processes, logs: logs.collect(), look_interval: LOOK_AT_SUPERVISOR })
    }
}

fn last(lines: &mut Lines, count: usize) -> Come {
    let mut all = Come { lines: Vec::new(), skipped: 0, has_more: true };
    while all.has_more {
        let come = lines.more();
        all.lines.extend(come.lines);
        all.has_more = come.has_more;
        let surplus = all.lines.len().saturating_sub(count);
        all.lines.drain(..surplus);
    }
    all
}

struct Shown<'a> {
    copy: &'a CopyName,
    is_one: bool,
    is_json: bool,
}

impl Shown<'_> {
    fn text(&self, come: &Come) -> String {
        let (copy, mut text) = (self.copy, String::new());
        if come.skipped > 0 {
            text += &match self.is_json {
                true => format!("{}\n", json!({ "copy": copy, "skipped_bytes": come.skipped })),
                false => format!("{copy}: {} bytes are not kept any more\n", come.skipped),
            };
        }
        for line in &come.lines {
            text += &match (self.is_json, self.is_one) {
                (true, _) => format!("{}\n", json!({ "copy": copy, "line": line })),
                (false, true) => format!("{line}\n"),
                (false, false) => format!("{copy}: {line}\n"),
            };
        }
        text
    }
}

fn logs(config: &SupervisorConfig) -> BTreeMap<CopyName, PathBuf> {
    let mut found = BTreeMap::new();
    for process in &config.processes {
        for entry in std::fs::read_dir(&process.log_folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let copy = name.to_str().and_then(|name| name.strip_suffix(".log")?.parse::<CopyName>().ok());
            if let Some(copy) = copy.filter(|copy| copy.process() == process.name) {
                found.insert(copy, entry.path());
            }
        }
    }
    found
}
