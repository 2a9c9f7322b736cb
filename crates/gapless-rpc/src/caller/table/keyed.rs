//! [`KeyedRequests`]: requests with a key wait for one instance. An instance that takes none of them for a while loses
//! its keys to the next one in the hash order, and gets them back once it takes requests again.
//!
//! There are no checks while no keyed request waits: an offer sets the time of the next check, and the I/O thread
//! performs it.

use gapless_agent::monotonic::monotonic_ns;
use gapless_log::claim::{ClaimState, ClaimWord};
use gapless_wire::split_mix;

/// Time after which an instance that takes none of its keyed requests loses them, ns.
const PATIENCE_NS: u64 = 100_000_000;
/// Interval between checks while keyed requests wait, ns.
const LOOK_NS: u64 = 50_000_000;
/// Interval after which such an instance is offered one request of its keys again, ns.
const TRY_AGAIN_NS: u64 = 1_000_000_000;
/// Time for which that request waits for it, ns.
const TRIAL_NS: u64 = 20_000_000;

/// Keyed requests under way.
#[derive(Debug)]
pub(super) struct KeyedRequests {
    /// One for each slot.
    requests: Box<[KeyedRequest]>,
    /// Instances that keyed requests were offered to.
    instances: Vec<TakeRecord>,
    /// Time of the next check whether requests are taken, ns of the monotonic clock.
    look_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct KeyedRequest {
    generation: u32,
    /// Instance that it is offered to, 0 for none.
    instance: u32,
    /// Time of the offer, ns of the monotonic clock.
    offered_ns: u64,
    is_taken: bool,
}

/// Record of whether an instance takes its requests.
#[derive(Debug, Default)]
struct TakeRecord {
    instance: u32,
    /// Time of the next trial, ns of the monotonic clock; set while it has lost its keys.
    try_again_ns: Option<u64>,
    /// A keyed request was taken since the last check.
    has_taken: bool,
    /// Time of the last check that found a taken request, ns of the monotonic clock.
    taken_ns: u64,
    /// Time of offer of the first request since then that was given up before it was taken, ns of the monotonic clock.
    given_up_ns: Option<u64>,
}

impl TakeRecord {
    fn note(&mut self) {
        self.has_taken = true;
        self.try_again_ns = None;
    }
}

/// Instance that a keyed request is to be offered to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyOwner {
    /// Number of the instance, 0 without one.
    pub(crate) instance: u32,
    /// The I/O thread must be woken, because it sleeps too long.
    pub(crate) must_wake_reactor: bool,
}

impl KeyedRequests {
    pub(super) fn new(slots: u32) -> Self {
        Self { requests: vec![KeyedRequest::default(); slots as usize].into(), instances: Vec::new(), look_ns: None }
    }

    /// Time of the next check, ns of the monotonic clock.
    pub(super) const fn look_ns(&self) -> Option<u64> {
        self.look_ns
    }

    /// Schedules a check. True if none was scheduled that early.
    fn look_by(&mut self, look_ns: u64) -> bool {
        let is_untold = self.look_ns.is_none_or(|known_ns| known_ns > look_ns);
        if is_untold {
            self.look_ns = Some(look_ns);
        }
        is_untold
    }

    /// Instance that owns a key, among the open ones with number and identity: the one with the greatest hash of key
    /// and identity (rendezvous hashing), so that only the keys of an instance that does not take them move.
    pub(super) fn key_owner(&mut self, key: u64, open: impl Iterator<Item = (u32, u64)> + Clone) -> KeyOwner {
        let key = split_mix::finish(key);
        let weight = |(_, identity): &(u32, u64)| split_mix::finish(key ^ identity);
        // If no instance takes requests, they wait for the first.
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
                must_wake_reactor |= self.look_by(now_ns + TRIAL_NS);
                break;
            }
            let less = open.clone().filter(|instance| weight(instance) < weight(&found));
            let Some(next) = less.max_by_key(weight) else {
                found = first;
                break;
            };
            found = next;
        }
        if self.look_ns.is_none() {
            must_wake_reactor |= self.look_by(monotonic_ns() + PATIENCE_NS);
        }
        KeyOwner { instance: found.0, must_wake_reactor }
    }

    /// Records a keyed request that was offered to an instance.
    pub(super) fn offered(&mut self, slot: u32, generation: u32, instance: u32) {
        if !self.instances.iter().any(|taking| taking.instance == instance) {
            self.instances.push(TakeRecord { instance, ..TakeRecord::default() });
        }
        let offered_ns = monotonic_ns();
        self.requests[slot as usize] = KeyedRequest { generation, instance, offered_ns, is_taken: false };
    }

    /// Records the end of a slot's request. `was_taken`: an instance had it; `was_given_up`: none had, and its caller
    /// gave up. Returns whether the request had a key.
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

    /// Forgets an instance that has gone or is new.
    pub(super) fn forget(&mut self, instance: u32) {
        self.instances.retain(|taking| taking.instance != instance);
    }

    /// Performs the check if it is due. Returns the slots of requests that must go to another of the `open` instances.
    pub(super) fn look(
        &mut self,
        claim: impl Fn(u32) -> ClaimWord,
        mut open: impl Iterator<Item = u32>,
        now_ns: u64,
    ) -> Vec<u32> {
        if self.look_ns.is_none_or(|look_ns| look_ns > now_ns) {
            return Vec::new();
        }
        let Self { requests, instances, .. } = self;
        // Waiting requests: slot, instance, and time of the offer.
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
        self.look_ns = (!waiting.is_empty()).then_some(now_ns + LOOK_NS);
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
