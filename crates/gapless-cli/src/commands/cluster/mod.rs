//! `gapless cluster`: members of a replicated stream.

mod add;
mod file;
mod leading;
mod member;
mod new;
mod recover;
mod remove;
mod skip;
mod snapshot;
mod start;
mod status;
mod transfer;
mod upgrade;

use super::{CommandResult, of_host};
use crate::deferred::Deferred;
use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: ClusterAction,
}

#[derive(Subcommand)]
enum ClusterAction {
    /// Write the files of a cluster whose members run on this machine
    #[command(
        after_help = "Example, three members and a message:\n  gapless cluster new orders\n  for member in 1 2 3; do gapless cluster start orders/member-$member.toml & done\n  echo hello | gapless stream publish --directory orders/member-1 --directory orders/member-2 --directory orders/member-3\n\nFor members on machines of their own change their addresses, and copy each file to its machine. docs/guides/cluster.toml describes every key."
    )]
    New(Deferred<new::Arguments>),
    /// Run a member until Ctrl-C
    #[command(
        after_help = "Examples:\n  gapless cluster start orders/member-1.toml\n  gapless cluster start orders/member-2.toml &\n\nA member that was killed continues from its journal at the next start, and fetches missed entries. With Ctrl-C a leader hands over before it ends."
    )]
    Start(Deferred<start::Arguments>),
    /// Show a member's status: role, term, sequences, and its leader's view of the others
    #[command(
        after_help = "Examples:\n  gapless cluster status orders/member-1.toml\n  gapless cluster status orders/member-1.toml --json | jq .role\n  gapless cluster status orders/member-1.toml --watch\n\nExit codes: 0 if it takes part and knows a leader; 1 if not, if it is behind, or its log is not of one history with another member's; 2 for errors in the command line; 3 if it does not run."
    )]
    Status(Deferred<status::Arguments>),
    /// Add a member to a running cluster, or replace one
    #[command(
        after_help = "Examples:\n  gapless cluster add orders/member-*.toml --member 4 --address 127.0.0.1:4104\n  gapless cluster add orders/member-*.toml --member 5 --address 127.0.0.1:4105 --replace 2\n\nWrites the new member's file, which says `join = true`. Copy it to its machine, and run gapless cluster start with it there, or the program of its service. The member begins as a learner, fetches all entries, and votes once it has nearly caught up. `add` waits for that and prints the progress; Ctrl-C ends only the waiting."
    )]
    Add(Deferred<add::Arguments>),
    /// Remove a member from a running cluster
    #[command(
        after_help = "Example:\n  gapless cluster remove orders/member-*.toml --member 2\n\nA leader hands over first. The removed member stops by itself, and does not start again; its number is never used again."
    )]
    Remove(Deferred<remove::Arguments>),
    /// Make a member a cluster of one after the permanent loss of the others
    #[command(
        after_help = "Example:\n  gapless cluster recover --force-single orders/member-1.toml\n\nThe member must not run. It keeps its entries; later entries of other members are lost. It becomes a new incarnation, into which the old members do not come back, by mistake or otherwise: add new ones with gapless cluster add. Never recover two members of one cluster: each would go on with a stream of its own."
    )]
    Recover(Deferred<recover::Arguments>),
    /// Transfer the leadership to another member
    #[command(after_help = "Example:\n  gapless cluster transfer orders/member-*.toml --to 2")]
    Transfer(Deferred<transfer::Arguments>),
    /// Take a snapshot of a member's service now
    #[command(
        after_help = "Examples:\n  gapless cluster snapshot orders/member-1.toml\n  gapless cluster snapshot orders/member-1.toml --json | jq .sequence\n\nAny member whose program runs a service can be asked; the others are not, and commits go on. Says at which sequence the snapshot stands once it is on the device. Segments of the journal behind it go as far as retention_bytes and retention_age of the member's file say; without them none goes."
    )]
    Snapshot(Deferred<snapshot::Arguments>),
    /// Activate a new version of the service on all members, from one sequence on
    #[command(
        after_help = "Example:\n  gapless cluster upgrade --version 2 orders/member-*.toml\n\nReplace the programs of all members first, one by one: they act as the old version meanwhile. Refused while a member that runs the service has not said that its program has the version."
    )]
    Upgrade(Deferred<upgrade::Arguments>),
    /// Skip a command at which the handlers of all members panic
    #[command(
        after_help = "Example:\n  gapless cluster skip --sequence 1234 orders/member-*.toml\n\nAdds the sequence to [service] skip of each file. Give the files of all members, and start them again: the command is refused to its client, and the stream continues after it. Skip only what stopped the members: a command that one of them has handled makes their copies differ."
    )]
    Skip(Deferred<skip::Arguments>),
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    match &arguments.action {
        ClusterAction::Recover(arguments) => recover::run(arguments),
        ClusterAction::Add(arguments) => add::run(arguments),
        ClusterAction::Remove(arguments) => remove::run(arguments),
        ClusterAction::New(arguments) => new::run(arguments),
        ClusterAction::Start(arguments) => of_host(start::run(arguments)),
        ClusterAction::Status(arguments) => status::run(arguments),
        ClusterAction::Skip(arguments) => skip::run(arguments),
        ClusterAction::Snapshot(arguments) => snapshot::run(arguments),
        ClusterAction::Upgrade(arguments) => upgrade::run(arguments),
        ClusterAction::Transfer(arguments) => transfer::run(arguments),
    }
}
