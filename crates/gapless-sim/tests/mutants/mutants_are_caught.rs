//! Each mutant runs in its own process, because an environment variable plants it.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `None` leaves it to the seed.
type Offers = Option<&'static str>;

/// First seed, number of seeds within which the mutant must be caught, and offer. Rare ones begin at a seed that caught
/// them before.
const MUTANTS: [(&str, u64, u64, Offers); 11] = [
    ("acknowledge_before_journal", 101, 60, None),
    ("vote_after_power_loss", 241, 60, None),
    ("forget_vote", 271, 60, None),
    ("skip_truncation", 1, 60, None),
    ("commit_without_quorum", 1, 60, None),
    ("drop_session_table", 1, 60, None),
    ("keep_cut_state", 1, 60, Some("state")),
    ("keep_cut_overlay", 3101, 60, Some("commands")),
    ("forget_session_order", 1, 60, Some("commands")),
    ("believe_own_clock", 1, 60, None),
    ("released_frames_may_differ", 931, 60, None),
];

#[test]
fn every_mutant_is_caught() {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((mutant, first, seeds, offers)) = MUTANTS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    println!("{mutant}: {}", caught(mutant, *first, *seeds, *offers));
                }
            });
        }
    });
}

/// A run without the mutant must succeed.
fn caught(mutant: &str, first: u64, seeds: u64, offers: Offers) -> String {
    let summary = run(Some(mutant), first, seeds, offers);
    let failures = summary["failures"].as_array().unwrap();
    let failure = failures.first().unwrap_or_else(|| panic!("{mutant} is not caught within {seeds} seeds"));
    let seed = failure["seed"].as_u64().unwrap();
    let sound = run(None, seed, 1, offers);
    assert_eq!(sound["failures"].as_array().unwrap().len(), 0, "seed {seed} fails without {mutant}: {sound}");
    format!("seed {seed}, of {}: {}", summary["seeds"], failure["reason"])
}

fn run(mutant: Option<&str>, first: u64, seeds: u64, offers: Offers) -> serde_json::Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gapless-sim"));
    command.args(["--first", &first.to_string(), "--seeds", &seeds.to_string()]);
    command.args(["--stop-at-first", "--threads", "1", "--json"]);
    command.args(offers.map(|offer| format!("--offer={offer}")));
    command.envs(mutant.map(|mutant| ("GAPLESS_MUTANT", mutant)));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary: serde_json::Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{mutant:?}: {error}: {text}\n{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(output.status.success(), summary["failures"].as_array().unwrap().is_empty(), "{text}");
    summary
}
