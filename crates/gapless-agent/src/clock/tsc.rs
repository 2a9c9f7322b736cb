//! [`check`] must pass before the counter is read.

#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn read() -> u64 {
    // SAFETY: reads a register and touches no memory; every x86-64 processor has the instruction.
    // `check` has passed before a clock over it is made.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn read() -> u64 {
    unreachable!("no clock is made over a counter that is not there")
}

/// The counter must run at a constant rate through every sleep state, and the kernel must trust it.
pub(crate) fn check() -> Result<(), String> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("this processor is not an x86-64".to_owned());
    }
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").map_err(|error| format!("/proc/cpuinfo: {error}"))?;
    check_flags(&cpuinfo)?;
    let kernels_choice = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    check_kernels_choice(&std::fs::read_to_string(kernels_choice).unwrap_or_default())
}

fn check_flags(cpuinfo: &str) -> Result<(), String> {
    let mut lines = cpuinfo.lines().filter(|line| line.starts_with("flags")).peekable();
    if lines.peek().is_none() {
        return Err("/proc/cpuinfo lists no flags".to_owned());
    }
    for line in lines {
        for wanted in ["constant_tsc", "nonstop_tsc"] {
            if !line.split_ascii_whitespace().any(|flag| flag == wanted) {
                return Err(format!("/proc/cpuinfo lacks the flag {wanted}"));
            }
        }
    }
    Ok(())
}

fn check_kernels_choice(current: &str) -> Result<(), String> {
    let current = current.trim();
    match current {
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" => {
            Err(format!("the kernel does not trust it and uses {current}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_constant_rate_counter_is_used() {
        let good = "processor : 0\nflags\t\t: fpu constant_tsc rdtscp nonstop_tsc\n";
        assert_eq!(check_flags(good), Ok(()));
        for (text, lacking) in [
            ("flags : fpu nonstop_tsc", "constant_tsc"),
            ("flags : fpu constant_tsc", "nonstop_tsc"),
            ("flags : constant_tsc_not nonstop_tsc", "constant_tsc"),
            ("flags : constant_tsc nonstop_tsc\nflags : constant_tsc", "nonstop_tsc"),
            ("", "no flags"),
        ] {
            assert!(check_flags(text).unwrap_err().contains(lacking), "{text}");
        }
        assert_eq!(check_kernels_choice("tsc\n"), Ok(()));
        assert_eq!(check_kernels_choice("kvm-clock\n"), Ok(()));
        assert!(check_kernels_choice("hpet\n").unwrap_err().contains("hpet"));
    }
}
