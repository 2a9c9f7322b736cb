//! Two threads with a core each.

use rustix::thread::{CpuSet, sched_setaffinity};

/// Runs `there` on the second core while `here` runs on the first; what `here` returns.
pub fn on_two_cores<T>(there: impl FnOnce() + Send, here: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        // A thread begins where its parent is, so it never has to wait for the parent's core.
        pin(1);
        let other = scope.spawn(there);
        pin(0);
        let result = here();
        other.join().expect("the other side of a measurement does not panic");
        result
    })
}

fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    if let Err(error) = sched_setaffinity(None, &cores) {
        eprintln!("core {core} is not there ({error}): this side is not pinned");
    }
}
