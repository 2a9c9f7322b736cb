//! Content is derived from a message's number.

use gapless_log::{LogError, RingReader, RingWriter};
use gapless_testkit::random::Random;
use gapless_wire::{Fragment, Frame, FrameHeader, FrameWriter, HEADER_LENGTH, aligned_length};

const PAYLOAD_LENGTH_MAX: u64 = 700;

fn fragment_count(message: u64) -> u16 {
    (message % 3) as u16 + 1
}

fn payload(message: u64, index: u16) -> Vec<u8> {
    let mut random = Random::new(message << 2 | u64::from(index));
    let length = random.below(PAYLOAD_LENGTH_MAX);
    (0..length).map(|_| random.number() as u8).collect()
}

pub fn fragment(message: u64, index: u16, sequence: u64) -> Vec<u8> {
    let payload = payload(message, index);
    let mut bytes = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
    let mut writer = FrameWriter::new(&mut bytes);
    writer.payload_mut()[..payload.len()].copy_from_slice(&payload);
    let fragment = Fragment { index, count: fragment_count(message) };
    writer.finish(&FrameHeader { session_seq: message, sequence, fragment, ..FrameHeader::default() }, payload.len());
    bytes
}

pub fn publish(writer: &mut RingWriter, message: u64) {
    'again: loop {
        for index in 0..fragment_count(message) {
            match writer.append(&fragment(message, index, 0)) {
                Ok(()) => {}
                Err(LogError::Full { .. }) => {
                    writer.discard_unpublished();
                    std::thread::yield_now();
                    continue 'again;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(!writer.publish(), "nobody sleeps here");
        return;
    }
}

#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Progress {
    pub message: u64,
    pub index: u16,
}

impl Progress {
    pub fn take(&mut self, reader: &mut RingReader) -> bool {
        let Some(length) = reader.next_length().unwrap() else {
            return false;
        };
        let mut copy = vec![0; aligned_length(length)];
        reader.copy(&mut copy);
        let frame = Frame::parse(&copy).unwrap();
        frame.verify().unwrap();
        assert_eq!((frame.session_seq(), frame.fragment().index), (self.message, self.index), "out of order");
        assert_eq!(copy, fragment(self.message, self.index, 0));
        self.index += 1;
        if frame.fragment().is_last() {
            *self = Self { message: self.message + 1, index: 0 };
        }
        reader.advance(length);
        reader.release();
        true
    }
}
