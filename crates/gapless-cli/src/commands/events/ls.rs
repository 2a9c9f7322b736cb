//! `gapless events ls`.

use super::selecting::EventFilters;
use super::{form, open};
use crate::commands::{CommandResult, print, to_stderr};
use crate::printable::escaped;
use clap::Args;
use gapless_cqrs::DeletedEvents;
use gapless_stream::logger::utc;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Directory of a command bus, or of a member that runs one
    directory: PathBuf,
    /// Type of the aggregates [default: all]
    #[arg(value_name = "TYPE")]
    of_type: Option<String>,
    #[command(flatten)]
    filters: EventFilters,
    /// Maximum number of aggregates; the others are counted
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    limit: usize,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let directory = open(&arguments.directory)?;
    // Without this file, deleted aggregates would be missing.
    DeletedEvents::read(directory.path())?;
    let selection = arguments.filters.selection(&directory)?;
    let of_type = arguments.of_type.as_deref().map(|name| directory.aggregate_type(name)).transpose()?;
    let (listed, more) = directory.aggregates(selection, of_type, arguments.limit)?;
    let names = &directory.names;
    let mut text = String::new();
    for entry in listed {
        let aggregate = form::aggregate(names, entry.aggregate, &entry.id);
        let last_time = utc(entry.last_time_ns);
        text += &match arguments.json {
            true => {
                let object = json!({
                    "aggregate": aggregate,
                    "type": names.aggregate_name(entry.aggregate),
                    "id": form::id(names, entry.aggregate, &entry.id),
                    "events": entry.events,
                    "first": entry.first.to_string(),
                    "last": entry.last.to_string(),
                    "last_timestamp_ns": entry.last_time_ns,
                    "last_time": last_time,
                });
                format!("{object}\n")
            }
            false => {
                let (aggregate, events) = (escaped(&aggregate), entry.events);
                format!("{aggregate} events {events} first {} last {} at {last_time}\n", entry.first, entry.last)
            }
        };
    }
    if text.is_empty() && more == 0 {
        to_stderr!("note: no aggregate has such events");
    }
    print(&text)?;
    if more > 0 {
        to_stderr!("note: {more} more; --limit lists more of them");
    }
    Ok(())
}
