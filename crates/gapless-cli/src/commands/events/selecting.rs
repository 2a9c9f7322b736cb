//! Selection of events by options.

use crate::commands::UsageError;
use clap::Args;
use gapless_cqrs::directory::Selection;
use gapless_cqrs::{EventDirectory, EventFilter, Position};

#[derive(Args)]
pub(super) struct EventFilters {
    /// Print only events of this aggregate
    #[arg(long, value_name = "TYPE/ID")]
    aggregate: Option<String>,
    /// Print only events with this tag; repeatable, all must match. a=b=c is a tag named a or named a=b
    #[arg(long, value_name = "NAME=VALUE", value_parser = tag)]
    tag: Vec<EventFilter>,
    /// Print only events of this type
    #[arg(long = "type", value_name = "TYPE")]
    event: Option<String>,
    /// First position, as 17.0 or 17 [default: the first event]
    #[arg(long, value_name = "POSITION", value_parser = first)]
    from: Option<Position>,
    /// Last position, as 17.0, or 17 for the whole transaction [default: the last event]
    #[arg(long, value_name = "POSITION", value_parser = last)]
    until: Option<Position>,
}

/// The name may contain a `=`, too.
fn tag(text: &str) -> Result<EventFilter, String> {
    let splits = text.match_indices('=').map(|(at, _)| EventFilter::tag(&text[..at], &text[at + 1..]));
    splits.reduce(EventFilter::or).ok_or_else(|| "NAME=VALUE is expected".to_owned())
}

/// A sequence number means its first position.
pub(super) fn first(text: &str) -> Result<Position, String> {
    position(text, 0)
}

fn last(text: &str) -> Result<Position, String> {
    position(text, u16::MAX)
}

fn position(text: &str, ordinal: u16) -> Result<Position, String> {
    match text.parse() {
        Ok(sequence) => Ok(Position { sequence, ordinal }),
        Err(_) => text.parse::<Position>().map_err(|error| error.to_string()),
    }
}

impl EventFilters {
    pub(super) fn selection(&self, directory: &EventDirectory) -> Result<Selection, Box<dyn std::error::Error>> {
        if let (Some(from), Some(until)) = (self.from, self.until)
            && from > until
        {
            return Err(UsageError(format!("--from {from} lies behind --until {until}")).into());
        }
        let mut filters = Vec::new();
        if let Some(aggregate) = &self.aggregate {
            filters.push(directory.aggregate_filter(aggregate)?);
        }
        filters.extend(self.tag.iter().cloned());
        if let Some(event) = &self.event {
            filters.push(directory.type_filter(event)?);
        }
        Ok(Selection { filters, from: self.from.unwrap_or_default(), until: self.until })
    }
}
