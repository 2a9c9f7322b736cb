//! The instance's side: `InstanceSide` takes requests from one caller's table and answers them.

use super::layout::{DONE, REACTOR_PARKED, TAILS, UNTAKEN, latest_entry, notice_word};
use super::{CLASSES, CallTable, CallTableShape, PREFETCHED_LENGTH, REQUEST_HEADER_LENGTH, RequestHeader, STATUS_MAX};
use crate::Region;
use crate::claim::{AnswerTransition, Claim, ClaimState};
use crate::sync::{Arc, AtomicU64, Ordering, fence};
use gapless_agent::fault::crash_point;
#[cfg(not(loom))]
use {
    super::layout::{CLAIMS_MAGIC, REQUESTS_MAGIC},
    crate::LogError,
    crate::claim::INSTANCE_NUMBER_MAX,
    crate::sealed::foreign,
    gapless_wire::fields::u64_at,
    rustix::fd::OwnedFd,
};

/// Table of one caller, as an instance of its route sees it; shared by the instance's workers.
#[derive(Debug)]
pub struct InstanceSide {
    requests: Arc<Region>,
    claims: Arc<Region>,
    shape: CallTableShape,
    number: u32,
    heads: [AtomicU64; CLASSES],
    is_abandoned: AtomicU64,
    /// Ring positions up to which its worker has looked for targeted requests alone.
    targeted_heads: [AtomicU64; CLASSES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedSlot {
    pub slot: u32,
    pub generation: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// With `ring_reactor`, the caller's eventfd must be written.
    Answered { ring_reactor: bool },
    /// The caller had withdrawn the request.
    Withdrawn,
    /// The caller had revoked this instance.
    Lost,
}

impl InstanceSide {
    #[must_use]
    pub fn in_process(table: &CallTable, number: u32) -> Self {
        let (requests, claims) = table.regions();
        Self {
            requests,
            claims,
            shape: table.shape(),
            number,
            heads: Self::no_heads(),
            is_abandoned: AtomicU64::new(0),
            targeted_heads: Self::no_heads(),
        }
    }

    /// False in a forked child, where nothing of this value may be used.
    #[cfg(not(loom))]
    #[inline]
    #[must_use]
    pub fn is_mapped_here(&self) -> bool {
        self.claims.is_mapped_here()
    }

    fn no_heads() -> [AtomicU64; CLASSES] {
        std::array::from_fn(|_| AtomicU64::new(0))
    }

    /// Opens both regions of a caller; `number` is the caller's number for this instance.
    ///
    /// # Errors
    /// [`LogError::Foreign`] for memory that is not sealed, has another length, or is no call table.
    #[cfg(not(loom))]
    pub fn open(
        (requests, claims): (OwnedFd, OwnedFd),
        (request_bytes, claim_bytes): (u64, u64),
        number: u32,
    ) -> Result<Self, LogError> {
        if number == 0 || number > INSTANCE_NUMBER_MAX {
            return Err(foreign("an instance's number", number, format!("1 to {INSTANCE_NUMBER_MAX}")));
        }
        let length = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let requests = Region::open(requests, length(request_bytes), false)?;
        let mut header = [0; 32];
        if requests.length() < header.len() {
            return Err(foreign("a call table's length", requests.length(), "at least a header"));
        }
        requests.load(0, &mut header);
        let magic = u64_at(&header, 0);
        if magic != REQUESTS_MAGIC {
            return Err(foreign("a call table's magic", format!("{magic:#x}"), format!("{REQUESTS_MAGIC:#x}")));
        }
        let slots = u32::try_from(u64_at(&header, 8)).unwrap_or(u32::MAX);
        let shape = CallTableShape::new(slots, length(u64_at(&header, 16)))?;
        if requests.length() != shape.request_region_length() {
            let expected = shape.request_region_length();
            return Err(foreign("a call table's length", requests.length(), expected));
        }
        if length(claim_bytes) != shape.claim_region_length() {
            return Err(foreign("a claim region's length", claim_bytes, shape.claim_region_length()));
        }
        let claims = Region::open(claims, shape.claim_region_length(), true)?;
        // Relaxed: written before the descriptor was passed.
        let magic = claims.word(0).load(Ordering::Relaxed);
        if magic != CLAIMS_MAGIC {
            return Err(foreign("a claim region's magic", format!("{magic:#x}"), format!("{CLAIMS_MAGIC:#x}")));
        }
        let (requests, claims) = (Arc::new(requests), Arc::new(claims));
        let (heads, targeted_heads, is_abandoned) = (Self::no_heads(), Self::no_heads(), AtomicU64::new(0));
        Ok(Self { requests, claims, shape, number, heads, is_abandoned, targeted_heads })
    }

    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    #[must_use]
    pub const fn shape(&self) -> CallTableShape {
        self.shape
    }

    #[inline]
    #[must_use]
    pub fn has_offers(&self, class: usize) -> bool {
        // Acquire: as in `take`. Relaxed: a hint, and never ahead of what workers have looked at.
        self.requests.word(TAILS + class * 8).load(Ordering::Acquire) > self.heads[class].load(Ordering::Relaxed)
    }

    /// Claims the oldest request of `class`.
    #[inline]
    #[must_use]
    pub fn take(&self, class: usize) -> Option<ClaimedSlot> {
        // Acquire: pairs with the Release of the tail, so that entries and offers before it are seen.
        let tail = self.requests.word(TAILS + class * 8).load(Ordering::Acquire);
        let head = &self.heads[class];
        // Relaxed: an entry that one worker has passed can be taken by none, and an older head only causes another look
        // at it.
        let mut position = head.load(Ordering::Relaxed);
        if position >= tail {
            return None;
        }
        // Overwritten entries are over, or have been entered again.
        position = position.max(tail.saturating_sub(self.shape.ring_length() as u64));
        let mut taken = None;
        while position < tail && taken.is_none() {
            let (slot, generation) = self.entry(class, position);
            position += 1;
            taken = self.claim_entry(slot, generation);
        }
        head.fetch_max(position, Ordering::Relaxed);
        if position < tail && taken.is_some() {
            self.prefetch(self.entry(class, position).0);
        }
        taken
    }

    #[must_use]
    pub fn has_targeted_offers(&self, class: usize) -> bool {
        // Acquire and Relaxed as in `has_offers`.
        self.requests.word(TAILS + class * 8).load(Ordering::Acquire)
            > self.targeted_heads[class].load(Ordering::Relaxed)
    }

    /// Like [`InstanceSide::take`], for requests targeted at this instance. Leaves the heads of `take` alone: requests
    /// skipped here remain available there.
    #[must_use]
    pub fn take_targeted(&self, class: usize) -> Option<ClaimedSlot> {
        // Acquire: as in `take`.
        let tail = self.requests.word(TAILS + class * 8).load(Ordering::Acquire);
        let head = &self.targeted_heads[class];
        // Relaxed: as in `take`. Entries that `take` has passed were available to this instance, or are entered again.
        let mut position = head.load(Ordering::Relaxed).max(self.heads[class].load(Ordering::Relaxed));
        position = position.max(tail.saturating_sub(self.shape.ring_length() as u64));
        let mut taken = None;
        while position < tail && taken.is_none() {
            let (slot, generation) = self.entry(class, position);
            position += 1;
            taken = self.claim_targeted(slot, generation);
        }
        head.fetch_max(position, Ordering::Relaxed);
        taken
    }

    fn claim_targeted(&self, slot: u32, generation: u32) -> Option<ClaimedSlot> {
        let is_targeted = slot < self.shape.slots() && self.claim(slot).load().holder() == self.number;
        if is_targeted { self.claim_entry(slot, generation) } else { None }
    }

    #[inline]
    fn entry(&self, class: usize, position: u64) -> (u32, u32) {
        // Relaxed: a hint. An overwritten entry, or a wrapped latest word, names another request; `claim_entry` checks
        // it.
        let latest = self.requests.word(self.shape.latest(class)).load(Ordering::Relaxed);
        latest_entry(latest, position).unwrap_or_else(|| {
            let entry = self.requests.word(self.shape.offer(class, position)).load(Ordering::Relaxed);
            (entry as u32, (entry >> 32) as u32)
        })
    }

    /// Prefetches all cache lines of the next request at once, before the dependent steps of its claim: they are in
    /// another core's cache.
    #[inline]
    fn prefetch(&self, slot: u32) {
        if slot < self.shape.slots() {
            let length = PREFETCHED_LENGTH.min(self.shape.payload_length_max());
            self.claims.prefetch_for_writing(self.shape.claim(slot), 1);
            self.requests.prefetch(self.shape.request(slot), REQUEST_HEADER_LENGTH + length);
            self.claims.prefetch_for_writing(self.shape.reply(slot), length);
        }
    }

    #[inline]
    fn claim_entry(&self, slot: u32, generation: u32) -> Option<ClaimedSlot> {
        if slot >= self.shape.slots() {
            return None;
        }
        self.prefetch(slot);
        let claim = self.claim(slot);
        let seen = claim.load();
        let is_offered = seen.generation() == generation && seen.state() == Some(ClaimState::Offered);
        (is_offered && claim.claim(seen, self.number)).then_some(ClaimedSlot { slot, generation })
    }

    #[inline]
    fn claim(&self, slot: u32) -> Claim<'_> {
        Claim::new(self.claims.word(self.shape.claim(slot)))
    }

    /// `None` if the slot holds no valid request of this claim: the caller is faulty.
    #[inline]
    #[must_use]
    pub fn request_header(&self, taken: ClaimedSlot) -> Option<RequestHeader> {
        let mut bytes = [0; REQUEST_HEADER_LENGTH];
        self.requests.load(self.shape.request(taken.slot), &mut bytes);
        let header = RequestHeader::from_bytes(&bytes);
        self.shape.is_sound(&header, taken.generation).then_some(header)
    }

    #[inline]
    pub fn read_request(
        &self,
        taken: ClaimedSlot,
        header: &RequestHeader,
        user_headers: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) {
        let body = self.shape.request(taken.slot) + REQUEST_HEADER_LENGTH;
        let headers_length = header.headers_length as usize;
        self.requests.load_into(body, headers_length, user_headers);
        self.requests.load_into(body + headers_length.next_multiple_of(8), header.payload_length as usize, payload);
    }

    /// False if the caller has withdrawn the request: [`InstanceSide::answer`] then gives the slot back.
    #[inline]
    #[must_use]
    pub fn begin(&self, taken: ClaimedSlot) -> bool {
        self.claim(taken.slot).begin(taken.generation, self.number)
    }

    /// Requests a signal to the caller's reactor at the answer, even for a one-way request.
    pub fn want_notice(&self, taken: ClaimedSlot) {
        // False if the caller has given the request up and checks it by itself.
        let _ = self.claim(taken.slot).want_notice(taken.generation);
    }

    /// Marks the caller as gone: its requests count as withdrawn.
    pub fn abandon(&self) {
        // Relaxed: a hint to handlers that synchronises nothing.
        self.is_abandoned.store(1, Ordering::Relaxed);
    }

    #[inline]
    #[must_use]
    pub fn is_withdrawn(&self, taken: ClaimedSlot) -> bool {
        // Relaxed: as in `abandon`.
        self.is_abandoned.load(Ordering::Relaxed) != 0
            || self.claim(taken.slot).is_withdrawn(taken.generation, self.number)
    }

    /// Publishes the reply and wakes the caller's thread that sleeps on it.
    ///
    /// # Panics
    /// If the reply is longer than the shape allows, or the status is above [`STATUS_MAX`].
    #[inline]
    pub fn answer(&self, taken: ClaimedSlot, status: u32, reply: &[u8]) -> AnswerOutcome {
        assert!(reply.len() <= self.shape.payload_length_max() && status <= STATUS_MAX);
        let claim = self.claim(taken.slot);
        let line = self.shape.claim(taken.slot);
        // The slot may hold another request by now, whose reply must not be touched.
        if claim.is_withdrawn(taken.generation, self.number) {
            return Self::withdrawn(claim.answer(taken.generation, self.number));
        }
        self.claims.store(self.shape.reply(taken.slot), reply);
        // Relaxed: published by the claim's transition.
        self.claims.word(line + 8).store((reply.len() as u64) << 32 | u64::from(status), Ordering::Relaxed);
        crash_point("instance_reply_written");
        match claim.answer(taken.generation, self.number) {
            AnswerTransition::Answered(wake) => {
                crash_point("instance_answered_before_wake");
                if wake.spins {
                    // May be stored after the slot was reused, hence the generation. Release: pairs with the Acquire in
                    // `CallTable::notice`.
                    let notice = notice_word(taken.generation, status, reply.len());
                    self.claims.word(self.shape.reply_notice(taken.slot)).store(notice, Ordering::Release);
                }
                if wake.waits {
                    self.claims.wake(line, i32::MAX as u32);
                }
                AnswerOutcome::Answered { ring_reactor: wake.notify && self.note_done(taken.slot) }
            }
            other => Self::withdrawn(other),
        }
    }

    fn withdrawn(answering: AnswerTransition) -> AnswerOutcome {
        match answering {
            AnswerTransition::Withdrawn => AnswerOutcome::Withdrawn,
            AnswerTransition::Answered(_) | AnswerTransition::Lost => AnswerOutcome::Lost,
        }
    }

    /// Returns whether to write the eventfd of the caller's reactor.
    fn note_done(&self, slot: u32) -> bool {
        crash_point("instance_before_done_bit");
        // Release: a thread that sees the bit sees the claim answered (pairs with the Acquire in `take_done`).
        self.claims.word(DONE + slot as usize / 64 * 8).fetch_or(1 << (slot % 64), Ordering::Release);
        self.is_reactor_to_be_woken()
    }

    /// A worker was woken for a request that it cannot take yet: the caller's reactor rings another instance. Returns
    /// whether to write its eventfd.
    #[must_use]
    pub fn pass_ring_on(&self) -> bool {
        // Relaxed: ordered by the fence.
        self.claims.word(UNTAKEN).store(1, Ordering::Relaxed);
        self.is_reactor_to_be_woken()
    }

    fn is_reactor_to_be_woken(&self) -> bool {
        // SeqCst: pairs with the fence in `announce_reactor`. Either the reactor sees the bit, or this side sees that
        // it sleeps.
        fence(Ordering::SeqCst);
        let parked = self.claims.word(REACTOR_PARKED);
        // Relaxed: ordered by the fence; of several instances one writes the eventfd.
        parked.load(Ordering::Relaxed) != 0 && parked.swap(0, Ordering::Relaxed) != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::call_table::{HEADERS_ROOM, OfferRings};

    #[test]
    fn overwritten_requests_are_survived() {
        const SLOTS: u32 = 4;
        let table = CallTable::create(CallTableShape::new(SLOTS, 64).unwrap()).unwrap();
        let (shape, mut rings) = (table.shape(), OfferRings::new(table.shape()));
        let write_over = |word: u64| {
            for offset in (0..shape.request_region_length()).step_by(8) {
                table.request_region().word(offset).store(word, Ordering::Relaxed);
            }
        };
        let (mut user_headers, mut payload) = (Vec::new(), Vec::new());
        for (generation, word) in (1..).zip([70, u64::MAX, 1, 1 << 32 | 70, u64::MAX >> 1].repeat(8)) {
            let header = RequestHeader { generation, class: 1, ..RequestHeader::default() };
            table.write_request(0, header, &[3; 8], &[7; 8]);
            rings.offer(&table, 1, 0, generation, (0, false));
            assert!(table.read_back(0, generation, &mut user_headers, &mut payload).is_some());
            write_over(word);
            assert_eq!(table.read_back(0, generation, &mut user_headers, &mut payload), None, "of {word:#x}");
            table.write_request(0, RequestHeader { class: CLASSES as u8, ..header }, &[], &[]);
            assert_eq!(table.read_back(0, generation, &mut user_headers, &mut payload), None, "of no class");
            let instance = InstanceSide::in_process(&table, 1);
            for class in (0..CLASSES).cycle().take(CLASSES * 4) {
                let _ = instance.take(class).and_then(|taken| instance.request_header(taken));
            }
            let claim = table.claim(0);
            let _ = claim.withdraw(generation);
            claim.free(generation);
        }
    }

    #[test]
    fn invalid_lengths_are_refused() {
        let table = CallTable::create(CallTableShape::new(1, 1 << 10).unwrap()).unwrap();
        table.write_request(0, RequestHeader { generation: 1, ..RequestHeader::default() }, &[], &[7; 8]);
        OfferRings::new(table.shape()).offer(&table, 0, 0, 1, (0, false));
        let instance = InstanceSide::in_process(&table, 1);
        let taken = instance.take(0).unwrap();
        let lengths = table.shape().request(0) + 32;
        let with = |headers_length: u32, payload_length: u32| {
            let word = u64::from(payload_length) << 32 | u64::from(headers_length);
            table.request_region().word(lengths).store(word, Ordering::Relaxed);
            instance.request_header(taken)
        };
        let room = HEADERS_ROOM as u32;
        assert!(with(0, 1 << 10).is_some() && with(room, 1 << 10).is_some());
        for headers_length in [room + 1, u32::MAX - 7, u32::MAX - 6, u32::MAX] {
            assert_eq!(with(headers_length, 0), None, "headers of {headers_length} bytes");
        }
        assert_eq!(with(0, (1 << 10) + 1), None);
        assert_eq!(with(0, u32::MAX), None);
        assert_eq!(with(u32::MAX, u32::MAX), None);
    }
}
