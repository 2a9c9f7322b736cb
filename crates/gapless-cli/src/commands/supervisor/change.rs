//! `gapless start`, `stop`, `restart`, `reload` and `scale`: change the running processes.

use super::SupervisorPath;
use crate::commands::{CommandResult, UsageError};
use clap::Args;
use gapless_supervisor::control::protocol::SupervisorRequest;
use gapless_supervisor::supervision::event::OperatorCommand;
use std::collections::BTreeSet;

#[derive(Args)]
pub(crate) struct NamedArguments {
    /// Processes of the file, or single instances as NAME.1
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    at: SupervisorPath,
}

#[derive(Args)]
pub(crate) struct ReloadArguments {
    /// Processes of the file, or single instances as NAME.1 [default: read the file again]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    at: SupervisorPath,
}

#[derive(Args)]
pub(crate) struct ScaleArguments {
    /// Process of the file and number of its instances, within the limits of the file
    #[arg(required = true, value_name = "NAME=INSTANCES", value_parser = scale)]
    scales: Vec<(String, u32)>,

    #[command(flatten)]
    at: SupervisorPath,
}

fn scale(text: &str) -> Result<(String, u32), String> {
    let wrong = || format!("{text:?}: a process and a number of instances are allowed, as NAME=4");
    let (name, instances) = text.split_once('=').ok_or_else(wrong)?;
    Ok((name.to_owned(), instances.parse().map_err(|_| wrong())?))
}

pub(crate) fn run(arguments: &NamedArguments, command: fn(Vec<String>) -> OperatorCommand) -> CommandResult {
    arguments.at.ask(|client| client.change(command(arguments.names.clone())))
}

pub(crate) fn run_reload(arguments: &ReloadArguments) -> CommandResult {
    arguments.at.ask(|client| match arguments.names.is_empty() {
        true => client.request(&SupervisorRequest::TakeFile),
        false => client.change(OperatorCommand::Reload(arguments.names.clone())),
    })
}

pub(crate) fn run_scale(arguments: &ScaleArguments) -> CommandResult {
    let mut names = BTreeSet::new();
    if let Some((name, _)) = arguments.scales.iter().find(|(name, _)| !names.insert(name)) {
        return Err(Box::new(UsageError(format!("{name:?} is given two numbers of instances"))));
    }
    arguments.at.ask(|client| client.change(OperatorCommand::Scale(arguments.scales.clone())))
}
