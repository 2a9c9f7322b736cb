//! `gapless cluster upgrade`.

use super::leading::{change, leading};
use super::member::Members;
use crate::commands::{Outcome, print};
use clap::Args;
use gapless_cluster::member::control::Request;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    members: Members,
    /// The version that the service is to act as
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    version: u32,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let version = arguments.version;
    let members = arguments.members.all();
    let (leader, _) = leading(&members)?;
    change(leader, &Request::Upgrade { version })?;
    print(&format!("the stream is told: the service acts as version {version} from there on\n"))
}
