//! The second process of `gapless bench link`: measures the rate, echoes, or acknowledges. Ends when the first process
//! is gone.

use super::endpoint::{LinkEndpoint, NumberedMessage};
use super::protocol::{LinkAssignment, LinkTask, PARTS};
use crate::Result;
use crate::components::failed;
use crate::components::peer::PeerProcess;
use std::time::Instant;

/// Frame length of an acknowledgement, bytes: its number twice.
const ACKNOWLEDGEMENT_BYTES: usize = 16;

pub fn main(assignment: &str) -> Result<()> {
    let assignment: LinkAssignment = serde_json::from_str(assignment)?;
    if assignment.frame_length < 16 || assignment.messages == 0 || !assignment.messages.is_multiple_of(PARTS) {
        return Err(failed("link", "the assignment is malformed"));
    }
    let mut end = LinkEndpoint::listens(
        PeerProcess::first("link", assignment.cpu)?,
        assignment.transport,
        assignment.frame_length,
    )?;
    let address = end.address();
    end.other().send(&address)?;
    match assignment.task {
        LinkTask::Read => {
            let rate = read(&mut end, assignment.messages)?;
            end.other().send(&rate)
        }
        LinkTask::Echo => send_back(&mut end, assignment.messages, assignment.frame_length, true),
        LinkTask::Acknowledge => send_back(&mut end, assignment.messages, ACKNOWLEDGEMENT_BYTES, false),
    }
}

/// Each must be the next one.
fn take(end: &mut LinkEndpoint<'_>, number: &mut u64, last: u64) -> Result<usize> {
    end.turn(|message| {
        *number += 1;
        if message.number == *number && *number <= last {
            Ok(())
        } else {
            Err(failed("link", format!("message {number} was expected, {} came", message.number)))
        }
    })
}

/// Rate without the first part, messages a second. One poll brings a megabyte, so smaller parts would be meaningless.
fn read(end: &mut LinkEndpoint<'_>, messages: u64) -> Result<f64> {
    let mut number = 0;
    while number < messages / PARTS {
        take(end, &mut number, messages)?;
    }
    let (begin, from) = (Instant::now(), number);
    while number < messages {
        take(end, &mut number, messages)?;
    }
    Ok((messages - from) as f64 / begin.elapsed().as_secs_f64())
}

/// `each` answers each message; else one answer per poll has the number of the last.
fn send_back(end: &mut LinkEndpoint<'_>, messages: u64, answer_length: usize, each: bool) -> Result<()> {
    let mut outgoing = NumberedMessage::new(answer_length);
    let mut number = 0;
    while number < messages {
        let before = number;
        take(end, &mut number, messages)?;
        if number > before {
            for answered in if each { before + 1 } else { number }..=number {
                end.send(outgoing.number(answered))?;
            }
        }
    }
    end.flush()?;
    end.wait_for_end()
}
