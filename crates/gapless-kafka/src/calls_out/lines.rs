//! `Lines`: the way of requests to each inbox. A request of which the producer has said nothing for a while shows that records do not
//! reach the broker: later ones wait here then, where nothing of them has begun and their time goes on.

use crate::broker_time::BrokerTime;
use crate::effects::RequestId;
use crate::peers::PEERS_MAX;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Lateness of a record that is taken for granted, ms: the clock of an inbox is known no better.
const LATENESS_MS: i64 = 100;
/// Age of the newest delivery report after which it says too little about the clock of an inbox, which may have been set since, ns.
const CLOCK_NS: u64 = 5_000_000_000;

/// Requests on their way to one inbox.
#[derive(Debug, Default)]
struct Line {
    /// Requests with records that have no report, in their order.
    unreported: VecDeque<Unreported>,
    /// Requests that wait, in their order; some have ended.
    held: VecDeque<RequestId>,
    clock: BrokerTime,
    /// Time of the newest delivery report, ns of the monotonic clock.
    reported_ns: Option<u64>,
}

#[derive(Debug)]
struct Unreported {
    request: RequestId,
    records: u32,
    /// Time of its hand-over, ns of the monotonic clock.
    sent_ns: u64,
}

/// Place of a line, good while it has requests.
pub(super) type LineIndex = usize;

/// The ways to all inboxes.
#[derive(Debug)]
pub(super) struct Lines {
    lines: Vec<Line>,
    by_inbox: HashMap<Arc<str>, LineIndex>,
    /// Time without a report after which a line is stalled, ns.
    patience_ns: u64,
    /// The client has said that it reaches no broker, and has delivered nothing since.
    is_in_trouble: bool,
}

impl Lines {
    pub(super) fn new(patience_ns: u64) -> Self {
        Self { lines: Vec::new(), by_inbox: HashMap::new(), patience_ns, is_in_trouble: false }
    }

    /// The client cannot reach a broker: until the next delivery a request without a report stalls its line at once.
    pub(super) const fn note_trouble(&mut self) {
        self.is_in_trouble = true;
    }

    /// The line to an inbox.
    pub(super) fn line(&mut self, inbox: &Arc<str>) -> LineIndex {
        if let Some(line) = self.by_inbox.get(inbox) {
            return *line;
        }
        let is_idle = |line: &Line| line.unreported.is_empty() && line.held.is_empty();
        // The line may be that of a bridge that has gone.
        let idle = self.lines.iter().position(is_idle).filter(|_| self.lines.len() >= 2 * PEERS_MAX);
        let line = idle.unwrap_or(self.lines.len());
        if idle.is_some() {
            self.by_inbox.retain(|_, other| *other != line);
            self.lines[line] = Line::default();
        } else {
            self.lines.push(Line::default());
        }
        self.by_inbox.insert(inbox.clone(), line);
        line
    }

    /// True if a request has to wait.
    pub(super) fn is_stalled(&self, line: LineIndex, now_ns: u64) -> bool {
        !self.lines[line].held.is_empty() || self.is_late(line, now_ns)
    }

    fn is_late(&self, line: LineIndex, now_ns: u64) -> bool {
        let patience_ns = if self.is_in_trouble { 0 } else { self.patience_ns };
        self.lines[line].unreported.front().is_some_and(|oldest| now_ns.saturating_sub(oldest.sent_ns) >= patience_ns)
    }

    /// A request waits.
    pub(super) fn hold(&mut self, line: LineIndex, request: RequestId) {
        self.lines[line].held.push_back(request);
    }

    /// Takes the next request that waits, if it may be sent now.
    pub(super) fn next(&mut self, line: LineIndex, now_ns: u64) -> Option<RequestId> {
        if self.is_late(line, now_ns) { None } else { self.lines[line].held.pop_front() }
    }

    /// The records of a request are handed over.
    pub(super) fn sent(&mut self, line: LineIndex, request: RequestId, records: u32, now_ns: u64) {
        self.lines[line].unreported.push_back(Unreported { request, records, sent_ns: now_ns });
    }

    /// A record of a request has its report, with its append time where it was appended.
    pub(super) fn reported(&mut self, line: LineIndex, request: RequestId, append_time_ms: Option<i64>, now_ns: u64) {
        let line = &mut self.lines[line];
        // Reports of one topic come in the order of its records, but for those that the client refuses itself.
        if let Ok(at) = line.unreported.binary_search_by_key(&request, |unreported| unreported.request) {
            line.unreported[at].records -= 1;
            if line.unreported[at].records == 0 {
                line.unreported.remove(at);
            }
        }
        if let Some(append_time_ms) = append_time_ms {
            self.is_in_trouble = false;
            if append_time_ms >= 0 {
                line.clock.read(append_time_ms, now_ns);
                line.reported_ns = Some(now_ns);
            }
        }
    }

    /// The records of a request were not handed over: no report follows.
    pub(super) fn withdraw(&mut self, line: LineIndex, request: RequestId) {
        self.lines[line].unreported.retain(|unreported| unreported.request != request);
    }

    /// Append time in its inbox at which a call with this time left is over, as far as the clock of the inbox is known.
    pub(super) fn deadline_ms(&self, line: LineIndex, left_ms: u64, now_ns: u64) -> Option<i64> {
        let line = &self.lines[line];
        let is_known = line.reported_ns.is_some_and(|reported_ns| now_ns.saturating_sub(reported_ns) <= CLOCK_NS);
        let now_ms = line.clock.now_ms(now_ns).filter(|_| is_known)?;
        Some(now_ms.saturating_add(LATENESS_MS).saturating_add_unsigned(left_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn one_line() -> (Lines, LineIndex) {
        let mut lines = Lines::new(500 * MS);
        let line = lines.line(&"test.inbox.b".into());
        (lines, line)
    }

    #[test]
    fn the_oldest_report_decides() {
        let (mut lines, line) = one_line();
        assert!(!lines.is_stalled(line, MS));
        lines.sent(line, RequestId(1), 2, MS);
        lines.sent(line, RequestId(2), 1, 400 * MS);
        assert!(!lines.is_stalled(line, 500 * MS) && lines.is_stalled(line, 501 * MS));
        lines.hold(line, RequestId(3));
        lines.reported(line, RequestId(1), Some(7), 502 * MS);
        assert!(lines.is_stalled(line, 502 * MS), "a segment has no report yet");
        lines.reported(line, RequestId(1), Some(7), 503 * MS);
        assert!(lines.is_stalled(line, 503 * MS), "one that waits goes first");
        assert_eq!(lines.next(line, 503 * MS), Some(RequestId(3)));
        assert_eq!((lines.next(line, 503 * MS), lines.is_stalled(line, 503 * MS)), (None, false));
        // Reports of the client itself come out of turn.
        lines.sent(line, RequestId(3), 1, 503 * MS);
        lines.reported(line, RequestId(3), None, 504 * MS);
        lines.withdraw(line, RequestId(2));
        assert!(!lines.is_stalled(line, 9_000 * MS));
    }

    #[test]
    fn trouble_stalls_at_once() {
        let (mut lines, line) = one_line();
        lines.note_trouble();
        assert!(!lines.is_stalled(line, MS), "one request has to try");
        lines.sent(line, RequestId(1), 1, MS);
        lines.sent(line, RequestId(2), 1, MS);
        assert!(lines.is_stalled(line, MS));
        lines.reported(line, RequestId(1), None, 2 * MS);
        assert!(lines.is_stalled(line, 2 * MS), "a failure is no end of it");
        lines.sent(line, RequestId(3), 1, 2 * MS);
        lines.reported(line, RequestId(2), Some(7), 3 * MS);
        assert!(!lines.is_stalled(line, 3 * MS));
    }

    #[test]
    fn deadlines_need_a_fresh_clock() {
        let (mut lines, line) = one_line();
        assert_eq!(lines.deadline_ms(line, 70, MS), None);
        lines.sent(line, RequestId(1), 1, MS);
        lines.reported(line, RequestId(1), Some(5_000), 3 * MS);
        assert_eq!(lines.deadline_ms(line, 70, 3 * MS), Some(5_000 + LATENESS_MS + 70));
        let last_ns = 3 * MS + CLOCK_NS;
        let clock_ms = (CLOCK_NS / MS) as i64;
        assert!(lines.deadline_ms(line, 70, last_ns).is_some_and(|ms| ms >= 5_000 + clock_ms + 70), "drift is covered");
        assert_eq!(lines.deadline_ms(line, 70, last_ns + 1), None);
    }

    #[test]
    fn lines_of_gone_bridges_are_reused() {
        let (mut lines, first) = one_line();
        lines.hold(first, RequestId(1));
        for number in 0..5 * PEERS_MAX {
            let line = lines.line(&format!("test.inbox.{number}").into());
            assert!(line != first && lines.by_inbox.len() == lines.lines.len());
        }
        assert_eq!(lines.lines.len(), 2 * PEERS_MAX);
        assert_eq!(lines.line(&"test.inbox.b".into()), first);
    }
}
