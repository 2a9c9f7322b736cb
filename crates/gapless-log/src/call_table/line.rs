//! [`Line`]: callers that wait for a free slot. They are called by class, 8 : 4 : 2 : 1 as workers take requests, those of one class in
//! the order in which they came.
//!
//! A caller that is called takes a moment to come. Until then its slot is kept from what is less urgent; a call of its own class that
//! comes just then may have it, because a slot that waits for a sleeper is one that nobody uses. Who was overtaken so `OVERTAKEN_MAX`
//! times has the next slot for itself. One that does not come loses it after `LOOKS_MAX` looks at the line: a task that is not polled
//! holds up nobody for longer.
//!
//! What has a slot without being called has it from its class's turns: the class is passed over when it would be called next, so that
//! what comes at once does not change the shares. A caller that was called in vain gives its class the turn back.
//!
//! Pure: no lock, no clock.

use super::{CLASS_TURNS, CLASSES};
use std::collections::BTreeMap;
use std::task::Waker;

/// A caller's place in the line: given once, and kept until its request is offered.
pub type PlaceInLine = u64;

/// So often a caller that was called finds its slot taken by another of its class, at most.
const OVERTAKEN_MAX: u8 = 8;

/// So many looks at the line a caller has its place, or its slot, without a look of its own. They are 10 ms apart, and a thread on a machine
/// that is busy may get no turn for longer.
const LOOKS_MAX: u8 = 10;

/// So many turns a class may be ahead, or behind, at most.
const AHEAD_MAX: i8 = 60;

/// See the head of the file.
#[derive(Debug, Default)]
pub struct Line {
    waiting: [BTreeMap<PlaceInLine, WaitingCaller>; CLASSES],
    /// Those that were called and have not come.
    called: BTreeMap<PlaceInLine, Called>,
    turn: usize,
    /// Turns that each class has had beyond its own, or, below 0, has not had.
    ahead: [i8; CLASSES],
}

#[derive(Debug)]
struct WaitingCaller {
    /// Woken when it is called; `None` if it was woken already since it has looked.
    task: Option<Waker>,
    /// Looks at the line since it has looked itself.
    looks: u8,
    overtaken: u8,
}

#[derive(Clone, Debug)]
struct Called {
    class: u8,
    /// Looks at the line since it was called.
    looks: u8,
    overtaken: u8,
}

impl Line {
    /// It waits from now on; or still, and then it is woken as it says now. The task that it takes the place of is to be dropped
    /// without a lock.
    pub fn enter(&mut self, class: u8, place: PlaceInLine, task: Option<Waker>) -> Option<Waker> {
        if self.is_empty() {
            self.ahead = [0; CLASSES];
        }
        // Called, and come to nothing: another was faster.
        let overtaken = self.called.remove(&place).map_or(0, |called| {
            self.change_ahead(called.class.into(), -1);
            called.overtaken.saturating_add(1)
        });
        let waiting = &mut self.waiting[usize::from(class) % CLASSES];
        let before = waiting.insert(place, WaitingCaller { task, looks: 0, overtaken })?;
        if let Some(again) = waiting.get_mut(&place) {
            again.overtaken = before.overtaken;
        }
        before.task
    }

    /// It has its slot, or waits no more. True if it was called; with its task, which is to be dropped without a lock.
    pub fn leave(&mut self, place: PlaceInLine) -> (bool, Option<Waker>) {
        let was_called = self.called.remove(&place).is_some();
        let waiting = self.waiting.iter_mut().find_map(|class| class.remove(&place));
        (was_called, waiting.and_then(|waiting| waiting.task))
    }

    /// A call of that class has a slot without having been called.
    pub fn overtaken_by(&mut self, class: u8) {
        if !self.is_empty() {
            self.change_ahead(usize::from(class) % CLASSES, 1);
        }
    }

    fn change_ahead(&mut self, class: usize, by: i8) {
        self.ahead[class] = self.ahead[class].saturating_add(by).clamp(-AHEAD_MAX, AHEAD_MAX);
    }

    /// How many were called and have not come.
    pub fn called(&self) -> usize {
        self.called.len()
    }

    /// How many slots are kept from a call of that class that was not called.
    pub fn kept_from(&self, class: u8) -> usize {
        let is_kept = |called: &&Called| called.class < class || called.overtaken >= OVERTAKEN_MAX;
        self.called.values().filter(is_kept).count()
    }

    /// Whether it was called and has not come.
    #[must_use]
    pub fn is_called(&self, place: PlaceInLine) -> bool {
        self.called.contains_key(&place)
    }

    /// Whether nobody waits, called or not.
    pub fn is_empty(&self) -> bool {
        self.called.is_empty() && self.waiting.iter().all(BTreeMap::is_empty)
    }

    /// Calls the next to a slot. `None` if nobody waits; its task, if it has not been woken.
    pub fn call(&mut self) -> Option<Option<Waker>> {
        let class = self.next_class()?;
        let (place, waiting) = self.waiting[class].pop_first()?;
        self.called.insert(place, Called { class: class as u8, looks: 0, overtaken: waiting.overtaken });
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
        // Where all are ahead the turn decides as ever.
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

    /// Everybody is to look: tasks that are to be woken go into `woken`.
    pub fn wake(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.waiting.iter_mut().flat_map(BTreeMap::values_mut).filter_map(|waiting| waiting.task.take()));
    }

    /// A look at the line, now and then: everybody is to look, and who has not for long is forgotten. It finds its place again when it
    /// looks.
    pub fn look(&mut self, woken: &mut Vec<Waker>) {
        let is_kept = |looks: &mut u8| {
            *looks += 1;
            *looks < LOOKS_MAX
        };
        self.called.retain(|_, called| is_kept(&mut called.looks));
        self.waiting.iter_mut().for_each(|class| class.retain(|_, waiting| is_kept(&mut waiting.looks)));
        self.wake(woken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Places from 0 on, of these classes.
    fn line(classes: impl IntoIterator<Item = u8>) -> Line {
        let mut line = Line::default();
        for (place, class) in classes.into_iter().enumerate() {
            assert!(line.enter(class, place as PlaceInLine, Some(Waker::noop().clone())).is_none());
        }
        line
    }

    /// The place that is called next.
    fn next(line: &mut Line) -> Option<PlaceInLine> {
        let before = line.called.clone();
        line.call()?;
        line.called.keys().find(|place| !before.contains_key(place)).copied()
    }

    #[test]
    fn classes_are_called_eight_to_four_to_two_to_one_and_each_in_order() {
        let mut line = line((0..4 * 30).map(|number| (number % 4) as u8));
        let mut called = [const { Vec::new() }; 4];
        for _ in 0..30 {
            let place = next(&mut line).unwrap();
            called[(place % 4) as usize].push(place);
        }
        assert_eq!(called.each_ref().map(Vec::len), [16, 8, 4, 2]);
        assert!(called.iter().all(|places| places.is_sorted()), "{called:?}");
        // A class that is alone is not held back, and none is forgotten.
        let rest = std::iter::from_fn(|| next(&mut line)).count();
        assert_eq!((rest, line.called()), (90, 120));
    }

    /// Sixty callers of each class on 64 slots: who is answered calls again at once, who was called comes after two others.
    #[test]
    fn the_shares_hold_where_callers_are_many_and_call_again_at_once() {
        const SLOTS: usize = 64;
        let (mut line, mut slots, mut free) = (Line::default(), [const { VecDeque::new() }; CLASSES], SLOTS);
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
    fn a_slot_is_kept_from_what_is_less_urgent_and_in_the_end_from_all() {
        let mut line = line([1]);
        for _ in 0..OVERTAKEN_MAX {
            assert_eq!(next(&mut line), Some(0));
            assert_eq!((0..4).map(|class| line.kept_from(class)).collect::<Vec<_>>(), [0, 0, 1, 1]);
            // Another of its class has it. To look twice is not to be overtaken twice.
            line.enter(1, 0, None);
            line.enter(1, 0, None);
        }
        assert_eq!(next(&mut line), Some(0));
        assert_eq!((0..4).map(|class| line.kept_from(class)).collect::<Vec<_>>(), [1; 4]);
    }

    #[test]
    fn who_looks_again_keeps_its_place_and_who_does_not_for_long_is_forgotten() {
        let mut line = line([1, 1, 1]);
        // A look of its own moves nobody.
        assert!(line.enter(1, 0, Some(Waker::noop().clone())).is_some());
        assert_eq!(next(&mut line), Some(0));
        // It found no slot, and is the first again.
        assert!(line.is_called(0));
        line.enter(1, 0, Some(Waker::noop().clone()));
        assert!(!line.is_called(0));
        assert_eq!(next(&mut line), Some(0));
        let mut woken = Vec::new();
        line.look(&mut woken);
        assert_eq!((woken.len(), line.called()), (2, 1), "the others are woken");
        line.enter(1, 2, None);
        (1..LOOKS_MAX).for_each(|_| line.look(&mut woken));
        assert_eq!((woken.len(), line.called()), (2, 0), "the slot of the first is another's");
        assert_eq!((next(&mut line), next(&mut line)), (Some(2), None));
        // Late as it is, it is before those that came after it.
        line.enter(1, 3, None);
        line.enter(1, 1, None);
        assert_eq!(next(&mut line), Some(1));
        assert!(!line.leave(3).0, "no slot was kept for it");
        assert!(line.leave(2).0 && line.leave(1).0 && line.is_empty());
    }
}
