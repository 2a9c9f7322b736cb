//! `gapless journal`: inspects the journal of a service, a stream or a member, also of a running one. Only `restore`
//! and `skip` write.

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
    /// Check every frame, and that states and snapshots belong to the same history
    #[command(
        after_help = "Examples:\n  gapless journal verify /var/lib/gapless/orders\n  gapless journal verify /var/lib/gapless/orders --json | jq .verdict\n\nFor a command bus the index is checked, too. A damaged index is no damage of the journal; the next host rebuilds it. The file that replaces deleted events is checked, too, and its damage counts.\n\nEnds with\n  0  whole: no frame is missing\n  1  damaged, missing, or not of one history: a start refuses it, or would have to\n  3  all frames up to the journal's marks are whole, but intact frames follow a damaged place; a start cuts them\n  4  all frames are whole, but the machine has restarted, so the end cannot be verified"
    )]
    Verify(Deferred<verify::Arguments>),
    /// Print frames, one per line
    #[command(
        after_help = "Examples:\n  gapless journal dump /var/lib/gapless/orders --from 1000 --to 1010 --payload\n  gapless journal dump /var/lib/gapless/orders --json | jq .session\n\nA line holds sequence, time, kind, session, number in the session, schema and template, and bytes with the header; that of a timer also its number and when it was due."
    )]
    Dump(Deferred<dump::Arguments>),
    /// Print the last frames and follow the writer until Ctrl-C
    #[command(after_help = "Example:\n  gapless journal tail -n 100 /var/lib/gapless/orders")]
    Tail(Deferred<tail::Arguments>),
    /// Start a new incarnation from a restored backup
    #[command(
        after_help = "Example:\n  cp -r /backup/orders /var/lib/gapless/orders && gapless journal restore /var/lib/gapless/orders\n\nWithout this, a stream that continues from an older copy would assign sequences twice, and readers of the first ones would not notice. The new incarnation refuses clients and nodes of the previous one; they open new sessions. States and snapshots that are ahead of the journal get another name; the index and the states of aggregates of a command bus are removed and rebuilt. Not for a member of a cluster: replace it with `gapless cluster add --replace`."
    )]
    Restore(Deferred<restore::Arguments>),
    /// Print the content: segments, sequences, marks, snapshots, holder of the lock
    #[command(after_help = "Example:\n  gapless journal info /var/lib/gapless/orders --json")]
    Info(Deferred<info::Arguments>),
    /// Skip a command at which the handlers of a stopped service panic, so that its next start continues after it
    #[command(
        after_help = "Example:\n  gapless journal skip /var/lib/gapless/orders 4711\n\nRun it as the user of the service. The failed start names the sequence. The journal gets a mark after its last frame, and the file `skips` next to it informs later starts; both are synced. The command has no effect, its client gets a refusal, and it becomes a dead letter; `gapless journal verify` lists it. Commands that were handled before cannot be skipped. To have every panic refused instead of stopping the service, set OnPanic::DeadLetter in its policy. For members of a cluster: `gapless cluster skip`."
    )]
    Skip(Deferred<skip::Arguments>),
    /// Print dead letters: commands without a handler, one per line
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
