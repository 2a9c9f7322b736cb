//! Refuses options that a member cannot run with, before anything is changed.

use crate::ClusterError;
use crate::config::{ClusterConfig, MemberKind};
use crate::consensus::options::{ENTRIES_KEPT, IN_FLIGHT_ENTRIES};
use crate::consensus::record::CHECKPOINT_ENTRY_LENGTH;
use crate::link::wire::FRAMES_LENGTH_MAX;
use crate::member::MESSAGE_BYTES_MAX;
use crate::member::member_environment::MemberEnvironment;
use gapless_stream::StreamError;
use gapless_stream::options::EventStreamOptions;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;

/// Longest checkpoint of consensus, and a segment's head.
const CHECKPOINT_ROOM: usize = 256 << 10;
const MEMBERS_LENGTH_MAX: usize = 48 << 10;
/// Kept, in flight, or not yet known to be committed.
const CHECKPOINT_ENTRIES: usize = ENTRIES_KEPT + 2 * IN_FLIGHT_ENTRIES;
const _: () = assert!(CHECKPOINT_ENTRIES * CHECKPOINT_ENTRY_LENGTH + MEMBERS_LENGTH_MAX < CHECKPOINT_ROOM);
/// Longest frame, and room for records before it.
const SEGMENT_LENGTH_MIN: u64 = (FRAME_LENGTH_MAX + CHECKPOINT_ROOM) as u64;

pub(super) fn check(
    config: &ClusterConfig,
    options: &EventStreamOptions,
    has_service: bool,
    member_environment: &MemberEnvironment,
) -> Result<(), ClusterError> {
    options.check_member()?;
    let refuse = |option, reason| Err(StreamError::Option { option, reason }.into());
    if options.clients.is_some() && !has_service && config.own().kind != MemberKind::Witness {
        let reason = "an event stream has nodes; there is no service here whose clients could come".to_owned();
        return refuse("clients", reason);
    }
    let window_bytes_min = 2 * member_environment.message_bytes_max.unwrap_or(MESSAGE_BYTES_MAX);
    if options.window_bytes < window_bytes_min {
        let reason = format!("a member's takes {window_bytes_min} bytes at least, not {}", options.window_bytes);
        return refuse("window", reason);
    }
    if options.persistence.segment_length_bytes < SEGMENT_LENGTH_MIN {
        let (given, least) = (options.persistence.segment_length_bytes, SEGMENT_LENGTH_MIN);
        let reason =
            format!("a member's holds {least} bytes at least, for a frame and records of consensus, not {given}");
        return refuse("segment_length", reason);
    }
    if options.message_bytes_max() > FRAMES_LENGTH_MAX {
        let (longest, limit) = (options.message_bytes_max(), FRAMES_LENGTH_MAX);
        let reason =
            format!("with its headers a message takes {longest} bytes, and {limit} go to another member at once");
        return refuse("message_length_max", reason);
    }
    Ok(())
}
