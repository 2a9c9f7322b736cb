//! A lone message finds little of its data in the caches, and each miss that nothing overlaps costs as much as the
//! message's checksum.

const LINE_LENGTH: usize = 64;

/// A few small messages.
pub const AHEAD_BYTES: usize = 512;

/// Bytes: a miss to memory or to another core's cache takes as long as several small frames.
pub const BACKLOG_AHEAD_BYTES: usize = 2048;

/// Frames of a backlog whose sessions are prefetched together, so that their misses overlap.
pub const FRAMES_AHEAD: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
pub struct FramesAhead(usize);

impl FramesAhead {
    /// Advances by one frame. If its session was not prefetched, calls `ask` to prefetch up to as many sessions as its
    /// array holds; `ask` returns their number.
    #[inline]
    pub fn step(&mut self, ask: impl FnOnce(&mut [u64; FRAMES_AHEAD]) -> usize) {
        if self.0 == 0 {
            self.0 = ask(&mut [0; FRAMES_AHEAD]);
        }
        self.0 = self.0.saturating_sub(1);
    }
}

/// Does nothing on processors without such an instruction.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    prefetch_bytes(std::ptr::from_ref(value).cast::<u8>(), size_of_val(value));
}

/// Takes the lines of the next [`AHEAD_BYTES`] bytes away from other processors. The range need not be mapped.
#[inline]
pub fn prefetch_for_writing(start: *const u8) {
    prefetch_bytes_for_writing(start, AHEAD_BYTES);
}

/// Like [`prefetch_for_writing`].
#[inline]
pub fn prefetch_bytes_for_writing(start: *const u8, length: usize) {
    for offset in (0..length).step_by(LINE_LENGTH) {
        line_for_writing(start.wrapping_add(offset));
    }
}

/// The range need not be mapped.
#[inline]
pub fn prefetch_bytes(start: *const u8, length: usize) {
    for offset in (0..length).step_by(LINE_LENGTH) {
        line(start.wrapping_add(offset));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
fn line(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction is part of the baseline, never faults at any address, and changes no memory.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
#[allow(unsafe_code)]
fn line_for_writing(address: *const u8) {
    // SAFETY: the instruction never faults at any address and changes no memory; it is a no-op on processors that do
    // not know it. The intrinsic would need a target feature to become this instruction.
    unsafe { std::arch::asm!("prefetchw [{0}]", in(reg) address, options(nostack, preserves_flags, readonly)) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn line(_address: *const u8) {}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
fn line_for_writing(_address: *const u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetch_changes_nothing() {
        let bytes: Vec<u8> = (0..=255).collect();
        for length in [0, 1, 63, 64, 65, 256] {
            prefetch(&bytes[..length]);
            prefetch_for_writing(bytes[256 - length..].as_ptr());
        }
        assert!(bytes.iter().copied().eq(0..=255));
        prefetch(&());
        prefetch_bytes(std::ptr::null(), 200);
        prefetch_for_writing(std::ptr::null());
    }
}
