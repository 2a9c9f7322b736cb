//! The guard: a process of its own that knows which programs run, and kills them when the server is gone, however it went: killed, or
//! out of memory. All that it reads is its standard input, whose end is the server's.
//!
//! Lines of it: `+PID START` for a program that has begun, whose process has started at that tick, `-PID` for one that has ended, `=` before
//! all that run, where lines before were left out.

use crate::commands::Outcome;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashMap;
use std::io::{self, BufRead as _};

/// The name of the command that it is: nobody else's, so no help has it.
pub(crate) const COMMAND: &str = "serve-guard";

/// When a process has started, in ticks of the kernel; 0 of one that is not there.
pub(super) fn start_of(process_id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap_or_default();
    // Behind the name, which may have anything in it: the 22nd field of all.
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    fields.split(' ').nth(19).and_then(|start| start.parse().ok()).unwrap_or(0)
}

/// The guard itself: reads until its server is gone.
pub(crate) fn run() -> Outcome {
    // Who stops all processes of a service means the server, which may still finish what has begun.
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
        // What it has missed may have ended since, and another may have its number. The group outlives the first of its processes.
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
