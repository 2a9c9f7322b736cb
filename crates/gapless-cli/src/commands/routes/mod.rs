//! `gapless routes`: lists the routes of a domain, once or at an interval, and changes them.

mod change;
pub(in crate::commands) mod text;
mod unknown_servers;

use super::domain::{DomainArguments, exit_error, seconds};
use super::request::route;
use super::watch::{clear, sleep_until};
use super::{CommandResult, interrupt, is_printed};
use crate::printable::escaped;
use crate::warnings;
use change::Change;
use clap::{Args, Subcommand};
use gapless_rpc::domain::{
    CallReading, DomainReading, InstanceReading, KnownRoute, KnownRoutes, UnreadableCounters, read_domain,
};
use gapless_rpc::message::described::TypeDescription;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use text::{encoding, fingerprint, in_text, types_in_text};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    change: Option<ChangeCommand>,

    /// Routes to show, with those below them: "shop" shows "shop/double" [default: all]
    #[arg(value_name = "ROUTE")]
    routes: Vec<String>,

    #[command(flatten)]
    domain: DomainArguments,

    /// Print again every SECONDS, 1 without a value, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds, allow_negative_numbers = true)]
    watch: Option<Duration>,

    /// Print one JSON array per sample, with an object for each route of each process
    #[arg(long)]
    json: bool,

    /// Show also the routes for notices, which begin with "."
    #[arg(long)]
    all: bool,

    /// Show the types of requests and replies: name, encoding, and the fingerprint that both sides compare
    #[arg(long)]
    types: bool,
}

#[derive(Subcommand)]
enum ChangeCommand {
    /// Suspend a route: calls wait, or go to other instances
    #[command(
        after_help = "Examples:\n  gapless routes suspend shop/double\n  gapless routes suspend shop/double --pid 4711 --domain shop\n\nPrints a line for each instance, with its state. Running calls finish. Exit codes: 0; 1 if no process serves the route, or an instance does not confirm in time; 2 for errors in the command line."
    )]
    Suspend(change::Arguments),
    /// Resume a suspended route
    #[command(
        after_help = "Examples:\n  gapless routes resume shop/double\n  gapless routes resume shop/double --pid 4711 --domain shop\n\nA line for each instance, with its state. Exit codes: 0; 1 if no process serves the route, or an instance does not confirm in time; 2 for errors in the command line."
    )]
    Resume(change::Arguments),
    /// Withdraw a route after its running calls have finished
    #[command(
        after_help = "Examples:\n  gapless routes drain shop/double\n  gapless routes drain shop/double --pid 4711 --timeout 60\n\nA line for each instance, with its state. Calls that have not begun go to other instances. The process continues, except `gapless serve`, which ends. Exit codes: 0; 1 if no process serves the route, or an instance does not confirm in time; 2 for errors in the command line."
    )]
    Drain(change::Arguments),
}

/// Processes that answer later are left out.
const DISCOVERY_MAX: Duration = Duration::from_secs(5);

impl Arguments {
    fn none(&self, domain: &str, known: &[KnownRoute], is_any_silent: bool, is_any_unknown: bool) -> CommandResult {
        if !known.is_empty() {
            return Ok(());
        }
        let routes = if self.routes.is_empty() { "a route".to_owned() } else { escaped(&self.routes.join(", ")) };
        if is_any_unknown {
            return Err(exit_error(format!("no process that could be asked serves {routes} in the domain {domain}")));
        }
        let who = if is_any_silent { "no process that answers serves" } else { "no process serves" };
        if !self.json {
            crate::commands::to_stderr!("note: {who} {routes} in the domain {}", escaped(domain));
        }
        Ok(())
    }

    fn is_meant(&self, route: &str) -> bool {
        let is_below =
            |name: &str| route.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.routes.is_empty() || self.routes.iter().any(|name| is_below(name.trim_end_matches('/')))
    }
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    match &arguments.change {
        None => show(arguments),
        Some(ChangeCommand::Suspend(arguments)) => change::run(arguments, Change::Suspend),
        Some(ChangeCommand::Resume(arguments)) => change::run(arguments, Change::Resume),
        Some(ChangeCommand::Drain(arguments)) => change::run(arguments, Change::Drain),
    }
}

fn show(arguments: &Arguments) -> CommandResult {
    arguments.routes.iter().try_for_each(|name| route(name.trim_end_matches('/')))?;
    let (domain, directory) = (arguments.domain.open()?, arguments.domain.path()?);
    let interrupted = arguments.watch.map(|_| interrupt()).transpose()?;
    let mut is_again = false;
    let mut told = BTreeSet::new();
    loop {
        let now = Instant::now();
        let KnownRoutes { routes: mut known, silent_processes: silent } = domain.routes(DISCOVERY_MAX)?;
        known.retain(|route| (arguments.all || !route.is_hidden()) && arguments.is_meant(&route.route));
        let counted = if arguments.json { read_domain(&directory)? } else { DomainReading::default() };
        let text = match (arguments.json, arguments.types) {
            (true, _) => in_json(&known, &counted),
            (false, true) => types_in_text(&known),
            (false, false) => in_text(&known),
        };
        let is_again_as_text = is_again && !arguments.json;
        let clear = clear(is_again_as_text);
        let gap = if is_again_as_text && clear.is_empty() { "\n" } else { "" };
        if !is_printed(&format!("{clear}{gap}{text}"))? {
            return Ok(());
        }
        for unreadable in &counted.unreadable {
            let said = escaped(&unreadable.to_string());
            if told.insert(said.clone()) {
                crate::commands::to_stderr!("note: {said}");
            }
        }
        for process_id in &silent {
            crate::commands::to_stderr!(
                "note: process {process_id} does not answer: it is stopped, or the machine is too busy for it"
            );
        }
        let unknown_servers = UnknownServers::of(&directory, known.is_empty() && silent.is_empty());
        for reason in &unknown_servers.reasons {
            if told.insert(reason.clone()) {
                crate::commands::to_stderr!("note: {reason}");
            }
        }
        let (Some(interval), Some(interrupted)) = (arguments.watch, &interrupted) else {
            return arguments.none(domain.name(), &known, !silent.is_empty(), !unknown_servers.reasons.is_empty());
        };
        is_again = true;
        if !sleep_until(now + interval, || interrupted.load(Ordering::Relaxed)) {
            return Ok(());
        }
    }
}

struct UnknownServers {
    reasons: Vec<String>,
}

impl UnknownServers {
    /// Includes the processes that refuse connections, if no server was found.
    fn of(directory: &Path, is_in_doubt: bool) -> Self {
        let mut reasons = warnings::take();
        if is_in_doubt && reasons.is_empty() {
            reasons.extend(unknown_servers::closed(directory));
        }
        Self { reasons }
    }
}

pub(crate) fn counters_in_json(values: &[(&'static str, u64)]) -> Value {
    Value::Object(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect())
}

pub(crate) fn calls_in_json(calls: &CallReading) -> Value {
    serde_json::json!({ "process": calls.process_name, "process_id": calls.process_id, "counters": counters_in_json(&calls.statistics.values()) })
}

pub(crate) fn unreadable_in_json(unreadable: &[UnreadableCounters]) -> Value {
    let object = |unreadable: &UnreadableCounters| serde_json::json!({ "path": unreadable.path.display().to_string(), "reason": unreadable.reason });
    Value::Array(unreadable.iter().map(object).collect())
}

/// Approximate: both counters are read one after the other.
pub(crate) fn waiting<'a>(
    route: &str,
    instances: impl Iterator<Item = &'a InstanceReading>,
    calls: impl Iterator<Item = &'a CallReading>,
) -> u64 {
    let calls = calls.filter(|calls| calls.route == route).map(|calls| calls.statistics.in_flight);
    let instances = instances.filter(|instance| instance.route == route).map(|instance| instance.statistics.in_flight);
    calls.fold(0, u64::saturating_add).saturating_sub(instances.fold(0, u64::saturating_add))
}

fn in_json(known: &[KnownRoute], counted: &DomainReading) -> String {
    let (all, calls) = (&counted.instances, &counted.calls);
    let objects = known.iter().map(|route| {
        let is_same = |found: &&InstanceReading| (&found.route, found.process_id) == (&route.route, route.process_id);
        let counters = all.iter().find(is_same).map(|instance| counters_in_json(&instance.statistics.values()));
        let callers = calls.iter().filter(|calls| calls.route == route.route).map(calls_in_json);
        let callers: Vec<Value> = callers.collect();
        let metadata: serde_json::Map<String, Value> =
            route.metadata.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let stands_for = route.stands_for.iter();
        let stands_for: Vec<Value> = stands_for
            .map(|each| serde_json::json!({ "identity": format!("{:016x}", each.identity), "name": each.name }))
            .collect();
        let types = route.types.as_ref();
        let type_in_json = |described: &TypeDescription| serde_json::json!({ "encoding": encoding(described), "fingerprint": fingerprint(described) });
        serde_json::json!({
            "route": route.route,
            "state": route.state.as_str(),
            "version": route.version,
            "request": types.map(|(request, _)| request.to_string()),
            "reply": types.map(|(_, reply)| reply.to_string()),
            "request_type": types.map(|(request, _)| type_in_json(request)),
            "reply_type": types.map(|(_, reply)| type_in_json(reply)),
            "workers": route.workers,
            "process_id": route.process_id,
            "process": route.process_name,
            "metadata": metadata,
            "stands_for": stands_for,
            "counters": counters,
            "callers": callers,
            "waiting": waiting(&route.route, all.iter(), calls.iter()),
        })
    });
    format!("{}\n", Value::Array(objects.collect()))
}
