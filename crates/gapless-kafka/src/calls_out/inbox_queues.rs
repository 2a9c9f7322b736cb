//! When a request to an inbox has had no report for a while, later ones are held here: not begun, their deadlines
//! running.

use crate::broker_time::BrokerTime;
use crate::effects::RequestId;
use crate::presence::PEERS_MAX;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The clock of an inbox is known no better.
const LATENESS_MS: i64 = 100;
/// The inbox's clock may have been set since.
const CLOCK_AGE_MAX_NS: u64 = 5_000_000_000;

#[derive(Debug, Default)]
struct InboxQueue {
    unreported: VecDeque<UnreportedRequest>,
    held: VecDeque<RequestId>,
    clock: BrokerTime,
    reported_ns: Option<u64>,
}

#[derive(Debug)]
struct UnreportedRequest {
    request: RequestId,
    records: u32,
    sent_ns: u64,
}

/// Valid while the queue has requests.
pub(super) type QueueIndex = usize;

#[derive(Debug)]
pub(super) struct InboxQueues {
    queues: Vec<InboxQueue>,
    by_inbox: HashMap<Arc<str>, QueueIndex>,
    stall_timeout_ns: u64,
    /// The client has said that it reaches no broker, and has delivered nothing since.
    is_in_trouble: bool,
}

impl InboxQueues {
    pub(super) fn new(stall_timeout_ns: u64) -> Self {
        Self { queues: Vec::new(), by_inbox: HashMap::new(), stall_timeout_ns, is_in_trouble: false }
    }

    /// The client cannot reach a broker: until the next delivery a request without a report stalls its queue at once.
    pub(super) const fn note_trouble(&mut self) {
        self.is_in_trouble = true;
    }

    pub(super) fn queue(&mut self, inbox: &Arc<str>) -> QueueIndex {
        if let Some(queue) = self.by_inbox.get(inbox) {
            return *queue;
        }
        let is_idle = |queue: &InboxQueue| queue.unreported.is_empty() && queue.held.is_empty();
        let idle = self.queues.iter().position(is_idle).filter(|_| self.queues.len() >= 2 * PEERS_MAX);
        let queue = idle.unwrap_or(self.queues.len());
        if idle.is_some() {
            self.by_inbox.retain(|_, other| *other != queue);
            self.queues[queue] = InboxQueue::default();
        } else {
            self.queues.push(InboxQueue::default());
        }
        self.by_inbox.insert(inbox.clone(), queue);
        queue
    }

    pub(super) fn is_stalled(&self, queue: QueueIndex, now_ns: u64) -> bool {
        !self.queues[queue].held.is_empty() || self.is_late(queue, now_ns)
    }

    fn is_late(&self, queue: QueueIndex, now_ns: u64) -> bool {
        let stall_timeout_ns = if self.is_in_trouble { 0 } else { self.stall_timeout_ns };
        self.queues[queue]
            .unreported
            .front()
            .is_some_and(|oldest| now_ns.saturating_sub(oldest.sent_ns) >= stall_timeout_ns)
    }

    pub(super) fn hold(&mut self, queue: QueueIndex, request: RequestId) {
        self.queues[queue].held.push_back(request);
    }

    pub(super) fn next(&mut self, queue: QueueIndex, now_ns: u64) -> Option<RequestId> {
        if self.is_late(queue, now_ns) { None } else { self.queues[queue].held.pop_front() }
    }

    pub(super) fn sent(&mut self, queue: QueueIndex, request: RequestId, records: u32, now_ns: u64) {
        self.queues[queue].unreported.push_back(UnreportedRequest { request, records, sent_ns: now_ns });
    }

    pub(super) fn reported(&mut self, queue: QueueIndex, request: RequestId, append_time_ms: Option<i64>, now_ns: u64) {
        let queue = &mut self.queues[queue];
        // Reports of one topic come in record order, except the client's own refusals.
        if let Ok(at) = queue.unreported.binary_search_by_key(&request, |unreported| unreported.request) {
            queue.unreported[at].records -= 1;
            if queue.unreported[at].records == 0 {
                queue.unreported.remove(at);
            }
        }
        if let Some(append_time_ms) = append_time_ms {
            self.is_in_trouble = false;
            if append_time_ms >= 0 {
                queue.clock.read(append_time_ms, now_ns);
                queue.reported_ns = Some(now_ns);
            }
        }
    }

    pub(super) fn withdraw(&mut self, queue: QueueIndex, request: RequestId) {
        self.queues[queue].unreported.retain(|unreported| unreported.request != request);
    }

    /// Append time in its inbox at which a call with this time left is over, as far as the clock of the inbox is known.
    pub(super) fn deadline_ms(&self, queue: QueueIndex, left_ms: u64, now_ns: u64) -> Option<i64> {
        let queue = &self.queues[queue];
        let is_known =
            queue.reported_ns.is_some_and(|reported_ns| now_ns.saturating_sub(reported_ns) <= CLOCK_AGE_MAX_NS);
        let now_ms = queue.clock.now_ms(now_ns).filter(|_| is_known)?;
        Some(now_ms.saturating_add(LATENESS_MS).saturating_add_unsigned(left_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn one_queue() -> (InboxQueues, QueueIndex) {
        let mut queues = InboxQueues::new(500 * MS);
        let queue = queues.queue(&"test.inbox.b".into());
        (queues, queue)
    }

    #[test]
    fn the_oldest_report_decides() {
        let (mut queues, queue) = one_queue();
        assert!(!queues.is_stalled(queue, MS));
        queues.sent(queue, RequestId(1), 2, MS);
        queues.sent(queue, RequestId(2), 1, 400 * MS);
        assert!(!queues.is_stalled(queue, 500 * MS) && queues.is_stalled(queue, 501 * MS));
        queues.hold(queue, RequestId(3));
        queues.reported(queue, RequestId(1), Some(7), 502 * MS);
        assert!(queues.is_stalled(queue, 502 * MS), "a segment has no report yet");
        queues.reported(queue, RequestId(1), Some(7), 503 * MS);
        assert!(queues.is_stalled(queue, 503 * MS), "one that waits goes first");
        assert_eq!(queues.next(queue, 503 * MS), Some(RequestId(3)));
        assert_eq!((queues.next(queue, 503 * MS), queues.is_stalled(queue, 503 * MS)), (None, false));
        queues.sent(queue, RequestId(3), 1, 503 * MS);
        queues.reported(queue, RequestId(3), None, 504 * MS);
        queues.withdraw(queue, RequestId(2));
        assert!(!queues.is_stalled(queue, 9_000 * MS));
    }

    #[test]
    fn trouble_stalls_at_once() {
        let (mut queues, queue) = one_queue();
        queues.note_trouble();
        assert!(!queues.is_stalled(queue, MS), "one request has to try");
        queues.sent(queue, RequestId(1), 1, MS);
        queues.sent(queue, RequestId(2), 1, MS);
        assert!(queues.is_stalled(queue, MS));
        queues.reported(queue, RequestId(1), None, 2 * MS);
        assert!(queues.is_stalled(queue, 2 * MS), "a failure is no end of it");
        queues.sent(queue, RequestId(3), 1, 2 * MS);
        queues.reported(queue, RequestId(2), Some(7), 3 * MS);
        assert!(!queues.is_stalled(queue, 3 * MS));
    }

    #[test]
    fn deadlines_need_a_fresh_clock() {
        let (mut queues, queue) = one_queue();
        assert_eq!(queues.deadline_ms(queue, 70, MS), None);
        queues.sent(queue, RequestId(1), 1, MS);
        queues.reported(queue, RequestId(1), Some(5_000), 3 * MS);
        assert_eq!(queues.deadline_ms(queue, 70, 3 * MS), Some(5_000 + LATENESS_MS + 70));
        let last_ns = 3 * MS + CLOCK_AGE_MAX_NS;
        let clock_ms = (CLOCK_AGE_MAX_NS / MS) as i64;
        assert!(
            queues.deadline_ms(queue, 70, last_ns).is_some_and(|ms| ms >= 5_000 + clock_ms + 70),
            "drift is covered"
        );
        assert_eq!(queues.deadline_ms(queue, 70, last_ns + 1), None);
    }

    #[test]
    fn queues_of_gone_bridges_are_reused() {
        let (mut queues, first) = one_queue();
        queues.hold(first, RequestId(1));
        for number in 0..5 * PEERS_MAX {
            let queue = queues.queue(&format!("test.inbox.{number}").into());
            assert!(queue != first && queues.by_inbox.len() == queues.queues.len());
        }
        assert_eq!(queues.queues.len(), 2 * PEERS_MAX);
        assert_eq!(queues.queue(&"test.inbox.b".into()), first);
    }
}
