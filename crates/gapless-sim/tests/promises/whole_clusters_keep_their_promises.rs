//! Whole clusters of shipped members keep their promises under faults, and go on after them.
//!
//! `GAPLESS_SEED` replays one run; `GAPLESS_SEEDS` is how many the test makes.
#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_sim::{Offer, Options, SecondPass, Shape, Tally, simulate_own};
use gapless_testkit::random::seeds;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const SEEDS: u64 = 200;
const COMMAND_SEEDS: u64 = 30;

/// Runs all of them, and says what happened in them together.
fn all(offer: Option<Offer>, seeds: Range<u64>) -> Tally {
    let prints_trace = seeds.end - seeds.start == 1;
    // On threads without names; what a second process finds has tests of its own.
    let options = Options { prints_trace, second_pass: SecondPass::Off, ..Options::default() };
    let (next, sum) = (AtomicU64::new(seeds.start), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    match simulate_own(offer, &options, seed) {
                        Ok(tally) => sum.lock().unwrap().add(&tally),
                        Err(failure) => panic!("GAPLESS_SEED={seed} replays this: {failure}"),
                    }
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap();
    println!("{sum:?}");
    sum
}

#[test]
fn with_a_command_bus() {
    let seeds = seeds(COMMAND_SEEDS);
    let sum = all(Some(Offer::Commands), seeds.clone());
    // Leaders have gone and come back, and much was sent again.
    let Tally { crashes, kills, power_losses, cuts, transfers, repeated, terms, .. } = sum;
    for count in [crashes, kills, power_losses, cuts, transfers, repeated] {
        assert!(seeds.end - seeds.start < COMMAND_SEEDS || count > 5, "{sum:?}");
    }
    assert!(terms > seeds.end - seeds.start, "{sum:?}");
    let first = simulate_own(Some(Offer::Commands), &Options::default(), seeds.start).unwrap();
    assert_eq!(
        simulate_own(Some(Offer::Commands), &Options::default(), seeds.start).unwrap(),
        first,
        "a seed is one run"
    );
}

#[test]
fn under_faults_and_after_them() {
    let seeds = seeds(SEEDS);
    let sum = all(None, seeds.clone());
    if seeds.end - seeds.start < 100 {
        return;
    }
    // Each kind of accident came, or the run would show little.
    let Tally { crashes, kills, power_losses, flips, pauses, cuts, broken, jumps, transfers, publishers, .. } = sum;
    for count in [crashes, kills, power_losses, flips, pauses, cuts, broken, jumps, transfers, publishers] {
        assert!(count > 50, "{sum:?}");
    }
    let Tally { full_disks, disk_errors, changes, repeated, resolved, timers, notices, times_kept, .. } = sum;
    for count in [full_disks, disk_errors, changes, repeated, resolved, timers, notices, times_kept] {
        assert!(count > 20, "{sum:?}");
    }
}

#[test]
fn who_was_away_for_too_long_fetches_a_state() {
    let options = Options { messages: 200, ..Options::default() };
    let mut fetched = 0;
    // In the first of these the cluster stands still when a member joins that needs a newer state than there is; in the
    // last nothing is committed before the member that lags too far has its state.
    for seed in [20_070, 20_078, 20_085, 30_594] {
        match simulate_own(Some(Offer::Service), &options, seed) {
            Ok(tally) => fetched += tally.fetched,
            Err(failure) => panic!("--seed {seed} --messages 200 --offer service replays this: {failure}"),
        }
    }
    assert!(fetched >= 3, "{fetched} states were fetched");
}

#[test]
fn a_seed_is_one_run_in_every_shape() {
    let shapes = ["3", "2+witness", "5", "1"].map(|text| text.parse::<Shape>().unwrap());
    for shape in shapes {
        for seed in [3, 4] {
            let options = Options { shape: Some(shape), messages: 20, faults_ms: 800, ..Options::default() };
            let first = simulate_own(None, &options, seed).unwrap();
            assert_eq!(simulate_own(None, &options, seed).unwrap(), first, "{shape} members, seed {seed}");
            assert_ne!(simulate_own(None, &options, seed + 100).unwrap().trace, first.trace);
        }
    }
}
