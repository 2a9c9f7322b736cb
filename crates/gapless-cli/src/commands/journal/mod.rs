//! `gapless journal`: looks into the journal of a node, also beside its running writer. Never writes.
//!
//! | module | what lives there |
//! |---|---|
//! | [`verify`], [`dump`], [`tail`], [`info`] | the subcommands |
//! | `frames` | one frame as one line, or as one JSON object |
//! | `place` | the folders that a directory means |

mod dump;
mod frames;
mod info;
pub(crate) mod place;
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
    /// Read and check every frame; ends with 1 if anything is damaged
    #[command(after_help = "Example:\n  gapless journal verify /var/lib/gapless/orders")]
    Verify(verify::Arguments),
    /// Print frames, one a line
    #[command(
        after_help = "Examples:\n  gapless journal dump /var/lib/gapless/orders --from 1000 --to 1010 --payload\n  gapless journal dump /var/lib/gapless/orders --json | jq .session\n\nA line holds sequence, time, kind, session, number in the session, schema and template, and bytes with the header."
    )]
    Dump(dump::Arguments),
    /// Print the last frames and follow the writer until Ctrl-C
    #[command(after_help = "Example:\n  gapless journal tail -n 100 /var/lib/gapless/orders")]
    Tail(tail::Arguments),
    /// Say what is there: segments, sequences, marks, snapshots, and who holds the lock
    #[command(after_help = "Example:\n  gapless journal info /var/lib/gapless/orders --json")]
    Info(info::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.action {
        Action::Verify(arguments) => verify::run(arguments),
        Action::Dump(arguments) => dump::run(arguments),
        Action::Tail(arguments) => tail::run(arguments),
        Action::Info(arguments) => info::run(arguments),
    }
}
