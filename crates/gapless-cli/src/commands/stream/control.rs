//! `gapless stream control`: halts, resumes, rolls over and ends a stream by the socket of its directory.

use super::location::StreamLocation;
use super::waiting::print_wait_note;
use crate::commands::{CommandResult, print};
use clap::{Args, Subcommand};
use gapless_client::control::Controller;
use gapless_client::control_messages::ControlCommand;
use gapless_wire::feed_session::FeedSession;
use serde_json::json;
use std::time::Duration;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: ControlAction,
}

#[derive(Subcommand)]
enum ControlAction {
    /// Halt the stream at once: accept no messages of publishers
    #[command(
        after_help = "Example:\n  gapless stream control halt --directory /var/lib/gapless/orders --reason \"prices are wrong\"\n\nIt overtakes everything that publishers have sent and that is not in the stream yet; that waits until the stream is resumed. Returns once the halt is in the stream, and prints its sequence. A stream that is halted already stays as it is, which is no error. Whoever may open the stream's socket may control it."
    )]
    Halt {
        #[command(flatten)]
        common: ControlArguments,
        /// Reason shown to readers of the stream, truncated to 200 bytes
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
    /// Resume the stream: accept messages of publishers again
    #[command(
        after_help = "Example:\n  gapless stream control resume --directory /var/lib/gapless/orders\n\nWhat waited is taken in the order in which each publisher sent it. A stream that is not halted stays as it is, which is no error."
    )]
    Resume {
        #[command(flatten)]
        common: ControlArguments,
    },
    /// End the open feed session and begin another
    #[command(
        after_help = "Example:\n  gapless stream control roll-over TUESDAY --config orders.toml --json | jq .sequence\n\nSequences of the stream go on; in MoldUDP64 and SoupBinTCP the new feed session counts from 1, at the sequence that is printed. After `end` this begins the next one."
    )]
    RollOver {
        /// Name of the next feed session: 1 to 10 printable ASCII characters without spaces, not held by the stream yet
        #[arg(value_parser = name)]
        name: FeedSession,
        #[command(flatten)]
        common: ControlArguments,
    },
    /// End the open feed session; messages wait until another begins
    #[command(
        after_help = "Example:\n  gapless stream control end --config orders.toml\n\nThe sequence that is printed is the feed session's last. `gapless stream control roll-over NAME` begins the next one."
    )]
    End {
        #[command(flatten)]
        common: ControlArguments,
    },
}

#[derive(Args)]
struct ControlArguments {
    #[command(flatten)]
    location: StreamLocation,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Seconds to wait for the effect; it may still come later
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

fn name(text: &str) -> Result<FeedSession, String> {
    FeedSession::new(text).map_err(|error| error.to_string())
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let (common, command) = match &arguments.action {
        ControlAction::Halt { common, reason } => (common, ControlCommand::Halt { reason: reason.clone() }),
        ControlAction::Resume { common } => (common, ControlCommand::Resume),
        ControlAction::RollOver { common, name } => (common, ControlCommand::RollOver { name: *name }),
        ControlAction::End { common } => (common, ControlCommand::End),
    };
    let config = common.location.config()?;
    let Some(directory) = config.directory() else {
        return Err("a stream without a directory has no socket by which it could be controlled".into());
    };
    let controller = Controller::new(directory).with_wait_reporter(print_wait_note);
    let done = controller.command(command.clone(), Duration::from_secs(common.timeout))?;
    if common.json {
        let object = json!({
            "command": command.name(),
            "sequence": done.sequence,
            "changed": done.changed,
            "stream": format!("{:032x}", done.identity.stream_id),
            "process": done.process_id,
        });
        return print(&format!("{object}\n"));
    }
    let sequence = done.sequence;
    print(&match (command, done.changed) {
        (ControlCommand::Halt { .. }, true) => format!("halted at sequence {sequence}\n"),
        (ControlCommand::Halt { .. }, false) => format!("halted already; the last sequence is {sequence}\n"),
        (ControlCommand::Resume, true) => format!("resumed at sequence {sequence}\n"),
        (ControlCommand::Resume, false) => format!("not halted; the last sequence is {sequence}\n"),
        (ControlCommand::RollOver { name }, _) => format!("feed session {name} begins at sequence {sequence}\n"),
        (ControlCommand::End, _) => format!("the feed session ended at sequence {sequence}\n"),
    })
}
