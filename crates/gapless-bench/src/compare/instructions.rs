//! Instructions for each message, counted by callgrind: repeatable where the clock is not.
//!
//! A run has costs that do not grow with its messages (starting, the floors), so it is counted twice, with different
//! numbers of messages, and the difference divided. Threads take turns under valgrind, and what they spin is counted,
//! too: two counts of one build differ by one or two percent.

use super::build::Build;
use super::started;
use super::workload::{Workload, last_words};
use crate::{BenchError, Result};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

/// Messages of the two runs.
const COUNTS: (u64, u64) = (20_000, 100_000);

/// Whether callgrind is installed.
pub(super) fn can_be_counted() -> bool {
    let asked = Command::new("valgrind").arg("--version").stdin(Stdio::null()).output();
    asked.is_ok_and(|output| output.status.success())
}

/// Instructions of one message.
pub(super) fn per_message(build: &Build, workload: &Workload, interrupted: &AtomicBool) -> Result<f64> {
    let count = |messages| count(build, workload, messages, interrupted);
    let (few, many) = (count(COUNTS.0)?, count(COUNTS.1)?);
    if many <= few {
        let reason =
            format!("{}: more messages take no more instructions; is it a wrapper of the program?", build.name);
        return Err(BenchError::Measurement { name: "compare", reason });
    }
    Ok((many - few) as f64 / (COUNTS.1 - COUNTS.0) as f64)
}

fn count(build: &Build, workload: &Workload, messages: u64, interrupted: &AtomicBool) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--fair-sched=yes", "--callgrind-out-file=/dev/null"]).arg(&build.program);
    workload.complete(&mut command, Some(messages)).stdout(Stdio::null()).stderr(Stdio::piped());
    let output =
        started::output(&mut command, interrupted).map_err(|source| BenchError::system("run valgrind", source))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let failed = |reason: String| {
        let reason = format!("{} under callgrind: {reason}", build.name);
        BenchError::Measurement { name: "compare", reason }
    };
    if !output.status.success() {
        return Err(failed(format!("{}: {}", output.status, last_words(&output.stderr))));
    }
    collected(&said).ok_or_else(|| failed("it says no number of instructions".to_owned()))
}

/// What callgrind says at its end: `==1== Collected : 12345`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().rev().find(|line| line.contains("Collected :"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_found() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 479572476\n==7== \n"), Some(479_572_476));
        assert_eq!(collected("==7== nothing"), None);
    }
}
