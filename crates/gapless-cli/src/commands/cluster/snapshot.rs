//! `gapless cluster snapshot`.

use super::member::MemberFile;
use crate::commands::{CommandResult, print};
use clap::Args;
use gapless_cluster::member::control::{AdminAnswer, AdminRequest};
use std::time::Duration;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    member: MemberFile,
    /// Print one JSON object, with `member` and `sequence`
    #[arg(long)]
    json: bool,
    /// Seconds to wait; the snapshot is taken even after that
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let timeout = Duration::from_secs(arguments.timeout);
    match arguments.member.ask_within(&AdminRequest::Snapshot, timeout)? {
        AdminAnswer::Snapshot { member, sequence } if arguments.json => {
            print(&format!("{}\n", serde_json::json!({ "member": member, "sequence": sequence })))
        }
        AdminAnswer::Snapshot { member, sequence } => {
            print(&format!("member {member} has taken a snapshot, which stands at sequence {sequence}\n"))
        }
        AdminAnswer::Refused(reason) => Err(reason.into()),
        AdminAnswer::Begun | AdminAnswer::Status(_) => Err("the member answers something else".into()),
    }
}
