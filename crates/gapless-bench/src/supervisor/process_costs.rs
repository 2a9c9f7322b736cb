//! Memory of a process, by `/proc`.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ResidentMemory {
    /// Shared pages included.
    pub(super) resident_bytes: u64,
    /// Each shared page divided by its users.
    pub(super) proportional_bytes: u64,
}

/// Zero for a process that has ended.
pub(super) fn memory(pid: u32) -> ResidentMemory {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let bytes = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        let kibibytes = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
        kibibytes.unwrap_or(0) * 1024
    };
    ResidentMemory { resident_bytes: bytes("Rss:"), proportional_bytes: bytes("Pss:") }
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_process_has_memory() {
        let this = std::process::id();
        let memory = super::memory(this);
        assert!(
            memory.resident_bytes >= memory.proportional_bytes && memory.proportional_bytes > 100_000,
            "{memory:?}"
        );
        assert_eq!(super::memory(u32::MAX), super::ResidentMemory::default());
    }
}
