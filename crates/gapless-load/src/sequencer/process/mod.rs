//! The processes of the benchmark: the sequencer, and each node.
//!
//! | module | task |
//! |---|---|
//! | this | reads the assignment |
//! | `serve` | runs the event stream |
//! | `node` | connects a node |
//! | `round_trips` | one message in flight, timed |
//! | `push` | publishes as fast as possible, or at a rate, and reads all messages |
//! | `rewind` | reads from the first frame until it is live |
//! | `link_counters` | the counters of a link |

mod link_counters;
mod node;
mod push;
mod rewind;
mod round_trips;
mod serve;

use super::protocol::StreamAssignment;
use crate::Result;
use crate::child_process::{OrphanPolicy, Parent};
use gapless_measure::affinity::pin_current_thread;
use std::time::Duration;

/// A message counts as lost after this.
const TIMEOUT: Duration = Duration::from_secs(60);

pub fn main(assignment: &str) -> Result<()> {
    match serde_json::from_str(assignment)? {
        StreamAssignment::Sequencer(assignment) => {
            serve::run(&assignment, &Parent::listen(super::NAME, OrphanPolicy::Notice)?)
        }
        StreamAssignment::Node(assignment) => {
            let parent = Parent::listen(super::NAME, OrphanPolicy::Exit)?;
            if let Some(cpu) = assignment.cpu {
                pin_current_thread(&[cpu])?;
            }
            node::run(&assignment, &parent)
        }
    }
}
