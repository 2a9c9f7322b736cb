//! Frames with a payload derived from their sequence and seed.

use gapless_wire::{Frame, FrameHeader, FrameWriter, aligned_length};

/// A frame with a payload of `payload_length` bytes made from `sequence` and `seed`, padded to 8 bytes.
pub fn frame(sequence: u64, payload_length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; aligned_length(64 + payload_length)];
    write_frame(&mut bytes, sequence, payload_length, seed);
    bytes
}

/// Writes such a frame into a claim; returns its length without padding.
pub fn write_frame(space: &mut [u8], sequence: u64, payload_length: usize, seed: u64) -> usize {
    let mut writer = FrameWriter::new(space);
    for (number, byte) in writer.payload_mut()[..payload_length].iter_mut().enumerate() {
        *byte = (number as u64 ^ sequence ^ seed) as u8;
    }
    writer.finish(&FrameHeader { sequence, session: seed, ..FrameHeader::default() }, payload_length)
}

/// Splits `bytes` into frames, all whole, with valid checksums.
pub fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let frame = Frame::parse(bytes).unwrap();
        frame.verify().unwrap();
        frames.push(bytes[..frame.length()].to_vec());
        bytes = bytes.get(aligned_length(frame.length())..).unwrap_or_default();
    }
    frames
}

/// Sequence and seed of each frame in `bytes`.
pub fn marks(bytes: &[u8]) -> Vec<(u64, u64)> {
    split(bytes)
        .iter()
        .map(|bytes| Frame::parse(bytes).unwrap())
        .map(|frame| (frame.sequence(), frame.session()))
        .collect()
}
