//! Asking for memory before it is needed. A message that comes alone finds little of what it needs in the
//! processor's caches, and each miss that nothing overlaps costs as much as summing the message.

/// Bytes of a cache line.
const LINE_LENGTH: usize = 64;

/// Bytes behind a writer's position that are asked for in advance: a few small messages.
pub const AHEAD_BYTES: usize = 512;

/// Of a backlog, what lies so far ahead is asked for while a frame is copied, bytes: what comes from another core's cache,
/// or from memory, takes as long as several small frames.
pub const BACKLOG_AHEAD_BYTES: usize = 2048;

/// The sessions of so many frames of a backlog are asked for together, so that their misses overlap.
pub const FRAMES_AHEAD: usize = 8;

/// Counts the frames of a backlog whose sessions were asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct FramesAhead(usize);

impl FramesAhead {
    /// Another frame is read. If its session was not asked for, `ask` does so now, for as many frames as it has room for numbers of
    /// sessions, and returns for how many it did.
    #[inline]
    pub fn step(&mut self, ask: impl FnOnce(&mut [u64; FRAMES_AHEAD]) -> usize) {
        if self.0 == 0 {
            self.0 = ask(&mut [0; FRAMES_AHEAD]);
        }
        self.0 = self.0.saturating_sub(1);
    }
}

/// Asks the processor to bring the cache lines of `value` near, so that the look at it that follows need
/// not wait for memory. Changes nothing else; on processors without such an instruction it does nothing.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    prefetch_bytes(std::ptr::from_ref(value).cast::<u8>(), size_of_val(value));
}

/// Asks for the cache lines of the next [`AHEAD_BYTES`] bytes from `start` on, and takes them away from
/// other processors, because they will be written soon. Nothing need be mapped there.
#[inline]
pub fn prefetch_for_writing(start: *const u8) {
    prefetch_bytes_for_writing(start, AHEAD_BYTES);
}

/// As [`prefetch_for_writing`], for `length` bytes.
#[inline]
pub fn prefetch_bytes_for_writing(start: *const u8, length: usize) {
    for offset in (0..length).step_by(LINE_LENGTH) {
        line_for_writing(start.wrapping_add(offset));
    }
}

/// Asks for the cache lines of `length` bytes from `start` on, to be read. Nothing need be mapped there.
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
    // SAFETY: the instruction is part of the baseline, never faults, whatever the address, and changes
    // no memory.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
#[allow(unsafe_code)]
fn line_for_writing(address: *const u8) {
    // SAFETY: never faults, whatever the address, and changes no memory; processors that do not know
    // the instruction do nothing. The intrinsic would need a target feature to become this instruction.
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
    fn nothing_is_changed_and_no_size_is_too_small() {
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
