//! Frames on a quorum are kept: members with model journals and a network in memory. Faults: loss, duplicates,
//! reordering, partitions in one or both directions, pauses, crashes at any moment and inside a cut, membership
//! changes, hand-overs. After every step: one leader a term, one order of frames over all members and times, nothing
//! released that a crash could take back. After healing: a leader, and new batches everywhere.
//!
//! `GAPLESS_SEED` replays one run; `GAPLESS_SEEDS` is the number of runs; each change runs a tenth, `GAPLESS_FULL` all.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod by_hand;
mod checker;
mod disk;
mod faultless;
#[cfg(debug_assertions)]
mod mutants;
mod node;
mod world;

use gapless_testkit::random::{rounds, seeds};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::{EventCounts, SimulatedCluster, has_mutant};

const SEEDS: u64 = 1_000;
const FEWER_SEEDS: u64 = 100;

fn all(seeds: Range<u64>) -> EventCounts {
    let mut sum = EventCounts::default();
    for seed in seeds {
        let outcome = catch_unwind(AssertUnwindSafe(|| SimulatedCluster::new(seed).run()));
        let Ok(tally) = outcome else { panic!("GAPLESS_SEED={seed} replays this (the reason is above)") };
        add(&mut sum, &tally);
    }
    sum
}

fn add(sum: &mut EventCounts, tally: &EventCounts) {
    sum.released += tally.released;
    sum.crashes += tally.crashes;
    sum.power_losses += tally.power_losses;
    sum.cuts += tally.cuts;
    sum.restored += tally.restored;
    sum.changes += tally.changes;
    sum.transfers += tally.transfers;
    sum.refused += tally.refused;
    sum.early += tally.early;
}

#[test]
fn quorum_survives_random_faults() {
    let seeds = seeds(rounds(SEEDS, FEWER_SEEDS));
    let tried = seeds.end - seeds.start;
    let middle = seeds.start + tried / 2;
    let halves = [seeds.start..middle, middle..seeds.end];
    let halves = std::thread::scope(|scope| {
        halves
            .map(|seeds| scope.spawn(move || all(seeds)))
            .map(|half| half.join().expect("the thread has printed the reason"))
    });
    let mut sum = EventCounts::default();
    halves.into_iter().for_each(|half| add(&mut sum, &half));
    println!("{sum:?}");
    // Otherwise the run would show little.
    if tried >= FEWER_SEEDS {
        let EventCounts { released, crashes, power_losses, cuts, restored, changes, transfers, early, .. } = sum;
        let early = if has_mutant() { u64::MAX } else { early };
        for count in [released, crashes, power_losses, cuts, restored, changes, transfers, early] {
            assert!(count > tried / 20, "{sum:?}");
        }
    }
}
