//! `OverflowCounters`: the counters of an elastic queue.

/// Content of an elastic queue, and its history since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverflowCounters {
    pub records_in_memory: u64,
    /// Records on disk, or on their way to it or back.
    pub records_on_disk: u64,
    /// Bytes in memory, with headers.
    pub memory_bytes: usize,
    /// Bytes of the segments on disk.
    pub disk_bytes: u64,
    pub spilled_records: u64,
    pub spilled_bytes: u64,
    /// Records refused for lack of room.
    pub refused_records: u64,
    /// Records that could not be read back.
    pub lost_records: u64,
}
