//! [`Lines`]: commands that wait for an aggregate, and whose turn it is. They are sent again, and are decided in the order in which they came first,
//! before any other of that aggregate.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

/// A session whose turn it is and that does not come loses its place after so long: its publisher may stand still.
const TURN: Duration = Duration::from_secs(5);

/// Commands of one session that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub session: u64,
    /// The number of the last of them.
    pub last_number: u64,
}

/// Who waits for an aggregate, the first first.
#[derive(Debug, Default)]
pub(super) struct Line(VecDeque<Waiting>);

impl Line {
    /// A command waits behind the others.
    pub fn join(&mut self, session: u64, number: u64) {
        let is_known = |waiting: &Waiting| waiting.session == session && number <= waiting.last_number;
        if self.0.iter().any(is_known) {
            return;
        }
        match self.0.back_mut() {
            Some(last) if last.session == session => last.last_number = number,
            _ => self.0.push_back(Waiting { session, last_number: number }),
        }
    }
}

/// It is looked for those who do not come so often.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Those who wait for aggregates that are there, by the aggregate's place in the cache.
#[derive(Default)]
pub(super) struct Lines {
    lines: FxHashMap<u32, (Line, Instant)>,
    /// Whose turn has begun.
    ready: Vec<u64>,
    /// Aggregates that the command uses and for which others wait.
    used: Vec<u32>,
    looked_at: Option<Instant>,
}

impl Lines {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// These have waited for an aggregate, which is there now.
    pub fn begin(&mut self, place: u32, line: Line) {
        if let Some(first) = line.0.front() {
            self.ready.push(first.session);
            self.lines.insert(place, (line, Instant::now() + TURN));
        }
    }

    /// Whether somebody waits for the aggregate.
    pub fn has(&self, place: u32) -> bool {
        self.lines.contains_key(&place)
    }

    /// Whether others come before this command.
    pub fn has_before(&mut self, place: u32, session: u64, number: u64) -> bool {
        let Some(first) = self.lines.get(&place).and_then(|(line, _)| line.0.front()) else { return false };
        self.used.push(place);
        first.session != session || number > first.last_number
    }

    /// Another command begins.
    #[inline]
    pub fn begin_command(&mut self) {
        self.used.clear();
    }

    /// A command waits behind the others.
    pub fn join(&mut self, place: u32, session: u64, number: u64) {
        let (line, _) = self.lines.entry(place).or_insert_with(|| (Line::default(), Instant::now() + TURN));
        line.join(session, number);
    }

    /// A command was decided: where it was the last of those whose turn it was, it is the next one's.
    #[cold]
    pub fn decided(&mut self, session: u64, number: u64) {
        let is_over = |first: &Waiting| first.session == session && number >= first.last_number;
        if self.used.is_empty() {
            // It was answered without its aggregate.
            return self.pass(Instant::now(), |first, _| is_over(first));
        }
        for place in std::mem::take(&mut self.used) {
            if let Entry::Occupied(mut entry) = self.lines.entry(place)
                && !pass(entry.get_mut(), &mut self.ready, Instant::now(), |first, _| is_over(first))
            {
                entry.remove();
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
        self.pass(now, |_, until| now >= until);
    }

    /// A session does not come any more.
    #[cold]
    pub fn gone(&mut self, session: u64) {
        for (line, _) in self.lines.values_mut() {
            // The first one goes below, so that it is another's turn.
            let mut is_first = true;
            line.0.retain(|waiting| std::mem::take(&mut is_first) || waiting.session != session);
        }
        self.pass(Instant::now(), |first, _| first.session == session);
    }

    fn pass(&mut self, now: Instant, is_over: impl Fn(&Waiting, Instant) -> bool) {
        let ready = &mut self.ready;
        self.lines.retain(|_, line| pass(line, ready, now, &is_over));
    }

    /// Whose turn has begun since the last call.
    #[inline]
    pub const fn ready(&mut self) -> &mut Vec<u64> {
        &mut self.ready
    }

    pub fn clear(&mut self) {
        self.lines.clear();
        self.ready.clear();
    }
}

/// Passes over the first ones whose turn is over. Whether others wait.
fn pass(
    (line, until): &mut (Line, Instant),
    ready: &mut Vec<u64>,
    now: Instant,
    is_over: impl Fn(&Waiting, Instant) -> bool,
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

    fn line(waiting: &[(u64, u64)]) -> Line {
        let mut line = Line::default();
        waiting.iter().for_each(|(session, number)| line.join(*session, *number));
        line
    }

    #[test]
    fn one_comes_after_the_other() {
        let mut lines = Lines::default();
        lines.begin(7, line(&[(1, 10), (1, 12), (2, 5), (1, 12), (1, 13)]));
        assert!(lines.has(7) && !lines.has_before(8, 2, 5));
        assert!(lines.has_before(7, 2, 5) && !lines.has_before(7, 1, 10) && !lines.has_before(7, 1, 12));
        assert!(lines.has_before(7, 1, 13), "it was sent behind that of 2");
        assert_eq!(std::mem::take(lines.ready()), [1]);
        lines.decided(1, 10);
        lines.decided(2, 5);
        assert!(lines.ready().is_empty(), "there is one more of 1");
        lines.decided(1, 12);
        assert_eq!(std::mem::take(lines.ready()), [2]);
        lines.join(7, 3, 1);
        lines.decided(2, 5);
        assert_eq!(std::mem::take(lines.ready()), [1]);
        lines.decided(1, 13);
        assert_eq!(std::mem::take(lines.ready()), [3]);
        lines.decided(3, 1);
        assert!(lines.is_empty() && lines.ready().is_empty());
        lines.begin(7, Line::default());
        assert!(lines.is_empty());
    }

    #[test]
    fn who_does_not_come_loses_its_turn() {
        let mut lines = Lines::default();
        lines.begin(7, line(&[(1, 10), (2, 5), (3, 1), (2, 6)]));
        lines.ready().clear();
        let begun = Instant::now();
        lines.expire(begun, false);
        assert!(lines.ready().is_empty());
        for (turns, expected) in [(1, &[2][..]), (2, &[3]), (3, &[2]), (4, &[])] {
            // The first has begun a little later.
            lines.expire(begun + turns * TURN + TURN / 2, false);
            assert_eq!(std::mem::take(lines.ready()), expected);
        }
        assert!(lines.is_empty());
        lines.begin(7, line(&[(1, 10), (2, 5), (1, 11), (3, 1)]));
        lines.ready().clear();
        lines.gone(1);
        assert_eq!(std::mem::take(lines.ready()), [2]);
        lines.gone(3);
        lines.decided(2, 5);
        assert!(lines.is_empty());
    }
}
