//! `gapless journal`: looks into the journal of a service, a stream or a member, also beside its running writer. Only `restore` writes.
//!
//! | module | what lives there |
//! |---|---|
//! | [`verify`], [`dump`], [`tail`], [`info`], [`restore`] | the subcommands |
//! | `frames` | one frame as one line, or as one JSON object |
//! | `directory` | the folders that a directory means |

mod directory;
mod dump;
mod frames;
mod info;
mod restore;
mod tail;
mod verify;

use super::Outcome;
use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Read and check every frame, and whether states and snapshots come from one history with them
    #[command(
        after_help = "Examples:\n  gapless journal verify /var/lib/gapless/orders\n  gapless journal verify /var/lib/gapless/orders --json | jq .verdict\n\nOf a command bus the index is read, too; what of it is damaged is made anew by the next host, and no damage of the journal. The file that stands for events that are deleted is read, too, and damage of it is damage.\n\nEnds with\n  0  whole: everything that was ever there is there\n  1  damaged, missing, or not of one history: a start refuses it, or would have to\n  3  what is vouched for is whole, but intact frames stand behind a damaged place; a start cuts them\n  4  what there is is whole, but the machine has started again and nothing vouches for the end"
    )]
    Verify(verify::Arguments),
    /// Print frames, one a line
    #[command(
        after_help = "Examples:\n  gapless journal dump /var/lib/gapless/orders --from 1000 --to 1010 --payload\n  gapless journal dump /var/lib/gapless/orders --json | jq .session\n\nA line holds sequence, time, kind, session, number in the session, schema and template, and bytes with the header; that of a timer also its number and when it was due."
    )]
    Dump(dump::Arguments),
    /// Print the last frames and follow the writer until Ctrl-C
    #[command(after_help = "Example:\n  gapless journal tail -n 100 /var/lib/gapless/orders")]
    Tail(tail::Arguments),
    /// Make what was put back on purpose a history of its own, in a new incarnation
    #[command(
        after_help = "Example:\n  cp -r /backup/orders /var/lib/gapless/orders && gapless journal restore /var/lib/gapless/orders\n\nWithout this, a stream that goes on behind an older copy would give sequences a second time, and whoever has seen the first would not know. Clients and nodes that were connected to the incarnation before are refused by the new one, and open new sessions. States and snapshots that are ahead of the journal get another name; the index and the states of aggregates of a command bus are removed, and made anew. Not for a member of a cluster: begin that one anew with `gapless cluster add --replace`."
    )]
    Restore(restore::Arguments),
    /// Say what is there: segments, sequences, marks, snapshots, and who holds the lock
    #[command(after_help = "Example:\n  gapless journal info /var/lib/gapless/orders --json")]
    Info(info::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.action {
        Action::Verify(arguments) => verify::run(arguments),
        Action::Dump(arguments) => dump::run(arguments),
        Action::Restore(arguments) => restore::run(arguments),
        Action::Tail(arguments) => tail::run(arguments),
        Action::Info(arguments) => info::run(arguments),
    }
}
