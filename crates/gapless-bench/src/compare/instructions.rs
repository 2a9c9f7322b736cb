//! Instructions of the service's thread for each message, counted by callgrind: repeatable where the clock is not.
//!
//! The driver spins through its turn once all its messages are under way, so its instructions say nothing; the service
//! yields its own. The cost of starting does not depend on the number of messages, so a run is counted twice, with
//! different numbers, and the difference divided.

use super::build::Build;
use super::started;
use super::workload::{Workload, last_words};
use crate::{BenchError, Result};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

const COUNTS: (u64, u64) = (20_000, 100_000);

pub(super) fn can_be_counted() -> bool {
    let asked = Command::new("valgrind").arg("--version").stdin(Stdio::null()).output();
    asked.is_ok_and(|output| output.status.success())
}

pub(super) fn per_message(build: &Build, workload: &Workload, scratch: &Path, interrupted: &AtomicBool) -> Result<f64> {
    let count = |messages| count(build, workload, messages, scratch, interrupted);
    let (few, many) = (count(COUNTS.0)?, count(COUNTS.1)?);
    let more = of_service(&few, &many).ok_or_else(|| {
        let reason = "no thread but the driver's executes more for more messages; is it a wrapper of the program, or \
                      without the names of its functions?";
        failed(build, reason)
    })?;
    Ok(more as f64 / (COUNTS.1 - COUNTS.0) as f64)
}

fn failed(build: &Build, reason: &str) -> BenchError {
    BenchError::Measurement { name: "compare", reason: format!("{} under callgrind: {reason}", build.name) }
}

/// Keys are valgrind's thread numbers, the same in each run of a build.
fn count(
    build: &Build,
    workload: &Workload,
    messages: u64,
    scratch: &Path,
    interrupted: &AtomicBool,
) -> Result<BTreeMap<u32, ThreadInstructions>> {
    let io = |action, source| BenchError::io(action, scratch, source);
    let directory = scratch.join("counted");
    std::fs::create_dir(&directory).map_err(|source| io("create a directory in", source))?;
    let mut file = OsString::from("--callgrind-out-file=");
    file.push(directory.join("threads"));
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--fair-sched=yes", "--separate-threads=yes"]).arg(file).arg(&build.program);
    workload.complete(&mut command, Some(messages)).stdout(Stdio::null()).stderr(Stdio::piped());
    let output =
        started::output(&mut command, interrupted).map_err(|source| BenchError::system("run valgrind", source))?;
    if !output.status.success() {
        return Err(failed(build, &format!("{}: {}", output.status, last_words(&output.stderr))));
    }
    let mut threads = BTreeMap::new();
    for entry in directory.read_dir().map_err(|source| io("read", source))? {
        let path = entry.map_err(|source| io("read", source))?.path();
        let text = std::fs::read(&path).map_err(|source| BenchError::io("read", &path, source))?;
        threads.extend(thread(&String::from_utf8_lossy(&text)));
    }
    std::fs::remove_dir_all(&directory).map_err(|source| io("clear", source))?;
    Ok(threads)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ThreadInstructions {
    instructions: u64,
    is_of_driver: bool,
}

/// `None` for the file without a thread, of which callgrind writes one more.
fn thread(text: &str) -> Option<(u32, ThreadInstructions)> {
    let value = |key| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let (number, instructions) = (value("thread:")?.parse().ok()?, value("totals:")?.parse().ok()?);
    let is_of_driver = text.contains(concat!(env!("CARGO_CRATE_NAME"), "::canonical::driver::"));
    Some((number, ThreadInstructions { instructions, is_of_driver }))
}

/// Cost of the additional messages of `many` in the thread that they cost most, the driver's excepted.
fn of_service(few: &BTreeMap<u32, ThreadInstructions>, many: &BTreeMap<u32, ThreadInstructions>) -> Option<u64> {
    // Without names every thread would look like the service's.
    if !many.values().any(|thread| thread.is_of_driver) {
        return None;
    }
    let more = many.iter().filter(|(_, thread)| !thread.is_of_driver).filter_map(|(number, thread)| {
        let before = few.get(number).map_or(0, |thread| thread.instructions);
        thread.instructions.checked_sub(before)
    });
    more.max().filter(|&more| more > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_says_what_it_has_executed() {
        let text = "thread: 7\n\nsummary: 12\n\nfn=(9) gapless_bench::canonical::driver::drive\n22 12\n\ntotals: 12\n";
        assert_eq!(thread(text), Some((7, ThreadInstructions { instructions: 12, is_of_driver: true })));
        let text = "thread: 5\nfn=(1) gapless_engine::fold::Fold::command\ntotals: 479572476\n";
        assert_eq!(thread(text), Some((5, ThreadInstructions { instructions: 479_572_476, is_of_driver: false })));
        assert_eq!(thread("totals: 3\n"), None);
        assert_eq!(thread("thread: many\ntotals: 3\n"), None);
        assert_eq!(thread("thread: 5\n"), None);
    }

    #[test]
    fn messages_cost_the_service_s_thread() {
        let of = |threads: [(u64, bool); 4]| -> BTreeMap<u32, ThreadInstructions> {
            let threads = threads.map(|(instructions, is_of_driver)| ThreadInstructions { instructions, is_of_driver });
            (1..).zip(threads).collect()
        };
        let few = of([(50, true), (900, false), (300, false), (5_000, true)]);
        let many = of([(60, true), (850, false), (700, false), (25_000, true)]);
        assert_eq!(of_service(&few, &many), Some(400));
        assert_eq!(of_service(&few, &few), None);
        assert_eq!(of_service(&few, &many.iter().map(nameless).collect()), None);
    }

    fn nameless((&number, thread): (&u32, &ThreadInstructions)) -> (u32, ThreadInstructions) {
        (number, ThreadInstructions { is_of_driver: false, ..*thread })
    }
}
