//! A member of the benchmark's cluster, as `gapless cluster start` runs it, with the benchmark's service. It stops when
//! the benchmark is gone.

use super::failed;
use super::ledger::Ledger;
use crate::Result;
use crate::child_process::{OrphanPolicy, Parent};
use gapless::prelude::Duration;
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::consensus::{MemberId, MemberRole};
use gapless_cluster::member::requests::{AdminCommand, AdminOutcome};
use gapless_engine::{Replica, ReplicaOptions};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize, Deserialize)]
pub struct MemberProcessAssignment {
    pub file: PathBuf,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberProcessRequest {
    Status,
    Transfer(u64),
    /// Answered once it is synced.
    Snapshot,
    Stop,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberProcessAnswer {
    Running(String),
    Status {
        leads: bool,
        connected: u64,
        /// Last sequence that its service has handled; on a witness the last released one.
        handled: u64,
    },
    Done,
    Refused(String),
}

pub fn main(assignment: &str) -> Result<()> {
    let assignment: MemberProcessAssignment = serde_json::from_str(assignment)?;
    let config = ClusterConfig::load(&assignment.file).map_err(|error| failed(error.to_string()))?;
    let start = || {
        Replica::start(Ledger::default(), ReplicaOptions::default(), &config).map_err(|error| failed(error.to_string()))
    };
    let parent = Parent::listen(super::NAME, OrphanPolicy::Notice)?;
    let mut replica = start()?;
    parent.send(&MemberProcessAnswer::Running(replica.plan().to_string()))?;
    while let Some(request) = parent.receive()? {
        if replica.must_start_again() {
            drop(replica);
            replica = start()?;
        } else if let Some(failure) = replica.failure() {
            return Err(failed(failure.to_string()));
        }
        if matches!(request, MemberProcessRequest::Stop) {
            replica.stop().map_err(|error| failed(error.to_string()))?;
            return parent.send(&MemberProcessAnswer::Done);
        }
        parent.send(&execute(&replica, request))?;
    }
    Ok(())
}

fn execute(replica: &Replica, request: MemberProcessRequest) -> MemberProcessAnswer {
    match request {
        MemberProcessRequest::Status => {
            let Some(status) = replica.member().status() else {
                return MemberProcessAnswer::Status { leads: false, connected: 0, handled: 0 };
            };
            let handled = replica.snapshots().map_or(status.released_sequence, |_| replica.handled_sequence());
            MemberProcessAnswer::Status {
                leads: status.consensus.role == MemberRole::Leader,
                connected: status.links.iter().filter(|(_, is_connected, _)| *is_connected).count() as u64,
                handled,
            }
        }
        MemberProcessRequest::Transfer(to) => {
            match MemberId::new(to).map(|to| replica.member().ask(AdminCommand::Transfer(to), TIMEOUT)) {
                Some(Some(AdminOutcome::Begun)) => MemberProcessAnswer::Done,
                other => MemberProcessAnswer::Refused(format!("the lead cannot be handed over: {other:?}")),
            }
        }
        MemberProcessRequest::Snapshot => match replica.snapshot() {
            Ok(_) => MemberProcessAnswer::Done,
            Err(error) => MemberProcessAnswer::Refused(error.to_string()),
        },
        MemberProcessRequest::Stop => unreachable!("done by the caller"),
    }
}
