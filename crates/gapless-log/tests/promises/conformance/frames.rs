use gapless_wire::{Frame, FrameHeader, FrameWriter, aligned_length};

pub fn frame(sequence: u64, payload_length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; aligned_length(64 + payload_length)];
    write_frame(&mut bytes, sequence, payload_length, seed);
    bytes
}

pub fn write_frame(space: &mut [u8], sequence: u64, payload_length: usize, seed: u64) -> usize {
    let mut writer = FrameWriter::new(space);
    for (number, byte) in writer.payload_mut()[..payload_length].iter_mut().enumerate() {
        *byte = (number as u64 ^ sequence ^ seed) as u8;
    }
    writer.finish(&FrameHeader { sequence, session: seed, ..FrameHeader::default() }, payload_length)
}

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

pub fn marks(bytes: &[u8]) -> Vec<(u64, u64)> {
    split(bytes)
        .iter()
        .map(|bytes| Frame::parse(bytes).unwrap())
        .map(|frame| (frame.sequence(), frame.session()))
        .collect()
}
