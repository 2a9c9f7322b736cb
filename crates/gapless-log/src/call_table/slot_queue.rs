//! [`SlotQueue`]: callers that wait for a free slot, called by class (8 : 4 : 2 : 1) and in order of arrival within a
//! class. Until a called caller comes, its slot is kept from less urgent calls, but a new call of the same class may
//! have it. A caller overtaken `OVERTAKEN_MAX` times gets the next slot to itself; one that does not come loses its
//! slot after `CHECKS_MAX` checks of the line.
//!
//! A slot obtained without being called counts as a turn of its class, so that newcomers do not change the shares.

use super::{CLASS_TURNS, CLASSES};
use std::collections::BTreeMap;
use std::task::Waker;

pub type QueuePlace = u64;

/// Limit of times that a called caller finds its slot taken by its own class.
const OVERTAKEN_MAX: u8 = 8;

/// Checks of the line, 10 ms apart, after which a caller that has not polled by itself loses its place or slot: a
/// thread on a busy machine may not run for longer.
const CHECKS_MAX: u8 = 10;

/// Limit of turns that a class may lead or lag.
const AHEAD_MAX: i8 = 60;

#[derive(Debug, Default)]
pub struct SlotQueue {
    waiting: [BTreeMap<QueuePlace, WaitingCaller>; CLASSES],
    called: BTreeMap<QueuePlace, CalledCaller>,
    turn: usize,
    /// Turns in excess, per class.
    ahead: [i8; CLASSES],
}

#[derive(Debug)]
struct WaitingCaller {
    /// `None` if it was woken and has not polled since.
    task: Option<Waker>,
    /// Looks at the line since it has looked itself.
    checks: u8,
    overtaken: u8,
}

#[derive(Clone, Debug)]
struct CalledCaller {
    class: u8,
    checks: u8,
    overtaken: u8,
}

impl SlotQueue {
    /// Enters the line, or replaces the task to wake. Drop the returned task without a lock.
    pub fn enter(&mut self, class: u8, place: QueuePlace, task: Option<Waker>) -> Option<Waker> {
        if self.is_empty() {
            self.ahead = [0; CLASSES];
        }
        // Called in vain: another call was faster.
        let overtaken = self.called.remove(&place).map_or(0, |called| {
            self.change_ahead(called.class.into(), -1);
            called.overtaken.saturating_add(1)
        });
        let waiting = &mut self.waiting[usize::from(class) % CLASSES];
        let before = waiting.insert(place, WaitingCaller { task, checks: 0, overtaken })?;
        if let Some(again) = waiting.get_mut(&place) {
            again.overtaken = before.overtaken;
        }
        before.task
    }

    /// Returns whether it was called, and its task, to be dropped without a lock.
    pub fn leave(&mut self, place: QueuePlace) -> (bool, Option<Waker>) {
        let was_called = self.called.remove(&place).is_some();
        let waiting = self.waiting.iter_mut().find_map(|class| class.remove(&place));
        (was_called, waiting.and_then(|waiting| waiting.task))
    }

    pub fn overtaken_by(&mut self, class: u8) {
        if !self.is_empty() {
            self.change_ahead(usize::from(class) % CLASSES, 1);
        }
    }

    fn change_ahead(&mut self, class: usize, by: i8) {
        self.ahead[class] = self.ahead[class].saturating_add(by).clamp(-AHEAD_MAX, AHEAD_MAX);
    }

    pub fn called(&self) -> usize {
        self.called.len()
    }

    pub fn kept_from(&self, class: u8) -> usize {
        let is_kept = |called: &&CalledCaller| called.class < class || called.overtaken >= OVERTAKEN_MAX;
        self.called.values().filter(is_kept).count()
    }

    #[must_use]
    pub fn is_called(&self, place: QueuePlace) -> bool {
        self.called.contains_key(&place)
    }

    pub fn is_empty(&self) -> bool {
        self.called.is_empty() && self.waiting.iter().all(BTreeMap::is_empty)
    }

    /// `None` if no one waits; the inner value is the task, if not woken yet.
    pub fn call(&mut self) -> Option<Option<Waker>> {
        let class = self.next_class()?;
        let (place, waiting) = self.waiting[class].pop_first()?;
        self.called.insert(place, CalledCaller { class: class as u8, checks: 0, overtaken: waiting.overtaken });
        Some(waiting.task)
    }

    fn next_class(&mut self) -> Option<usize> {
        let is_waiting = self.waiting.each_ref().map(|class| !class.is_empty());
        let has_any = |class: &usize| is_waiting[*class];
        if let Some(behind) = (0..CLASSES).filter(has_any).find(|class| self.ahead[*class] < 0) {
            self.ahead[behind] += 1;
            return Some(behind);
        }
        let due: [bool; CLASSES] = std::array::from_fn(|class| is_waiting[class] && self.ahead[class] <= 0);
        let may_pass = due.contains(&true);
        loop {
            let preferred = usize::from(CLASS_TURNS[self.turn]);
            self.turn = (self.turn + 1) % CLASS_TURNS.len();
            if may_pass && self.ahead[preferred] > 0 {
                self.ahead[preferred] -= 1;
                continue;
            }
            return Some(preferred)
                .filter(has_any)
                .or_else(|| (0..CLASSES).find(|class| due[*class]))
                .or_else(|| (0..CLASSES).find(has_any));
        }
    }

    pub fn wake(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.waiting.iter_mut().flat_map(BTreeMap::values_mut).filter_map(|waiting| waiting.task.take()));
    }

    /// Periodic check of the line: wakes everyone, and forgets callers that have not polled for long; such a caller
    /// gets its place back when it polls.
    pub fn check_callers(&mut self, woken: &mut Vec<Waker>) {
        let is_kept = |checks: &mut u8| {
            *checks += 1;
            *checks < CHECKS_MAX
        };
        self.called.retain(|_, called| is_kept(&mut called.checks));
        self.waiting.iter_mut().for_each(|class| class.retain(|_, waiting| is_kept(&mut waiting.checks)));
        self.wake(woken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn line(classes: impl IntoIterator<Item = u8>) -> SlotQueue {
        let mut line = SlotQueue::default();
        for (place, class) in classes.into_iter().enumerate() {
            assert!(line.enter(class, place as QueuePlace, Some(Waker::noop().clone())).is_none());
        }
        line
    }

    fn next(line: &mut SlotQueue) -> Option<QueuePlace> {
        let before = line.called.clone();
        line.call()?;
        line.called.keys().find(|place| !before.contains_key(place)).copied()
    }

    #[test]
    fn classes_are_called_8_4_2_1() {
        let mut line = line((0..4 * 30).map(|number| (number % 4) as u8));
        let mut called = [const { Vec::new() }; 4];
        for _ in 0..30 {
            let place = next(&mut line).unwrap();
            called[(place % 4) as usize].push(place);
        }
        assert_eq!(called.each_ref().map(Vec::len), [16, 8, 4, 2]);
        assert!(called.iter().all(|places| places.is_sorted()), "{called:?}");
        let rest = std::iter::from_fn(|| next(&mut line)).count();
        assert_eq!((rest, line.called()), (90, 120));
    }

    #[test]
    fn shares_hold_under_repeated_calls() {
        const SLOTS: usize = 64;
        let (mut line, mut slots, mut free) = (SlotQueue::default(), [const { VecDeque::new() }; CLASSES], SLOTS);
        let (mut called, mut answered, mut turn) = (VecDeque::new(), [0_u32; CLASSES], 0);
        let mut to_call: VecDeque<_> = (0..4 * 60).map(|place| (place, false)).collect();
        while answered.iter().sum::<u32>() < 15_000 {
            while let Some((place, was_called)) = to_call.pop_front() {
                let class = (place % 4) as u8;
                let (kept, has_turn) = (line.kept_from(class), line.is_called(place));
                if free > if has_turn { 0 } else { kept } {
                    free -= 1;
                    slots[usize::from(class)].push_back(place);
                    if !has_turn {
                        line.overtaken_by(class);
                    }
                    line.leave(place);
                } else {
                    assert!(!was_called || line.called() > 0);
                    line.enter(class, place, Some(Waker::noop().clone()));
                }
                while free > line.called()
                    && let Some(place) = next(&mut line)
                {
                    called.push_back(place);
                }
            }
            let preferred = usize::from(CLASS_TURNS[turn]);
            turn = (turn + 1) % CLASS_TURNS.len();
            let has_any = |class: &usize| !slots[*class].is_empty();
            let class = Some(preferred).filter(has_any).or_else(|| (0..CLASSES).find(has_any)).unwrap();
            let place = slots[class].pop_front().unwrap();
            answered[class] += 1;
            free += 1;
            while free > line.called()
                && let Some(place) = next(&mut line)
            {
                called.push_back(place);
            }
            to_call.push_back((place, false));
            if called.len() > 2 {
                to_call.extend(called.pop_front().map(|place| (place, true)));
            }
        }
        let expected = [8_000, 4_000, 2_000, 1_000_u32];
        let is_near = |(answered, expected): (&u32, u32)| answered.abs_diff(expected) <= expected / 20;
        assert!(answered.iter().zip(expected).all(is_near), "{answered:?}");
    }

    #[test]
    fn called_slot_is_kept_from_others() {
        let mut line = line([1]);
        for _ in 0..OVERTAKEN_MAX {
            assert_eq!(next(&mut line), Some(0));
            assert_eq!((0..4).map(|class| line.kept_from(class)).collect::<Vec<_>>(), [0, 0, 1, 1]);
            line.enter(1, 0, None);
            line.enter(1, 0, None);
        }
        assert_eq!(next(&mut line), Some(0));
        assert_eq!((0..4).map(|class| line.kept_from(class)).collect::<Vec<_>>(), [1; 4]);
    }

    #[test]
    fn polling_keeps_the_place() {
        let mut line = line([1, 1, 1]);
        assert!(line.enter(1, 0, Some(Waker::noop().clone())).is_some());
        assert_eq!(next(&mut line), Some(0));
        assert!(line.is_called(0));
        line.enter(1, 0, Some(Waker::noop().clone()));
        assert!(!line.is_called(0));
        assert_eq!(next(&mut line), Some(0));
        let mut woken = Vec::new();
        line.check_callers(&mut woken);
        assert_eq!((woken.len(), line.called()), (2, 1), "the others are woken");
        line.enter(1, 2, None);
        (1..CHECKS_MAX).for_each(|_| line.check_callers(&mut woken));
        assert_eq!((woken.len(), line.called()), (2, 0), "the first loses its slot");
        assert_eq!((next(&mut line), next(&mut line)), (Some(2), None));
        line.enter(1, 3, None);
        line.enter(1, 1, None);
        assert_eq!(next(&mut line), Some(1));
        assert!(!line.leave(3).0, "no slot was kept for it");
        assert!(line.leave(2).0 && line.leave(1).0 && line.is_empty());
    }
}
