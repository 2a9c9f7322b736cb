//! Start-up check that all frames of a journal fit the packets: nodes would request an unfit one forever.

use crate::StreamError;
use crate::network::tcp_endpoints::FRAME_LENGTH_TCP;
use crate::options::EventStreamOptions;
use gapless_journal::{JournalReader, info};
use gapless_wire::mold;
use gapless_wire::mtu::Mtu;
use std::path::Path;

/// Skips segments whose frame limit fits the networks.
pub(crate) fn check(options: &EventStreamOptions, directory: &Path, last_sequence: u64) -> Result<(), StreamError> {
    let Some(carried_length_max) = carried_length_max(options) else { return Ok(()) };
    let segments = info(directory)?.segments;
    for (index, segment) in segments.iter().enumerate() {
        let end = segments.get(index + 1).map_or(last_sequence, |next| next.first_sequence - 1).min(last_sequence);
        if segment.frame_length_max as usize <= carried_length_max || segment.first_sequence > end {
            continue;
        }
        let mut replay = JournalReader::open(directory)?.replay_until(segment.first_sequence, end)?;
        while let Some(frame) = replay.next_frame()? {
            if frame.length() > carried_length_max {
                let reason = too_long(frame.sequence(), frame.length(), &segment.path, carried_length_max);
                return Err(StreamError::Option { option: "mtu", reason });
            }
        }
    }
    Ok(())
}

fn carried_length_max(options: &EventStreamOptions) -> Option<usize> {
    let by_packets = options
        .packets
        .as_ref()
        .map(|network| network.packet_length_max.saturating_sub(mold::HEADER_LENGTH + mold::BLOCK_HEADER_LENGTH));
    let by_tcp = options.tcp.as_ref().map(|_| FRAME_LENGTH_TCP);
    by_packets.into_iter().chain(by_tcp).min()
}

fn too_long(sequence: u64, length: usize, segment: &Path, carried_length_max: usize) -> String {
    let advice = match Mtu::of_frame(length) {
        Some(mtu) if length <= FRAME_LENGTH_TCP => format!("an mtu of {mtu} carries it"),
        _ => "shared memory alone carries it".to_owned(),
    };
    format!(
        "sequence {sequence} in {} has a frame of {length} bytes, and the networks carry {carried_length_max}; {advice}",
        segment.display()
    )
}
