//! `gapless cluster upgrade`.

use super::leading::{change, leading};
use super::member::Member;
use crate::commands::{Outcome, print};
use clap::Args;
use gapless_cluster::member::control::Request;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Files or directories of members; the one that leads has to be among them
    #[arg(value_name = "FILE", required = true)]
    members: Vec<PathBuf>,
    /// The version that the service is to act as
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    version: u32,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let version = arguments.version;
    let members: Vec<_> = arguments.members.iter().map(|path| Member::at(path)).collect();
    let (leader, _) = leading(&members)?;
    change(leader, &Request::Upgrade { version })?;
    print(&format!("the stream is told: the service acts as version {version} from there on\n"))
}
