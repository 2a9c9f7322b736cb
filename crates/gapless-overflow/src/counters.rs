//! [`OverflowCounters`]: what an elastic queue holds and has done.

/// What an elastic queue holds and has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverflowCounters {
    /// Records in memory.
    pub records_in_memory: u64,
    /// Records on disk, and those on their way to it or back.
    pub records_on_disk: u64,
    /// Bytes in memory, with headers.
    pub memory_bytes: usize,
    /// Bytes that the segments on disk take.
    pub disk_bytes: u64,
    /// Records that went to disk, in all.
    pub spilled_records: u64,
    /// Bytes that went to disk, in all.
    pub spilled_bytes: u64,
    /// Records that were refused because there was no room.
    pub refused_records: u64,
    /// Records that could not be read back.
    pub lost_records: u64,
}
