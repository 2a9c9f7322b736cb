//! `gapless events`: events of a supervisor's instances; with a subcommand, events of a command bus, also of a running
//! one. Only `archive` writes.

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
    /// Move the oldest segments of a journal to another directory, where they stay readable
    #[command(
        after_help = "Examples:\n  gapless events archive /var/lib/gapless/bank --to /mnt/archive\n  gapless events archive /var/lib/gapless/bank --to /mnt/archive --compress --before 1000000\n\nA host may run meanwhile. A segment goes when it is sealed and on the device, which takes half a minute after the next one was begun, and when its events are in the files of the index and in a snapshot, which a host writes after two million entries and ten million frames, and when it stops; the newest stays. It is checked, copied, synced and compared; then a small file NNN.archived takes its place in the journal's folder, which says where it is. Reading, loading of aggregates, `gapless journal verify` and the start of a host follow it. If the archive is missing, its path is reported, and only operations that need it wait or fail. Members of a cluster have no snapshots, so each start of one reads all of it. With --compress segments are compressed by LZ4, in pieces; a reader holds only the pieces in memory that it needs. A kill loses no event: run the command again. Several journals may share a place. Exit codes: 0; 1 for files that cannot be read or written; 2 for errors in the command line."
    )]
    Archive(Deferred<archive::Arguments>),
    /// List the aggregates of a command bus that have events
    #[command(
        after_help = "Examples:\n  gapless events ls /var/lib/gapless/bank\n  gapless events ls /var/lib/gapless/bank account --limit 20\n  gapless events ls /var/lib/gapless/bank --json | jq -r .aggregate\n\nPrints a line for each, in the order of their first events: type, identifier, number of events, first and last event, time of the last. Reads the whole journal. Exit codes: 0; 1 for files that cannot be read; 2 for errors in the command line."
    )]
    Ls(Deferred<ls::Arguments>),
    /// Print events of a command bus, one per line: of an aggregate, with a tag, of a type, or all
    #[command(
        after_help = "Examples:\n  gapless events read /var/lib/gapless/bank --aggregate account/7\n  gapless events read /var/lib/gapless/bank --tag customer=anna --type AccountEvent --from 1000\n  gapless events read /var/lib/gapless/bank -f --headers\n  gapless events read /var/lib/gapless/bank --json | jq .payload\n\nA line holds position, time, type, aggregate, tags as #NAME=VALUE, and payload. An event is shown as it was written. A version other than 1 follows the type's name, and is in `version` with --json; only the application can convert it to a newer version. Several filters must all match; the index of the bus finds the events. The host may run: released events are read, with -f also new ones. The types' names are in `types.json`, which the host writes; without them numbers and hexadecimal digits are shown, and an identifier of digits is taken for a u64. Exit codes: 0; 1 for files that cannot be read; 2 for errors in the command line."
    )]
    Read(Deferred<read::Arguments>),
    /// Show one transaction of a command bus: sender, headers, events
    #[command(
        after_help = "Examples:\n  gapless events show /var/lib/gapless/bank 1000.0\n  gapless events show /var/lib/gapless/bank 1000 --json\n\nA position is a sequence number and the place of an event in its transaction; without the latter all events are shown. Exit codes: 0; 1 if there is no such event, or it cannot be read; 2 for errors in the command line."
    )]
    Show(Deferred<show::Arguments>),
    /// Count the journal of a command bus: events, aggregates, types, segments, runs of the index
    #[command(
        after_help = "Examples:\n  gapless events stats /var/lib/gapless/bank\n  gapless events stats /var/lib/gapless/bank --json | jq .index.bytes_per_event\n\nReads the whole journal. Exit codes: 0; 1 for files that cannot be read; 2 for errors in the command line."
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
