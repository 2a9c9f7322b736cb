#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_agent::clock::SLEW_PPM_MAX;
use gapless_agent::{Clock, ClockKind, VirtualTime};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND as i64;
const START: u64 = 1_700_000_000 * SECOND;

fn steps(clock: &Clock, time: &VirtualTime, count: u64, step_ns: u64) {
    for _ in 0..count {
        let before = clock.now();
        time.advance(step_ns);
        let after = clock.now();
        let passed = i128::from(after.epoch_ns) - i128::from(before.epoch_ns);
        let slewed = (passed - i128::from(step_ns)).abs();
        let allowed = i128::from(step_ns) * i128::from(SLEW_PPM_MAX) / 1_000_000 + 1;
        assert_eq!(after.monotonic_ns - before.monotonic_ns, step_ns);
        assert!(slewed <= allowed, "{step_ns} ns became {passed} ns");
    }
}

#[test]
fn hour_jump_slews_half_ms_a_second() {
    for jump in [HOUR, -HOUR] {
        let time = VirtualTime::new(5 * SECOND, START);
        let clock = Clock::virtual_time(&time);
        steps(&clock, &time, 10, SECOND / 10);
        assert_eq!(clock.now().epoch_ns, START + SECOND);
        time.jump_wall_clock(jump);
        steps(&clock, &time, 1_000, SECOND / 10);
        let slewed = clock.now().epoch_ns as i64 - (START + 101 * SECOND) as i64;
        let most = 100 * SLEW_PPM_MAX * 1_000;
        assert!(slewed * jump.signum() > most * 9 / 10 && slewed.abs() <= most, "slewed {slewed} ns after {jump}");
        assert_eq!(clock.wall_clock_offset_ns(), jump - slewed);
    }
}

#[test]
fn small_offset_slews_to_zero() {
    let time = VirtualTime::new(0, START);
    let clock = Clock::virtual_time(&time);
    let mut offset = 4_000_000_i64;
    time.jump_wall_clock(offset);
    for _ in 0..100 {
        steps(&clock, &time, 10, SECOND / 10);
        let now = clock.wall_clock_offset_ns();
        assert!((0..=offset).contains(&now), "from {offset} to {now}");
        offset = now;
    }
    assert!(offset < 1_000, "{offset} ns after 100 s");
}

#[test]
fn stopped_process_stays_behind_clock() {
    let time = VirtualTime::new(0, START);
    let clock = Clock::virtual_time(&time);
    time.jump_wall_clock(HOUR);
    steps(&clock, &time, 100, SECOND / 10);
    let before = clock.now();
    time.advance(100_000 * SECOND);
    let after = clock.now();
    let slewed = (after.epoch_ns - before.epoch_ns) as i64 - 100_000 * SECOND as i64;
    assert!((0..=2_000_000).contains(&slewed), "{slewed} ns");
}

#[test]
fn clones_agree() {
    let time = VirtualTime::new(0, START);
    let clock = Clock::virtual_time(&time);
    let other = clock.clone();
    for jump in [1_000_000, -500_000_000, 40] {
        time.jump_wall_clock(jump);
        for _ in 0..50 {
            time.advance(77_777_777);
            assert_eq!(clock.now(), other.now());
        }
    }
    let moved = std::thread::spawn(move || other.now()).join().unwrap();
    assert_eq!(moved, clock.now());
}

proptest! {
    #[test]
    fn no_time_ever_goes_back(
        moves in proptest::collection::vec((0_u64..20 * SECOND, proptest::option::of(any::<i64>().prop_map(|ns| ns / 4))), 1..60),
    ) {
        let time = VirtualTime::new(0, START);
        let clock = Clock::virtual_time(&time);
        let mut last = clock.now();
        for (step, jump) in moves {
            if let Some(jump) = jump {
                time.jump_wall_clock(jump);
            }
            time.advance(step);
            let now = clock.now();
            prop_assert!(now >= last && now.epoch_ns >= last.epoch_ns);
            prop_assert_eq!(now.monotonic_ns, time.monotonic_ns());
            let drift = (now.epoch_ns - last.epoch_ns).abs_diff(step);
            prop_assert!(drift <= step / 2_000 + 1, "{} ns in {} ns", drift, step);
            last = now;
        }
    }
}

#[test]
fn real_clocks_match_the_system() {
    let (fastest, note) = Clock::fastest();
    assert_eq!(note.is_some(), fastest.kind() == ClockKind::System, "a fall-back is told: {note:?}");
    for clock in [Clock::system(), fastest] {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let clock = clock.clone();
                std::thread::spawn(move || {
                    let mut last = clock.now();
                    for _ in 0..200_000 {
                        let now = clock.now();
                        assert!(now.monotonic_ns >= last.monotonic_ns && now.epoch_ns >= last.epoch_ns);
                        last = now;
                    }
                })
            })
            .collect();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        // Between two readings of the system clock; a millisecond for the counter's error before its correction.
        let system = Clock::system();
        let before = system.now().monotonic_ns;
        let between = clock.now().monotonic_ns;
        let after = system.now().monotonic_ns;
        assert!(between + 1_000_000 >= before && between <= after + 1_000_000, "{before} {between} {after}");
        let ticks = clock.ticks();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let measured = clock.ticks_to_ns(clock.ticks() - ticks);
        assert!(measured >= 1_990_000, "{measured} ns in a sleep of 2 ms");
    }
}

#[test]
fn clock_kind_round_trip() {
    for kind in [ClockKind::System, ClockKind::Tsc, ClockKind::Virtual] {
        assert_eq!(kind.to_string().parse::<ClockKind>().unwrap(), kind);
    }
    assert!("sundial".parse::<ClockKind>().unwrap_err().to_string().contains("tsc"));
}
