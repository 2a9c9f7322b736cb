//! [`WaitQueues`]: waiting commands are decided in the order of their first arrival, which is the same in all queues.
//! Commands of a session are ordered by number. The first arrival of all waits for no other, so there is no deadlock.

use gapless_agent::fault::mutant;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// A session that could come loses its turn: its publisher may have stopped. Checks are counted, not time: while the
/// writer itself stood still, no session could come.
const TURN_CHECKS: u32 = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QueuedSession {
    session: u64,
    number: u64,
    /// Commands of one session may share it.
    arrived: u64,
}

#[derive(Debug, Default)]
pub(super) struct WaitQueue(VecDeque<QueuedSession>);

impl WaitQueue {
    fn join(&mut self, waiting: QueuedSession) {
        let at = self.0.partition_point(|other| (other.arrived, other.number) < (waiting.arrived, waiting.number));
        if self.0.get(at) != Some(&waiting) {
            self.0.insert(at, waiting);
        }
    }

    fn has(&self, session: u64, number: u64) -> bool {
        self.0.iter().any(|waiting| (waiting.session, waiting.number) == (session, number))
    }
}

struct Arrival {
    arrived: u64,
    slots: Vec<u32>,
}

#[derive(Default)]
pub(super) struct WaitQueues {
    /// Queues, each with the number of checks at which its first command could have come and did not.
    queues: FxHashMap<u32, (WaitQueue, u32)>,
    /// Arrived commands by session and number; no inner map is empty. Within a session, an earlier number never arrives
    /// after a later one.
    arrivals: FxHashMap<u64, BTreeMap<u64, Arrival>>,
    arrived: u64,
    ready: Vec<u64>,
    checked_at: Option<Instant>,
}

impl WaitQueues {
    /// Whether no command waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// Notes the arrival of a waiting command.
    pub fn record_arrival(&mut self, session: u64, number: u64) {
        self.arrival(session, number);
    }

    fn arrival(&mut self, session: u64, number: u64) -> &mut Arrival {
        let of_session = self.arrivals.entry(session).or_default();
        if !of_session.contains_key(&number) {
            // The command expired, or a later one of its session came first: it shares that arrival.
            let later = of_session.range(number..).next().filter(|_| !mutant("forget_session_order"));
            let later = later.map(|(_, later)| later.arrived);
            let arrived = later.unwrap_or_else(|| {
                self.arrived += 1;
                self.arrived
            });
            of_session.insert(number, Arrival { arrived, slots: Vec::new() });
        }
        of_session.get_mut(&number).expect("it was there or is now")
    }

    fn remove(&mut self, session: u64, number: u64) -> Option<Arrival> {
        let Entry::Occupied(mut of_session) = self.arrivals.entry(session) else { return None };
        let removed = of_session.get_mut().remove(&number);
        if of_session.get().is_empty() {
            of_session.remove();
        }
        removed
    }

    fn waiting(&mut self, slot: u32, session: u64, number: u64) -> QueuedSession {
        let arrival = self.arrival(session, number);
        if !arrival.slots.contains(&slot) {
            arrival.slots.push(slot);
        }
        QueuedSession { session, number, arrived: arrival.arrived }
    }

    /// The command waits for a load, in `queue`.
    pub fn await_load(&mut self, slot: u32, queue: &mut WaitQueue, session: u64, number: u64) {
        queue.join(self.waiting(slot, session, number));
    }

    /// Begins the turns of a loaded aggregate.
    pub fn begin_turns(&mut self, slot: u32, queue: WaitQueue) {
        let (waiting, checks) = self.queues.entry(slot).or_default();
        // Commands that were decided meanwhile need not wait.
        let arrivals = &self.arrivals;
        let waits = |waiting: &QueuedSession| {
            arrivals.get(&waiting.session).is_some_and(|of_session| of_session.contains_key(&waiting.number))
        };
        queue.0.into_iter().filter(waits).for_each(|each| waiting.join(each));
        *checks = 0;
        match waiting.0.front() {
            Some(first) => self.ready.push(first.session),
            None => _ = self.queues.remove(&slot),
        }
    }

    pub fn has(&self, slot: u32) -> bool {
        self.queues.contains_key(&slot)
    }

    /// Whether others come before this command.
    pub fn has_earlier(&self, slot: u32, session: u64, number: u64) -> bool {
        let Some(first) = self.queues.get(&slot).and_then(|(queue, _)| queue.0.front()) else { return false };
        // The command's own arrival, or the one to be shared.
        let of_session = self.arrivals.get(&session);
        let until = if mutant("forget_session_order") { number } else { u64::MAX };
        let arrival = of_session.and_then(|of_session| of_session.range(number..=until).next());
        arrival.is_none_or(|(_, arrival)| first.arrived < arrival.arrived)
    }

    /// The command waits after earlier arrivals.
    pub fn join(&mut self, slot: u32, session: u64, number: u64) {
        let waiting = self.waiting(slot, session, number);
        self.queues.entry(slot).or_default().0.join(waiting);
    }

    /// Removes a decided command; the next turn may begin.
    #[cold]
    pub fn remove_decided(&mut self, session: u64, number: u64) {
        let Some(arrival) = self.remove(session, number) else { return };
        let is_over = |first: &QueuedSession| first.session == session && first.number <= number;
        for slot in arrival.slots {
            if let Entry::Occupied(mut entry) = self.queues.entry(slot) {
                let (queue, _) = entry.get_mut();
                // The decided command may have overtaken others, and then is not the first.
                let mut is_first = true;
                queue.0.retain(|waiting| {
                    std::mem::take(&mut is_first) || (waiting.session, waiting.number) != (session, number)
                });
                if !end_turns(entry.get_mut(), &mut self.ready, is_over) {
                    entry.remove();
                }
            }
        }
    }

    /// Ends turns of sessions that could have come: the first command waits for no aggregate with a queue in `loading`,
    /// no decision model (`awaits_model`), no earlier arrival. A dead session holds up others for five seconds at most,
    /// plus its own loads.
    #[cold]
    pub fn expire<'a>(
        &mut self,
        now: Instant,
        loading: impl Fn(u32) -> Option<&'a WaitQueue>,
        awaits_model: impl Fn(u64) -> bool,
    ) {
        if self.checked_at.is_some_and(|checked_at| now < checked_at + CHECK_INTERVAL) {
            return;
        }
        self.checked_at = Some(now);
        let fronts: FxHashMap<u32, QueuedSession> =
            self.queues.iter().filter_map(|(slot, (queue, _))| Some((*slot, *queue.0.front()?))).collect();
        let could_come = |session: u64| {
            let Some((number, arrival)) = self.arrivals.get(&session).and_then(BTreeMap::first_key_value) else {
                return true;
            };
            let is_held = |slot: &u32| {
                loading(*slot).is_some_and(|queue| queue.has(session, *number))
                    || fronts.get(slot).is_some_and(|front| front.arrived < arrival.arrived)
            };
            !awaits_model(session) && !arrival.slots.iter().any(is_held)
        };
        let mut expired = Vec::new();
        for (queue, checks) in self.queues.values_mut() {
            let Some(first) = queue.0.front().filter(|first| could_come(first.session)) else { continue };
            *checks += 1;
            if *checks > TURN_CHECKS {
                expired.push((first.session, first.number));
            }
        }
        // Should they still come, they are ordered like new ones.
        expired.into_iter().for_each(|(session, number)| self.remove_decided(session, number));
    }

    /// Removes a session.
    #[cold]
    pub fn remove_session(&mut self, session: u64) {
        self.arrivals.remove(&session);
        for (queue, _) in self.queues.values_mut() {
            // The first command is removed below, so that the next one's turn begins.
            let mut is_first = true;
            queue.0.retain(|waiting| std::mem::take(&mut is_first) || waiting.session != session);
        }
        let ready = &mut self.ready;
        self.queues.retain(|_, queue| end_turns(queue, ready, |first| first.session == session));
    }

    /// Sessions whose turn has begun since the last call.
    #[inline]
    pub const fn ready_sessions(&mut self) -> &mut Vec<u64> {
        &mut self.ready
    }

    pub fn clear(&mut self) {
        self.queues.clear();
        self.arrivals.clear();
        self.ready.clear();
    }
}

fn end_turns(
    (queue, checks): &mut (WaitQueue, u32),
    ready: &mut Vec<u64>,
    is_over: impl Fn(&QueuedSession) -> bool,
) -> bool {
    while queue.0.front().is_some_and(&is_over) {
        queue.0.pop_front();
        *checks = 0;
        ready.extend(queue.0.front().map(|first| first.session));
    }
    !queue.0.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues_of(waiting: &[(u64, u64)]) -> WaitQueues {
        let (mut queues, mut queue) = (WaitQueues::default(), WaitQueue::default());
        waiting.iter().for_each(|(session, number)| queues.await_load(7, &mut queue, *session, *number));
        queues.begin_turns(7, queue);
        queues
    }

    #[test]
    fn line_passes_from_one_to_the_next() {
        let mut queues = queues_of(&[(1, 10), (1, 12), (2, 5), (1, 12), (1, 13)]);
        assert!(queues.has(7) && !queues.has_earlier(8, 2, 5));
        assert!(queues.has_earlier(7, 2, 5) && !queues.has_earlier(7, 1, 10));
        assert!(queues.has_earlier(7, 1, 13), "it was sent after the command of 2");
        assert_eq!(std::mem::take(queues.ready_sessions()), [1]);
        queues.remove_decided(1, 10);
        assert_eq!(std::mem::take(queues.ready_sessions()), [1], "session 1 has one more");
        queues.remove_decided(1, 12);
        assert_eq!(std::mem::take(queues.ready_sessions()), [2]);
        queues.join(7, 3, 1);
        assert!(queues.has_earlier(7, 4, 1), "a new command comes after all others");
        queues.remove_decided(2, 5);
        assert_eq!(std::mem::take(queues.ready_sessions()), [1]);
        queues.remove_decided(1, 13);
        assert_eq!(std::mem::take(queues.ready_sessions()), [3]);
        queues.remove_decided(3, 1);
        assert!(queues.is_empty() && !queues.has(7) && queues.ready_sessions().is_empty());
        queues.begin_turns(7, WaitQueue::default());
        assert!(!queues.has(7));
    }

    #[test]
    fn arrival_orders_every_line() {
        let mut queues = queues_of(&[(1, 10), (2, 5)]);
        queues.join(8, 2, 6);
        assert!(!queues.has_earlier(8, 1, 10), "1 came before 2");
        let mut queue = WaitQueue::default();
        queues.await_load(9, &mut queue, 2, 6);
        queues.await_load(9, &mut queue, 1, 10);
        queues.ready_sessions().clear();
        queues.begin_turns(9, queue);
        assert_eq!(std::mem::take(queues.ready_sessions()), [1]);
        queues.remove_decided(1, 10);
        assert_eq!(std::mem::take(queues.ready_sessions()), [2, 2]);
        queues.remove_decided(2, 5);
        queues.remove_decided(2, 6);
        assert!(queues.is_empty() && !queues.has(7) && !queues.has(8) && !queues.has(9));
    }

    #[test]
    fn decided_waiter_is_skipped() {
        let mut queues = queues_of(&[(1, 10)]);
        let mut queue = WaitQueue::default();
        queues.await_load(8, &mut queue, 1, 10);
        queues.await_load(8, &mut queue, 2, 5);
        queues.remove_decided(1, 10);
        queues.ready_sessions().clear();
        queues.begin_turns(8, queue);
        assert_eq!(std::mem::take(queues.ready_sessions()), [2]);
        let mut queue = WaitQueue::default();
        queues.await_load(8, &mut queue, 3, 1);
        queues.begin_turns(8, queue);
        assert_eq!(std::mem::take(queues.ready_sessions()), [2]);
        queues.remove_decided(2, 5);
        assert_eq!(std::mem::take(queues.ready_sessions()), [3]);
    }

    #[test]
    fn session_order_holds_in_lines() {
        let mut queues = queues_of(&[(1, 12), (2, 6)]);
        queues.join(8, 2, 7);
        // Session 2 waits for command 12 of session 1, which was expired and waits again.
        queues.join(8, 1, 10);
        assert!(queues.has_earlier(8, 2, 7) && !queues.has_earlier(8, 1, 10));
        assert!(!queues.has_earlier(7, 1, 11), "it would share the arrival of 12");
        queues.join(8, 1, 10);
        queues.ready_sessions().clear();
        for (decided, ready) in [((1, 10), &[2][..]), ((1, 12), &[2]), ((2, 6), &[]), ((2, 7), &[])] {
            queues.remove_decided(decided.0, decided.1);
            assert_eq!(std::mem::take(queues.ready_sessions()), ready, "{decided:?}");
        }
        assert!(queues.is_empty() && !queues.has(7) && !queues.has(8));
    }

    fn check(queues: &mut WaitQueues, checks: u32, loading: &[(u32, &WaitQueue)], awaits_model: &[u64]) {
        let begun_at = queues.checked_at.unwrap_or_else(Instant::now);
        for check in 1..=checks {
            let queue = |slot| loading.iter().find(|(other, _)| *other == slot).map(|(_, queue)| *queue);
            queues.expire(begun_at + check * CHECK_INTERVAL, queue, |session| awaits_model.contains(&session));
        }
    }

    #[test]
    fn absent_session_loses_turn() {
        let mut queues = queues_of(&[(1, 10), (2, 5), (3, 1), (2, 6)]);
        queues.ready_sessions().clear();
        for expected in [&[2][..], &[3], &[2], &[]] {
            check(&mut queues, TURN_CHECKS, &[], &[]);
            assert!(queues.ready_sessions().is_empty());
            let later = queues.checked_at.unwrap() + Duration::from_secs(100);
            queues.expire(later, |_| None, |_| false);
            assert_eq!(std::mem::take(queues.ready_sessions()), expected);
        }
        assert!(queues.is_empty() && !queues.has(7));
        let mut queues = queues_of(&[(1, 10), (2, 5), (1, 11), (3, 1)]);
        queues.ready_sessions().clear();
        queues.remove_session(1);
        assert_eq!(std::mem::take(queues.ready_sessions()), [2]);
        queues.remove_session(3);
        queues.remove_decided(2, 5);
        assert!(queues.is_empty() && !queues.has(7));
    }

    #[test]
    fn turn_extends_for_own_loads_only() {
        let mut queues = queues_of(&[(1, 10), (2, 5)]);
        let mut others = WaitQueue::default();
        queues.await_load(8, &mut others, 9, 1);
        queues.ready_sessions().clear();
        check(&mut queues, TURN_CHECKS + 1, &[(8, &others)], &[]);
        assert_eq!(std::mem::take(queues.ready_sessions()), [2]);
        let mut queues = queues_of(&[(1, 10), (2, 5)]);
        let mut own = WaitQueue::default();
        queues.await_load(8, &mut own, 1, 9);
        queues.ready_sessions().clear();
        check(&mut queues, 10 * TURN_CHECKS, &[(8, &own)], &[]);
        assert!(queues.ready_sessions().is_empty());
        queues.begin_turns(8, own);
        queues.ready_sessions().clear();
        check(&mut queues, 10 * TURN_CHECKS, &[], &[1]);
        assert!(queues.ready_sessions().is_empty());
        queues.remove_decided(1, 9);
        check(&mut queues, TURN_CHECKS + 1, &[], &[]);
        assert_eq!(std::mem::take(queues.ready_sessions()), [2]);
        // One turn for each dead session.
        let mut queues = queues_of(&[(1, 10), (2, 5)]);
        queues.join(8, 2, 6);
        queues.join(8, 3, 1);
        queues.ready_sessions().clear();
        check(&mut queues, TURN_CHECKS + 1, &[], &[]);
        assert_eq!(std::mem::take(queues.ready_sessions()), [2]);
        check(&mut queues, TURN_CHECKS, &[], &[]);
        assert!(queues.ready_sessions().is_empty(), "its turn had not begun before");
        check(&mut queues, 1, &[], &[]);
        assert_eq!((queues.has(7), std::mem::take(queues.ready_sessions())), (false, vec![3]));
    }
}
