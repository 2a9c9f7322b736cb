//! Resets signals to the state of a fresh process: none blocked, none ignored.

use crate::error::SupervisorError;
use nix::sys::signal::SigSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const SIGNAL_MAX: i32 = 64;
const OF_THREADS: [i32; 2] = [32, 33];

/// Unblocks all signals and stops ignoring any, with effect at exec, which resets handlers.
pub fn reset() -> Result<(), SupervisorError> {
    let failed = |errno: nix::errno::Errno| SupervisorError::io("unblocking signals")(errno.into());
    SigSet::empty().thread_set_mask().map_err(failed)?;
    let unused_flag = Arc::new(AtomicBool::new(false));
    for signal in ignored()? {
        if !signal_hook::consts::FORBIDDEN.contains(&signal) && !OF_THREADS.contains(&signal) {
            let registered = signal_hook::flag::register(signal, Arc::clone(&unused_flag));
            registered.map_err(SupervisorError::io(format!("no longer ignoring signal {signal}")))?;
        }
    }
    Ok(())
}

fn ignored() -> Result<Vec<i32>, SupervisorError> {
    let path = "/proc/self/status";
    let text = std::fs::read_to_string(path).map_err(SupervisorError::io(format!("reading {path}")))?;
    let missing = || SupervisorError::damaged(path.as_ref(), "it has no line SigIgn");
    let bits = text.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let bits = bits.ok_or_else(missing)?;
    Ok((1..=SIGNAL_MAX).filter(|signal| bits >> (signal - 1) & 1 == 1).collect())
}
