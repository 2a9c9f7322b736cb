//! The process of the member that follows.

use super::{LEADER, TIMEOUT, model, parse};
use crate::commands::messages::{OfSbe, OfSerde};
use crate::commands::{NAME, failed};
use gapless_cluster::consensus::MemberId;
use gapless_cluster::member::requests::AdminCommand;
use gapless_cqrs::CommandHostOptions;
use gapless_cqrs::member::CommandMember;
use gapless_measure::Result;
use gapless_measure::child_process::{Parent, WhenGone};
use gapless_measure::resources::process_cpu_ns;
use serde::{Deserialize, Serialize};

/// What the process works on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The member's file.
    pub config: String,
    pub encoding: String,
}

/// It runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ready;

/// What the process is to do.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Have the other one lead, if this one does.
    HandOver,
    /// End, with [`Stopped`].
    Stop,
}

/// It has ended, and has used so much.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Stopped {
    pub cpu_ns: u64,
}

/// The work of the process.
///
/// # Errors
/// A malformed assignment; a member that does not start, or has stopped.
pub fn main(assignment: &str) -> Result<()> {
    let assignment: Assignment = serde_json::from_str(assignment)?;
    let parent = Parent::listen(NAME, WhenGone::Exit)?;
    let model = match &*assignment.encoding {
        "sbe" => model::<OfSbe>(),
        _ => model::<OfSerde>(),
    };
    let cpu_before_ns = process_cpu_ns();
    let member = CommandMember::start(model, CommandHostOptions::default(), &parse(&assignment.config)?);
    let member = member.map_err(failed)?;
    parent.send(&Ready)?;
    while let Some(order) = parent.receive()? {
        match order {
            Order::HandOver => {
                let to = MemberId::new(LEADER).expect("it is not 0");
                // Refused where this one does not lead, which is as good.
                let _ = member.replica().member().ask(AdminCommand::Transfer(to), TIMEOUT);
            }
            Order::Stop => break,
        }
    }
    if let Some(failure) = member.replica().failure() {
        return Err(failed(failure));
    }
    parent.send(&Stopped { cpu_ns: process_cpu_ns() - cpu_before_ns })
}
