use super::frames::{frame, marks, split, write_frame};
use super::places::Place;
use gapless_log::{LogError, Releaser, Scope, WindowOptions, WindowWriter};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub fn pass(writer: &mut WindowWriter, releaser: &mut Releaser, payload_length: usize, seed: u64) {
    let sequence = writer.last_sequence() + 1;
    writer.append(&frame(sequence, payload_length, seed), sequence).unwrap();
    writer.publish();
    releaser.release(writer.tail(), sequence);
}

pub fn append(writer: &mut WindowWriter, payload_length: usize, seed: u64) -> Result<(), LogError> {
    let sequence = writer.last_sequence() + 1;
    writer.append(&frame(sequence, payload_length, seed), sequence)?;
    writer.publish();
    Ok(())
}

pub fn is_full(result: Result<(), LogError>) -> bool {
    matches!(result, Err(LogError::Full { .. }))
}

pub fn panics_with(part: &str, action: impl FnOnce()) -> bool {
    let payload = catch_unwind(AssertUnwindSafe(action)).expect_err("it did not panic");
    let message = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    message.unwrap_or_default().contains(part)
}

pub fn frames_of_any_length_are_unchanged(place: &impl Place) {
    let (mut writer, mut releaser) = place.options().create(1).unwrap();
    let window = place.reader(&writer);
    let mut gating = writer.gating_cursor(Scope::Released);
    let mut free = window.free_cursor(1);
    let mut copy = Vec::new();
    // The window wraps many times and at every offset.
    for payload_length in 0..=2048 - 64 {
        let sequence = writer.last_sequence() + 1;
        let space = writer.claim(64 + payload_length).unwrap();
        let length = write_frame(space, sequence, payload_length, 9);
        writer.commit(length, sequence);
        writer.publish();
        releaser.release(writer.tail(), sequence);
        let expected = frame(sequence, payload_length, 9);
        let bytes = gating.available().unwrap();
        assert_eq!(bytes, expected);
        let consumed = bytes.len();
        gating.advance(consumed);
        assert_eq!(free.read(&mut copy).unwrap(), gapless_log::FreeRead::Frame(length));
        assert_eq!(copy, expected[..length]);
        assert_eq!((window.appended_sequence(), window.released_sequence()), (sequence, sequence));
    }
}

pub fn window_waits_for_slowest_cursor(place: &impl Place) {
    let (mut writer, mut releaser) = place.options().create(1).unwrap();
    let mut fast = writer.gating_cursor(Scope::Appended);
    let mut slow = writer.gating_cursor(Scope::Released);
    for _ in 0..4 {
        pass(&mut writer, &mut releaser, 960, 1);
    }
    let consumed = fast.available().unwrap().len();
    assert_eq!(consumed, 4096);
    fast.advance(consumed);
    let error = append(&mut writer, 0, 1).unwrap_err();
    assert!(matches!(error, LogError::Full { needed_bytes: 64, lag_bytes: 4096, capacity_bytes: 4096 }), "{error}");
    assert_eq!(slow.available().unwrap().len(), 4096);
    slow.advance_quietly(1024);
    assert!(is_full(append(&mut writer, 0, 1)));
    slow.advance(0);
    append(&mut writer, 960, 2).unwrap();
    assert!(is_full(append(&mut writer, 0, 1)));
    assert_eq!(marks(fast.available().unwrap()), [(5, 2)]);
    assert_eq!(marks(slow.available().unwrap()), [(2, 1), (3, 1), (4, 1)]);
}

pub fn unreleased_frames_are_kept(place: &impl Place) {
    let (mut writer, mut releaser) = place.options().create(1).unwrap();
    for _ in 0..4 {
        append(&mut writer, 960, 1).unwrap();
    }
    assert!(is_full(append(&mut writer, 0, 1)), "nobody reads, but nothing is released either");
    releaser.release(1024, 1);
    append(&mut writer, 960, 1).unwrap();
    assert!(is_full(append(&mut writer, 0, 1)));
}

pub fn too_long_frame_is_refused(place: &impl Place) {
    let options = WindowOptions { frame_length_max: 1000, ..place.options() };
    let (mut writer, _releaser) = options.create(1).unwrap();
    assert_eq!(writer.frame_length_max(), 1000);
    let error = writer.claim(1001).map(|_| ()).unwrap_err();
    assert!(matches!(error, LogError::TooLong { length_bytes: 1001, limit_bytes: 1000 }), "{error}");
    assert_eq!(writer.claim(1000).unwrap().len(), 1000);
}

pub fn abandoned_claim_leaves_no_trace(place: &impl Place) {
    let (mut writer, _releaser) = place.options().create(1).unwrap();
    let mut cursor = writer.gating_cursor(Scope::Appended);
    writer.claim(2000).unwrap().fill(0xff);
    writer.publish();
    assert!(cursor.available().unwrap().is_empty());
    append(&mut writer, 10, 1).unwrap();
    assert_eq!(marks(cursor.available().unwrap()), [(1, 1)]);
}

pub fn committed_frame_appears_on_publish(place: &impl Place) {
    let (mut writer, _releaser) = place.options().create(1).unwrap();
    let mut cursor = writer.gating_cursor(Scope::Appended);
    for sequence in 1..=3 {
        writer.append(&frame(sequence, 100, sequence), sequence).unwrap();
        assert!(cursor.available().unwrap().is_empty());
    }
    let late = &mut writer.gating_cursor(Scope::Appended);
    writer.publish();
    for cursor in [&mut cursor, late] {
        assert_eq!(marks(cursor.available().unwrap()), [(1, 1), (2, 2), (3, 3)]);
        let first = split(cursor.available().unwrap())[0].len().next_multiple_of(8);
        cursor.advance(first);
        assert_eq!(marks(cursor.available().unwrap()), [(2, 2), (3, 3)]);
    }
}

pub fn released_scope_hides_unreleased(place: &impl Place) {
    let (mut writer, mut releaser) = place.options().create(1).unwrap();
    let window = place.reader(&writer);
    let mut gating = writer.gating_cursor(Scope::Released);
    let mut free = window.free_cursor(1);
    let mut copy = Vec::new();
    append(&mut writer, 0, 1).unwrap();
    append(&mut writer, 0, 2).unwrap();
    assert!(gating.available().unwrap().is_empty());
    assert_eq!(free.read(&mut copy).unwrap(), gapless_log::FreeRead::Empty);
    assert_eq!((window.appended(), window.released()), (128, 0));
    releaser.release(64, 1);
    assert_eq!(marks(gating.available().unwrap()), [(1, 1)]);
    assert_eq!(free.read(&mut copy).unwrap(), gapless_log::FreeRead::Frame(64));
    assert_eq!(free.read(&mut copy).unwrap(), gapless_log::FreeRead::Empty);
    assert_eq!((window.released(), window.released_sequence(), window.appended_sequence()), (64, 1, 2));
}

pub fn new_cursor_starts_at_scope_end(place: &impl Place) {
    let (mut writer, mut releaser) = place.options().create(1).unwrap();
    pass(&mut writer, &mut releaser, 0, 1);
    append(&mut writer, 0, 2).unwrap();
    let mut appended = writer.gating_cursor(Scope::Appended);
    let mut released = writer.gating_cursor(Scope::Released);
    assert_eq!((appended.position(), released.position()), (128, 64));
    assert!(appended.available().unwrap().is_empty());
    assert!(released.available().unwrap().is_empty());
    releaser.release(128, 2);
    assert_eq!(marks(released.available().unwrap()), [(2, 2)]);
    append(&mut writer, 0, 3).unwrap();
    assert_eq!(marks(appended.available().unwrap()), [(3, 3)]);
}

pub fn out_of_order_commit_panics(place: &impl Place) {
    let (mut writer, _releaser) = place.options().create(5).unwrap();
    assert_eq!(writer.last_sequence(), 4);
    for sequence in [4, 6] {
        assert!(panics_with("sequences have no gaps", || {
            let _ = writer.append(&frame(sequence, 0, 0), sequence);
        }));
    }
    writer.append(&frame(5, 0, 0), 5).unwrap();
    assert_eq!(writer.last_sequence(), 5);
}

pub fn commit_beyond_the_claim_panics(place: &impl Place) {
    let (mut writer, _releaser) = place.options().create(1).unwrap();
    writer.claim(128).unwrap();
    for length in [0, 63, 136, usize::MAX] {
        assert!(panics_with("was not claimed", || writer.commit(length, 1)));
    }
    writer.commit(128, 1);
    assert!(panics_with("was not claimed", || writer.commit(128, 2)));
}

pub fn release_beyond_appended_panics(place: &impl Place) {
    let (mut writer, mut releaser) = place.options().create(1).unwrap();
    writer.append(&frame(1, 0, 0), 1).unwrap();
    assert!(panics_with("must lie between 0 and appended 0", || releaser.release(64, 1)));
    writer.publish();
    releaser.release(64, 1);
}

pub fn release_cannot_go_back(place: &impl Place) {
    let (mut writer, mut releaser) = place.options().create(1).unwrap();
    pass(&mut writer, &mut releaser, 0, 0);
    assert!(panics_with("must lie between 64", || releaser.release(0, 0)));
}

pub fn invalid_sizes_are_refused(place: &impl Place) {
    let good = place.options();
    for capacity_bytes in [0, 2048, 4097, 1 << 37] {
        let error = WindowOptions { capacity_bytes, frame_length_max: 64, ..good.clone() }.create(1).err().unwrap();
        assert!(error.to_string().contains(&capacity_bytes.to_string()), "{error}");
    }
    for index_slots in [0, 3, 8192] {
        let error = WindowOptions { index_slots, ..good.clone() }.create(1).err().unwrap();
        assert!(error.to_string().contains("the number of index slots"), "{error}");
    }
    for frame_length_max in [0, 63, 2049] {
        let error = WindowOptions { frame_length_max, ..good.clone() }.create(1).err().unwrap();
        assert!(matches!(error, LogError::FrameLengthMax { max: 2048, .. }), "{error}");
    }
    assert!(panics_with("sequences start at 1", || drop(good.create(0))));
}

pub fn window_has_its_streams_identity(place: &impl Place) {
    let (writer, _releaser) = place.options().create(1).unwrap();
    assert_eq!(place.reader(&writer).identity(), place.options().identity);
}
