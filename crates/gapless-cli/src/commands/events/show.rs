//! `gapless events show`.

use super::selecting::first;
use super::{form, open};
use crate::commands::{CommandResult, print};
use clap::Args;
use gapless_cqrs::Position;
use gapless_cqrs::directory::Selection;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Directory of a command bus, or of a member that runs one
    directory: PathBuf,
    /// Position of the event, as 17.0; 17 for all events of the transaction
    #[arg(value_name = "POSITION")]
    position: String,
    /// Print one JSON object per line, one for each event
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let from = first(&arguments.position).map_err(crate::commands::UsageError)?;
    let is_one = arguments.position.contains('.');
    let until = Position { ordinal: if is_one { from.ordinal } else { u16::MAX }, ..from };
    let directory = open(&arguments.directory)?;
    let selection = Selection { filters: Vec::new(), from, until: Some(until) };
    let mut transactions = directory.transactions(selection.clone())?;
    let mut text = String::new();
    if let Some(mut transaction) = transactions.next_transaction()? {
        if !arguments.json {
            text += &format!("{}\n", form::origin(&transaction));
        }
        let begin = text.len();
        while let Some(event) = transaction.next_event()? {
            if selection.has(&event) {
                text += &match arguments.json {
                    true => format!("{}\n", form::object(&directory.names, &transaction, &event)),
                    false => format!("{}\n", form::line(&directory.names, &transaction, &event)),
                };
            }
        }
        text.truncate(if text.len() == begin { 0 } else { text.len() });
    }
    if text.is_empty() {
        let place = directory.path().display();
        return Err(format!("{place}: there is no event at {}: a refused command has none", arguments.position).into());
    }
    print(&text)
}
