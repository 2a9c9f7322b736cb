//! [`TurnScheduler`]: the order in which a worker takes requests: by class first (8 : 4 : 2 : 1), then in turn over
//! callers. Recently active callers are checked at each search, the others `STRIPE` at a time: of `n` callers, one that
//! begins to call is seen within `n / STRIPE` searches, rounded up. Before a worker sleeps, it checks all.

use super::{CLASS_TURNS, CLASSES};

const STRIPE: usize = 8;

const IDLE_CHECKS_MAX: u32 = 256;

#[derive(Debug, Default)]
pub struct TurnScheduler {
    active: Vec<ActiveCaller>,
    is_active: Vec<bool>,
    next_active: usize,
    next_stripe: usize,
    has_idle: bool,
    class_turn: usize,
}

#[derive(Debug)]
struct ActiveCaller {
    caller: usize,
    /// Looks since it last had a request.
    idle_checks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerTurn {
    pub caller: usize,
    pub class: usize,
    place: usize,
}

impl TurnScheduler {
    pub fn reset(&mut self, callers: usize) {
        *self = Self { is_active: vec![false; callers], class_turn: self.class_turn, ..Self::default() };
        if callers <= STRIPE {
            (0..callers).for_each(|caller| self.activate(caller));
        }
    }

    fn activate(&mut self, caller: usize) {
        self.is_active[caller] = true;
        self.active.push(ActiveCaller { caller, idle_checks: 0 });
    }

    #[must_use]
    pub const fn checks_all_callers(&self) -> bool {
        self.is_active.len() <= STRIPE
    }

    #[inline]
    pub fn find_turn(&mut self, has_offers: impl Fn(usize, usize) -> bool) -> Option<CallerTurn> {
        if self.is_active.len() > STRIPE {
            self.check_inactive_callers(STRIPE, &has_offers);
        }
        let preferred = usize::from(CLASS_TURNS[self.class_turn]);
        let mut first = [usize::MAX; CLASSES];
        let count = self.active.len();
        let mut place = self.next_active;
        for _ in 0..count {
            place = if place >= count { 0 } else { place };
            let active = &mut self.active[place];
            active.idle_checks = active.idle_checks.saturating_add(1);
            for (class, first) in first.iter_mut().enumerate() {
                if has_offers(active.caller, class) {
                    active.idle_checks = 0;
                    *first = if *first == usize::MAX { place } else { *first };
                }
            }
            self.has_idle |= active.idle_checks > IDLE_CHECKS_MAX;
            if first[preferred] != usize::MAX {
                break;
            }
            place += 1;
        }
        let class = if first[preferred] == usize::MAX {
            first.iter().position(|place| *place != usize::MAX)
        } else {
            Some(preferred)
        };
        let Some(class) = class else {
            self.forget_idle();
            return None;
        };
        let place = first[class];
        Some(CallerTurn { caller: self.active[place].caller, class, place })
    }

    #[inline]
    pub fn take(&mut self, turn: CallerTurn) {
        self.class_turn = (self.class_turn + 1) % CLASS_TURNS.len();
        self.next_active = turn.place + 1;
        self.forget_idle();
    }

    /// The check before a sleep: the next search finds the caller.
    pub fn check_all_callers(&mut self, has_offers: impl Fn(usize, usize) -> bool) -> bool {
        self.check_inactive_callers(self.is_active.len(), &has_offers);
        self.find_turn(has_offers).is_some()
    }

    #[inline]
    fn check_inactive_callers(&mut self, count: usize, has_offers: &impl Fn(usize, usize) -> bool) {
        for _ in 0..count {
            let caller = self.next_stripe;
            self.next_stripe = if caller + 1 == self.is_active.len() { 0 } else { caller + 1 };
            if !self.is_active[caller] && (0..CLASSES).any(|class| has_offers(caller, class)) {
                self.activate(caller);
            }
        }
    }

    /// Call it after a search, never before: a caller that has requests again would be missed.
    #[inline]
    fn forget_idle(&mut self) {
        if std::mem::take(&mut self.has_idle) && self.is_active.len() > STRIPE {
            self.retain_lively();
        }
    }

    #[cold]
    fn retain_lively(&mut self) {
        let Self { active, is_active, next_active, .. } = self;
        let mut place = 0;
        let mut before = 0;
        active.retain(|each| {
            let stays = each.idle_checks <= IDLE_CHECKS_MAX;
            is_active[each.caller] = stays;
            before += usize::from(!stays && place < *next_active);
            place += 1;
            stays
        });
        *next_active -= before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::random::Random;

    fn taken(turns: &mut TurnScheduler, searches: usize, has_offers: impl Fn(usize, usize) -> bool) -> Vec<usize> {
        let mut taken = Vec::new();
        for _ in 0..searches {
            if let Some(turn) = turns.find_turn(&has_offers) {
                assert!(has_offers(turn.caller, turn.class), "a turn has a request");
                turns.take(turn);
                taken.push(turn.caller);
            }
        }
        taken
    }

    #[test]
    fn callers_have_equal_shares() {
        for callers in [1, STRIPE, STRIPE + 1, 100, 256] {
            let mut turns = TurnScheduler::default();
            turns.reset(callers);
            let mut counts = vec![0; callers];
            taken(&mut turns, callers * 30, |_, class| class == 2).into_iter().for_each(|caller| counts[caller] += 1);
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(most - least <= 1, "{callers} callers: {least} to {most}");
        }
    }

    #[test]
    fn new_caller_is_seen_soon() {
        let mut random = Random::seeded();
        for callers in [STRIPE + 1, 100, 256, 1_000] {
            let mut turns = TurnScheduler::default();
            turns.reset(callers);
            for _ in 0..200 {
                let busy: Vec<_> = (0..random.below(4)).map(|_| random.below(callers as u64) as usize).collect();
                taken(&mut turns, random.below(400) as usize, |caller, class| class == 1 && busy.contains(&caller));
                let begins = random.below(callers as u64) as usize;
                let bound = callers.div_ceil(STRIPE) + turns.active.len() + 4;
                let taken = taken(&mut turns, bound, |caller, class| {
                    class == 1 && (caller == begins || busy.contains(&caller))
                });
                assert!(taken.contains(&begins), "of {callers}, {} of them active", turns.active.len());
            }
        }
    }

    #[test]
    fn idle_callers_are_forgotten() {
        let mut turns = TurnScheduler::default();
        turns.reset(256);
        taken(&mut turns, 1_000, |_, _| true);
        assert_eq!(turns.active.len(), 256);
        let taken = taken(&mut turns, 1_000, |caller, _| caller == 77);
        assert_eq!((taken.len(), turns.active.len()), (1_000, 1));
        assert!(taken.iter().all(|caller| *caller == 77));
    }

    #[test]
    fn sleep_misses_no_request() {
        let mut random = Random::seeded();
        for callers in [0, 1, STRIPE, STRIPE + 1, 256] {
            let mut turns = TurnScheduler::default();
            turns.reset(callers);
            assert!(!turns.check_all_callers(|_, _| false));
            for _ in 0..if callers == 0 { 0 } else { 500 } {
                taken(&mut turns, random.below(40) as usize, |caller, _| caller == callers / 2);
                let (caller, class) = (random.below(callers as u64) as usize, random.below(4) as usize);
                let has_offers = |at: usize, of: usize| (at, of) == (caller, class);
                assert!(turns.check_all_callers(has_offers));
                assert_eq!(turns.find_turn(has_offers).map(|turn| (turn.caller, turn.class)), Some((caller, class)));
                taken(&mut turns, random.below(600) as usize, |_, _| false);
                assert!(!turns.check_all_callers(|_, _| false));
            }
        }
    }
}
