//! `gapless cluster snapshot`.

use super::member::Member;
use crate::commands::{Outcome, print};
use clap::Args;
use gapless_cluster::member::control::{Answer, Request};
use std::time::Duration;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    member: Member,
    /// Print one JSON object, with `member` and `sequence`
    #[arg(long)]
    json: bool,
    /// How long to wait for it; it is taken in any case
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let timeout = Duration::from_secs(arguments.timeout);
    match arguments.member.ask_within(&Request::Snapshot, timeout)? {
        Answer::Snapshot { member, sequence } if arguments.json => {
            print(&format!("{}\n", serde_json::json!({ "member": member, "sequence": sequence })))
        }
        Answer::Snapshot { member, sequence } => {
            print(&format!("member {member} has taken a snapshot, which stands at sequence {sequence}\n"))
        }
        Answer::Refused(reason) => Err(reason.into()),
        Answer::Begun | Answer::Status(_) => Err("the member answers something else".into()),
    }
}
