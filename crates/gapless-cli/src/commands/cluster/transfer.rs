//! `gapless cluster transfer`.

use super::leading::{change, leading};
use super::member::MemberFileList;
use crate::commands::{CommandResult, print};
use clap::Args;
use gapless_cluster::member::control::AdminRequest;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    members: MemberFileList,
    /// Number of the new leader
    #[arg(long, value_name = "MEMBER")]
    to: u64,
}

const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let members = arguments.members.all();
    let (leader, report) = leading(&members)?;
    if report.members.iter().any(|each| each.member == arguments.to && !each.is_connected) {
        return Err(format!("member {} is not connected to member {}, which leads", arguments.to, report.member).into());
    }
    let begin = Instant::now();
    change(leader, &AdminRequest::Transfer { to: arguments.to })?;
    loop {
        let report = leader.status()?;
        if report.leader == Some(arguments.to) {
            let term = report.term;
            return print(&format!("member {} leads in term {term}\n", arguments.to));
        }
        if begin.elapsed() > TIMEOUT {
            return Err(format!("member {} does not lead after {TIMEOUT:?}; it may lag too far", arguments.to).into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
