use super::frames::{frame, marks, write_frame};
use super::places::Place;
use super::window::{is_full, panics_with};
use gapless_log::{LogError, RingReader, RingWriter};
use gapless_wire::aligned_length;

fn append(writer: &mut RingWriter, payload_length: usize, seed: u64) -> Result<(), LogError> {
    writer.append(&frame(0, payload_length, seed))?;
    assert!(!writer.publish(), "the reader is awake");
    Ok(())
}

fn take(reader: &mut RingReader) -> Option<u64> {
    let length = reader.next_length().unwrap()?;
    let mut copy = vec![0; aligned_length(length)];
    reader.copy(&mut copy);
    reader.advance(length);
    Some(marks(&copy)[0].1)
}

pub fn frames_of_any_length_are_unchanged(place: &impl Place) {
    let (mut writer, mut reader) = place.ring();
    let mut copy = vec![0; 2048];
    for payload_length in 0..=2048 - 64 {
        let space = writer.claim(64 + payload_length).unwrap();
        let length = write_frame(space, 1, payload_length, 5);
        writer.commit(length);
        assert!(!writer.publish());
        assert_eq!(reader.next_length().unwrap(), Some(length));
        let copy = &mut copy[..aligned_length(length)];
        reader.copy(copy);
        assert_eq!(copy, frame(1, payload_length, 5));
        reader.advance(length);
        assert_eq!(reader.next_length().unwrap(), None);
        reader.release();
    }
}

pub fn full_ring_waits_for_a_release(place: &impl Place) {
    let (mut writer, mut reader) = place.ring();
    for seed in 1..=4 {
        append(&mut writer, 960, seed).unwrap();
    }
    assert!(is_full(append(&mut writer, 0, 5)));
    assert_eq!(writer.backlog_bytes(), 4096);
    assert_eq!(take(&mut reader), Some(1));
    assert!(is_full(append(&mut writer, 0, 5)), "read, but not released");
    reader.release();
    assert_eq!(writer.backlog_bytes(), 3072);
    append(&mut writer, 960, 5).unwrap();
    assert!(is_full(append(&mut writer, 0, 6)));
    for seed in 2..=5 {
        assert_eq!(take(&mut reader), Some(seed));
    }
    assert_eq!(take(&mut reader), None);
}

pub fn frame_over_half_the_ring_is_refused(place: &impl Place) {
    let (mut writer, _reader) = place.ring();
    assert_eq!(writer.frame_length_max(), 2048);
    let error = writer.claim(2049).map(|_| ()).unwrap_err();
    assert!(matches!(error, LogError::TooLong { length_bytes: 2049, limit_bytes: 2048 }), "{error}");
    assert_eq!(writer.claim(2048).unwrap().len(), 2048);
}

pub fn abandoned_claim_leaves_no_trace(place: &impl Place) {
    let (mut writer, mut reader) = place.ring();
    writer.claim(2000).unwrap().fill(0xff);
    assert!(!writer.publish());
    assert_eq!(take(&mut reader), None);
    append(&mut writer, 10, 1).unwrap();
    assert_eq!((take(&mut reader), take(&mut reader)), (Some(1), None));
}

pub fn discarded_frames_are_never_seen(place: &impl Place) {
    let (mut writer, mut reader) = place.ring();
    append(&mut writer, 0, 1).unwrap();
    writer.append(&frame(0, 100, 2)).unwrap();
    writer.append(&frame(0, 200, 3)).unwrap();
    writer.discard_unpublished();
    append(&mut writer, 0, 4).unwrap();
    assert_eq!((take(&mut reader), take(&mut reader), take(&mut reader)), (Some(1), Some(4), None));
}

pub fn fragments_are_seen_together(place: &impl Place) {
    let (mut writer, mut reader) = place.ring();
    for seed in 1..=3 {
        writer.append(&frame(0, 100, seed)).unwrap();
        assert_eq!(reader.next_length().unwrap(), None);
    }
    assert!(!writer.publish());
    assert_eq!(reader.next_length().unwrap(), Some(164));
    assert_eq!(reader.known_bytes(), 3 * 168);
    let mut copy = vec![0; 168];
    for (number, seed) in [(2, 3), (0, 1), (1, 2)] {
        reader.copy_at(number * 168, &mut copy);
        assert_eq!(marks(&copy), [(0, seed)]);
    }
}

pub fn commit_beyond_the_claim_panics(place: &impl Place) {
    let (mut writer, mut reader) = place.ring();
    for length in [0, 63, 4097, usize::MAX] {
        assert!(panics_with("was not claimed", || writer.commit(length)));
    }
    assert!(!writer.publish());
    assert_eq!(take(&mut reader), None);
}

pub fn reader_cannot_pass_the_writer(place: &impl Place) {
    let (mut writer, mut reader) = place.ring();
    append(&mut writer, 0, 1).unwrap();
    assert!(panics_with("cannot pass", || reader.advance(64)), "it has not looked yet");
    assert_eq!(reader.next_length().unwrap(), Some(64));
    for length in [65, usize::MAX] {
        assert!(panics_with("cannot pass", || reader.advance(length)));
    }
    assert_eq!(take(&mut reader), Some(1));
}

pub fn sessions_of_next_frames_are_peeked(place: &impl Place) {
    let (mut writer, mut reader) = place.ring();
    for (payload_length, session) in [(0, 5), (1, 6), (1900, 7), (0, 8), (0, 9)] {
        append(&mut writer, payload_length, session).unwrap();
    }
    assert_eq!(reader.peek_sessions(&mut [0; 4]), [], "it has not looked yet");
    assert_eq!(reader.next_length().unwrap(), Some(64));
    assert_eq!(reader.peek_sessions(&mut [0; 2]), [5, 6]);
    assert_eq!(reader.peek_sessions(&mut [0; 8]), [5, 6, 7], "what lies far is not looked at");
    assert_eq!(take(&mut reader), Some(5));
    assert_eq!(take(&mut reader), Some(6));
    assert_eq!(reader.peek_sessions(&mut [0; 8]), [7, 8]);
    for seed in 7..=9 {
        assert_eq!(take(&mut reader), Some(seed));
    }
    assert_eq!(reader.peek_sessions(&mut [0; 8]), []);
}

pub fn closed_ring_can_be_read_to_its_end(place: &impl Place) {
    let (mut writer, mut reader) = place.ring();
    append(&mut writer, 0, 1).unwrap();
    assert!(!reader.is_writer_closed() && !writer.is_reader_closed());
    drop(writer);
    assert!(reader.is_writer_closed());
    assert_eq!((take(&mut reader), take(&mut reader)), (Some(1), None));
    let (writer, reader) = place.ring();
    drop(reader);
    assert!(writer.is_reader_closed());
}

pub fn end_left_to_its_peer_stays_open(place: &impl Place) {
    let (writer, reader) = place.ring();
    let again = place.reopen_reader(reader.fd().try_clone_to_owned().unwrap());
    reader.leave_to_peer();
    assert!(!writer.is_reader_closed());
    drop(again);
    assert!(writer.is_reader_closed());
    let (writer, reader) = place.ring();
    writer.leave_to_peer();
    assert!(!reader.is_writer_closed());
}

pub fn reopened_end_continues(place: &impl Place) {
    let (mut writer, mut reader) = place.ring();
    for seed in 1..=3 {
        append(&mut writer, 0, seed).unwrap();
    }
    assert_eq!(take(&mut reader), Some(1));
    reader.release();
    assert_eq!(take(&mut reader), Some(2));
    let mut reader = place.reopen_reader(reader.fd().try_clone_to_owned().unwrap());
    let mut writer = place.reopen_writer(writer.fd().try_clone_to_owned().unwrap());
    append(&mut writer, 0, 4).unwrap();
    for seed in 2..=4 {
        assert_eq!(take(&mut reader), Some(seed));
    }
    assert_eq!(take(&mut reader), None);
}

pub fn sleeping_reader_is_reported(place: &impl Place) {
    let (mut writer, mut reader) = place.ring();
    append(&mut writer, 0, 1).unwrap();
    reader.arm();
    assert_eq!(take(&mut reader), Some(1));
    assert_eq!(take(&mut reader), None);
    assert!(!writer.publish(), "there is nothing new to wake it for");
    writer.append(&frame(0, 0, 2)).unwrap();
    assert!(writer.publish());
    reader.disarm();
    append(&mut writer, 0, 3).unwrap();
}
