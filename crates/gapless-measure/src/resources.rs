//! CPU time and memory: the resources that a figure costs besides time.

use rustix::time::{ClockId, Timespec, clock_gettime};

pub fn process_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

pub fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// CPU time without ended threads; `None` for an ended process, or where the kernel does not count it.
pub fn cpu_ns_of(pid: u32) -> Option<u64> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let mut sum = None;
    for thread in threads {
        let Ok(text) = std::fs::read_to_string(thread.path().join("schedstat")) else { continue };
        let ns = text.split_ascii_whitespace().next()?.parse::<u64>().ok()?;
        sum = Some(sum.unwrap_or(0) + ns);
    }
    sum
}

/// Withheld by a hypervisor since the machine's start, all CPUs together, in kernel ticks; `None` without `/proc`.
pub fn stolen_ns() -> Option<u64> {
    parse_stolen_ticks(&std::fs::read_to_string("/proc/stat").ok()?).map(ticks_to_ns)
}

/// The eighth figure of the first line.
fn parse_stolen_ticks(text: &str) -> Option<u64> {
    text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().nth(7)?.parse().ok()
}

fn ticks_to_ns(ticks: u64) -> u64 {
    ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Peak resident.
    pub peak_bytes: u64,
    /// Resident heap and stacks.
    pub anonymous_bytes: u64,
    /// Resident from files: the journal's segments.
    pub mapped_bytes: u64,
}

/// Memory of this process; `None` without `/proc`.
pub fn memory() -> Option<MemoryUsage> {
    parse_status(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_status(text: &str) -> Option<MemoryUsage> {
    let kibibytes = |key: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(key))?;
        line[key.len()..].trim_start_matches(':').split_ascii_whitespace().next()?.parse().ok()
    };
    Some(MemoryUsage {
        peak_bytes: kibibytes("VmHWM")? * 1024,
        anonymous_bytes: kibibytes("RssAnon").unwrap_or(0) * 1024,
        mapped_bytes: (kibibytes("RssFile").unwrap_or(0) + kibibytes("RssShmem").unwrap_or(0)) * 1024,
    })
}

fn nanoseconds(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_work() {
        let (process, thread) = (process_cpu_ns(), thread_cpu_ns());
        while thread_cpu_ns() < thread + 2_000_000 {
            std::hint::spin_loop();
        }
        assert!(process_cpu_ns() >= process + 2_000_000);
    }

    #[test]
    fn other_process_is_measured_by_id() {
        assert!(cpu_ns_of(std::process::id()).is_some_and(|ns| ns > 0));
        assert_eq!(cpu_ns_of(u32::MAX), None);
    }

    #[test]
    fn this_process_has_memory() {
        let memory = memory().unwrap();
        assert!(memory.peak_bytes >= memory.anonymous_bytes && memory.anonymous_bytes > 0);
    }

    #[test]
    fn stolen_time_is_read() {
        let text = "cpu  1620803 28738 236122 928206 13774 0 2829 9702 0 0\ncpu0 774310 14071\n";
        assert_eq!(parse_stolen_ticks(text), Some(9702));
        assert_eq!(parse_stolen_ticks("cpu  1 2 3\n"), None);
        assert_eq!(parse_stolen_ticks("cpu0 1 2 3 4 5 6 7 8 9\n"), None);
        assert!(stolen_ns() <= stolen_ns());
    }

    #[test]
    fn a_status_without_the_peak_gives_none() {
        assert_eq!(parse_status("Name:\tx\nRssAnon:\t  12 kB\n"), None);
    }
}
