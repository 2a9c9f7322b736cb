//! `gapless events`: events of a supervisor's instances; with a subcommand, events of a command bus, also of a running
//! one. Only `archive` writes.
//!
//! | module | what lives there |
//! |---|---|
//! | [`read`], [`show`], [`ls`], [`stats`], [`archive`] | the subcommands |
//! | `selecting` | selection of events |
//! | `form` | an event as a line, or as a JSON object |

mod archive;
mod form;
mod ls;
mod read;
mod selecting;
mod show;
mod stats;

use super::{CommandResult, supervisor, to_stderr};
use crate::deferred::Deferred;
use clap::{Args, Subcommand};
use gapless_cqrs::EventDirectory;
use std::path::Path;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<EventsAction>,
    #[command(flatten)]
    supervised: supervisor::events::Arguments,
}

#[derive(Subcommand)]
enum EventsAction {
    /// Move the oldest segments of a journal to another place, where they stay readable
    #[command(
        after_help = "Examples:\n  gapless events archive /var/lib/gapless/bank --to /mnt/archive\n  gapless events archive /var/lib/gapless/bank --to /mnt/archive --compress --before 1000000\n\nAlso beside a running host. A segment goes when it is sealed and on the device, which takes half a minute after the next one was begun, and when its events are in the files of the index and in a snapshot, which a host writes after two million entries and ten million frames, and when it stops; the newest stays. It is checked, copied, synced and compared; then a small file NNN.archived takes its place in the journal's folder, which says where it is. Everything goes on over it: reading, loading of aggregates, `gapless journal verify`, the start of a host. Where the archive is not there, its path is named, and what needs it waits or fails alone. Members of a cluster have no snapshots, so each start of one reads all of it. With --compress segments are compressed by LZ4, in pieces; who reads one has the pieces in memory that it needs. Killed at any time, nothing is lost: archive again. Several journals may share a place. Exit codes: 0; 1 for what cannot be read or written; 2 for what is wrong in the command line."
    )]
    Archive(Deferred<archive::Arguments>),
    /// List the aggregates of a command bus that have events
    #[command(
        after_help = "Examples:\n  gapless events ls /var/lib/gapless/bank\n  gapless events ls /var/lib/gapless/bank account --limit 20\n  gapless events ls /var/lib/gapless/bank --json | jq -r .aggregate\n\nA line for each, in the order of their first events: type and identifier, how many events, the first, the last, and when that was. All of the journal is read. Exit codes: 0; 1 for what cannot be read; 2 for what is wrong in the command line."
    )]
    Ls(Deferred<ls::Arguments>),
    /// Print events of a command bus, one a line: of an aggregate, with a tag, of a type, or all
    #[command(
        after_help = "Examples:\n  gapless events read /var/lib/gapless/bank --aggregate account/7\n  gapless events read /var/lib/gapless/bank --tag customer=anna --type AccountEvent --from 1000\n  gapless events read /var/lib/gapless/bank -f --headers\n  gapless events read /var/lib/gapless/bank --json | jq .payload\n\nA line holds position, time, type, aggregate, tags as #NAME=VALUE, and what has happened. An event is shown as it was written, in the version of its type that stands behind the name where it is not 1, and in `version` with --json: only the application knows what it is today. Of several filters all hold; the index of the bus finds what has them. A running host may go on: what it has released is read, with -f also what comes. The types' names stand in `types.json`, which the host writes; without them numbers and hexadecimal digits are shown, and an identifier of digits is taken for a u64. Exit codes: 0; 1 for what cannot be read; 2 for what is wrong in the command line."
    )]
    Read(Deferred<read::Arguments>),
    /// Show one transaction of a command bus whole: who sent it, its headers, its events
    #[command(
        after_help = "Examples:\n  gapless events show /var/lib/gapless/bank 1000.0\n  gapless events show /var/lib/gapless/bank 1000 --json\n\nA position is a sequence number and the place of an event in its transaction; without the latter all events are shown. Exit codes: 0; 1 if there is no such event, or it cannot be read; 2 for what is wrong in the command line."
    )]
    Show(Deferred<show::Arguments>),
    /// Count what a command bus has in its journal: events, aggregates, types, segments, the runs of the index
    #[command(
        after_help = "Examples:\n  gapless events stats /var/lib/gapless/bank\n  gapless events stats /var/lib/gapless/bank --json | jq .index.bytes_per_event\n\nAll of the journal is read. Exit codes: 0; 1 for what cannot be read; 2 for what is wrong in the command line."
    )]
    Stats(Deferred<stats::Arguments>),
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    match &arguments.action {
        None => supervisor::events::run(&arguments.supervised),
        Some(EventsAction::Archive(arguments)) => archive::run(arguments),
        Some(EventsAction::Ls(arguments)) => ls::run(arguments),
        Some(EventsAction::Read(arguments)) => read::run(arguments),
        Some(EventsAction::Show(arguments)) => show::run(arguments),
        Some(EventsAction::Stats(arguments)) => stats::run(arguments),
    }
}

/// Opens the events of a directory; warns if the names are missing.
fn open(directory: &Path) -> Result<EventDirectory, Box<dyn std::error::Error>> {
    let directory = EventDirectory::open(directory)?;
    if let Some(error) = &directory.names_error {
        to_stderr!("note: types are shown by their numbers: {}", crate::printable::escaped(error));
    }
    if let Some(first) = directory.first_after_deleted()? {
        to_stderr!("note: events before {first} are deleted; what is shown begins there");
    }
    Ok(directory)
}
