//! `gapless journal`: inspects the journal of a service, a stream or a member, also of a running one. Only `restore`
//! and `skip` write.
//!
//! | module | what lives there |
//! |---|---|
//! | [`verify`], [`dump`], [`tail`], [`info`], [`restore`], [`skip`], [`dead_letters`] | the subcommands |
//! | `frames` | one frame as one line, or as one JSON object |
//! | `directory` | resolves the directory of a command |

mod dead_letters;
mod directory;
mod dump;
mod frames;
mod info;
mod restore;
mod skip;
mod tail;
mod verify;

use super::CommandResult;
use crate::deferred::Deferred;
use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: JournalAction,
}

#[derive(Subcommand)]
enum JournalAction {
    /// Read and check every frame, and whether states and snapshots come from one history with them
    #[command(
        after_help = "Examples:\n  gapless journal verify /var/lib/gapless/orders\n  gapless journal verify /var/lib/gapless/orders --json | jq .verdict\n\nOf a command bus the index is read, too; what of it is damaged is made anew by the next host, and no damage of the journal. The file that stands for events that are deleted is read, too, and damage of it is damage.\n\nEnds with\n  0  whole: everything that was ever there is there\n  1  damaged, missing, or not of one history: a start refuses it, or would have to\n  3  what is vouched for is whole, but intact frames stand behind a damaged place; a start cuts them\n  4  what there is is whole, but the machine has started again and nothing vouches for the end"
    )]
    Verify(Deferred<verify::Arguments>),
    /// Print frames, one a line
    #[command(
        after_help = "Examples:\n  gapless journal dump /var/lib/gapless/orders --from 1000 --to 1010 --payload\n  gapless journal dump /var/lib/gapless/orders --json | jq .session\n\nA line holds sequence, time, kind, session, number in the session, schema and template, and bytes with the header; that of a timer also its number and when it was due."
    )]
    Dump(Deferred<dump::Arguments>),
    /// Print the last frames and follow the writer until Ctrl-C
    #[command(after_help = "Example:\n  gapless journal tail -n 100 /var/lib/gapless/orders")]
    Tail(Deferred<tail::Arguments>),
    /// Make what was put back on purpose a history of its own, in a new incarnation
    #[command(
        after_help = "Example:\n  cp -r /backup/orders /var/lib/gapless/orders && gapless journal restore /var/lib/gapless/orders\n\nWithout this, a stream that goes on behind an older copy would give sequences a second time, and whoever has seen the first would not know. Clients and nodes that were connected to the incarnation before are refused by the new one, and open new sessions. States and snapshots that are ahead of the journal get another name; the index and the states of aggregates of a command bus are removed, and made anew. Not for a member of a cluster: begin that one anew with `gapless cluster add --replace`."
    )]
    Restore(Deferred<restore::Arguments>),
    /// Say what is there: segments, sequences, marks, snapshots, and who holds the lock
    #[command(after_help = "Example:\n  gapless journal info /var/lib/gapless/orders --json")]
    Info(Deferred<info::Arguments>),
    /// Skip a command at which the handlers of a stopped service panic, so that its next start goes on behind it
    #[command(
        after_help = "Example:\n  gapless journal skip /var/lib/gapless/orders 4711\n\nRun it as the user of the service. The start that stops names the sequence. The journal gets a mark behind its last frame, and the file `skips` beside it tells starts; both are synced. The command has no effect, its client gets a refusal, and it is a dead letter; `gapless journal verify` lists it. A command that was handled before is refused. To have every panic refused instead of stopping the service, set OnPanic::DeadLetter in its policy. For members of a cluster: `gapless cluster skip`."
    )]
    Skip(Deferred<skip::Arguments>),
    /// Print the commands that no handler took, one a line
    #[command(
        after_help = "Examples:\n  gapless journal dead-letters /var/lib/gapless/orders\n  gapless journal dead-letters /var/lib/gapless/orders --json | jq .reason\n\nA line holds sequence, time, session, number in the session, schema and template, and the reason. The time is that of the frame, where the journal still has it; `gapless journal dump DIRECTORY --from N --to N --payload` prints the command."
    )]
    DeadLetters(Deferred<dead_letters::Arguments>),
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    match &arguments.action {
        JournalAction::Verify(arguments) => verify::run(arguments),
        JournalAction::Dump(arguments) => dump::run(arguments),
        JournalAction::Restore(arguments) => restore::run(arguments),
        JournalAction::Tail(arguments) => tail::run(arguments),
        JournalAction::Info(arguments) => info::run(arguments),
        JournalAction::Skip(arguments) => skip::run(arguments),
        JournalAction::DeadLetters(arguments) => dead_letters::run(arguments),
    }
}
