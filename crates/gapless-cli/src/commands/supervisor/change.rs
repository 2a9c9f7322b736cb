//! `gapless start`, `stop`, `restart`, `reload` and `scale`: change the running processes.

use super::At;
use crate::commands::{Outcome, Usage};
use clap::Args;
use gapless_supervisor::control::protocol::Request;
use gapless_supervisor::supervision::event::Command;
use std::collections::BTreeSet;

#[derive(Args)]
pub(crate) struct Named {
    /// Processes of the file, or single copies as NAME.1
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    at: At,
}

#[derive(Args)]
pub(crate) struct Reloaded {
    /// Processes of the file, or single copies as NAME.1; without any the file is read again
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    at: At,
}

#[derive(Args)]
pub(crate) struct Scaled {
    /// A process of the file and a number of copies that the file allows
    #[arg(required = true, value_name = "NAME=COPIES", value_parser = scale)]
    scales: Vec<(String, u32)>,

    #[command(flatten)]
    at: At,
}

fn scale(text: &str) -> Result<(String, u32), String> {
    let wrong = || format!("{text:?}: a process and a number of copies are allowed, as NAME=4");
    let (name, copies) = text.split_once('=').ok_or_else(wrong)?;
    Ok((name.to_owned(), copies.parse().map_err(|_| wrong())?))
}

pub(crate) fn run(arguments: &Named, command: fn(Vec<String>) -> Command) -> Outcome {
    arguments.at.ask(|client| client.change(command(arguments.names.clone())))
}

pub(crate) fn run_reload(arguments: &Reloaded) -> Outcome {
    arguments.at.ask(|client| match arguments.names.is_empty() {
        true => client.request(&Request::TakeFile),
        false => client.change(Command::Reload(arguments.names.clone())),
    })
}

pub(crate) fn run_scale(arguments: &Scaled) -> Outcome {
    let mut names = BTreeSet::new();
    if let Some((name, _)) = arguments.scales.iter().find(|(name, _)| !names.insert(name)) {
        return Err(Box::new(Usage(format!("{name:?} is given two numbers of copies"))));
    }
    arguments.at.ask(|client| client.change(Command::Scale(arguments.scales.clone())))
}
