//! `RequestHistory`: requests that were seen, by which a repeated one is recognised. Each sender has a share of its own, so that a busy one does
//! not make those of others forgotten.

use crate::effects::CallId;
use crate::record::KafkaRecord;
use crate::record::bundle::length_of;
use crate::segments::AssemblyKey;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Requests that have ended are known for so long, ns.
const RETENTION_NS: u64 = 60_000_000_000;
/// Limits of ended requests of bridges, which repeat none; a broker repeats only those of its last batches.
const BRIDGE_LIMITS: HistoryLimits = HistoryLimits { sender: 16 << 10, total: 256 << 10 };
/// Limits of ended requests of programs: in a minute 1,000 a second of one, and 4,000 of all.
const PROGRAM_LIMITS: HistoryLimits = HistoryLimits { sender: 60_000, total: 256 << 10 };
/// Replies to programs that are no bridges are kept for a repeated request up to this length, with headers, and to this length together.
const KEPT_BYTES_MAX: usize = 64 << 10;
const KEPT_BYTES_TOTAL: usize = 16 << 20;

/// A request that was seen.
#[derive(Debug)]
pub(super) enum KnownRequest {
    Running(CallId),
    /// Ended, with the reply to a foreign program, if it was kept.
    Ended(Option<Vec<KafkaRecord>>),
}

/// Ended requests that are known, at most.
#[derive(Clone, Copy, Debug)]
struct HistoryLimits {
    sender: usize,
    total: usize,
}

/// Requests of one sender that have ended, in that order, with the time, ns of the monotonic clock.
type EndedRequests = VecDeque<(u64, Arc<AssemblyKey>)>;

/// Ended requests of senders of one kind.
#[derive(Debug)]
struct Pool {
    limits: HistoryLimits,
    senders: HashMap<String, EndedRequests>,
    total: usize,
}

impl Pool {
    fn new(limits: HistoryLimits) -> Self {
        Self { limits, senders: HashMap::new(), total: 0 }
    }

    /// Adds a request that has ended now. Returns the requests that are forgotten for it.
    fn add(&mut self, key: Arc<AssemblyKey>, now_ns: u64) -> Vec<Arc<AssemblyKey>> {
        self.total += 1;
        match self.senders.get_mut(&key.0) {
            Some(ended) => ended.push_back((now_ns, key.clone())),
            None => _ = self.senders.insert(key.0.clone(), EndedRequests::from([(now_ns, key.clone())])),
        }
        let mut forgotten = self.forget(&key.0, self.limits.sender, now_ns);
        if self.total > self.limits.total {
            // Senders with more than their share lose their oldest, a quarter of all together: so this is seldom done.
            let share = self.limits.total / 4 * 3 / self.senders.len();
            forgotten.extend(self.forget_all(share, now_ns));
        }
        forgotten
    }

    /// Forgets the oldest of each sender that are too old, or more than `ended_max`.
    fn forget_all(&mut self, ended_max: usize, now_ns: u64) -> Vec<Arc<AssemblyKey>> {
        let senders: Vec<_> = self.senders.keys().cloned().collect();
        senders.into_iter().flat_map(|sender| self.forget(&sender, ended_max, now_ns)).collect()
    }

    fn forget(&mut self, sender: &str, ended_max: usize, now_ns: u64) -> Vec<Arc<AssemblyKey>> {
        let mut forgotten = Vec::new();
        let Some(ended) = self.senders.get_mut(sender) else { return forgotten };
        loop {
            let is_excess = ended.len() > ended_max;
            let oldest =
                ended.pop_front_if(|(ended_ns, _)| is_excess || now_ns.saturating_sub(*ended_ns) > RETENTION_NS);
            let Some((_, key)) = oldest else { break };
            forgotten.push(key);
        }
        self.total -= forgotten.len();
        if ended.is_empty() {
            self.senders.remove(sender);
        }
        forgotten
    }
}

/// Requests that were seen.
#[derive(Debug)]
pub(super) struct RequestHistory {
    seen: HashMap<Arc<AssemblyKey>, KnownRequest>,
    bridges: Pool,
    programs: Pool,
    kept_bytes: usize,
    /// Time of the next look at all senders, ns of the monotonic clock.
    next_expiry_ns: u64,
}

impl RequestHistory {
    pub(super) fn new() -> Self {
        Self::with(BRIDGE_LIMITS, PROGRAM_LIMITS)
    }

    fn with(of_bridges: HistoryLimits, of_programs: HistoryLimits) -> Self {
        let (bridges, programs) = (Pool::new(of_bridges), Pool::new(of_programs));
        Self { seen: HashMap::new(), bridges, programs, kept_bytes: 0, next_expiry_ns: 0 }
    }

    pub(super) fn get(&self, key: &AssemblyKey) -> Option<&KnownRequest> {
        self.seen.get(key)
    }

    pub(super) fn begin(&mut self, key: Arc<AssemblyKey>, call: CallId) {
        self.seen.insert(key, KnownRequest::Running(call));
    }

    /// Keeps in mind that a request has ended, with the reply where that is to be sent again, and forgets the oldest.
    pub(super) fn end(
        &mut self,
        key: Arc<AssemblyKey>,
        reply: Option<Vec<KafkaRecord>>,
        is_from_bridge: bool,
        now_ns: u64,
    ) {
        let reply = reply.filter(|reply| has_room(self.kept_bytes, reply));
        self.kept_bytes += reply.as_deref().map_or(0, kept_bytes);
        if let Some(KnownRequest::Ended(Some(earlier))) = self.seen.insert(key.clone(), KnownRequest::Ended(reply)) {
            self.kept_bytes -= kept_bytes(&earlier);
        }
        let pool = if is_from_bridge { &mut self.bridges } else { &mut self.programs };
        let forgotten = pool.add(key, now_ns);
        self.remove(forgotten);
    }

    /// Keeps another reply to a request that has ended.
    pub(super) fn replace(&mut self, key: &AssemblyKey, reply: &[KafkaRecord]) {
        if let Some(KnownRequest::Ended(kept)) = self.seen.get_mut(key) {
            self.kept_bytes -= kept.as_deref().map_or(0, kept_bytes);
            *kept = has_room(self.kept_bytes, reply).then(|| reply.to_vec());
            self.kept_bytes += kept.as_deref().map_or(0, kept_bytes);
        }
    }

    /// Forgets requests that ended long ago, now and then.
    pub(super) fn expire(&mut self, now_ns: u64) {
        if now_ns < self.next_expiry_ns {
            return;
        }
        self.next_expiry_ns = now_ns + RETENTION_NS / 4;
        for forgotten in [&mut self.bridges, &mut self.programs].map(|pool| pool.forget_all(usize::MAX, now_ns)) {
            self.remove(forgotten);
        }
    }

    fn remove(&mut self, forgotten: Vec<Arc<AssemblyKey>>) {
        for key in forgotten {
            // A request may have begun again under its name.
            if let Some(KnownRequest::Ended(_)) = self.seen.get(&key)
                && let Some(KnownRequest::Ended(kept)) = self.seen.remove(&key)
            {
                self.kept_bytes -= kept.as_deref().map_or(0, kept_bytes);
            }
        }
    }
}

/// True if a reply is kept next to others of so many bytes.
fn has_room(kept: usize, reply: &[KafkaRecord]) -> bool {
    let bytes = kept_bytes(reply);
    bytes <= KEPT_BYTES_MAX && kept + bytes <= KEPT_BYTES_TOTAL
}

fn kept_bytes(reply: &[KafkaRecord]) -> usize {
    reply.iter().map(length_of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const BRIDGES: HistoryLimits = HistoryLimits { sender: 16, total: 64 };
    const PROGRAMS: HistoryLimits = HistoryLimits { sender: 60, total: 256 };

    fn key(sender: &str, number: usize) -> Arc<AssemblyKey> {
        Arc::new((sender.to_owned(), number.to_string()))
    }

    /// A reply of that length, most of it in a header.
    fn reply(length: usize) -> Option<Vec<KafkaRecord>> {
        let mut record = KafkaRecord { payload: Some(Vec::new()), ..KafkaRecord::default() };
        let rest = length - length_of(&record);
        record.headers = vec![("x".into(), vec![0; rest - 5])];
        Some(vec![record])
    }

    #[test]
    fn a_busy_sender_forgets_only_its_own() {
        let mut history = RequestHistory::with(BRIDGES, PROGRAMS);
        history.end(key("gapless.reply.x", 0), reply(70), false, 0);
        for number in 0..BRIDGES.sender + 1 {
            history.end(key("b@0000000000000007", number), None, true, SECOND);
        }
        assert!(history.get(&key("gapless.reply.x", 0)).is_some());
        assert!(history.get(&key("b@0000000000000007", 0)).is_none(), "beyond its own share");
        assert!(history.get(&key("b@0000000000000007", 1)).is_some());
        // No more records of either arrive, and their time expires.
        history.expire(60 * SECOND);
        assert!(history.get(&key("gapless.reply.x", 0)).is_some());
        history.expire(76 * SECOND);
        assert!(history.seen.is_empty() && history.bridges.senders.is_empty() && history.programs.senders.is_empty());
        assert_eq!((history.bridges.total, history.programs.total, history.kept_bytes), (0, 0, 0));
    }

    #[test]
    fn full_rate_is_kept_for_a_minute() {
        let mut history = RequestHistory::new();
        for number in 0..60_000 {
            history.end(key("x", number), None, false, number as u64 * SECOND / 1_000);
        }
        assert!(history.get(&key("x", 0)).is_some());
        history.end(key("x", 60_000), None, false, 61 * SECOND);
        assert!(history.get(&key("x", 0)).is_none(), "a minute is over");
    }

    #[test]
    fn many_senders_share_the_room() {
        let mut history = RequestHistory::with(BRIDGES, PROGRAMS);
        (0..8).for_each(|number| history.end(key("quiet", number), None, false, 0));
        for number in 0..PROGRAMS.total / PROGRAMS.sender + 1 {
            let sender = format!("busy {number}");
            (0..PROGRAMS.sender).for_each(|number| history.end(key(&sender, number), None, false, 0));
        }
        let total = history.programs.total;
        assert!(total <= PROGRAMS.total && history.seen.len() == total);
        assert!((0..8).all(|number| history.get(&key("quiet", number)).is_some()));
    }

    #[test]
    fn bridges_push_no_programs_out() {
        let mut history = RequestHistory::with(BRIDGES, PROGRAMS);
        (0..PROGRAMS.sender).for_each(|number| history.end(key("x", number), None, false, 0));
        for bridge in 0..PROGRAMS.total {
            let sender = format!("b@{bridge:016x}");
            (0..BRIDGES.sender).for_each(|number| history.end(key(&sender, number), None, true, 0));
        }
        assert!((0..PROGRAMS.sender).all(|number| history.get(&key("x", number)).is_some()));
        assert!(history.bridges.total <= BRIDGES.total);
    }

    #[test]
    fn kept_replies_have_a_limit() {
        let mut history = RequestHistory::new();
        let is_kept = |history: &RequestHistory, number| {
            matches!(history.get(&key("x", number)), Some(KnownRequest::Ended(Some(_))))
        };
        history.end(key("x", 0), reply(KEPT_BYTES_MAX + 1), false, 0);
        assert!(!is_kept(&history, 0));
        let count = KEPT_BYTES_TOTAL / KEPT_BYTES_MAX;
        (1..=count + 1).for_each(|number| history.end(key("x", number), reply(KEPT_BYTES_MAX), false, 0));
        assert!(is_kept(&history, count) && !is_kept(&history, count + 1));
    }
}
