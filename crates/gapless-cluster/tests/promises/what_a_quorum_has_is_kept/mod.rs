//! What a quorum has is kept: members with model journals and a network in memory, from one seed. Loss, doubles,
//! reordering, partitions also one-way, pauses, crashes at any moment and inside a cut, changes of members, hand-overs.
//! After every step: one leader a term, one order of frames over all members and times, nothing released that a crash
//! could take back. After healing: a leader, and new batches everywhere.
//!
//! `GAPLESS_SEED` replays one run; `GAPLESS_SEEDS` is the number of runs. Each change runs a tenth of the seeds, `GAPLESS_FULL`
//! all of them.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod by_hand;
mod calm;
mod checker;
mod disk;
#[cfg(debug_assertions)]
mod mutants;
mod node;
mod world;

use gapless_testkit::random::{rounds, seeds};
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::{Tally, World, has_mutant};

const SEEDS: u64 = 1_000;
/// The number of seeds of a run with every change.
const FEWER_SEEDS: u64 = 100;

#[test]
fn under_faults_and_after_healing() {
    let seeds = seeds(rounds(SEEDS, FEWER_SEEDS));
    let tried = seeds.end - seeds.start;
    let mut sum = Tally::default();
    for seed in seeds {
        let outcome = catch_unwind(AssertUnwindSafe(|| World::new(seed).run()));
        let Ok(tally) = outcome else { panic!("GAPLESS_SEED={seed} replays this (the reason is above)") };
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
    println!("{sum:?}");
    // Each kind of event must have happened, or the run would show little.
    if tried >= FEWER_SEEDS {
        let Tally { released, crashes, power_losses, cuts, restored, changes, transfers, early, .. } = sum;
        let early = if has_mutant() { u64::MAX } else { early };
        for count in [released, crashes, power_losses, cuts, restored, changes, transfers, early] {
            assert!(count > tried / 20, "{sum:?}");
        }
    }
}
