//! `gapless cluster start`.

use super::member::MemberFile;
use crate::commands::{CommandResult, announce, interrupt};
use clap::Args;
use gapless_cluster::ClusterMember;
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::consensus::{MemberId, MemberRole};
use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[derive(Args)]
pub(super) struct Arguments {
    /// File of the member
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

const PAUSE: Duration = Duration::from_millis(250);

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let config = MemberFile::at(&arguments.file).config()?;
    let interrupted = interrupt()?;
    if let Some(warning) = config.warning() {
        crate::commands::to_stderr!("gapless: {warning}");
    }
    loop {
        let member = ClusterMember::start(&config)?;
        if run_until_interrupted(&config, &member, &interrupted)? {
            let last_sequence = member.stop()?;
            announce(&format!("stopped at sequence {last_sequence}"));
            return Ok(());
        }
        announce("was too far behind, and has fetched the state of another member; starts again with it");
    }
}

/// Returns false if the member must be restarted.
fn run_until_interrupted(
    config: &ClusterConfig,
    member: &ClusterMember,
    interrupted: &AtomicBool,
) -> Result<bool, Box<dyn Error>> {
    let recovery = member.stream().recovery();
    let found = match recovery.last_sequence {
        0 => "new".to_owned(),
        last => format!("its journal ends at sequence {last}"),
    };
    announce(&format!(
        "member {} of {}, {} that vote, tier {}: {found}; {}",
        config.member,
        config.name,
        config.voters(),
        member.stream().tier(),
        member.stream().plan().to_string().trim_end().replace('\n', "; ")
    ));
    let mut reported = (MemberRole::Follower, None::<MemberId>);
    while !interrupted.load(Ordering::Relaxed) {
        if let Some(failure) = member.stream().failure() {
            return if member.must_start_again() { Ok(false) } else { Err(failure.into()) };
        }
        if let Some(status) = member.status() {
            let now = (status.consensus.role, status.consensus.leader);
            if now != reported && now.0 != MemberRole::Candidate {
                reported = now;
                let term = status.consensus.term;
                announce(&match now {
                    (MemberRole::Leader, _) => format!("leads in term {term}"),
                    (_, Some(leader)) => format!("follows member {leader} in term {term}"),
                    (_, None) => "waits for a leader".to_owned(),
                });
            }
        }
        std::thread::park_timeout(PAUSE);
    }
    Ok(true)
}
