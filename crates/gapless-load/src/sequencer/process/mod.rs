//! The benchmark's processes, seen from inside: the sequencer, and each node.
//!
//! | module | what it does |
//! |---|---|
//! | this | reads what the process is to do |
//! | `serve` | runs the event stream |
//! | `node` | connects a node |
//! | `round_trips` | one message in flight, timed |
//! | `push` | publishes as fast as it can, or at a rate, and reads what everybody publishes |
//! | `rewind` | reads from the first frame until it is live |
//! | `link_counters` | the counters of a link |

mod link_counters;
mod node;
mod push;
mod rewind;
mod round_trips;
mod serve;

use super::protocol::Assignment;
use crate::Result;
use crate::child_process::{Parent, WhenGone};
use gapless_measure::affinity::pin_current_thread;
use std::time::Duration;

/// A node that waits for a message so long has lost one.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A process of the benchmark: does the work of `assignment`.
///
/// # Errors
/// A malformed assignment, a stream that cannot be run or reached, messages that do not come.
pub fn main(assignment: &str) -> Result<()> {
    match serde_json::from_str(assignment)? {
        Assignment::Sequencer(assignment) => serve::run(&assignment, &Parent::listen(super::NAME, WhenGone::Notice)?),
        Assignment::Node(assignment) => {
            let parent = Parent::listen(super::NAME, WhenGone::Exit)?;
            if let Some(cpu) = assignment.cpu {
                pin_current_thread(&[cpu])?;
            }
            node::run(&assignment, &parent)
        }
    }
}
