//! Every mutant of the core is caught, in a process with an environment variable. Each change runs those that few seeds
//! catch, `GAPLESS_FULL` all.

use gapless_testkit::random::rounds;
use std::process::Command;

/// Must be caught within this number of seeds.
const MUTANTS: [(&str, u64); 5] = [
    ("acknowledge_before_journal", 100),
    ("commit_without_quorum", 50),
    ("forget_vote", 1_600),
    ("skip_truncation", 40),
    ("vote_after_power_loss", 400),
];
const FEWER_SEEDS: u64 = 100;

#[test]
fn every_mutant_is_caught() {
    let seeds_max = rounds(u64::MAX, FEWER_SEEDS);
    for (mutant, seeds) in MUTANTS.into_iter().filter(|(_, seeds)| *seeds <= seeds_max) {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "committed_frames_are_kept::quorum_survives_random_faults", "--nocapture"])
            .env("GAPLESS_MUTANT", mutant)
            .env("GAPLESS_SEEDS", seeds.to_string())
            .env_remove("GAPLESS_SEED")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{mutant} is not caught within {seeds} seeds");
        let seed = text.lines().find(|line| line.contains("replays this")).unwrap_or("");
        let reason = text.lines().skip_while(|line| !line.contains("panicked at")).nth(1).unwrap_or("");
        assert!(seed.contains("GAPLESS_SEED="), "{mutant}: the run failed otherwise: {text}");
        println!("{mutant}: {seed}: {reason}");
    }
}
