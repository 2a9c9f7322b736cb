//! The process of the follower.

use super::{LEADER, TIMEOUT, model, parse};
use crate::commands::messages::{SbeForm, SerdeForm};
use crate::commands::{NAME, failed};
use gapless_cluster::consensus::MemberId;
use gapless_cluster::member::requests::AdminCommand;
use gapless_cqrs::AggregateOptions;
use gapless_cqrs::member::CommandMember;
use gapless_measure::Result;
use gapless_measure::child_process::{OrphanPolicy, Parent};
use gapless_measure::resources::process_cpu_ns;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FollowerAssignment {
    pub config: String,
    pub encoding: String,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct FollowerReady;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum FollowerRequest {
    /// Hand over, if this member leads.
    HandOver,
    /// Answered by [`FollowerReport`].
    Stop,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct FollowerReport {
    pub cpu_ns: u64,
}

pub fn main(assignment: &str) -> Result<()> {
    let assignment: FollowerAssignment = serde_json::from_str(assignment)?;
    let parent = Parent::listen(NAME, OrphanPolicy::Exit)?;
    let model = match &*assignment.encoding {
        "sbe" => model::<SbeForm>(),
        _ => model::<SerdeForm>(),
    };
    let cpu_before_ns = process_cpu_ns();
    let member = CommandMember::start(model, AggregateOptions::default(), &parse(&assignment.config)?);
    let member = member.map_err(failed)?;
    parent.send(&FollowerReady)?;
    while let Some(order) = parent.receive()? {
        match order {
            FollowerRequest::HandOver => {
                let to = MemberId::new(LEADER).expect("it is not 0");
                // Refused if this member does not lead, which is fine.
                let _ = member.replica().member().ask(AdminCommand::Transfer(to), TIMEOUT);
            }
            FollowerRequest::Stop => break,
        }
    }
    if let Some(failure) = member.replica().failure() {
        return Err(failed(failure));
    }
    parent.send(&FollowerReport { cpu_ns: process_cpu_ns() - cpu_before_ns })
}
