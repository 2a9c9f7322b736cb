//! [`Classes`]: four queues, one for each priority, served 8 : 4 : 2 : 1 by weighted round robin. A class waits at most
//! one round (15 takes), and is never held back alone.

use crate::overflow::Priority;
use std::collections::VecDeque;

pub const CLASSES: usize = 4;

/// Takes of each class in one round.
pub const WEIGHTS: [u8; CLASSES] = [8, 4, 2, 1];

/// Four queues, served by their weights.
#[derive(Debug)]
pub struct Classes<T> {
    queues: [VecDeque<T>; CLASSES],
    credits: [u8; CLASSES],
    length: usize,
}

impl<T> Default for Classes<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Classes<T> {
    #[must_use]
    pub fn new() -> Self {
        Self { queues: std::array::from_fn(|_| VecDeque::new()), credits: WEIGHTS, length: 0 }
    }

    /// Number of items in all classes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Number of items in one class.
    #[must_use]
    pub fn len_of(&self, class: Priority) -> usize {
        self.queues[class as usize].len()
    }

    pub fn push(&mut self, class: Priority, item: T) {
        self.queues[class as usize].push_back(item);
        self.length += 1;
    }

    /// Takes the next item by the weights, with its class.
    pub fn take(&mut self) -> Option<(Priority, T)> {
        if self.length == 0 {
            return None;
        }
        for _ in 0..2 {
            for (index, queue) in self.queues.iter_mut().enumerate() {
                if self.credits[index] == 0 {
                    continue;
                }
                if let Some(item) = queue.pop_front() {
                    self.credits[index] -= 1;
                    self.length -= 1;
                    return Some((Priority::ALL[index], item));
                }
            }
            self.credits = WEIGHTS;
        }
        unreachable!("{} items wait, and no class has one", self.length)
    }

    /// Removes the unwanted items of one class, in order, for the caller to drop.
    pub fn take_out(&mut self, class: Priority, is_unwanted: impl Fn(&T) -> bool) -> Vec<T> {
        let queue = &mut self.queues[class as usize];
        let mut unwanted = Vec::new();
        for _ in 0..queue.len() {
            let Some(item) = queue.pop_front() else { break };
            if is_unwanted(&item) {
                unwanted.push(item);
            } else {
                queue.push_back(item);
            }
        }
        self.length -= unwanted.len();
        unwanted
    }

    /// Takes all items, the most urgent class first.
    pub fn take_all(&mut self) -> Vec<T> {
        self.length = 0;
        self.queues.iter_mut().flat_map(std::mem::take).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::random::Random;

    #[test]
    fn shares_are_exact_by_weight() {
        let mut classes = Classes::new();
        for number in 0..1_000 {
            Priority::ALL.iter().for_each(|&class| classes.push(class, number));
        }
        for round in 1..=60_usize {
            let mut served = [0_u8; CLASSES];
            for _ in 0..15 {
                served[classes.take().unwrap().0 as usize] += 1;
            }
            assert_eq!(served, WEIGHTS, "round {round}");
        }
    }

    #[test]
    fn empty_class_costs_nothing() {
        let mut classes = Classes::new();
        (0..300).for_each(|number| {
            classes.push(Priority::High, number);
            classes.push(Priority::Low, number);
        });
        let mut served = [0; CLASSES];
        (0..100).for_each(|_| served[classes.take().unwrap().0 as usize] += 1);
        assert_eq!(served, [0, 80, 0, 20]);
    }

    #[test]
    fn wait_is_bounded_and_order_kept() {
        let mut random = Random::seeded();
        let mut classes = Classes::new();
        let (mut pushed, mut taken) = ([0_u64; CLASSES], [0_u64; CLASSES]);
        let mut waits = [0; CLASSES];
        for _ in 0..200_000 {
            if random.happens(500) {
                let class = random.pick(&Priority::ALL);
                classes.push(class, pushed[class as usize]);
                pushed[class as usize] += 1;
            } else if let Some((class, number)) = classes.take() {
                let class = class as usize;
                assert_eq!(number, taken[class]);
                taken[class] += 1;
                for other in 0..CLASSES {
                    waits[other] = if other == class || pushed[other] == taken[other] { 0 } else { waits[other] + 1 };
                    assert!(waits[other] <= 2 * 14, "class {other} was passed {} times", waits[other]);
                }
            }
            assert_eq!(classes.len() as u64, pushed.iter().sum::<u64>() - taken.iter().sum::<u64>());
        }
    }

    #[test]
    fn removal_keeps_order() {
        let mut classes = Classes::new();
        (0..10).for_each(|number| classes.push(Priority::Normal, number));
        assert_eq!(classes.take_out(Priority::Normal, |number| number % 3 == 0), [0, 3, 6, 9]);
        assert_eq!((classes.len(), classes.len_of(Priority::Normal)), (6, 6));
        assert_eq!(classes.take_all(), [1, 2, 4, 5, 7, 8]);
        assert!(classes.take().is_none());
    }
}
