//! A shipped client and a shipped member run on one virtual clock against a model of the promises. The wire loses,
//! delays and breaks; both sides die; sessions expire. Each command takes effect at most once, and exactly once if its
//! outcome says so. Notices arrive completely and in order, and again in the next life if the previous one had not
//! taken them. A call ends at its timeout, later by at most a poll and an attempt to connect.
//!
//! `GAPLESS_SEED` replays one run; `GAPLESS_SEEDS` is the number of runs. Each change runs some of the seeds,
//! `GAPLESS_FULL` all.

mod book;
mod facts;
mod process;
mod world;

use gapless_sim::Random;
use gapless_testkit::random::{rounds, seeds};
use process::Process;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;
use world::{ClientWorld, FaultProfile, SimulatedEnvironment};

const SEEDS: u64 = 60;
const FEWER_SEEDS: u64 = 6;
const ACTS: u64 = 150;

fn profile(random: &mut Random) -> FaultProfile {
    FaultProfile {
        command_lost: random.pick(&[0, 2_000, 20_000]),
        answer_lost: random.pick(&[0, 2_000, 20_000]),
        kept_back: random.pick(&[0, 50_000]),
        broken: random.pick(&[0, 100, 1_000]),
        killed: random.pick(&[0, 50, 300]),
    }
}

fn run(seed: u64) -> BTreeMap<&'static str, u64> {
    let place = SimulatedEnvironment::new(ClientWorld::new(seed));
    place.world().profile = profile(&mut Random::of(seed, &[3]));
    let mut process = Process::new(place.clone(), seed);
    for _ in 0..ACTS {
        process.act();
    }
    place.world().profile = FaultProfile::default();
    process.come_to_rest();
    process.rest(Duration::from_millis(100));
    let world = place.world();
    process.facts.hold(&world.pages.lock().unwrap());
    let mut counts = std::mem::take(&mut process.facts.counts);
    counts.extend([("members killed", world.kills), ("wires broken", world.breaks)]);
    counts
}

#[test]
fn outcomes_hold_under_faults() {
    let seeds = seeds(rounds(SEEDS, FEWER_SEEDS));
    let mut sum: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in seeds.clone() {
        match catch_unwind(AssertUnwindSafe(|| run(seed))) {
            Ok(counts) => counts.into_iter().for_each(|(what, count)| *sum.entry(what).or_default() += count),
            Err(panic) => {
                eprintln!("GAPLESS_SEED={seed} replays this");
                resume_unwind(panic);
            }
        }
    }
    println!("{sum:#?}");
    let count_min = match seeds.end - seeds.start {
        SEEDS.. => 5,
        FEWER_SEEDS.. => 1,
        _ => 0,
    };
    for what in ALL {
        let count = sum.get(what).copied().unwrap_or(0);
        assert!(count >= count_min, "{what} hardly happens: {sum:?}");
    }
}

/// Runs without these show little.
const ALL: [&str; 20] = [
    "calls done",
    "calls not sent",
    "calls refused",
    "calls unknown",
    "deaths",
    "done",
    "members killed",
    "no command",
    "no longer kept",
    "not arrived",
    "not yet done",
    "notices",
    "notices told again",
    "outcome unknown",
    "reconnects",
    "refused",
    "sent under its number",
    "sessions lost",
    "time-outs",
    "wires broken",
];
