//! Clusters keep their promises under faults, and recover. `GAPLESS_SEED` replays one run; `GAPLESS_SEEDS` is the
//! number of runs. Each change runs a tenth of the seeds, `GAPLESS_FULL` all.
#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_sim::{ApplicationKind, ClusterShape, Options, SecondPass, Tally, simulate_own};
use gapless_testkit::random::{rounds, seeds};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const SEEDS: u64 = 200;
const COMMAND_SEEDS: u64 = 30;

const FEWER_SEEDS: u64 = 20;
const FEWER_COMMAND_SEEDS: u64 = 8;

/// A few seeds alone may lack a kind.
#[track_caller]
fn occur(counts: &[u64], in_a_hundred: u64, seeds: &Range<u64>, sum: &Tally) {
    let count = seeds.end - seeds.start;
    for found in counts {
        assert!(count < FEWER_COMMAND_SEEDS || *found > in_a_hundred * count / 100, "seeds {seeds:?}: {sum:?}");
    }
}

fn all(offer: Option<ApplicationKind>, seeds: Range<u64>) -> Tally {
    let prints_trace = seeds.end - seeds.start == 1;
    // Threads are unnamed; the second process has its own tests.
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
fn command_bus_survives_faults() {
    let seeds = seeds(rounds(COMMAND_SEEDS, FEWER_COMMAND_SEEDS));
    let sum = all(Some(ApplicationKind::Commands), seeds.clone());
    // Leaders failed over, and much was sent again.
    let Tally { crashes, kills, power_losses, cuts, transfers, repeated, terms, .. } = sum;
    occur(&[crashes, kills, power_losses, cuts, transfers, repeated], 16, &seeds, &sum);
    assert!(terms > seeds.end - seeds.start, "{sum:?}");
    let first = simulate_own(Some(ApplicationKind::Commands), &Options::default(), seeds.start).unwrap();
    let options = Options { second_pass: SecondPass::Off, ..Options::default() };
    assert_eq!(
        simulate_own(Some(ApplicationKind::Commands), &options, seeds.start).unwrap(),
        first,
        "a seed is one run"
    );
}

#[test]
fn clusters_survive_faults() {
    let seeds = seeds(rounds(SEEDS, FEWER_SEEDS));
    let sum = all(None, seeds.clone());
    // Without each kind of fault, the run would show little.
    let Tally { crashes, kills, power_losses, flips, pauses, cuts, broken, jumps, transfers, publishers, .. } = sum;
    let often = [crashes, kills, power_losses, flips, pauses, cuts, broken, jumps, transfers, publishers];
    occur(&often, 25, &seeds, &sum);
    let Tally { full_disks, disk_errors, changes, repeated, resolved, timers, notices, times_kept, .. } = sum;
    let seldom = [full_disks, disk_errors, changes, repeated, resolved, timers, notices, times_kept];
    occur(&seldom, 10, &seeds, &sum);
}

#[test]
fn long_absent_member_fetches_state() {
    let options = Options { messages: 200, ..Options::default() };
    let mut fetched = 0;
    // First: the cluster stalls when a joining member needs a newer state than exists. Last: nothing is committed
    // before the member that lags too far has its state.
    let seeds = &[20_070, 20_078, 20_085, 30_594][..rounds(4, 1) as usize];
    for &seed in seeds {
        match simulate_own(Some(ApplicationKind::Service), &options, seed) {
            Ok(tally) => fetched += tally.fetched,
            Err(failure) => panic!("--seed {seed} --messages 200 --offer service replays this: {failure}"),
        }
    }
    assert!(seeds.len() < 4 || fetched >= 3, "{fetched} states were fetched");
}

#[test]
fn same_seed_gives_the_same_run() {
    let shapes = ["3", "2+witness", "5", "1"].map(|text| text.parse::<ClusterShape>().unwrap());
    for shape in shapes {
        for seed in 3..3 + rounds(2, 1) {
            let options = Options { shape: Some(shape), messages: 20, faults_ms: 800, ..Options::default() };
            let first = simulate_own(None, &options, seed).unwrap();
            let options = Options { second_pass: SecondPass::Off, ..options };
            assert_eq!(simulate_own(None, &options, seed).unwrap(), first, "{shape} members, seed {seed}");
            assert_ne!(simulate_own(None, &options, seed + 100).unwrap().trace, first.trace);
        }
    }
}
