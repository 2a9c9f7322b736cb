//! A process writes arbitrary words into its ring: errors and invalid frames, never a panic or an endless loop.

use super::peer::{Peer, Place, memory};
use gapless_log::{LogError, RingReader, RingWriter, StreamIdentity, ring};
use gapless_testkit::random::Random;
use gapless_wire::{Frame, aligned_length};
use rustix::fd::AsFd;

const CAPACITY: usize = 4096;
const POLLS: usize = 20_000;

#[test]
fn other_end_gets_only_errors() {
    for place in Place::each() {
        let (writer, reader) = ring::create(&place.kind("ring"), CAPACITY, StreamIdentity::default()).unwrap();
        let mut peer = Peer::start("scribble", &place, &[("ring", reader.fd())]);
        let mut corrupt = 0;
        let (mut reading, mut writing) = (Some(reader), Some(writer));
        let fd = reading.as_ref().unwrap().fd().try_clone_to_owned().unwrap();
        let mut copy = [0; CAPACITY];
        let mut polls = 0;
        while polls < POLLS || corrupt == 0 {
            polls += 1;
            if polls % 1000 == 0 {
                peer.wait_a_little();
            }
            reading = match reading {
                Some(mut reader) => match read(&mut reader, &mut copy) {
                    Ok(()) => Some(reader),
                    Err(LogError::Corrupt { .. }) => {
                        corrupt += 1;
                        None
                    }
                    Err(error) => panic!("{error}"),
                },
                None => place.reopen("ring", fd.as_fd()).reader().ok(),
            };
            writing = match writing {
                Some(mut writer) => write(&mut writer).is_ok().then_some(writer),
                None => place.reopen("ring", fd.as_fd()).writer().ok(),
            };
        }
        peer.kill();
    }
}

fn read(reader: &mut RingReader, copy: &mut [u8]) -> Result<(), LogError> {
    let Some(length) = reader.next_length()? else {
        return Ok(());
    };
    let copy = &mut copy[..aligned_length(length)];
    reader.copy(copy);
    let _ = std::hint::black_box(Frame::parse(copy).and_then(|frame| frame.verify()));
    reader.advance(length);
    reader.release();
    Ok(())
}

fn write(writer: &mut RingWriter) -> Result<(), LogError> {
    match writer.append(&super::messages::fragment(1, 0, 0)) {
        Ok(()) => {
            let _ = writer.publish();
            Ok(())
        }
        Err(LogError::Full { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Plausible and arbitrary words, in the header and in the data.
pub fn scribble() {
    use std::os::unix::fs::FileExt;
    let file = memory(0).file();
    let words = 4096 + CAPACITY as u64;
    let mut random = Random::new(1);
    loop {
        let (place, what, any) = (random.number(), random.number(), random.number());
        let offset = match place % 4 {
            0 => [128, 512, 640, 768][(place / 4 % 4) as usize],
            _ => 4096 + place / 4 % (words - 4096) / 8 * 8,
        };
        let value = match what % 6 {
            0 => any,
            1 => u64::MAX - what % 64,
            2 => what % 64 * 8,
            3 => 64 + what % 2048,
            _ => what % 16 * 64,
        };
        if offset < words {
            file.write_all_at(&value.to_ne_bytes(), offset).unwrap();
        }
    }
}
