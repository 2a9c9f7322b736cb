//! `gapless cluster remove`.

use super::leading::{change, leading};
use super::member::{MemberFile, MemberFileList};
use crate::commands::{CommandResult, print};
use clap::Args;
use gapless_cluster::member::control::{AdminRequest, StatusReport};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    members: MemberFileList,
    /// Number of the member to remove
    #[arg(long, value_name = "MEMBER")]
    member: u64,
}

const TIMEOUT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let members = arguments.members.all();
    let (mut leader, report) = leading(&members)?;
    if report.member == arguments.member
        && let Some(next) = successor(&report)
    {
        print(&format!("member {} leads, and hands over to member {next} first\n", report.member))?;
        change(leader, &AdminRequest::Transfer { to: next })?;
        leader = other_leading(&members, arguments.member)?;
    }
    change(leader, &AdminRequest::Remove { member: arguments.member })?;
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let (_, report) = leading(&members)?;
        if !report.members.iter().any(|each| each.member == arguments.member) {
            return print(&format!(
                "member {} is a member no longer; it stops by itself, and its directory can go\n",
                arguments.member
            ));
        }
        if Instant::now() > deadline {
            return Err("the change is not done yet; gapless cluster status tells when it is".into());
        }
        std::thread::sleep(PAUSE);
    }
}

/// The connected voter with the longest log.
fn successor(report: &StatusReport) -> Option<u64> {
    let others = report.members.iter().filter(|each| each.member != report.member && each.is_connected);
    let voters = others.filter(|each| each.kind == "voter");
    voters.min_by_key(|each| each.lag_frames.unwrap_or(u64::MAX)).map(|each| each.member)
}

fn other_leading(members: &[MemberFile], old: u64) -> Result<&MemberFile, Box<dyn std::error::Error>> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let (leader, report) = leading(members)?;
        if report.member != old {
            return Ok(leader);
        }
        if Instant::now() > deadline {
            return Err(format!("member {old} has not handed over").into());
        }
        std::thread::sleep(PAUSE);
    }
}
