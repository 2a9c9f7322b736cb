//! [`Lines`]: queues of commands that wait for an aggregate.
//!
//! Waiting commands are sent again and are decided in the order of their first arrival, before any other of that
//! aggregate. A command that waits for several aggregates has the same place in all of their lines. Commands of a
//! session are ordered by their numbers, whether they wait for an aggregate or for an earlier command. The first
//! arrival of all waits for no other, so there is no deadlock.

use gapless_agent::fault::mutant;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Interval of the search for sessions that do not come.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Looks after which a session loses its turn if it could come and does not: its publisher may have stopped. Looks are
/// counted, not time: while the writer itself stood still, no session could come.
const TURN_LOOKS: u32 = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    session: u64,
    number: u64,
    /// Order of first arrival. Commands of one session may share it.
    arrived: u64,
}

/// Commands that wait for an aggregate, in order.
#[derive(Debug, Default)]
pub(super) struct Line(VecDeque<Waiting>);

impl Line {
    /// Inserts a command at its place, unless it is there.
    fn join(&mut self, waiting: Waiting) {
        let at = self.0.partition_point(|other| (other.arrived, other.number) < (waiting.arrived, waiting.number));
        if self.0.get(at) != Some(&waiting) {
            self.0.insert(at, waiting);
        }
    }

    fn has(&self, session: u64, number: u64) -> bool {
        self.0.iter().any(|waiting| (waiting.session, waiting.number) == (session, number))
    }
}

/// A command that waits in some lines.
struct Arrival {
    arrived: u64,
    /// Places of the aggregates in whose lines it is.
    places: Vec<u32>,
}

/// Lines of loaded aggregates, by the aggregate's place in the cache.
#[derive(Default)]
pub(super) struct Lines {
    /// Each with the number of looks at which its first command could have come and did not.
    lines: FxHashMap<u32, (Line, u32)>,
    /// By session and number; no inner map is empty. Within a session, an earlier number never arrives after a later
    /// one.
    arrivals: FxHashMap<u64, BTreeMap<u64, Arrival>>,
    /// Number of arrivals so far.
    arrived: u64,
    /// Sessions whose turn has begun.
    ready: Vec<u64>,
    looked_at: Option<Instant>,
}

impl Lines {
    /// Whether no command waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// Notes the arrival of a command that waits, before it is known for what.
    pub fn arrive(&mut self, session: u64, number: u64) {
        self.arrival(session, number);
    }

    fn arrival(&mut self, session: u64, number: u64) -> &mut Arrival {
        let of_session = self.arrivals.entry(session).or_default();
        if !of_session.contains_key(&number) {
            // The command expired, or a later one of its session was seen first: it shares the arrival of that one.
            let later = of_session.range(number..).next().filter(|_| !mutant("forget_session_order"));
            let later = later.map(|(_, later)| later.arrived);
            let arrived = later.unwrap_or_else(|| {
                self.arrived += 1;
                self.arrived
            });
            of_session.insert(number, Arrival { arrived, places: Vec::new() });
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

    /// The command's entry in a line, placed by its first arrival.
    fn waiting(&mut self, place: u32, session: u64, number: u64) -> Waiting {
        let arrival = self.arrival(session, number);
        if !arrival.places.contains(&place) {
            arrival.places.push(place);
        }
        Waiting { session, number, arrived: arrival.arrived }
    }

    /// Makes a command wait for an aggregate that is being loaded, in its `line`.
    pub fn await_load(&mut self, place: u32, line: &mut Line, session: u64, number: u64) {
        line.join(self.waiting(place, session, number));
    }

    /// Begins the turns of an aggregate that has been loaded.
    pub fn begin(&mut self, place: u32, line: Line) {
        let (waiting, looks) = self.lines.entry(place).or_default();
        // Commands that were decided meanwhile need not wait.
        let arrivals = &self.arrivals;
        let waits = |waiting: &Waiting| {
            arrivals.get(&waiting.session).is_some_and(|of_session| of_session.contains_key(&waiting.number))
        };
        line.0.into_iter().filter(waits).for_each(|each| waiting.join(each));
        *looks = 0;
        match waiting.0.front() {
            Some(first) => self.ready.push(first.session),
            None => _ = self.lines.remove(&place),
        }
    }

    pub fn has(&self, place: u32) -> bool {
        self.lines.contains_key(&place)
    }

    /// Whether others come before this command.
    pub fn has_before(&self, place: u32, session: u64, number: u64) -> bool {
        let Some(first) = self.lines.get(&place).and_then(|(line, _)| line.0.front()) else { return false };
        // The arrival of the command itself, or the one that it would share.
        let of_session = self.arrivals.get(&session);
        let until = if mutant("forget_session_order") { number } else { u64::MAX };
        let arrival = of_session.and_then(|of_session| of_session.range(number..=until).next());
        arrival.is_none_or(|(_, arrival)| first.arrived < arrival.arrived)
    }

    /// Makes a command wait after earlier arrivals.
    pub fn join(&mut self, place: u32, session: u64, number: u64) {
        let waiting = self.waiting(place, session, number);
        self.lines.entry(place).or_default().0.join(waiting);
    }

    /// Removes a decided command. If it was its turn, the next one's begins.
    #[cold]
    pub fn decided(&mut self, session: u64, number: u64) {
        let Some(arrival) = self.remove(session, number) else { return };
        let is_over = |first: &Waiting| first.session == session && first.number <= number;
        for place in arrival.places {
            if let Entry::Occupied(mut entry) = self.lines.entry(place) {
                let (line, _) = entry.get_mut();
                // The decided command may have overtaken others, and then is not the first.
                let mut is_first = true;
                line.0.retain(|waiting| {
                    std::mem::take(&mut is_first) || (waiting.session, waiting.number) != (session, number)
                });
                if !pass(entry.get_mut(), &mut self.ready, is_over) {
                    entry.remove();
                }
            }
        }
    }

    /// Ends the turns of sessions that could have come and have not.
    ///
    /// A session can come if its first command waits for none of these: an aggregate with a line in `loading`, a
    /// decision model (`awaits_model`), an earlier arrival. The first arrival of all waits for no other. So a dead
    /// session holds up the others for five seconds at most, plus the time of its own loads.
    #[cold]
    pub fn expire<'a>(
        &mut self,
        now: Instant,
        loading: impl Fn(u32) -> Option<&'a Line>,
        awaits_model: impl Fn(u64) -> bool,
    ) {
        if self.looked_at.is_some_and(|looked_at| now < looked_at + LOOK_INTERVAL) {
            return;
        }
        self.looked_at = Some(now);
        let fronts: FxHashMap<u32, Waiting> =
            self.lines.iter().filter_map(|(place, (line, _))| Some((*place, *line.0.front()?))).collect();
        let could_come = |session: u64| {
            // First waiting command of each session.
            let Some((number, arrival)) = self.arrivals.get(&session).and_then(BTreeMap::first_key_value) else {
                return true;
            };
            let is_held = |place: &u32| {
                loading(*place).is_some_and(|line| line.has(session, *number))
                    || fronts.get(place).is_some_and(|front| front.arrived < arrival.arrived)
            };
            !awaits_model(session) && !arrival.places.iter().any(is_held)
        };
        let mut passed = Vec::new();
        for (line, looks) in self.lines.values_mut() {
            let Some(first) = line.0.front().filter(|first| could_come(first.session)) else { continue };
            *looks += 1;
            if *looks > TURN_LOOKS {
                passed.push((first.session, first.number));
            }
        }
        // Should they still come, they are ordered like new ones.
        passed.into_iter().for_each(|(session, number)| self.decided(session, number));
    }

    /// Removes a session.
    #[cold]
    pub fn gone(&mut self, session: u64) {
        self.arrivals.remove(&session);
        for (line, _) in self.lines.values_mut() {
            // The first command is removed below, so that the next one's turn begins.
            let mut is_first = true;
            line.0.retain(|waiting| std::mem::take(&mut is_first) || waiting.session != session);
        }
        let ready = &mut self.ready;
        self.lines.retain(|_, line| pass(line, ready, |first| first.session == session));
    }

    /// Sessions whose turn has begun since the last call.
    #[inline]
    pub const fn ready(&mut self) -> &mut Vec<u64> {
        &mut self.ready
    }

    pub fn clear(&mut self) {
        self.lines.clear();
        self.arrivals.clear();
        self.ready.clear();
    }
}

/// Removes first commands whose turn is over. Returns whether any are left.
fn pass((line, looks): &mut (Line, u32), ready: &mut Vec<u64>, is_over: impl Fn(&Waiting) -> bool) -> bool {
    while line.0.front().is_some_and(&is_over) {
        line.0.pop_front();
        *looks = 0;
        ready.extend(line.0.front().map(|first| first.session));
    }
    !line.0.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines with one at place 7, of an aggregate that was loaded for these commands.
    fn begun(waiting: &[(u64, u64)]) -> Lines {
        let (mut lines, mut line) = (Lines::default(), Line::default());
        waiting.iter().for_each(|(session, number)| lines.await_load(7, &mut line, *session, *number));
        lines.begin(7, line);
        lines
    }

    #[test]
    fn line_passes_from_one_to_the_next() {
        let mut lines = begun(&[(1, 10), (1, 12), (2, 5), (1, 12), (1, 13)]);
        assert!(lines.has(7) && !lines.has_before(8, 2, 5));
        assert!(lines.has_before(7, 2, 5) && !lines.has_before(7, 1, 10));
        assert!(lines.has_before(7, 1, 13), "it was sent after the command of 2");
        assert_eq!(std::mem::take(lines.ready()), [1]);
        lines.decided(1, 10);
        assert_eq!(std::mem::take(lines.ready()), [1], "session 1 has one more");
        lines.decided(1, 12);
        assert_eq!(std::mem::take(lines.ready()), [2]);
        lines.join(7, 3, 1);
        assert!(lines.has_before(7, 4, 1), "a new command comes after all others");
        lines.decided(2, 5);
        assert_eq!(std::mem::take(lines.ready()), [1]);
        lines.decided(1, 13);
        assert_eq!(std::mem::take(lines.ready()), [3]);
        lines.decided(3, 1);
        assert!(lines.is_empty() && !lines.has(7) && lines.ready().is_empty());
        lines.begin(7, Line::default());
        assert!(!lines.has(7));
    }

    #[test]
    fn arrival_orders_every_line() {
        let mut lines = begun(&[(1, 10), (2, 5)]);
        // Session 2 has the next command of a loaded aggregate, and session 1 needs it, too.
        lines.join(8, 2, 6);
        assert!(!lines.has_before(8, 1, 10), "1 came before 2");
        let mut line = Line::default();
        lines.await_load(9, &mut line, 2, 6);
        lines.await_load(9, &mut line, 1, 10);
        lines.ready().clear();
        lines.begin(9, line);
        assert_eq!(std::mem::take(lines.ready()), [1]);
        lines.decided(1, 10);
        assert_eq!(std::mem::take(lines.ready()), [2, 2]);
        lines.decided(2, 5);
        lines.decided(2, 6);
        assert!(lines.is_empty() && !lines.has(7) && !lines.has(8) && !lines.has(9));
    }

    #[test]
    fn decided_waiter_is_skipped() {
        let mut lines = begun(&[(1, 10)]);
        let mut line = Line::default();
        lines.await_load(8, &mut line, 1, 10);
        lines.await_load(8, &mut line, 2, 5);
        lines.decided(1, 10);
        lines.ready().clear();
        lines.begin(8, line);
        assert_eq!(std::mem::take(lines.ready()), [2]);
        // The same aggregate is loaded again while others wait for it.
        let mut line = Line::default();
        lines.await_load(8, &mut line, 3, 1);
        lines.begin(8, line);
        assert_eq!(std::mem::take(lines.ready()), [2]);
        lines.decided(2, 5);
        assert_eq!(std::mem::take(lines.ready()), [3]);
    }

    #[test]
    fn session_order_holds_in_lines() {
        let mut lines = begun(&[(1, 12), (2, 6)]);
        lines.join(8, 2, 7);
        // Session 1 was expired and waits again. Session 2 arrived before, and waits for command 12 of session 1.
        lines.join(8, 1, 10);
        assert!(lines.has_before(8, 2, 7) && !lines.has_before(8, 1, 10));
        assert!(!lines.has_before(7, 1, 11), "it would share the arrival of 12");
        lines.join(8, 1, 10);
        lines.ready().clear();
        for (decided, ready) in [((1, 10), &[2][..]), ((1, 12), &[2]), ((2, 6), &[]), ((2, 7), &[])] {
            lines.decided(decided.0, decided.1);
            assert_eq!(std::mem::take(lines.ready()), ready, "{decided:?}");
        }
        assert!(lines.is_empty() && !lines.has(7) && !lines.has(8));
    }

    /// Looks `looks` times, with lines of aggregates that are being loaded.
    fn look(lines: &mut Lines, looks: u32, loading: &[(u32, &Line)], awaits_model: &[u64]) {
        let begun_at = lines.looked_at.unwrap_or_else(Instant::now);
        for look in 1..=looks {
            let line = |place| loading.iter().find(|(other, _)| *other == place).map(|(_, line)| *line);
            lines.expire(begun_at + look * LOOK_INTERVAL, line, |session| awaits_model.contains(&session));
        }
    }

    #[test]
    fn absent_session_loses_turn() {
        let mut lines = begun(&[(1, 10), (2, 5), (3, 1), (2, 6)]);
        lines.ready().clear();
        for expected in [&[2][..], &[3], &[2], &[]] {
            look(&mut lines, TURN_LOOKS, &[], &[]);
            assert!(lines.ready().is_empty());
            // The time that the writer stood still does not count.
            let later = lines.looked_at.unwrap() + Duration::from_secs(100);
            lines.expire(later, |_| None, |_| false);
            assert_eq!(std::mem::take(lines.ready()), expected);
        }
        assert!(lines.is_empty() && !lines.has(7));
        let mut lines = begun(&[(1, 10), (2, 5), (1, 11), (3, 1)]);
        lines.ready().clear();
        lines.gone(1);
        assert_eq!(std::mem::take(lines.ready()), [2]);
        lines.gone(3);
        lines.decided(2, 5);
        assert!(lines.is_empty() && !lines.has(7));
    }

    #[test]
    fn turn_extends_for_own_loads_only() {
        // The first session is dead, and another aggregate is being loaded all the time, for others.
        let mut lines = begun(&[(1, 10), (2, 5)]);
        let mut others = Line::default();
        lines.await_load(8, &mut others, 9, 1);
        lines.ready().clear();
        look(&mut lines, TURN_LOOKS + 1, &[(8, &others)], &[]);
        assert_eq!(std::mem::take(lines.ready()), [2]);
        // The first session cannot come: an earlier command of it waits for an aggregate or for a decision model.
        let mut lines = begun(&[(1, 10), (2, 5)]);
        let mut own = Line::default();
        lines.await_load(8, &mut own, 1, 9);
        lines.ready().clear();
        look(&mut lines, 10 * TURN_LOOKS, &[(8, &own)], &[]);
        assert!(lines.ready().is_empty());
        lines.begin(8, own);
        lines.ready().clear();
        look(&mut lines, 10 * TURN_LOOKS, &[], &[1]);
        assert!(lines.ready().is_empty());
        lines.decided(1, 9);
        look(&mut lines, TURN_LOOKS + 1, &[], &[]);
        assert_eq!(std::mem::take(lines.ready()), [2]);
        // An earlier command waits for another dead session: one turn for each.
        let mut lines = begun(&[(1, 10), (2, 5)]);
        lines.join(8, 2, 6);
        lines.join(8, 3, 1);
        lines.ready().clear();
        look(&mut lines, TURN_LOOKS + 1, &[], &[]);
        assert_eq!(std::mem::take(lines.ready()), [2]);
        look(&mut lines, TURN_LOOKS, &[], &[]);
        assert!(lines.ready().is_empty(), "its turn had not begun before");
        look(&mut lines, 1, &[], &[]);
        assert_eq!((lines.has(7), std::mem::take(lines.ready())), (false, vec![3]));
    }
}
