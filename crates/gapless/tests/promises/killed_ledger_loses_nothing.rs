//! Each run continues after all reported lines, and the final report is that of a ledger that was never killed.

#![allow(clippy::unwrap_used, reason = "this is a test")]

use crate::ledger_fold::expected_report;
use crate::ledger_process::{Place, Run, shipped_transfers};
use gapless_testkit::random::{Random, rounds};
use std::time::Duration;

#[test]
fn at_tier_journal() {
    kill_until_it_ends("journal");
}

#[test]
fn at_tier_sync() {
    kill_until_it_ends("sync");
}

fn kills_max() -> u64 {
    rounds(150, 20)
}

fn kill_until_it_ends(tier: &str) {
    let mut random = Random::seeded();
    let content = shipped_transfers();
    let expected = expected_report("transfers.csv", &content);
    let place = Place::with(&content);
    // Slow enough that a run is killed long before its end, even on a busy machine.
    let options = ["--tier", tier, "--lines-per-second", "4000"];
    let (mut kills, mut kills_between, mut taken) = (0, 0, 1);
    let report = loop {
        let mut run = Run::start(&mut place.command(&options));
        if kills == kills_max() {
            break run.wait().report();
        }
        if random.below(3) > 0 {
            let messages = 2 + random.below(3);
            for _ in 0..messages {
                if !run.hear() {
                    break;
                }
            }
            std::thread::sleep(Duration::from_micros(random.below(3000)));
        } else {
            std::thread::sleep(Duration::from_micros(random.below(80_000)));
        }
        run.signal(rustix::process::Signal::KILL);
        let ended = run.wait();
        if run.begun_after > 0 {
            let begun_after = run.begun_after;
            assert!(begun_after >= taken, "line {taken} was taken, but a later run continued after line {begun_after}");
        }
        let between = run.taken > run.begun_after && run.begun_after > 0;
        taken = taken.max(run.begun_after).max(run.taken);
        if !ended.was_killed() {
            break ended.report();
        }
        assert!(expected.as_bytes().starts_with(&ended.out), "a killed run printed something else than a beginning");
        kills += 1;
        kills_between += u32::from(between);
    };
    println!("tier {tier}: {kills} kills, {kills_between} of them while lines were taken");
    assert!(kills_between >= 3, "only {kills_between} of {kills} kills hit a ledger that was taking lines");
    assert_eq!(report, expected);
    assert_eq!(place.run(&["--tier", tier]).report(), report, "a further run changes nothing");
}
