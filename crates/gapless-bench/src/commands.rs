//! `gapless bench commands`: the benchmark of `gapless-bench-commands`, with the canonical rows that stand beside it.

pub use gapless_bench_commands::{CommandsArguments, scale};

use crate::options::{CanonicalArguments, Mode, Tier};
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
        let mode = match row {
            Canonical::Throughput => Mode::Throughput,
            Canonical::Latency => Mode::Latency,
        };
        let row = CanonicalArguments { mode: Some(mode), tier: Some(Tier::Journal), ..CanonicalArguments::default() };
        canonical::one_row(&row, count, parent, interrupted)
    };
    gapless_bench_commands::run(arguments, &canonical, interrupted)
}
