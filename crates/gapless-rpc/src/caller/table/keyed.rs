//! [`KeyedRequests`]: requests with a key wait for one instance. If it takes none of them for a while, its keys go to
//! the next one in the hash order until it does. Checks happen only while keyed requests wait.

use gapless_agent::monotonic::monotonic_ns;
use gapless_log::claim::{ClaimState, ClaimWord};
use gapless_wire::split_mix;

/// An instance that takes none of its keyed requests for so long loses them.
const PATIENCE_NS: u64 = 100_000_000;
const CHECK_INTERVAL_NS: u64 = 50_000_000;
/// Interval after which such an instance is offered one request of its keys again.
const TRY_AGAIN_NS: u64 = 1_000_000_000;
/// Time for which that request waits for it.
const TRIAL_NS: u64 = 20_000_000;

#[derive(Debug)]
pub(super) struct KeyedRequests {
    requests: Box<[KeyedRequest]>,
    instances: Vec<TakeRecord>,
    check_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct KeyedRequest {
    generation: u32,
    instance: u32,
    offered_ns: u64,
    is_taken: bool,
}

#[derive(Debug, Default)]
struct TakeRecord {
    instance: u32,
    /// Set while it has lost its keys; ns of the monotonic clock.
    try_again_ns: Option<u64>,
    has_taken: bool,
    taken_ns: u64,
    /// Offer time of the first request since then that was given up before it was taken.
    given_up_ns: Option<u64>,
}

impl TakeRecord {
    fn note(&mut self) {
        self.has_taken = true;
        self.try_again_ns = None;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyOwner {
    pub(crate) instance: u32,
    pub(crate) must_wake_reactor: bool,
}

impl KeyedRequests {
    pub(super) fn new(slots: u32) -> Self {
        Self { requests: vec![KeyedRequest::default(); slots as usize].into(), instances: Vec::new(), check_ns: None }
    }

    pub(super) const fn check_ns(&self) -> Option<u64> {
        self.check_ns
    }

    /// True if no check was scheduled that early.
    fn schedule_check(&mut self, check_ns: u64) -> bool {
        let is_untold = self.check_ns.is_none_or(|known_ns| known_ns > check_ns);
        if is_untold {
            self.check_ns = Some(check_ns);
        }
        is_untold
    }

    /// Greatest hash of key and identity (rendezvous hashing), so that only the keys of an instance that does not take
    /// them move.
    pub(super) fn key_owner(&mut self, key: u64, open: impl Iterator<Item = (u32, u64)> + Clone) -> KeyOwner {
        let key = split_mix::finish(key);
        let weight = |(_, identity): &(u32, u64)| split_mix::finish(key ^ identity);
        let Some(first) = open.clone().max_by_key(weight) else {
            return KeyOwner { instance: 0, must_wake_reactor: false };
        };
        let (mut found, mut must_wake_reactor) = (first, false);
        while let Some(taking) = self.instances.iter_mut().find(|taking| taking.instance == found.0)
            && let Some(try_again_ns) = taking.try_again_ns
        {
            let now_ns = monotonic_ns();
            if now_ns >= try_again_ns {
                taking.try_again_ns = Some(now_ns + TRY_AGAIN_NS);
                must_wake_reactor |= self.schedule_check(now_ns + TRIAL_NS);
                break;
            }
            let less = open.clone().filter(|instance| weight(instance) < weight(&found));
            let Some(next) = less.max_by_key(weight) else {
                found = first;
                break;
            };
            found = next;
        }
        if self.check_ns.is_none() {
            must_wake_reactor |= self.schedule_check(monotonic_ns() + PATIENCE_NS);
        }
        KeyOwner { instance: found.0, must_wake_reactor }
    }

    pub(super) fn offered(&mut self, slot: u32, generation: u32, instance: u32) {
        if !self.instances.iter().any(|taking| taking.instance == instance) {
            self.instances.push(TakeRecord { instance, ..TakeRecord::default() });
        }
        let offered_ns = monotonic_ns();
        self.requests[slot as usize] = KeyedRequest { generation, instance, offered_ns, is_taken: false };
    }

    /// `was_taken`: an instance had the request; `was_given_up`: none had, and its caller gave up. Returns whether it
    /// had a key.
    pub(super) fn ended(&mut self, slot: u32, generation: u32, (was_taken, was_given_up): (bool, bool)) -> bool {
        let request = &mut self.requests[slot as usize];
        if request.instance == 0 || request.generation != generation {
            return false;
        }
        let KeyedRequest { instance, offered_ns, is_taken, .. } = std::mem::take(request);
        if let Some(taking) = self.instances.iter_mut().find(|taking| taking.instance == instance) {
            if was_taken || is_taken {
                taking.note();
            } else if was_given_up {
                taking.given_up_ns.get_or_insert(offered_ns);
            }
        }
        true
    }

    pub(super) fn forget(&mut self, instance: u32) {
        self.instances.retain(|taking| taking.instance != instance);
    }

    /// Returns the slots of requests that must go to another of the `open` instances.
    pub(super) fn find_requests_to_move(
        &mut self,
        claim: impl Fn(u32) -> ClaimWord,
        mut open: impl Iterator<Item = u32>,
        now_ns: u64,
    ) -> Vec<u32> {
        if self.check_ns.is_none_or(|check_ns| check_ns > now_ns) {
            return Vec::new();
        }
        let Self { requests, instances, .. } = self;
        let mut waiting = Vec::new();
        for (slot, request) in (0..).zip(requests) {
            let KeyedRequest { generation, instance, offered_ns, is_taken } = *request;
            if instance == 0 || is_taken {
                continue;
            }
            let seen = claim(slot);
            match seen.state() {
                _ if seen.generation() != generation => {}
                Some(ClaimState::Offered) if !seen.is_revoked() => waiting.push((slot, instance, offered_ns)),
                Some(ClaimState::Claimed | ClaimState::Begun | ClaimState::Answered) => {
                    request.is_taken = true;
                    instances.iter_mut().filter(|taking| taking.instance == instance).for_each(TakeRecord::note);
                }
                _ => {}
            }
        }
        self.check_ns = (!waiting.is_empty()).then_some(now_ns + CHECK_INTERVAL_NS);
        let mut given_away = Vec::new();
        for taking in &mut *instances {
            if std::mem::take(&mut taking.has_taken) {
                (taking.taken_ns, taking.given_up_ns) = (now_ns, None);
                continue;
            }
            let of_instance = || waiting.iter().filter(|(_, instance, _)| *instance == taking.instance);
            let waits_ns = of_instance().map(|(.., offered_ns)| *offered_ns).chain(taking.given_up_ns).min();
            let Some(waits_ns) = waits_ns else { continue };
            let is_new = taking.try_again_ns.is_none();
            if is_new && now_ns.saturating_sub(waits_ns.max(taking.taken_ns)) < PATIENCE_NS {
                continue;
            }
            let is_over = |offered_ns: u64| is_new || now_ns.saturating_sub(offered_ns) >= TRIAL_NS;
            given_away.extend(of_instance().filter(|(.., offered_ns)| is_over(*offered_ns)).map(|(slot, ..)| *slot));
            taking.try_again_ns.get_or_insert(now_ns + TRY_AGAIN_NS);
        }
        let is_hung =
            |instance: u32| instances.iter().any(|taking| taking.instance == instance && taking.try_again_ns.is_some());
        if open.any(|instance| !is_hung(instance)) { given_away } else { Vec::new() }
    }
}
