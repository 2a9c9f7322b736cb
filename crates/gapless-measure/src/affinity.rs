//! Affinity of threads. Never pin a thread that was not started for the purpose: a pinned thread passes its mask on to
//! every thread that it starts.

use std::collections::BTreeSet;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::{BenchError, Result};

/// Ascending, never empty.
#[must_use]
pub fn available_cpus() -> BTreeSet<usize> {
    let Ok(set) = sched_getaffinity(None) else { return BTreeSet::from([0]) };
    let cpus: BTreeSet<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect();
    if cpus.is_empty() { BTreeSet::from([0]) } else { cpus }
}

/// Pins the calling thread to the given CPUs.
///
/// # Errors
/// When `cpus` is empty, names a CPU above the kernel's limit, or none that may be used.
pub fn pin_current_thread(cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(BenchError::Option(format!(
                "CPU {cpu} is beyond the kernel's limit; expected a CPU from 0 to {}",
                CpuSet::MAX_CPU - 1
            )));
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|source| BenchError::system("pin the thread", source))
}

/// CPUs on different cores where the machine has them; `None` if this process may use one CPU only.
#[must_use]
pub fn pair_of_cores() -> Option<(usize, usize)> {
    let cpus = available_cpus();
    let first = *cpus.first()?;
    let siblings = siblings_of(first);
    let on_another_core = cpus.iter().copied().find(|cpu| *cpu != first && !siblings.contains(cpu));
    let second = on_another_core.or_else(|| cpus.iter().copied().find(|cpu| *cpu != first))?;
    Some((first, second))
}

/// Including `cpu`'s hyper-threads; empty where the kernel does not say.
fn siblings_of(cpu: usize) -> BTreeSet<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    std::fs::read_to_string(path).map(|text| parse_cpu_list(text.trim())).unwrap_or_default()
}

/// The kernel's list form, `0-3,8`; skips a part that is not a number.
fn parse_cpu_list(text: &str) -> BTreeSet<usize> {
    let mut cpus = BTreeSet::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(low), Ok(high)) = (low.trim().parse::<usize>(), high.trim().parse::<usize>()) {
            cpus.extend(low..=high.min(CpuSet::MAX_CPU));
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_thread_has_one_cpu() {
        let cpu = *available_cpus().last().unwrap();
        let seen = std::thread::spawn(move || {
            pin_current_thread(&[cpu]).unwrap();
            available_cpus()
        })
        .join()
        .unwrap();
        assert_eq!(seen, BTreeSet::from([cpu]));
    }

    #[test]
    fn invalid_cpu_list_is_refused() {
        assert!(pin_current_thread(&[CpuSet::MAX_CPU]).unwrap_err().to_string().contains("limit"));
        assert!(pin_current_thread(&[]).is_err());
    }

    #[test]
    fn pair_has_two_available_cpus() {
        if let Some((first, second)) = pair_of_cores() {
            assert_ne!(first, second);
            assert!(available_cpus().contains(&first) && available_cpus().contains(&second));
        } else {
            assert_eq!(available_cpus().len(), 1);
        }
    }

    #[test]
    fn kernel_lists_are_read() {
        assert_eq!(parse_cpu_list("0-2,8"), BTreeSet::from([0, 1, 2, 8]));
        assert_eq!(parse_cpu_list("x,1-"), BTreeSet::new());
    }
}
