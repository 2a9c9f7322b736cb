//! `gapless bench commands`: the benchmark of `gapless-bench-commands`, with the canonical rows that stand beside it.

pub use gapless_bench_commands::{CommandsArguments, quorum, scale};

use crate::options::{CanonicalArguments, Mode, Program, Tier};
use crate::{Result, canonical};
use gapless_bench_commands::Canonical;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Measures; returns the text to print.
///
/// # Errors
/// As `gapless_bench_commands::run`.
pub fn run(arguments: &CommandsArguments, interrupted: &Arc<AtomicBool>) -> Result<String> {
    let canonical = |row: Canonical, count: Option<u64>, parent: &Path| {
        let single = CanonicalArguments { tier: Some(Tier::Journal), ..CanonicalArguments::default() };
        let row = match row {
            Canonical::Throughput => CanonicalArguments { mode: Some(Mode::Throughput), ..single },
            Canonical::Latency => CanonicalArguments { mode: Some(Mode::Latency), ..single },
            Canonical::Replicated => CanonicalArguments {
                mode: Some(Mode::Throughput),
                tier: Some(Tier::Quorum),
                program: Some(Program::Sr),
                enable_clustering: true,
                ..CanonicalArguments::default()
            },
        };
        canonical::one_row(&row, count, parent, interrupted)
    };
    gapless_bench_commands::run(arguments, &canonical, interrupted)
}
