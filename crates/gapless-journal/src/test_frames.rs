//! Frames for the tests of this crate.

use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, aligned_length};

pub(crate) fn frames(first: u64, count: u64, payload_length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for sequence in first..first + count {
        push_frame(&mut bytes, sequence, payload_length);
    }
    bytes
}

pub(crate) fn push_frame(bytes: &mut Vec<u8>, sequence: u64, payload_length: usize) {
    let start = bytes.len();
    bytes.resize(start + aligned_length(HEADER_LENGTH + payload_length), 0);
    let mut writer = FrameWriter::new(&mut bytes[start..]);
    for (i, byte) in writer.payload_mut()[..payload_length].iter_mut().enumerate() {
        *byte = (sequence as usize * 31 + i * 7 + 1) as u8;
    }
    let header = FrameHeader {
        sequence,
        timestamp_ns: sequence * 1000,
        session: 1,
        session_seq: sequence,
        ..FrameHeader::default()
    };
    writer.finish(&header, payload_length);
}
