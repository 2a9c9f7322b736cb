use gapless_agent::atomic_word::AtomicWord;
use loom::sync::atomic::{AtomicU64, fence};
use std::sync::atomic::Ordering;

macro_rules! loom_word {
    ($name:ident, $fence:expr) => {
        pub struct $name(AtomicU64);
        impl AtomicWord for $name {
            fn new(value: u64) -> Self {
                Self(AtomicU64::new(value))
            }
            fn load(&self, ordering: Ordering) -> u64 {
                self.0.load(ordering)
            }
            fn store(&self, value: u64, ordering: Ordering) {
                self.0.store(value, ordering);
            }
            fn swap(&self, value: u64, ordering: Ordering) -> u64 {
                self.0.swap(value, ordering)
            }
            fn add(&self, value: u64, ordering: Ordering) {
                self.0.fetch_add(value, ordering);
            }
            fn replace(&self, current: u64, new: u64, ordering: Ordering) -> bool {
                self.0.compare_exchange(current, new, ordering, Ordering::Relaxed).is_ok()
            }
            fn fence(ordering: Ordering) {
                let fence: fn(Ordering) = $fence;
                fence(ordering);
            }
        }
    };
}

loom_word!(Word, fence);
loom_word!(WordWithoutFences, |_| {});
