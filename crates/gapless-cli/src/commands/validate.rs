//! `gapless validate`: checks the file of a supervisor completely, and shows its content.

use super::supervisor::load;
use super::{CommandResult, print};
use clap::Args;
use gapless_config::{ConfigError, ConfigErrors};
use gapless_supervisor::SupervisorConfig;
use gapless_supervisor::config::process::{DependencyStage, ProcessConfig, Readiness};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Supervisor file that names the processes
    file: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    match load(&arguments.file) {
        Ok(config) => print(&if arguments.json { in_json(&config) } else { in_text(&config) }),
        Err(errors) => {
            if arguments.json {
                print(&errors_in_json(&errors))?;
            }
            Err(errors.into())
        }
    }
}

fn errors_in_json(errors: &ConfigErrors) -> String {
    let error = |error: &ConfigError| match error {
        ConfigError::Refused { place, reason } => json!({ "place": place, "reason": reason }),
        other => json!({ "place": null, "reason": other.to_string() }),
    };
    format!("{}\n", json!({ "errors": errors.iter().map(error).collect::<Vec<_>>() }))
}

fn in_json(config: &SupervisorConfig) -> String {
    let process = |process: &ProcessConfig| {
        json!({
            "name": process.name,
            "program": process.program,
            "arguments": process.arguments,
            "instances_min": process.instances_min,
            "instances_max": process.instances_max,
            "after": process.after.iter().map(|other| &other.process).collect::<Vec<_>>(),
            "ready": ready(&process.ready),
            "once": process.is_once,
            "singleton": process.is_singleton,
        })
    };
    let processes: Vec<Value> = config.processes.iter().map(process).collect();
    let whole = json!({ "directory": config.directory, "domain": config.domain, "processes": processes });
    format!("{whole}\n")
}

fn in_text(config: &SupervisorConfig) -> String {
    let mut text = String::new();
    for process in &config.processes {
        let instances = match (process.instances_min, process.instances_max) {
            (1, 1) => "1 instance".to_owned(),
            (min, max) if min == max => format!("{min} instances"),
            (min, max) => format!("{min} to {max} instances"),
        };
        let mut words = vec![instances, ready(&process.ready)];
        if process.is_once {
            words[1] = "a task".to_owned();
        }
        if process.is_singleton {
            words.push("one of them active".to_owned());
        }
        let after = process.after.iter().map(|other| match other.stage {
            DependencyStage::Ready => other.process.clone(),
            DependencyStage::Initialised => format!("{}, initialised", other.process),
        });
        let after: Vec<String> = after.collect();
        if !after.is_empty() {
            words.push(format!("after {}", after.join(" and ")));
        }
        let _ = writeln!(text, "{}: {}", process.name, words.join("; "));
    }
    text
}

fn ready(ready: &Readiness) -> String {
    match ready {
        Readiness::Started => "ready when it runs".to_owned(),
        Readiness::Route(route) => format!("ready when it serves {route}"),
        Readiness::Address(address) => format!("ready when {address} takes a connection"),
        Readiness::Socket(path) => format!("ready when {} takes a connection", path.display()),
        Readiness::Line(line) => format!("ready when it has printed {line:?}"),
        Readiness::Notify => "ready when it says so".to_owned(),
    }
}
