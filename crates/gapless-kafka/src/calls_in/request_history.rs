//! Recognises repeated requests. Each sender has its own share, so that a busy one does not displace those of others.

use crate::effects::CallId;
use crate::record::KafkaRecord;
use crate::record::bundle::length_of;
use crate::segments::AssemblyKey;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Retention of ended requests.
const RETENTION_NS: u64 = 60_000_000_000;
/// Bridges repeat no requests; a broker repeats only those of its last batches.
const BRIDGE_LIMITS: HistoryLimits = HistoryLimits { sender: 16 << 10, total: 256 << 10 };
/// In a minute, 1,000 a second of one program and 4,000 of all.
const PROGRAM_LIMITS: HistoryLimits = HistoryLimits { sender: 60_000, total: 256 << 10 };
/// Limits of a kept reply to a foreign program, with headers, and of all together.
const KEPT_BYTES_MAX: usize = 64 << 10;
const KEPT_BYTES_TOTAL: usize = 16 << 20;

#[derive(Debug)]
pub(super) enum KnownRequest {
    Running(CallId),
    Ended(Option<Vec<KafkaRecord>>),
}

#[derive(Clone, Copy, Debug)]
struct HistoryLimits {
    sender: usize,
    total: usize,
}

type EndedRequests = VecDeque<(u64, Arc<AssemblyKey>)>;

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

    fn add(&mut self, key: Arc<AssemblyKey>, now_ns: u64) -> Vec<Arc<AssemblyKey>> {
        self.total += 1;
        match self.senders.get_mut(&key.0) {
            Some(ended) => ended.push_back((now_ns, key.clone())),
            None => _ = self.senders.insert(key.0.clone(), EndedRequests::from([(now_ns, key.clone())])),
        }
        let mut forgotten = self.forget(&key.0, self.limits.sender, now_ns);
        if self.total > self.limits.total {
            // A quarter of all is lost together, so that this happens seldom.
            let share = self.limits.total / 4 * 3 / self.senders.len();
            forgotten.extend(self.forget_all(share, now_ns));
        }
        forgotten
    }

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

#[derive(Debug)]
pub(super) struct RequestHistory {
    seen: HashMap<Arc<AssemblyKey>, KnownRequest>,
    bridges: Pool,
    programs: Pool,
    kept_bytes: usize,
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

    pub(super) fn replace(&mut self, key: &AssemblyKey, reply: &[KafkaRecord]) {
        if let Some(KnownRequest::Ended(kept)) = self.seen.get_mut(key) {
            self.kept_bytes -= kept.as_deref().map_or(0, kept_bytes);
            *kept = has_room(self.kept_bytes, reply).then(|| reply.to_vec());
            self.kept_bytes += kept.as_deref().map_or(0, kept_bytes);
        }
    }

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
