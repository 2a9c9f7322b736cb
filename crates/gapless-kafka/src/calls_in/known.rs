//! `Known`: requests that were seen, by which a repeated one is recognised. Each sender has a share of its own, so that a busy one does
//! not make those of others forgotten.

use crate::effects::CallId;
use crate::record::Record;
use crate::segments::AssemblyKey;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Requests that have ended are known for so long, ns.
const KNOWN_NS: u64 = 60_000_000_000;
/// Numbers of ended requests that are known.
const BOUNDS: Bounds = Bounds { bridge: 16 << 10, program: 60_000, together: 256 << 10 };
/// Replies to programs that are no bridges are kept for a repeated request up to this length, and to this length together.
const KEPT_BYTES_MAX: usize = 64 << 10;
const KEPT_BYTES_TOGETHER: usize = 16 << 20;

/// A request that was seen.
#[derive(Debug)]
pub(super) enum Seen {
    Running(CallId),
    /// Ended, with the reply to a foreign program, if it was kept.
    Ended(Option<Vec<Record>>),
}

/// Numbers of ended requests that are known, at most.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// For one bridge, which repeats none; a broker repeats only those of its last batches.
    bridge: usize,
    /// For one program: 1,000 a second are known for their time.
    program: usize,
    /// For all senders.
    together: usize,
}

/// Requests of one sender that have ended, in that order, with the time, ns of the monotonic clock.
type Ended = VecDeque<(u64, Arc<AssemblyKey>)>;

/// Requests that were seen.
#[derive(Debug)]
pub(super) struct Known {
    bounds: Bounds,
    seen: HashMap<Arc<AssemblyKey>, Seen>,
    ended: HashMap<String, Ended>,
    ended_together: usize,
    kept_bytes: usize,
    /// Time of the next look at all senders, ns of the monotonic clock.
    look_ns: u64,
}

impl Known {
    pub(super) fn new() -> Self {
        Self::with(BOUNDS)
    }

    fn with(bounds: Bounds) -> Self {
        Self { bounds, seen: HashMap::new(), ended: HashMap::new(), ended_together: 0, kept_bytes: 0, look_ns: 0 }
    }

    pub(super) fn get(&self, key: &AssemblyKey) -> Option<&Seen> {
        self.seen.get(key)
    }

    pub(super) fn begin(&mut self, key: Arc<AssemblyKey>, call: CallId) {
        self.seen.insert(key, Seen::Running(call));
    }

    /// Keeps in mind that a request has ended, with the reply where that is to be sent again, and forgets the oldest.
    pub(super) fn end(&mut self, key: Arc<AssemblyKey>, reply: Option<Vec<Record>>, is_of_bridge: bool, now_ns: u64) {
        let reply = reply.filter(|reply| has_room(self.kept_bytes, reply));
        self.kept_bytes += reply.as_deref().map_or(0, kept_bytes);
        if let Some(Seen::Ended(Some(earlier))) = self.seen.insert(key.clone(), Seen::Ended(reply)) {
            self.kept_bytes -= kept_bytes(&earlier);
        }
        let ended_max = if is_of_bridge { self.bounds.bridge } else { self.bounds.program };
        self.ended_together += 1;
        match self.ended.get_mut(&key.0) {
            Some(ended) => ended.push_back((now_ns, key.clone())),
            None => _ = self.ended.insert(key.0.clone(), Ended::from([(now_ns, key.clone())])),
        }
        self.forget(&key.0, ended_max, now_ns);
        if self.ended_together > self.bounds.together {
            self.make_room(now_ns);
        }
    }

    /// Keeps another reply to a request that has ended.
    pub(super) fn replace(&mut self, key: &AssemblyKey, reply: &[Record]) {
        if let Some(Seen::Ended(kept)) = self.seen.get_mut(key) {
            self.kept_bytes -= kept.as_deref().map_or(0, kept_bytes);
            *kept = has_room(self.kept_bytes, reply).then(|| reply.to_vec());
            self.kept_bytes += kept.as_deref().map_or(0, kept_bytes);
        }
    }

    /// Forgets requests that ended long ago, now and then.
    pub(super) fn expire(&mut self, now_ns: u64) {
        if now_ns < self.look_ns {
            return;
        }
        self.look_ns = now_ns + KNOWN_NS / 4;
        for sender in self.ended.keys().cloned().collect::<Vec<_>>() {
            self.forget(&sender, usize::MAX, now_ns);
        }
    }

    /// Senders with more than their share lose their oldest, a quarter of all together: so this is seldom done.
    fn make_room(&mut self, now_ns: u64) {
        let share = self.bounds.together / 4 * 3 / self.ended.len();
        for sender in self.ended.keys().cloned().collect::<Vec<_>>() {
            self.forget(&sender, share, now_ns);
        }
    }

    /// Forgets the oldest of a sender that are too old, or more than `ended_max`.
    fn forget(&mut self, sender: &str, ended_max: usize, now_ns: u64) {
        let Some(ended) = self.ended.get_mut(sender) else { return };
        while let Some((ended_ns, key)) = ended.front()
            && (ended.len() > ended_max || now_ns.saturating_sub(*ended_ns) > KNOWN_NS)
        {
            if let Some(Seen::Ended(_)) = self.seen.get(key)
                && let Some(Seen::Ended(kept)) = self.seen.remove(key)
            {
                self.kept_bytes -= kept.as_deref().map_or(0, kept_bytes);
            }
            ended.pop_front();
            self.ended_together -= 1;
        }
        if ended.is_empty() {
            self.ended.remove(sender);
        }
    }
}

/// True if a reply is kept next to others of so many bytes.
fn has_room(kept: usize, reply: &[Record]) -> bool {
    let bytes = kept_bytes(reply);
    bytes <= KEPT_BYTES_MAX && kept + bytes <= KEPT_BYTES_TOGETHER
}

fn kept_bytes(reply: &[Record]) -> usize {
    reply.iter().map(|record| record.payload.as_ref().map_or(0, Vec::len)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const SMALL: Bounds = Bounds { bridge: 16, program: 60, together: 256 };

    fn key(sender: &str, number: usize) -> Arc<AssemblyKey> {
        Arc::new((sender.to_owned(), number.to_string()))
    }

    fn reply(length: usize) -> Option<Vec<Record>> {
        Some(vec![Record { payload: Some(vec![0; length]), ..Record::default() }])
    }

    #[test]
    fn a_busy_sender_forgets_only_its_own() {
        let mut known = Known::with(SMALL);
        known.end(key("gapless.reply.x", 0), reply(7), false, 0);
        for number in 0..SMALL.bridge + 1 {
            known.end(key("b@0000000000000007", number), None, true, SECOND);
        }
        assert!(known.get(&key("gapless.reply.x", 0)).is_some());
        assert!(known.get(&key("b@0000000000000007", 0)).is_none(), "beyond its own share");
        assert!(known.get(&key("b@0000000000000007", 1)).is_some());
        // Nothing more comes of either, and their time goes by.
        known.expire(60 * SECOND);
        assert!(known.get(&key("gapless.reply.x", 0)).is_some());
        known.expire(76 * SECOND);
        assert_eq!((known.seen.len(), known.ended.len(), known.ended_together, known.kept_bytes), (0, 0, 0, 0));
    }

    #[test]
    fn the_stated_rate_is_known_for_a_minute() {
        let mut known = Known::new();
        for number in 0..60_000 {
            known.end(key("x", number), None, false, number as u64 * SECOND / 1_000);
        }
        assert!(known.get(&key("x", 0)).is_some());
        known.end(key("x", 60_000), None, false, 61 * SECOND);
        assert!(known.get(&key("x", 0)).is_none(), "a minute is over");
    }

    #[test]
    fn many_senders_share_the_room() {
        let mut known = Known::with(SMALL);
        (0..8).for_each(|number| known.end(key("quiet", number), None, false, 0));
        for number in 0..SMALL.together / SMALL.program + 1 {
            let sender = format!("busy {number}");
            (0..SMALL.program).for_each(|number| known.end(key(&sender, number), None, false, 0));
        }
        assert!(known.ended_together <= SMALL.together && known.seen.len() == known.ended_together);
        assert!((0..8).all(|number| known.get(&key("quiet", number)).is_some()));
    }

    #[test]
    fn kept_replies_have_a_limit() {
        let mut known = Known::new();
        let is_kept = |known: &Known, number| matches!(known.get(&key("x", number)), Some(Seen::Ended(Some(_))));
        known.end(key("x", 0), reply(KEPT_BYTES_MAX + 1), false, 0);
        assert!(!is_kept(&known, 0));
        let count = KEPT_BYTES_TOGETHER / KEPT_BYTES_MAX;
        (1..=count + 1).for_each(|number| known.end(key("x", number), reply(KEPT_BYTES_MAX), false, 0));
        assert!(is_kept(&known, count) && !is_kept(&known, count + 1));
    }
}
