//! The guard: a separate process that kills the running programs when the server is gone for any reason, such as
//! SIGKILL. Lines of its standard input: `+PID START` for a started program and its start tick, `-PID` for one that has
//! ended, `=` before a list of all that run, after omitted lines.

use crate::commands::CommandResult;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashMap;
use std::io::{self, BufRead as _};

/// Hidden from the help.
pub(crate) const COMMAND: &str = "serve-guard";

/// Kernel ticks; 0 if there is no such process.
pub(super) fn start_of(process_id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap_or_default();
    // The name may contain anything; the start is field 22 of the whole line.
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    fields.split(' ').nth(19).and_then(|start| start.parse().ok()).unwrap_or(0)
}

pub(crate) fn run() -> CommandResult {
    // A signal to all processes of a service is meant for the server, which may finish begun work.
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
        // Another process may have the id of an ended one. The process group outlives its first process.
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
