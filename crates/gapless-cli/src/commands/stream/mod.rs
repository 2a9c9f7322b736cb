//! `gapless stream`: runs a stream, publishes into it, reads it, over the transport that its file configures.

mod archive;
mod bridge;
mod control;
mod dispatch;
mod input;
mod location;
mod node;
pub(super) mod nodes;
mod output;
mod publish;
mod publishing;
mod reading;
mod relaying;
mod replay;
mod sequencer;
mod status;
mod tail;
mod text_archive;
mod text_file;
mod waiting;

use super::{CommandResult, of_host};
use crate::deferred::Deferred;
use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: StreamAction,
}

#[derive(Subcommand)]
enum StreamAction {
    /// Run a stream's sequencer until Ctrl-C
    #[command(
        after_help = "Examples:\n  gapless stream sequencer --directory /var/lib/gapless/orders\n  gapless stream sequencer --config orders.toml\n\nA stream that was killed continues from its journal at the next start. Its file is described in docs/guides/stream.toml."
    )]
    Sequencer(Deferred<sequencer::Arguments>),
    /// Publish lines of standard input and print all messages
    #[command(
        after_help = "Example:\n  gapless stream node --config orders.toml --from live\n\nEnds when the input has ended and all of it has come back, or with Ctrl-C. Messages of this node are marked `own`."
    )]
    Node(Deferred<node::Arguments>),
    /// Print a stream and follow it until Ctrl-C
    #[command(
        after_help = "Examples:\n  gapless stream tail --config orders.toml --from live\n  gapless stream tail --directory /var/lib/gapless/orders --json --no-follow | jq .payload\n\nA line holds sequence, time, kind, session, number in the session, schema and template, length and payload."
    )]
    Tail(Deferred<tail::Arguments>),
    /// Publish lines of standard input or a file, each as a message
    #[command(
        after_help = "Examples:\n  gapless stream publish --config orders.toml orders.csv\n  generate | gapless stream publish --directory /var/lib/gapless/orders --token monday --rate 1000\n\nEnds with 0 once every line has come back in the stream, which is its acknowledgement, and its session is closed; with Ctrl-C it waits a few seconds for that. With --token the session stays open, and lines are in the stream exactly once however often publishing is interrupted: run it again with the same token and the same input, and lines already in the stream are skipped. That holds until the session expires (stream.session_expiry, 24 hours without a message)."
    )]
    Publish(Deferred<publish::Arguments>),
    /// Print a range of a stream: from its journal, or from its sequencer
    #[command(
        after_help = "Examples:\n  gapless stream replay --directory /var/lib/gapless/orders --from 1000 --to 1010\n  gapless stream replay --config orders.toml --json | jq .session\n\nWhere the stream's directory holds a journal, that is read, and no sequencer need run."
    )]
    Replay(Deferred<replay::Arguments>),
    /// Pass a stream on to the nodes of this machine by shared memory, until Ctrl-C
    #[command(
        after_help = "Example:\n  gapless stream dispatch --config orders.toml --to /var/lib/gapless/orders-here\n  gapless stream tail --directory /var/lib/gapless/orders-here\n\nOne process takes the stream from the network, however many nodes read it here. They publish through it, too. It keeps what it passed on in a journal of its own, and goes on at its position."
    )]
    Dispatch(Deferred<dispatch::Arguments>),
    /// Pass a stream on into another network, until Ctrl-C
    #[command(
        after_help = "Example:\n  gapless stream bridge --config london.toml --to tokyo.toml\n\nlondon.toml says how to reach the stream (transport = \"tcp\", for instance), tokyo.toml how nodes over there find it. Sequences are the same on both sides, messages published there reach the sequencer, and bridges may be chained. After a restart it continues at its position."
    )]
    Bridge(Deferred<bridge::Arguments>),
    /// Keep a journal of a stream elsewhere, until Ctrl-C
    #[command(
        after_help = "Examples:\n  gapless stream archive --config orders.toml --to /backup/orders\n  gapless stream archive --config orders.toml --to /backup/orders --text /backup/orders.log\n  gapless stream replay --directory /backup/orders --from 1000 --to 1010\n  gapless journal verify /backup/orders\n\nIt follows the stream over the transport of the file, and keeps every frame under its sequence. After a restart or a full disk it continues at its position, the text after its last whole line. As a dispatcher, it also lets nodes of its machine read from its directory. Old segments are never deleted."
    )]
    Archive(Deferred<archive::Arguments>),
    /// Show the status of a stream: its position, and the connected nodes with theirs
    #[command(
        after_help = "Examples:\n  gapless stream status --directory /var/lib/gapless/orders\n  gapless stream status --config orders.toml --watch\n  gapless stream status --config orders.toml --json | jq '.nodes[] | [.node, .lag_frames]'\n\nA row for each node: its name (the user, or the program) and where it is, how it is connected, whether it reads new frames (live) or earlier ones (rewinding), its next sequence, its lag in frames, frames that it lost and asked for again, frames that it sent again, messages on their way, and frames read and published per second. Of the stream itself: tier, transports, whether it is halted, its feed session and whether that has ended. Exit codes: 0; 1 if its process is there and does not answer, as one that is stopped (`answers` is false, `silence` says why), if it is a relay whose stream is not there or a member without a leader (`illness`), or if it cannot be read; 2 for errors in the command line; 3 if no sequencer runs there."
    )]
    Status(Deferred<status::Arguments>),
    /// Halt a stream, resume it, roll its feed session over, or end it
    Control(Deferred<control::Arguments>),
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    match &arguments.action {
        StreamAction::Sequencer(arguments) => of_host(sequencer::run(arguments)),
        StreamAction::Node(arguments) => node::run(arguments),
        StreamAction::Tail(arguments) => tail::run(arguments),
        StreamAction::Publish(arguments) => publish::run(arguments),
        StreamAction::Replay(arguments) => replay::run(arguments),
        StreamAction::Dispatch(arguments) => of_host(dispatch::run(arguments)),
        StreamAction::Bridge(arguments) => of_host(bridge::run(arguments)),
        StreamAction::Archive(arguments) => of_host(archive::run(arguments)),
        StreamAction::Status(arguments) => status::run(arguments),
        StreamAction::Control(arguments) => control::run(arguments),
    }
}
