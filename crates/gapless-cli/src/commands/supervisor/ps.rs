//! `gapless ps`: lists the instances, one line each.

use super::SupervisorPath;
use super::status::status;
use super::text::table;
use crate::commands::domain::seconds;
use crate::commands::watch::{clear, sleep_until};
use crate::commands::{CommandResult, ExitError, NOT_RUNNING, UNHEALTHY, interrupt, is_printed};
use crate::printable::escaped;
use clap::Args;
use gapless_supervisor::SupervisorError;
use gapless_supervisor::control::protocol::InstanceCondition;
use gapless_supervisor::control::{InstanceStatistics, StatisticsReader, SupervisorStatistics};
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    at: SupervisorPath,

    /// Print again every SECONDS, 1 without a value, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds, allow_negative_numbers = true)]
    watch: Option<Duration>,

    /// Print one JSON object per sample
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    if arguments.at.has_only_idle_directories() {
        let reason = "nothing runs: no file is in force in the state directories of this folder".to_owned();
        return Err(ExitError { code: NOT_RUNNING, reason }.into());
    }
    let directory = arguments.at.directory()?;
    let interrupted = arguments.watch.map(|_| interrupt()).transpose()?;
    let mut is_again = false;
    let mut reader = StatisticsReader::default();
    loop {
        let now = Instant::now();
        let status = status(&directory).map_err(|error| match error.downcast_ref::<SupervisorError>() {
            Some(missing) if missing.errno() == Some(Errno::NOENT) => {
                let reason = format!("nothing was ever started in {}", directory.display());
                ExitError { code: NOT_RUNNING, reason }.into()
            }
            _ => error,
        })?;
        let figures = reader.read_all(status);
        let text = if arguments.json { format!("{}\n", serde_json::to_string(&figures)?) } else { in_text(&figures) };
        if !is_printed(&format!("{}{text}", clear(is_again && !arguments.json)))? {
            return Ok(());
        }
        is_again = true;
        let (Some(interval), Some(interrupted)) = (arguments.watch, &interrupted) else {
            return fault(&figures).map_or(Ok(()), |ended| Err(ended.into()));
        };
        if !sleep_until(now + interval, || interrupted.load(Ordering::Relaxed)) {
            return Ok(());
        }
    }
}

/// Instances stopped by a person and completed tasks are fine.
fn fault(figures: &SupervisorStatistics) -> Option<ExitError> {
    let supervisor = &figures.supervisor;
    if supervisor.file.is_none() && figures.instances.is_empty() {
        return Some(ExitError { code: NOT_RUNNING, reason: "nothing runs: no file is in force".to_owned() });
    }
    let is_healthy = |each: &&InstanceStatistics| {
        use InstanceCondition::{Done, Ready, Standby, Stopped};
        matches!(each.instance.state, Ready | Standby | Stopped | Done) && each.standstill.is_none()
    };
    let (instances, healthy) = (figures.instances.len(), figures.instances.iter().filter(is_healthy).count());
    let reason = if supervisor.supervisor_process_id.is_none() {
        "nobody watches".to_owned()
    } else if healthy < instances {
        format!("{} of {instances} instances are not as they shall be", instances - healthy)
    } else if supervisor.problem.is_some() {
        "the supervisor reports a problem".to_owned()
    } else {
        return None;
    };
    Some(ExitError { code: UNHEALTHY, reason })
}

fn in_text(figures: &SupervisorStatistics) -> String {
    let mut text = if figures.instances.is_empty() { String::new() } else { table(figures) };
    if figures.supervisor.supervisor_process_id.is_none() && figures.supervisor.problem.is_none() {
        text += match &figures.supervisor.file {
            Some(_) => "nobody watches: what dies stays dead until `gapless up FILE` takes over\n",
            None => "no file is in force: `gapless up FILE` starts what it names\n",
        };
    }
    if figures.instances.iter().any(|figures| figures.instance.process_in_other_namespace) {
        text += "* of another process namespace, as of a container, or another user's: here the number means another process\n";
    }
    for InstanceStatistics { instance, standstill, .. } in &figures.instances {
        if let (Some(process_id), Some(why)) = (instance.process_id, standstill) {
            text += &format!("{}: its process {process_id} {why}\n", instance.instance);
        }
    }
    if figures.supervisor.is_ending {
        text += "everything is being stopped\n";
    }
    for problem in figures.supervisor.problem.iter().flat_map(|problem| problem.lines()) {
        text += &format!("{}\n", escaped(problem));
    }
    if let Some(missing) = &figures.missing {
        text += &format!("figures of routes: {}\n", escaped(missing));
    }
    text
}
