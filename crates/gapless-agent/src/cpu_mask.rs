//! A mask that this machine cannot honour is a [`PinWarning`] and the thread stays unpinned: a published command line
//! must run on any machine.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::Error;

/// A mask names CPUs 0 to 1023.
pub const CPUS_MAX: usize = 1024;

static UNPINNED: OnceLock<CpuMask> = OnceLock::new();

/// A set of logical CPUs. As text: `[1]`, `[2,3]`, `1`, `2-3`, `[0,4-7]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CpuMask {
    words: [u64; CPUS_MAX / 64],
}

impl CpuMask {
    const EMPTY: Self = Self { words: [0; CPUS_MAX / 64] };

    /// `None` if the list is empty or has a CPU above 1023.
    #[must_use]
    pub fn of(cpus: &[usize]) -> Option<Self> {
        let mut mask = Self::EMPTY;
        for &cpu in cpus {
            *mask.words.get_mut(cpu / 64)? |= 1 << (cpu % 64);
        }
        (mask != Self::EMPTY).then_some(mask)
    }

    #[must_use]
    pub fn contains(&self, cpu: usize) -> bool {
        self.words.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..CPUS_MAX).filter(|&cpu| self.contains(cpu))
    }

    /// Online CPUs of this machine.
    #[must_use]
    pub fn of_machine() -> Self {
        std::fs::read_to_string("/sys/devices/system/cpu/online")
            .ok()
            .and_then(|text| text.parse().ok())
            .or_else(|| Self::of_current_thread().ok())
            .unwrap_or(Self { words: [u64::MAX; CPUS_MAX / 64] })
    }

    /// CPUs on which the calling thread may run.
    ///
    /// # Errors
    /// An error of the operating system, in a sandbox that forbids the query.
    pub fn of_current_thread() -> std::io::Result<Self> {
        let set = sched_getaffinity(None)?;
        let mut mask = Self::EMPTY;
        for cpu in (0..CPUS_MAX.min(CpuSet::MAX_CPU)).filter(|&cpu| set.is_set(cpu)) {
            mask.words[cpu / 64] |= 1 << (cpu % 64);
        }
        Ok(mask)
    }

    /// Checks the mask against a machine.
    ///
    /// # Errors
    /// A warning to print and to record, if the machine lacks one of the CPUs.
    pub fn check(&self, machine: &CpuMask) -> Result<(), PinWarning> {
        let missing: Vec<usize> = self.iter().filter(|&cpu| !machine.contains(cpu)).collect();
        match Self::of(&missing) {
            None => Ok(()),
            Some(missing) => Err(PinWarning {
                mask: self.to_string(),
                reason: format!("this machine has CPUs {machine} and lacks {missing}"),
            }),
        }
    }

    /// Pins the calling thread to these CPUs, all or none.
    ///
    /// # Errors
    /// A warning to print and to record; the thread then runs where it ran before.
    pub fn pin_current_thread(&self) -> Result<(), PinWarning> {
        self.check(&Self::of_machine())?;
        let warning = |reason: String| PinWarning { mask: self.to_string(), reason };
        let before = Self::of_current_thread().map_err(|error| warning(format!("the system refuses: {error}")))?;
        UNPINNED.get_or_init(|| before);
        sched_setaffinity(None, &self.cpu_set()).map_err(|error| warning(format!("the system refuses: {error}")))?;
        // A container's limits reduce a mask silently.
        let after = Self::of_current_thread().map_err(|error| warning(format!("the system refuses: {error}")))?;
        if after != *self {
            // A failure here adds nothing to the warning: the thread is not on the requested CPUs either way.
            let _ = sched_setaffinity(None, &before.cpu_set());
            return Err(warning(format!("this process may run only on CPUs {before}")));
        }
        Ok(())
    }

    /// Undoes the inherited pinning of the calling thread: a helper thread would share the core on which its owner
    /// spins.
    pub fn unpin_current_thread() {
        if let Some(unpinned) = UNPINNED.get() {
            let _ = sched_setaffinity(None, &unpinned.cpu_set());
        }
    }

    fn cpu_set(&self) -> CpuSet {
        let mut set = CpuSet::new();
        for cpu in self.iter().filter(|&cpu| cpu < CpuSet::MAX_CPU) {
            set.set(cpu);
        }
        set
    }
}

/// A mask was not honoured; the thread runs unpinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinWarning {
    pub mask: String,
    pub reason: String,
}

impl fmt::Display for PinWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPU mask {} is not honoured, the thread is not pinned: {}", self.mask, self.reason)
    }
}

impl fmt::Display for CpuMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, cpu) in self.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{cpu}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for CpuMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuMask{self}")
    }
}

impl FromStr for CpuMask {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).ok_or_else(|| Error::Parse {
            what: "CPU mask",
            expected: "logical CPUs from 0 to 1023 such as [1], [2,3], 1 or 2-3",
            found: text.to_owned(),
        })
    }
}

fn parse(text: &str) -> Option<CpuMask> {
    let text = text.trim();
    let list = match text.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None => text,
    };
    let mut mask = CpuMask::EMPTY;
    for item in list.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last) = (parse_cpu(first)?, parse_cpu(last)?);
        if first > last {
            return None;
        }
        for cpu in first..=last {
            mask.words[cpu / 64] |= 1 << (cpu % 64);
        }
    }
    Some(mask)
}

fn parse_cpu(text: &str) -> Option<usize> {
    let text = text.trim();
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|&cpu| cpu < CPUS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn accepted_forms_are_parsed() {
        for (text, cpus) in [
            ("[1]", vec![1]),
            ("[2,3]", vec![2, 3]),
            ("1", vec![1]),
            ("2-3", vec![2, 3]),
            (" [ 0, 4-6 ] ", vec![0, 4, 5, 6]),
            ("1023", vec![1023]),
            ("3,3", vec![3]),
        ] {
            let mask: CpuMask = text.parse().unwrap();
            assert_eq!(mask.iter().collect::<Vec<_>>(), cpus, "{text}");
            assert_eq!(Some(mask), CpuMask::of(&cpus));
        }
        for text in ["", "[]", "[1", "1]", "1024", "3-2", "-1", "+1", "a", "1,,2", "0-99999999999999999999", "[[1]]"] {
            let error = text.parse::<CpuMask>().unwrap_err().to_string();
            assert!(error.contains("such as [1]"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn mask_round_trip(cpus in proptest::collection::vec(0..CPUS_MAX, 1..20)) {
            let mask = CpuMask::of(&cpus).unwrap();
            prop_assert_eq!(mask.to_string().parse::<CpuMask>().unwrap(), mask);
        }

        #[test]
        fn no_text_makes_parsing_panic(text in "[-,0-9\\[\\] ]{0,24}|.{0,24}") {
            let _ = text.parse::<CpuMask>();
        }
    }

    #[test]
    fn missing_cpus_are_named() {
        let machine: CpuMask = "0-1".parse().unwrap();
        let warning = "[1,2,7]".parse::<CpuMask>().unwrap().check(&machine).unwrap_err().to_string();
        assert!(warning.contains("[1,2,7]") && warning.contains("[0,1]") && warning.contains("[2,7]"), "{warning}");
        assert_eq!("[1]".parse::<CpuMask>().unwrap().check(&machine), Ok(()));
    }

    #[test]
    fn only_existing_cpus_are_pinned() {
        let before = CpuMask::of_current_thread().unwrap();
        let first = before.iter().next().unwrap();
        std::thread::spawn(move || {
            let warning = CpuMask::of(&[1023]).unwrap().pin_current_thread().unwrap_err();
            assert!(warning.to_string().contains("not pinned"), "{warning}");
            assert_eq!(CpuMask::of_current_thread().unwrap(), before);
            let one = CpuMask::of(&[first]).unwrap();
            one.pin_current_thread().unwrap();
            assert_eq!(CpuMask::of_current_thread().unwrap(), one);
            let inherited = std::thread::spawn(|| CpuMask::of_current_thread().unwrap()).join().unwrap();
            assert_eq!(inherited, one);
            let helper = crate::thread::spawn_helper("helper", || CpuMask::of_current_thread().unwrap()).unwrap();
            assert_eq!(helper.join().unwrap(), before);
        })
        .join()
        .unwrap();
    }
}
