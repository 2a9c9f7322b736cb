//! The guard: a separate process that tracks the running programs, and kills them when the server is gone for any
//! reason, such as SIGKILL or lack of memory. It reads its standard input, whose end is the server's.
//!
//! Lines of the input: `+PID START` for a started program and its start tick, `-PID` for one that has ended, `=` before
//! a list of all that run, after omitted lines.

use crate::commands::CommandResult;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashMap;
use std::io::{self, BufRead as _};

/// Name of the command, for internal use and hidden from the help.
pub(crate) const COMMAND: &str = "serve-guard";

/// Start of a process in kernel ticks; 0 if there is no such process.
pub(super) fn start_of(process_id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap_or_default();
    // Skips the name, which may contain anything; the start is field 22 of the whole line.
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    fields.split(' ').nth(19).and_then(|start| start.parse().ok()).unwrap_or(0)
}

pub(crate) fn run() -> CommandResult {
    // A signal to all processes of a service is meant for the server, which may still finish begun work.
    ctrlc::set_handler(|| {})?;
    let mut running = HashMap::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (sign, words) = line.split_at_checked(1).ok_or("a sign and numbers are expected")?;
        let mut numbers = words.split(' ').map(str::parse::<u64>);
        match sign {
            "+" => drop(running.insert(next(&mut numbers)?, next(&mut numbers)?)),
            "-" => drop(running.remove(&next(&mut numbers)?)),
            _ => running.clear(),
        }
    }
    for (process_id, start) in running {
        // An ended process may be missing from the input, and another may have its id. The process group outlives its
        // first process.
        let process_id = u32::try_from(process_id)?;
        if [0, start].contains(&start_of(process_id))
            && let Some(process) = Pid::from_raw(process_id.cast_signed())
        {
            let _ = kill_process_group(process, Signal::KILL);
        }
    }
    Ok(())
}

fn next(
    numbers: &mut impl Iterator<Item = Result<u64, std::num::ParseIntError>>,
) -> Result<u64, Box<dyn std::error::Error>> {
    Ok(numbers.next().ok_or("a number is expected")??)
}
