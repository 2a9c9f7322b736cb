//! `spin`: spinning for a while before a thread sleeps.

use crate::options::Waiting;
use gapless_agent::monotonic::{monotonic_ns, saturating_ns};

/// About a microsecond. With 64, a lone call took twice as long on two cores: a spinning thread keeps its core from the
/// thread that it woke. None under loom, which would explore each.
const LOOKS_BEFORE_PARKING: u32 = if cfg!(loom) { 0 } else { 16 };

const LOOKS_PER_CLOCK: u32 = 32;

#[inline]
pub(super) fn spin(waiting: Waiting, end_ns: u64, is_there: impl Fn() -> bool) -> bool {
    let end_ns = match waiting {
        Waiting::Park => {
            for _ in 0..LOOKS_BEFORE_PARKING {
                if is_there() {
                    return true;
                }
                std::hint::spin_loop();
            }
            return false;
        }
        Waiting::SpinFor(time) => end_ns.min(monotonic_ns().saturating_add(saturating_ns(time))),
        Waiting::Spin => end_ns,
    };
    let mut looks = 0_u32;
    while !is_there() {
        std::hint::spin_loop();
        looks = looks.wrapping_add(1);
        if end_ns != u64::MAX && looks.is_multiple_of(LOOKS_PER_CLOCK) && monotonic_ns() >= end_ns {
            return false;
        }
    }
    true
}
