use super::frames::{frame, marks, write_frame};
use super::places::Place;
use super::window::{append, is_full, panics_with, pass};
use gapless_log::{FreeRead, Scope, WindowOptions};

pub fn free_cursor_starts_anywhere(place: &impl Place) {
    let (mut writer, mut releaser) = place.options().create(1).unwrap();
    let window = place.reader(&writer);
    for seed in 1..=20 {
        pass(&mut writer, &mut releaser, 3 * seed as usize, seed);
    }
    let mut copy = Vec::new();
    for start in [0, 1, 7, 20] {
        let mut cursor = window.free_cursor(start);
        for sequence in start.max(1)..=20 {
            assert_eq!(cursor.sequence(), sequence);
            assert!(matches!(cursor.read(&mut copy).unwrap(), FreeRead::Frame(_)));
            assert_eq!(marks(&copy), [(sequence, sequence)]);
        }
        assert_eq!(cursor.read(&mut copy).unwrap(), FreeRead::Empty);
    }
    for start in [21, 22, u64::MAX] {
        let mut cursor = window.free_cursor(start);
        assert_eq!(cursor.read(&mut copy).unwrap(), FreeRead::Empty);
        cursor.seek(20);
        assert!(matches!(cursor.read(&mut copy).unwrap(), FreeRead::Frame(_)), "it goes back after a look at nothing");
        assert_eq!(marks(&copy), [(20, 20)]);
    }
}

pub fn lapped_cursor_gets_replay_sequence(place: &impl Place) {
    let (mut writer, mut releaser) = place.options().create(1).unwrap();
    let window = place.reader(&writer);
    let (mut begun, mut fresh) = (window.free_cursor(1), window.free_cursor(2));
    let mut copy = Vec::new();
    pass(&mut writer, &mut releaser, 960, 1);
    assert_eq!(begun.read(&mut copy).unwrap(), FreeRead::Frame(1024));
    for seed in 2..=6 {
        pass(&mut writer, &mut releaser, 960, seed);
    }
    for cursor in [&mut begun, &mut fresh] {
        for _ in 0..2 {
            assert_eq!(cursor.read(&mut copy).unwrap(), FreeRead::Lapped { from_sequence: 2 });
        }
        cursor.seek(3);
        for sequence in 3..=6 {
            assert_eq!(cursor.read(&mut copy).unwrap(), FreeRead::Frame(1024));
            assert_eq!(marks(&copy), [(sequence, sequence)]);
        }
        assert_eq!(cursor.read(&mut copy).unwrap(), FreeRead::Empty);
    }
}

pub fn abandoned_claim_loses_old_frames(place: &impl Place) {
    let (mut writer, mut releaser) = place.options().create(1).unwrap();
    let window = place.reader(&writer);
    for seed in 1..=4 {
        pass(&mut writer, &mut releaser, 960, seed);
    }
    writer.claim(2048).unwrap().fill(0xff);
    writer.claim(64).unwrap();
    let mut copy = Vec::new();
    for sequence in [1, 2] {
        let found = window.free_cursor(sequence).read(&mut copy).unwrap();
        assert_eq!(found, FreeRead::Lapped { from_sequence: sequence });
    }
    assert_eq!(window.free_cursor(3).read(&mut copy).unwrap(), FreeRead::Frame(1024));
}

/// The oldest frames are lost a little early, and none is torn.
pub fn large_window_drops_a_64th_early(place: &impl Place) {
    let capacity = 256 << 10;
    let options = WindowOptions { capacity_bytes: capacity, index_slots: 1024, ..place.options() };
    let (mut writer, mut releaser) = options.create(1).unwrap();
    let window = place.reader(&writer);
    let mut begun = window.free_cursor(1);
    let mut copy = Vec::new();
    let frames = 3 * capacity as u64 / 1024;
    let held = capacity as u64 / 1024;
    for seed in 1..=frames {
        pass(&mut writer, &mut releaser, 960, seed);
        assert_eq!(begun.read(&mut copy).unwrap(), FreeRead::Frame(1024));
        assert_eq!(marks(&copy), [(seed, seed)]);
    }
    let readable = |sequence| {
        let mut copy = Vec::new();
        match window.free_cursor(sequence).read(&mut copy).unwrap() {
            FreeRead::Frame(1024) => {
                assert_eq!(marks(&copy), [(sequence, sequence)]);
                true
            }
            found => {
                assert_eq!(found, FreeRead::Lapped { from_sequence: sequence });
                false
            }
        }
    };
    let first = (1..=frames).find(|&sequence| readable(sequence)).unwrap();
    assert!((first..=frames).all(readable));
    let early = first - (frames - held + 1);
    assert!(early <= held / 64, "{early} frames of {held} are gone early");
}

pub fn small_index_reports_lapped(place: &impl Place) {
    let options = WindowOptions { index_slots: 4, ..place.options() };
    let (mut writer, mut releaser) = options.create(1).unwrap();
    let window = place.reader(&writer);
    let mut from_start = window.free_cursor(1);
    let mut copy = Vec::new();
    for seed in 1..=6 {
        pass(&mut writer, &mut releaser, 0, seed);
    }
    append(&mut writer, 0, 7).unwrap();
    for sequence in [1, 2, 3] {
        let found = window.free_cursor(sequence).read(&mut copy).unwrap();
        assert_eq!(found, FreeRead::Lapped { from_sequence: sequence }, "slot reused, also by a frame to come");
    }
    for sequence in 4..=6 {
        assert_eq!(window.free_cursor(sequence).read(&mut copy).unwrap(), FreeRead::Frame(64));
        assert_eq!(marks(&copy), [(sequence, sequence)]);
    }
    from_start.seek(4);
    for sequence in 4..=6 {
        assert_eq!(from_start.sequence(), sequence);
        assert_eq!(from_start.read(&mut copy).unwrap(), FreeRead::Frame(64));
    }
}

pub fn cursor_before_first_frame_is_lapped(place: &impl Place) {
    let (mut writer, mut releaser) = place.options().create(100).unwrap();
    let window = place.reader(&writer);
    let mut copy = Vec::new();
    for _ in 0..2 {
        for sequence in [1, 64, 99] {
            let found = window.free_cursor(sequence).read(&mut copy).unwrap();
            assert_eq!(found, FreeRead::Lapped { from_sequence: sequence });
        }
        pass(&mut writer, &mut releaser, 0, 1);
    }
    assert_eq!(window.free_cursor(100).read(&mut copy).unwrap(), FreeRead::Frame(64));
}

pub fn truncated_frame_is_not_indexed(place: &impl Place) {
    let options = WindowOptions { index_slots: 4, ..place.options() };
    let (mut writer, mut releaser) = options.create(1).unwrap();
    let window = place.reader(&writer);
    pass(&mut writer, &mut releaser, 0, 1);
    for seed in 2..=5 {
        append(&mut writer, 0, seed).unwrap();
    }
    // Slot 1 belonged to frame 5, at 256: now the middle of a payload which looks like frame 1.
    writer.truncate_after(1).unwrap();
    let space = writer.claim(512).unwrap();
    let length = write_frame(space, 2, 448, 22);
    space[256 - 64..][..64].copy_from_slice(&frame(1, 0, 666));
    writer.commit(length, 2);
    writer.publish();
    releaser.release(writer.tail(), 2);
    let mut copy = Vec::new();
    assert_eq!(window.free_cursor(1).read(&mut copy).unwrap(), FreeRead::Lapped { from_sequence: 1 });
    assert_eq!(window.free_cursor(2).read(&mut copy).unwrap(), FreeRead::Frame(512));
}

pub fn dropped_cursor_gates_nothing(place: &impl Place) {
    let (mut writer, mut releaser) = place.options().create(1).unwrap();
    let (left, right) = (writer.gating_cursor(Scope::Released), writer.gating_cursor(Scope::Appended));
    for seed in 1..=4 {
        pass(&mut writer, &mut releaser, 960, seed);
    }
    assert!(is_full(append(&mut writer, 0, 5)));
    drop(left);
    assert!(is_full(append(&mut writer, 0, 5)));
    drop(right);
    append(&mut writer, 0, 5).unwrap();
}

pub fn cursor_cannot_pass_its_limit(place: &impl Place) {
    let (mut writer, _releaser) = place.options().create(1).unwrap();
    let mut cursor = writer.gating_cursor(Scope::Appended);
    append(&mut writer, 0, 1).unwrap();
    assert!(panics_with("cannot pass", || cursor.advance(8)), "it has not looked yet");
    cursor.available().unwrap();
    for length in [72, usize::MAX] {
        assert!(panics_with("cannot pass", || cursor.advance(length)));
    }
    cursor.advance(64);
    assert_eq!(cursor.position(), 64);
}
