//! `gapless cluster upgrade`.

use super::member::Member;
use crate::commands::{Outcome, print};
use clap::Args;
use gapless::cluster::member::control::{Answer, Request};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    member: Member,
    /// The version that the service is to act as
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    version: u32,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let version = arguments.version;
    match arguments.member.ask(&Request::Upgrade { version })? {
        Answer::Begun => print(&format!("the stream is told: the service acts as version {version} from there on\n")),
        Answer::Refused(reason) => Err(reason.into()),
        Answer::Status(_) | Answer::Snapshot { .. } => Err("the member answers something else".into()),
    }
}
