//! `gapless logs`: prints the output of instances.

use super::SupervisorPath;
use super::lines::{LogLines, NewLines};
use crate::commands::{CommandResult, ExitError, UsageError, interrupt, is_printed};
use clap::Args;
use gapless_supervisor::state_directory::StateDirectory;
use gapless_supervisor::{InstanceName, SupervisorConfig};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(50);
const SUPERVISOR_POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct Arguments {
    /// Processes of the file, or instances as NAME.1 [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Follow new lines until Ctrl-C
    #[arg(short, long)]
    follow: bool,

    /// Number of last lines of each log
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "100")]
    lines: usize,

    /// Print one JSON object per line: instance and line, or the number of bytes deleted between two lines
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    at: SupervisorPath,
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    let directory = StateDirectory::open_to_read(&arguments.at.directory()?)?;
    let mut known = KnownLogs::of(&directory)?;
    for name in &arguments.names {
        let process =
            name.parse::<InstanceName>().map_or_else(|_| name.clone(), |instance| instance.process().to_owned());
        if !known.processes.contains(&process) {
            let reason = format!("{name:?} is no process of the file; {} are", known.processes.join(", "));
            return Err(Box::new(UsageError(reason)));
        }
    }
    // A log may appear later with --follow.
    let is_missing =
        |name: &&String| name.parse::<InstanceName>().is_ok_and(|instance| !known.logs.contains_key(&instance));
    if let Some(name) = arguments.names.iter().find(is_missing).filter(|_| !arguments.follow) {
        return Err(Box::new(ExitError { code: 1, reason: format!("{name} has no log") }));
    }
    let interrupted = interrupt()?;
    let mut followed = BTreeMap::new();
    let mut next_poll = Instant::now() + known.poll_interval;
    loop {
        let is_meant = |instance: &InstanceName| {
            let mut names = arguments.names.iter();
            arguments.names.is_empty() || names.any(|name| *name == instance.process() || *name == instance.to_string())
        };
        let logs: Vec<_> = known.logs.iter().filter(|(instance, _)| is_meant(instance)).collect();
        let is_one = logs.len() == 1;
        let mut has_more = false;
        for (instance, path) in logs {
            let is_new = !followed.contains_key(instance);
            let lines = followed.entry(instance.clone()).or_insert_with(|| LogLines::of(path));
            let printer = LinePrinter { instance, is_one, is_json: arguments.json };
            let new_lines = if is_new { last(lines, arguments.lines) } else { lines.more() };
            has_more |= new_lines.has_more;
            if !is_printed(&printer.text(&new_lines))? {
                return Ok(());
            }
        }
        if !arguments.follow {
            let is_one = followed.len() == 1;
            for (instance, lines) in followed {
                let printer = LinePrinter { instance: &instance, is_one, is_json: arguments.json };
                let rest = lines.rest().filter(|_| arguments.lines > 0);
                is_printed(&printer.text(&NewLines {
                    lines: rest.into_iter().collect(),
                    skipped: 0,
                    has_more: false,
                }))?;
            }
            return Ok(());
        }
        if interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        if !has_more {
            std::thread::sleep(PAUSE);
        }
        // Another file may be in force by now; after everything has ended, the last one counts.
        if Instant::now() >= next_poll {
            if let Ok(new) = KnownLogs::of(&directory) {
                known = new;
            }
            next_poll = Instant::now() + known.poll_interval;
        }
    }
}

struct KnownLogs {
    processes: Vec<String>,
    logs: BTreeMap<InstanceName, PathBuf>,
    poll_interval: Duration,
}

impl KnownLogs {
    fn of(directory: &StateDirectory) -> Result<Self, Box<dyn std::error::Error>> {
        if directory.is_own() { Self::of_file(directory) } else { Self::of_supervisor(directory) }
    }

    fn of_file(directory: &StateDirectory) -> Result<Self, Box<dyn std::error::Error>> {
        let Some(in_force) = directory.read_config_in_force()? else {
            let reason = format!("no file is in force in {}", directory.path().display());
            return Err(Box::new(ExitError { code: 1, reason }));
        };
        let config = SupervisorConfig::parse_in_force(&in_force.text, &in_force.path)?;
        let processes = config.processes.iter().map(|process| process.name.clone()).collect();
        Ok(Self { processes, logs: logs(&config), poll_interval: PAUSE })
    }

    /// Members of the supervisor's group may not read the file.
    fn of_supervisor(directory: &StateDirectory) -> Result<Self, Box<dyn std::error::Error>> {
        let instances = super::connect(directory.path())?.status()?.instances;
        let mut processes: Vec<String> =
            instances.iter().map(|instance| instance.instance.process().to_owned()).collect();
        processes.dedup();
        let logs = instances.into_iter().filter_map(|instance| Some((instance.instance, instance.log?)));
        Ok(Self { processes, logs: logs.collect(), poll_interval: SUPERVISOR_POLL_INTERVAL })
    }
}

fn last(lines: &mut LogLines, count: usize) -> NewLines {
    let mut all = NewLines { lines: Vec::new(), skipped: 0, has_more: true };
    while all.has_more {
        let new_lines = lines.more();
        all.lines.extend(new_lines.lines);
        all.has_more = new_lines.has_more;
        let surplus = all.lines.len().saturating_sub(count);
        all.lines.drain(..surplus);
    }
    all
}

struct LinePrinter<'a> {
    instance: &'a InstanceName,
    is_one: bool,
    is_json: bool,
}

impl LinePrinter<'_> {
    fn text(&self, new_lines: &NewLines) -> String {
        let (instance, mut text) = (self.instance, String::new());
        if new_lines.skipped > 0 {
            text += &match self.is_json {
                true => format!("{}\n", json!({ "instance": instance, "skipped_bytes": new_lines.skipped })),
                false => format!("{instance}: {} bytes are not kept any more\n", new_lines.skipped),
            };
        }
        for line in &new_lines.lines {
            text += &match (self.is_json, self.is_one) {
                (true, _) => format!("{}\n", json!({ "instance": instance, "line": line })),
                (false, true) => format!("{line}\n"),
                (false, false) => format!("{instance}: {line}\n"),
            };
        }
        text
    }
}

fn logs(config: &SupervisorConfig) -> BTreeMap<InstanceName, PathBuf> {
    let mut found = BTreeMap::new();
    for process in &config.processes {
        for entry in std::fs::read_dir(&process.log_folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let instance = name.to_str().and_then(|name| name.strip_suffix(".log")?.parse::<InstanceName>().ok());
            if let Some(instance) = instance.filter(|instance| instance.process() == process.name) {
                found.insert(instance, entry.path());
            }
        }
    }
    found
}
