use super::frames::marks;
use super::places::Place;
use super::window::{append, is_full, pass};
use gapless_log::{GatingCursor, LogError, Scope, WindowOptions};

fn is_truncated(cursor: &mut GatingCursor, to: u64, from: u64) -> bool {
    let result = cursor.available().map(|_| ());
    matches!(result, Err(LogError::Truncated { position, cursor_position }) if (position, cursor_position) == (to, from))
}

fn consume(cursor: &mut GatingCursor) -> Vec<(u64, u64)> {
    let bytes = cursor.available().unwrap();
    let (marks, consumed) = (marks(bytes), bytes.len());
    cursor.advance(consumed);
    marks
}

pub fn frames_after_the_cut_are_gone(place: &impl Place) {
    let (mut writer, _releaser) = place.options().create(1).unwrap();
    let mut cursor = writer.gating_cursor(Scope::Appended);
    for seed in 1..=4 {
        append(&mut writer, 0, seed).unwrap();
    }
    writer.truncate_after(4).unwrap();
    writer.truncate_after(9).unwrap();
    assert_eq!(writer.last_sequence(), 4, "nothing is behind it");
    writer.truncate_after(2).unwrap();
    assert_eq!((writer.last_sequence(), writer.tail()), (2, 128));
    let window = place.reader(&writer);
    assert_eq!((window.appended(), window.appended_sequence()), (128, 2));
    assert_eq!(consume(&mut cursor), [(1, 1), (2, 2)]);
    append(&mut writer, 8, 33).unwrap();
    assert_eq!(consume(&mut cursor), [(3, 33)]);
}

pub fn released_frames_cannot_be_cut(place: &impl Place) {
    let (mut writer, mut releaser) = place.options().create(1).unwrap();
    let mut cursor = writer.gating_cursor(Scope::Released);
    pass(&mut writer, &mut releaser, 0, 1);
    pass(&mut writer, &mut releaser, 0, 2);
    append(&mut writer, 0, 3).unwrap();
    for sequence in [0, 1] {
        let error = writer.truncate_after(sequence).unwrap_err();
        assert!(matches!(error, LogError::TruncatesReleased { released_sequence: 2, .. }), "{error}");
        assert_eq!(writer.last_sequence(), 3);
    }
    writer.truncate_after(2).unwrap();
    assert_eq!(consume(&mut cursor), [(1, 1), (2, 2)]);
    // The cursor saw no truncated frame.
    append(&mut writer, 0, 33).unwrap();
    releaser.release(writer.tail(), 3);
    assert_eq!(consume(&mut cursor), [(3, 33)]);
}

pub fn unpublished_frames_are_cut_silently(place: &impl Place) {
    let (mut writer, _releaser) = place.options().create(1).unwrap();
    let mut cursor = writer.gating_cursor(Scope::Appended);
    append(&mut writer, 0, 1).unwrap();
    assert_eq!(consume(&mut cursor), [(1, 1)]);
    for sequence in 2..=4 {
        writer.append(&super::frames::frame(sequence, 0, sequence), sequence).unwrap();
    }
    writer.truncate_after(2).unwrap();
    assert!(cursor.available().unwrap().is_empty(), "a cut publishes nothing");
    append(&mut writer, 0, 33).unwrap();
    assert_eq!(consume(&mut cursor), [(2, 2), (3, 33)]);
}

pub fn regrown_window_reports_the_cut(place: &impl Place) {
    let (mut writer, _releaser) = place.options().create(1).unwrap();
    let (mut ahead, mut behind) = (writer.gating_cursor(Scope::Appended), writer.gating_cursor(Scope::Appended));
    for seed in 1..=3 {
        append(&mut writer, 0, seed).unwrap();
    }
    assert_eq!(consume(&mut ahead).len(), 3);
    writer.truncate_after(1).unwrap();
    drop(append(&mut writer, 1000, 22));
    assert!(is_truncated(&mut ahead, 64, 192));
    assert!(is_truncated(&mut ahead, 64, 192), "it is told until it rewinds");
    ahead.rewind();
    assert_eq!(ahead.position(), 64);
    assert_eq!(consume(&mut behind), [(1, 1)]);
    append(&mut writer, 1000, 22).unwrap();
    assert_eq!(consume(&mut ahead), [(2, 22)]);
    assert_eq!(consume(&mut behind), [(2, 22)]);
}

pub fn window_waits_until_the_cut_is_noted(place: &impl Place) {
    let (mut writer, _releaser) = place.options().create(1).unwrap();
    let mut cursor = writer.gating_cursor(Scope::Appended);
    append(&mut writer, 0, 1).unwrap();
    append(&mut writer, 0, 2).unwrap();
    let borrowed = cursor.available().unwrap();
    writer.truncate_after(1).unwrap();
    assert!(is_full(append(&mut writer, 0, 22)), "frame 2 is borrowed");
    assert_eq!(marks(borrowed), [(1, 1), (2, 2)]);
    writer.truncate_after(0).unwrap();
    assert!(is_full(append(&mut writer, 0, 11)));
    cursor.available().unwrap();
    append(&mut writer, 0, 11).unwrap();
    assert_eq!(consume(&mut cursor), [(1, 11)]);
    writer.truncate_after(0).unwrap();
    assert!(is_full(append(&mut writer, 0, 12)));
    drop(cursor);
    append(&mut writer, 0, 12).unwrap();
}

pub fn cut_before_the_index_works(place: &impl Place) {
    let options = WindowOptions { index_slots: 4, ..place.options() };
    let (mut writer, mut releaser) = options.create(1).unwrap();
    for seed in 1..=40 {
        pass(&mut writer, &mut releaser, 96, seed);
    }
    let mut cursor = writer.gating_cursor(Scope::Appended);
    for seed in 41..=60 {
        append(&mut writer, seed as usize, seed).unwrap();
    }
    for sequence in [58, 57, 56, 55, 50, 41, 40] {
        let length: u64 = (41..=sequence).map(|each| gapless_wire::aligned_length(64 + each as usize) as u64).sum();
        writer.truncate_after(sequence).unwrap();
        assert_eq!((writer.last_sequence(), writer.tail()), (sequence, 40 * 160 + length));
        assert_eq!(cursor.available().unwrap().len() as u64, length);
    }
}
