//! Frames of one line, whose last word is a mark.

pub const FRAME_LENGTH: usize = 64;

pub fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

pub fn frame(sequence: u64, mark: u64) -> [u8; FRAME_LENGTH] {
    let mut frame = [0; FRAME_LENGTH];
    frame[..8].copy_from_slice(&(FRAME_LENGTH as u64).to_ne_bytes());
    frame[8..16].copy_from_slice(&sequence.to_ne_bytes());
    frame[56..].copy_from_slice(&mark.to_ne_bytes());
    frame
}

pub fn parts(bytes: &[u8]) -> (u64, u64) {
    let word = |number: usize| u64::from_ne_bytes(*bytes[number * 8..].first_chunk().unwrap());
    assert_eq!(word(0), FRAME_LENGTH as u64, "the frame is not whole");
    (word(1), word(7))
}

pub fn window(frames: usize) -> (gapless_log::WindowWriter, gapless_log::Releaser) {
    let options = gapless_log::WindowOptions {
        capacity_bytes: frames * FRAME_LENGTH,
        index_slots: frames,
        frame_length_max: FRAME_LENGTH,
        ..gapless_log::WindowOptions::default()
    };
    options.create(1).unwrap()
}

pub fn ring(frames: usize) -> (gapless_log::RingWriter, gapless_log::RingReader) {
    let kind = gapless_log::MemoryKind::Anonymous;
    gapless_log::ring::create(&kind, frames * FRAME_LENGTH, gapless_log::StreamIdentity::default()).unwrap()
}
