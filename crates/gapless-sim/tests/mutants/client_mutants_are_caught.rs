//! Each mutant runs in its own process, because an environment variable plants it.

use std::process::Command;

/// Mutants, with the number of seeds within which each must be caught.
const MUTANTS: [(&str, u64); 6] = [
    ("drop_notice", 10),
    ("acknowledge_what_was_not_taken", 30),
    ("send_again_under_a_new_number", 10),
    ("take_any_session_for_its_own", 30),
    ("forget_the_last_number", 10),
    ("give_up_early", 10),
];

#[test]
fn every_mutant_is_caught() {
    for (mutant, seeds) in MUTANTS {
        let (text, is_kept) = run(Some(mutant), ("GAPLESS_SEEDS", seeds));
        assert!(!is_kept, "{mutant} is not caught within {seeds} seeds");
        let seed = text.lines().find_map(|line| line.strip_prefix("GAPLESS_SEED=")?.split(' ').next()?.parse().ok());
        let seed = seed.unwrap_or_else(|| panic!("{mutant}: the run failed otherwise: {text}"));
        let reason = text.lines().skip_while(|line| !line.contains("panicked at")).nth(1).unwrap_or("");
        println!("{mutant}: seed {seed}: {reason}");
        assert!(run(None, ("GAPLESS_SEED", seed)).1, "seed {seed} fails without {mutant}");
    }
}

/// Returns the output, and whether all promises were kept.
fn run(mutant: Option<&str>, (variable, value): (&str, u64)) -> (String, bool) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "client_replies_are_true::outcomes_hold_under_faults", "--nocapture"])
        .envs(mutant.map(|mutant| ("GAPLESS_MUTANT", mutant)))
        .env(variable, value.to_string())
        .output()
        .unwrap();
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.success())
}
