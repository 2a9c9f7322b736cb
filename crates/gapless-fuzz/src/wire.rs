//! Targets for the decoders of `gapless-wire` and the handshake: any bytes are refused, or are a value that gives the
//! same bytes when written again.

use crate::input::{assert_says_something, heal_frames};
use gapless_transport::handshake::{HELLO_LENGTH, Hello, WELCOME_LENGTH, Welcome};
use gapless_wire::control::{Refusal, SessionOpen, SessionOpened, TimerFired, WINDOW_MESSAGES_MAX};
use gapless_wire::descriptor::{FRAME_LENGTH_MAX, PAYLOAD_CRC_OFFSET};
use gapless_wire::frame::{check_length, peek_length, peek_session};
use gapless_wire::{Frame, FrameWriter, HEADER_LENGTH, aligned_length, stamp};

pub fn frame(bytes: &[u8]) {
    check_frame(bytes);
    let mut healed = bytes.to_vec();
    heal_frames(&mut healed);
    let frame = check_frame(&healed);
    if let Some(frame) = frame {
        assert_eq!(frame.verify(), Ok(()), "the checksums were made right");
    }
}

fn check_frame(bytes: &[u8]) -> Option<Frame<'_>> {
    for limit_bytes in [0, HEADER_LENGTH, 1376, FRAME_LENGTH_MAX] {
        match peek_length(bytes, limit_bytes) {
            Ok(length) => {
                assert!((HEADER_LENGTH..=limit_bytes).contains(&length));
                assert_eq!(check_length(length as u32, limit_bytes), Ok(length));
            }
            Err(error) => assert_says_something(&error),
        }
    }
    let session = peek_session(bytes);
    let frame = match Frame::parse(bytes) {
        Ok(frame) => frame,
        Err(error) => {
            assert_says_something(&error);
            return None;
        }
    };
    let length = frame.length();
    assert!((HEADER_LENGTH..=FRAME_LENGTH_MAX.min(bytes.len())).contains(&length));
    assert_eq!(frame.bytes(), &bytes[..length]);
    assert_eq!(frame.payload(), &bytes[HEADER_LENGTH..length]);
    assert_eq!(frame.session(), session);
    assert!(frame.fragment().index < frame.fragment().count);
    assert!(!format!("{frame:?}").is_empty());
    let is_whole = match frame.verify() {
        Ok(()) => true,
        Err(error) => {
            assert_says_something(&error);
            false
        }
    };

    let mut again = vec![0xa5; aligned_length(length)];
    let mut writer = FrameWriter::new(&mut again);
    writer.payload_mut()[..frame.payload().len()].copy_from_slice(frame.payload());
    assert_eq!(writer.finish(&frame.header(), frame.payload().len()), length);
    assert_eq!(&again[..PAYLOAD_CRC_OFFSET], &bytes[..PAYLOAD_CRC_OFFSET]);
    assert_eq!(&again[HEADER_LENGTH..length], frame.payload());
    assert!(again[length..].iter().all(|byte| *byte == 0), "the padding is zero");
    if is_whole {
        assert_eq!(&again[..length], frame.bytes());
    }
    stamp(&mut again, 7, 8, 9);
    let stamped = Frame::parse(&again).expect("a stamped frame is a frame");
    assert_eq!(stamped.verify(), Ok(()));
    assert_eq!((stamped.sequence(), stamped.timestamp_ns(), stamped.term()), (7, 8, 9));
    assert_eq!((stamped.session(), stamped.session_seq()), (frame.session(), frame.session_seq()));
    Some(frame)
}

pub fn control(bytes: &[u8]) {
    if let Some(open) = SessionOpen::from_bytes(bytes) {
        assert_eq!(open.to_bytes(), *bytes);
        assert!(open.token != 0 && (1..=WINDOW_MESSAGES_MAX).contains(&open.window_messages));
    }
    if let Some(opened) = SessionOpened::from_bytes(bytes) {
        assert_eq!(opened.to_bytes(), *bytes);
    }
    if let Some(fired) = TimerFired::from_bytes(bytes) {
        assert_eq!(fired.to_bytes(), *bytes);
    }
    if let Some(refusal) = Refusal::from_bytes(bytes) {
        assert_eq!(refusal.text.len(), bytes.len() - Refusal::FIXED_LENGTH);
        let mut room = vec![0xa5; bytes.len() + 3];
        let length = refusal.write_to(&mut room);
        assert_eq!(length, bytes.len());
        assert_eq!(Refusal::from_bytes(&room[..length]), Some(refusal));
        // A buffer that is too short gets as much of the text as is valid UTF-8.
        for cut in 1..4.min(refusal.text.len()) {
            let mut room = vec![0; bytes.len() - cut];
            let length = refusal.write_to(&mut room);
            let short = Refusal::from_bytes(&room[..length]).expect("what was written is read");
            assert!(refusal.text.starts_with(short.text));
            assert_eq!((short.code, short.detail), (refusal.code, refusal.detail));
        }
    }
}

pub fn handshake(bytes: &[u8]) {
    if let Some(hello) = Hello::from_bytes(bytes) {
        assert_eq!(hello.to_bytes(), *bytes);
        let _ = hello.link.is_valid();
    }
    if let Some(welcome) = Welcome::from_bytes(bytes) {
        assert_eq!(Welcome::from_bytes(&welcome.to_bytes()), Some(welcome));
        // Reserved bytes at the end may be of a later version.
        assert_eq!(welcome.to_bytes()[..64], bytes[..64]);
    }
    if let Some((welcome, Some(reason))) = Welcome::with_reason(bytes) {
        assert_eq!(welcome.to_bytes_with_reason(reason)[WELCOME_LENGTH..], bytes[WELCOME_LENGTH..]);
    }
    for length in [HELLO_LENGTH, WELCOME_LENGTH] {
        if bytes.len() > length {
            assert_eq!(Hello::from_bytes(&bytes[..length - 1]), None);
            assert_eq!(Welcome::from_bytes(&bytes[..length - 1]), None);
        }
    }
}
