//! `gapless cluster upgrade`.

use super::leading::{change, leading};
use super::member::MemberFileList;
use crate::commands::{CommandResult, print};
use clap::Args;
use gapless_cluster::member::control::AdminRequest;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    members: MemberFileList,
    /// Version of the service to activate
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    version: u32,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let version = arguments.version;
    let members = arguments.members.all();
    let (leader, _) = leading(&members)?;
    change(leader, &AdminRequest::Upgrade { version })?;
    print(&format!("the stream is told: the service acts as version {version} from there on\n"))
}
