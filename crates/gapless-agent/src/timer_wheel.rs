//! A hashed wheel (Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP 1987, scheme 6): 512 slots of 1
//! ms, each a doubly linked list through a slab. Items further away than a turn are skipped once a turn.

const SLOTS: usize = 512;
const TICK_NS: u64 = 1_000_000;
const NONE: u32 = u32::MAX;

/// Key of an item; stale after it has left.
#[derive(Clone, Copy, Debug)]
pub struct WheelKey {
    index: u32,
    generation: u32,
}

#[derive(Debug)]
struct WheelEntry<T> {
    deadline_ns: u64,
    item: Option<T>,
    generation: u32,
    slot: u32,
    previous: u32,
    next: u32,
}

#[derive(Debug)]
pub struct Wheel<T> {
    entries: Vec<WheelEntry<T>>,
    free: u32,
    slots: Box<[u32]>,
    length: usize,
    /// All slots before this tick have been checked.
    tick: u64,
}

impl<T> Default for Wheel<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: NONE, slots: vec![NONE; SLOTS].into(), length: 0, tick: 0 }
    }
}

impl<T> Wheel<T> {
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub fn insert(&mut self, deadline_ns: u64, item: T) -> WheelKey {
        // An expired deadline is found by the next check.
        let slot = ((deadline_ns / TICK_NS).max(self.tick) % SLOTS as u64) as u32;
        let next = self.slots[slot as usize];
        let index = if self.free == NONE {
            let index = self.entries.len() as u32;
            self.entries.push(WheelEntry { deadline_ns, item: Some(item), generation: 0, slot, previous: NONE, next });
            index
        } else {
            let index = self.free;
            let entry = &mut self.entries[index as usize];
            self.free = entry.next;
            entry.deadline_ns = deadline_ns;
            entry.item = Some(item);
            entry.slot = slot;
            entry.previous = NONE;
            entry.next = next;
            index
        };
        if next != NONE {
            self.entries[next as usize].previous = index;
        }
        self.slots[slot as usize] = index;
        self.length += 1;
        WheelKey { index, generation: self.entries[index as usize].generation }
    }

    pub fn remove(&mut self, key: WheelKey) -> Option<T> {
        let entry = self.entries.get(key.index as usize)?;
        if entry.generation != key.generation || entry.item.is_none() {
            return None;
        }
        self.unlink(key.index)
    }

    pub fn expire(&mut self, now_ns: u64, mut told: impl FnMut(T)) {
        let last = now_ns / TICK_NS;
        if self.length > 0 {
            // A whole turn covers every slot.
            let first = self.tick.max((last + 1).saturating_sub(SLOTS as u64));
            for tick in first..=last {
                let slot = (tick % SLOTS as u64) as usize;
                let mut index = self.slots[slot];
                while index != NONE {
                    let entry = &self.entries[index as usize];
                    let next = entry.next;
                    if entry.deadline_ns <= now_ns
                        && let Some(item) = self.unlink(index)
                    {
                        told(item);
                    }
                    index = next;
                }
            }
        }
        self.tick = self.tick.max(last);
    }

    /// Next check: the earliest deadline of this turn, else the end of the turn; `u64::MAX` without items.
    pub fn next_ns(&self) -> u64 {
        if self.length == 0 {
            return u64::MAX;
        }
        let end = self.tick + SLOTS as u64;
        for tick in self.tick..end {
            let mut index = self.slots[(tick % SLOTS as u64) as usize];
            let mut earliest_ns = u64::MAX;
            while index != NONE {
                let entry = &self.entries[index as usize];
                earliest_ns = earliest_ns.min(entry.deadline_ns);
                index = entry.next;
            }
            if earliest_ns < (tick + 1) * TICK_NS {
                return earliest_ns;
            }
        }
        end * TICK_NS
    }

    fn unlink(&mut self, index: u32) -> Option<T> {
        let free = self.free;
        let entry = &mut self.entries[index as usize];
        let (slot, previous, next) = (entry.slot as usize, entry.previous, entry.next);
        let item = entry.item.take();
        entry.generation = entry.generation.wrapping_add(1);
        entry.next = free;
        self.free = index;
        if previous == NONE {
            self.slots[slot] = next;
        } else {
            self.entries[previous as usize].next = next;
        }
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
        self.length -= 1;
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::random::Random;
    use std::collections::BTreeMap;

    #[test]
    fn wheel_matches_a_sorted_list() {
        let mut random = Random::seeded();
        let mut wheel = Wheel::default();
        let mut listed: BTreeMap<u64, (u64, WheelKey)> = BTreeMap::new();
        let mut gone = Vec::new();
        let mut now_ns = random.below(1 << 50);
        for number in 0..100_000_u64 {
            match random.below(4) {
                0 | 1 => {
                    let ahead_ns = random.pick(&[0, 500_000, 3_000_000, 700_000_000, 20_000_000_000]);
                    let deadline_ns = (now_ns + random.below(ahead_ns + 1)).saturating_sub(random.below(2) * 100_000);
                    listed.insert(number, (deadline_ns, wheel.insert(deadline_ns, number)));
                }
                2 => {
                    let chosen = listed.keys().nth(random.below(listed.len() as u64) as usize).copied();
                    if let Some((chosen, (_, key))) = chosen.and_then(|chosen| listed.remove_entry(&chosen)) {
                        assert_eq!(wheel.remove(key), Some(chosen));
                        gone.push(key);
                    }
                }
                _ => {
                    let earliest_ns = listed.values().map(|(deadline_ns, _)| *deadline_ns).min();
                    let next_ns = wheel.next_ns();
                    assert_eq!(next_ns == u64::MAX, earliest_ns.is_none());
                    assert!(earliest_ns.is_none_or(|earliest_ns| next_ns <= earliest_ns), "it oversleeps");
                    let step_ns = random.pick(&[2, 800_000, 10_000_000, 1_200_000_000]);
                    now_ns += random.below(step_ns);
                    let mut told = Vec::new();
                    wheel.expire(now_ns, |number| told.push(number));
                    told.sort_unstable();
                    let due: Vec<u64> =
                        listed.iter().filter(|(_, (ns, _))| *ns <= now_ns).map(|(number, _)| *number).collect();
                    assert_eq!(told, due);
                    gone.extend(due.iter().map(|number| listed.remove(number).unwrap().1));
                }
            }
            assert_eq!(wheel.len(), listed.len());
            if let Some(key) = gone.pop() {
                assert_eq!(wheel.remove(key), None, "a stale key removes nothing");
            }
        }
    }

    #[test]
    fn left_entries_are_reused() {
        let mut wheel = Wheel::default();
        for turn in 0..100_000 {
            let keys = [wheel.insert(turn, ()), wheel.insert(turn + 5_000_000_000, ())];
            keys.into_iter().for_each(|key| assert!(wheel.remove(key).is_some()));
        }
        assert_eq!(wheel.entries.len(), 2);
    }
}
