//! `gapless routes suspend`, `resume` and `drain`: change the routes of running processes.

use super::super::domain::{DomainArguments, exit_error, options_error, seconds};
use super::super::request::route;
use super::super::{CommandResult, print};
use crate::printable::escaped;
use clap::Args;
use gapless_rpc::Domain;
use gapless_rpc::domain::{KnownRoute, KnownRouteState, KnownRoutes};
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name of the route
    #[arg(value_name = "ROUTE")]
    route: String,

    /// Process id of the instance [default: all instances]
    #[arg(long, value_name = "PID", value_parser = process_id, allow_hyphen_values = true)]
    pid: Option<u32>,

    #[command(flatten)]
    domain: DomainArguments,

    /// Seconds to wait for the change
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds, allow_hyphen_values = true)]
    timeout: Duration,
}

const PROCESS_ID_MAX: u32 = 1 << 22;
const ASKED_FOR: Duration = Duration::from_secs(1);

fn process_id(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=PROCESS_ID_MAX).contains(number));
    number.ok_or_else(|| format!("process ids 1 to {PROCESS_ID_MAX} are possible"))
}

#[derive(Clone, Copy)]
pub(crate) enum Change {
    Suspend,
    Resume,
    Drain,
}

pub(crate) fn run(arguments: &Arguments, change: Change) -> CommandResult {
    route(&arguments.route)?;
    let domain = arguments.domain.open()?;
    let (pid, timeout) = (arguments.pid, arguments.timeout);
    let (changed, wanted) = match change {
        Change::Suspend => (domain.suspend_route(&arguments.route, pid, timeout), KnownRouteState::Suspended),
        Change::Resume => (domain.resume_route(&arguments.route, pid, timeout), KnownRouteState::Open),
        Change::Drain => (domain.drain_route(&arguments.route, pid, timeout), KnownRouteState::Gone),
    };
    let changed = changed.map_err(options_error)?;
    let silent = silent(&domain, arguments, &changed)?;
    if changed.is_empty() {
        if !silent.is_empty() {
            return Err(exit_error(format!(
                "{} is not {}: {}",
                arguments.route,
                wanted.as_str(),
                unanswering(&silent)
            )));
        }
        let whom = pid.map_or_else(|| "no process serves".to_owned(), |pid| format!("process {pid} does not serve"));
        return Err(exit_error(format!("{whom} {} in the domain {}", arguments.route, domain.name())));
    }
    for instance in &changed {
        let name = escaped(instance.process_name.as_deref().unwrap_or_default());
        print(&format!("{name} {}: {} is {}\n", instance.process_id, arguments.route, instance.state.as_str()))?;
    }
    let late = changed.iter().filter(|instance| instance.state != wanted);
    let late: Vec<_> = late.map(|instance| instance.process_id.to_string()).collect();
    if late.is_empty() && silent.is_empty() {
        return Ok(());
    }
    if late.is_empty() {
        return Err(exit_error(format!("not all are {}: {}", wanted.as_str(), unanswering(&silent))));
    }
    let why = match change {
        Change::Drain => "what has begun there goes on, or the process does not answer",
        Change::Suspend | Change::Resume => "the process does not answer, or the route has ended there",
    };
    Err(exit_error(format!("{} is not {} at {}: {why}", arguments.route, wanted.as_str(), late.join(", "))))
}

fn silent(
    domain: &Domain,
    arguments: &Arguments,
    changed: &[KnownRoute],
) -> Result<Vec<u32>, Box<dyn std::error::Error>> {
    let KnownRoutes { routes, silent_processes: mut silent } = domain.routes(ASKED_FOR.min(arguments.timeout))?;
    silent.retain(|process_id| {
        let is_meant = arguments.pid.is_none_or(|pid| pid == *process_id);
        let mut own = routes.iter().filter(|route| route.process_id == *process_id).peekable();
        let may_serve = own.peek().is_none() || own.any(|route| route.route == arguments.route);
        is_meant && may_serve && !changed.iter().any(|instance| instance.process_id == *process_id)
    });
    Ok(silent)
}

fn unanswering(processes: &[u32]) -> String {
    let each: Vec<_> = processes.iter().map(|process_id| format!("process {process_id} does not answer")).collect();
    each.join(", ")
}
