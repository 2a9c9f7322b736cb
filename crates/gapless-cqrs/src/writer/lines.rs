//! [`Lines`]: commands that wait for an aggregate, and whose turn it is. They are sent again, and are decided in the order in which they came first,
//! before any other of that aggregate. A command that waits for several aggregates, one after the other, has the same place in all of their lines:
//! the one that came first waits for nobody, so no two wait for each other.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

/// A session whose turn it is and that does not come loses its place after so long: its publisher may stand still.
const TURN: Duration = Duration::from_secs(5);

/// A command of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    session: u64,
    number: u64,
    /// Earlier ones come first.
    arrived: u64,
}

/// Who waits for an aggregate, the first first.
#[derive(Debug, Default)]
pub(super) struct Line(VecDeque<Waiting>);

impl Line {
    /// A command waits at its place, if it does not yet.
    fn join(&mut self, waiting: Waiting) {
        let at = self.0.partition_point(|other| other.arrived < waiting.arrived);
        if self.0.get(at) != Some(&waiting) {
            self.0.insert(at, waiting);
        }
    }
}

/// It is looked for those who do not come so often.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// A command that waits somewhere.
struct Arrival {
    arrived: u64,
    /// Whose lines it is in.
    places: Vec<u32>,
}

/// Those who wait for aggregates that are there, by the aggregate's place in the cache.
#[derive(Default)]
pub(super) struct Lines {
    lines: FxHashMap<u32, (Line, Instant)>,
    /// By session and number.
    arrivals: FxHashMap<(u64, u64), Arrival>,
    /// How many have come.
    arrived: u64,
    /// Whose turn has begun.
    ready: Vec<u64>,
    looked_at: Option<Instant>,
}

impl Lines {
    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// A command has come that waits, it is not known for what.
    pub fn arrive(&mut self, session: u64, number: u64) {
        self.arrival(session, number);
    }

    fn arrival(&mut self, session: u64, number: u64) -> &mut Arrival {
        let arrived = &mut self.arrived;
        self.arrivals.entry((session, number)).or_insert_with(|| {
            *arrived += 1;
            Arrival { arrived: *arrived, places: Vec::new() }
        })
    }

    /// The place of a command in the lines: that of its first arrival.
    fn waiting(&mut self, place: u32, session: u64, number: u64) -> Waiting {
        let arrival = self.arrival(session, number);
        if !arrival.places.contains(&place) {
            arrival.places.push(place);
        }
        Waiting { session, number, arrived: arrival.arrived }
    }

    /// A command waits for an aggregate that is being made, in the line that stands there.
    pub fn await_load(&mut self, place: u32, line: &mut Line, session: u64, number: u64) {
        line.join(self.waiting(place, session, number));
    }

    /// These have waited for an aggregate, which is there now.
    pub fn begin(&mut self, place: u32, line: Line) {
        let (waiting, until) = self.lines.entry(place).or_insert_with(|| (Line::default(), Instant::now() + TURN));
        // Of some it has turned out that they need not wait.
        let arrivals = &self.arrivals;
        let waits = |waiting: &Waiting| arrivals.contains_key(&(waiting.session, waiting.number));
        line.0.into_iter().filter(waits).for_each(|each| waiting.join(each));
        *until = Instant::now() + TURN;
        match waiting.0.front() {
            Some(first) => self.ready.push(first.session),
            None => _ = self.lines.remove(&place),
        }
    }

    /// Whether somebody waits for the aggregate.
    pub fn has(&self, place: u32) -> bool {
        self.lines.contains_key(&place)
    }

    /// Whether others come before this command.
    pub fn has_before(&self, place: u32, session: u64, number: u64) -> bool {
        let Some(first) = self.lines.get(&place).and_then(|(line, _)| line.0.front()) else { return false };
        let arrival = self.arrivals.get(&(session, number));
        arrival.is_none_or(|arrival| first.arrived < arrival.arrived)
    }

    /// A command waits behind those that came before.
    pub fn join(&mut self, place: u32, session: u64, number: u64) {
        let waiting = self.waiting(place, session, number);
        let (line, _) = self.lines.entry(place).or_insert_with(|| (Line::default(), Instant::now() + TURN));
        line.join(waiting);
    }

    /// A command was decided: where it was its turn, it is the next one's.
    #[cold]
    pub fn decided(&mut self, session: u64, number: u64) {
        let Some(arrival) = self.arrivals.remove(&(session, number)) else { return };
        let is_over = |first: &Waiting, _| first.session == session && first.number <= number;
        for place in arrival.places {
            if let Entry::Occupied(mut entry) = self.lines.entry(place) {
                let (line, _) = entry.get_mut();
                // Before others that it has overtaken.
                let mut is_first = true;
                line.0.retain(|waiting| {
                    std::mem::take(&mut is_first) || (waiting.session, waiting.number) != (session, number)
                });
                if !pass(entry.get_mut(), &mut self.ready, Instant::now(), is_over) {
                    entry.remove();
                }
            }
        }
    }

    /// Ends the turns of those who have not come.
    #[cold]
    pub fn expire(&mut self, now: Instant, is_loading: bool) {
        if self.looked_at.is_some_and(|looked_at| now < looked_at + LOOK_INTERVAL) {
            return;
        }
        self.looked_at = Some(now);
        if is_loading {
            // Whose turn it is may wait for another aggregate.
            return self.lines.values_mut().for_each(|(_, until)| *until = now + TURN);
        }
        let mut passed = Vec::new();
        self.pass(now, |first, until| {
            let is_over = now >= until;
            if is_over {
                passed.push((first.session, first.number));
            }
            is_over
        });
        // They come as others do, if they come.
        passed.into_iter().for_each(|waiting| drop(self.arrivals.remove(&waiting)));
    }

    /// A session does not come any more.
    #[cold]
    pub fn gone(&mut self, session: u64) {
        self.arrivals.retain(|(of, _), _| *of != session);
        for (line, _) in self.lines.values_mut() {
            // The first one goes below, so that it is another's turn.
            let mut is_first = true;
            line.0.retain(|waiting| std::mem::take(&mut is_first) || waiting.session != session);
        }
        self.pass(Instant::now(), |first, _| first.session == session);
    }

    fn pass(&mut self, now: Instant, mut is_over: impl FnMut(&Waiting, Instant) -> bool) {
        let ready = &mut self.ready;
        self.lines.retain(|_, line| pass(line, ready, now, &mut is_over));
    }

    /// Whose turn has begun since the last call.
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

/// Passes over the first ones whose turn is over. Whether others wait.
fn pass(
    (line, until): &mut (Line, Instant),
    ready: &mut Vec<u64>,
    now: Instant,
    mut is_over: impl FnMut(&Waiting, Instant) -> bool,
) -> bool {
    while line.0.front().is_some_and(|first| is_over(first, *until)) {
        line.0.pop_front();
        *until = now + TURN;
        ready.extend(line.0.front().map(|first| first.session));
    }
    !line.0.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines with one at the place 7, of an aggregate that was made for these.
    fn begun(waiting: &[(u64, u64)]) -> Lines {
        let (mut lines, mut line) = (Lines::default(), Line::default());
        waiting.iter().for_each(|(session, number)| lines.await_load(7, &mut line, *session, *number));
        lines.begin(7, line);
        lines
    }

    #[test]
    fn one_comes_after_the_other() {
        let mut lines = begun(&[(1, 10), (1, 12), (2, 5), (1, 12), (1, 13)]);
        assert!(lines.has(7) && !lines.has_before(8, 2, 5));
        assert!(lines.has_before(7, 2, 5) && !lines.has_before(7, 1, 10));
        assert!(lines.has_before(7, 1, 13), "it was sent behind that of 2");
        assert_eq!(std::mem::take(lines.ready()), [1]);
        lines.decided(1, 10);
        assert_eq!(std::mem::take(lines.ready()), [1], "there is one more of 1");
        lines.decided(1, 12);
        assert_eq!(std::mem::take(lines.ready()), [2]);
        lines.join(7, 3, 1);
        assert!(lines.has_before(7, 4, 1), "one that comes now is behind all");
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
    fn who_came_first_is_first_in_each_line() {
        let mut lines = begun(&[(1, 10), (2, 5)]);
        // Of an aggregate that is there 2 has the next command, and 1 needs it, too.
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
    fn who_need_not_wait_any_more_holds_up_nobody() {
        let mut lines = begun(&[(1, 10)]);
        let mut line = Line::default();
        lines.await_load(8, &mut line, 1, 10);
        lines.await_load(8, &mut line, 2, 5);
        lines.decided(1, 10);
        lines.ready().clear();
        lines.begin(8, line);
        assert_eq!(std::mem::take(lines.ready()), [2]);
        // The same aggregate is made anew while others wait for it.
        let mut line = Line::default();
        lines.await_load(8, &mut line, 3, 1);
        lines.begin(8, line);
        assert_eq!(std::mem::take(lines.ready()), [2]);
        lines.decided(2, 5);
        assert_eq!(std::mem::take(lines.ready()), [3]);
    }

    #[test]
    fn who_does_not_come_loses_its_turn() {
        let mut lines = begun(&[(1, 10), (2, 5), (3, 1), (2, 6)]);
        lines.ready().clear();
        let begun_at = Instant::now();
        lines.expire(begun_at, false);
        assert!(lines.ready().is_empty());
        for (turns, expected) in [(1, &[2][..]), (2, &[3]), (3, &[2]), (4, &[])] {
            // The first has begun a little later.
            lines.expire(begun_at + turns * TURN + TURN / 2, false);
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
}
