//! The caller's side: `CallTable` holds the regions, `OfferRings` the state of the single offering thread.

#[cfg(not(loom))]
use super::layout::{CLAIMS_MAGIC, REQUESTS_MAGIC};
use super::layout::{DONE, REACTOR_PARKED, TAILS, UNTAKEN, latest_word, noticed};
use super::{CLASSES, CallTableShape, PREFETCHED_LENGTH, REQUEST_HEADER_LENGTH, RequestHeader};
use crate::claim::{Claim, ClaimState};
use crate::sync::{Arc, Ordering, fence};
use crate::{LogError, Region};
use gapless_agent::fault::crash_point;

/// The caller's side. Slots are numbers below [`CallTableShape::slots`]; the user tracks which of them it owns.
#[derive(Debug)]
pub struct CallTable {
    requests: Arc<Region>,
    claims: Arc<Region>,
    shape: CallTableShape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader {
    pub status: u32,
    pub length: u32,
}

impl CallTable {
    /// Makes both regions.
    ///
    /// # Errors
    /// As [`Region::create`].
    pub fn create(shape: CallTableShape) -> Result<Self, LogError> {
        let requests = Arc::new(Region::create(shape.request_region_length())?);
        let claims = Arc::new(Region::create(shape.claim_region_length())?);
        #[cfg(not(loom))]
        for (number, value) in
            [REQUESTS_MAGIC, shape.slots().into(), shape.payload_length_max() as u64].into_iter().enumerate()
        {
            // Relaxed: ordered by passing the descriptor to another process.
            requests.word(number * 8).store(value, Ordering::Relaxed);
        }
        #[cfg(not(loom))]
        claims.word(0).store(CLAIMS_MAGIC, Ordering::Relaxed);
        Ok(Self { requests, claims, shape })
    }

    #[must_use]
    pub const fn shape(&self) -> CallTableShape {
        self.shape
    }

    #[must_use]
    pub fn request_region(&self) -> &Region {
        &self.requests
    }

    #[must_use]
    pub fn claim_region(&self) -> &Region {
        &self.claims
    }

    pub(super) fn regions(&self) -> (Arc<Region>, Arc<Region>) {
        (Arc::clone(&self.requests), Arc::clone(&self.claims))
    }

    /// The claim of a slot.
    ///
    /// # Panics
    /// If there is no such slot.
    #[inline]
    #[must_use]
    pub fn claim(&self, slot: u32) -> Claim<'_> {
        Claim::new(self.claims.word(self.claim_offset(slot)))
    }

    fn claim_offset(&self, slot: u32) -> usize {
        assert!(slot < self.shape.slots());
        self.shape.claim(slot)
    }

    /// `header` gets the lengths of `user_headers` and `payload`. The slot must be free and owned.
    ///
    /// # Panics
    /// If there is no such slot, or a length exceeds the shape.
    #[inline]
    pub fn write_request(&self, slot: u32, mut header: RequestHeader, user_headers: &[u8], payload: &[u8]) {
        assert!(slot < self.shape.slots());
        assert!(self.shape.has_room(user_headers.len(), payload.len()));
        header.headers_length = user_headers.len() as u32;
        header.payload_length = payload.len() as u32;
        let request = self.shape.request(slot);
        let body = request + REQUEST_HEADER_LENGTH;
        self.requests.store(request, &header.to_bytes());
        if user_headers.is_empty() {
            self.requests.store(body, payload);
        } else {
            self.requests.store(body, user_headers);
            self.requests.store(body + user_headers.len().next_multiple_of(8), payload);
        }
    }

    #[inline]
    pub fn prefetch(&self, slot: u32) {
        assert!(slot < self.shape.slots());
        let length = PREFETCHED_LENGTH.min(self.shape.payload_length_max());
        self.claims.prefetch_for_writing(self.shape.claim(slot), 1);
        self.requests.prefetch_for_writing(self.shape.request(slot), REQUEST_HEADER_LENGTH + length);
    }

    /// Replaces both buffers by an own request. `None` if a faulty process has overwritten it.
    #[must_use]
    pub fn read_back(
        &self,
        slot: u32,
        generation: u32,
        user_headers: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> Option<RequestHeader> {
        assert!(slot < self.shape.slots());
        let request = self.shape.request(slot);
        let mut bytes = [0; REQUEST_HEADER_LENGTH];
        self.requests.load(request, &mut bytes);
        let header = RequestHeader::from_bytes(&bytes);
        if !self.shape.is_sound(&header, generation) {
            return None;
        }
        let body = request + REQUEST_HEADER_LENGTH;
        let headers_length = header.headers_length as usize;
        self.requests.load_into(body, headers_length, user_headers);
        self.requests.load_into(body + headers_length.next_multiple_of(8), header.payload_length as usize, payload);
        Some(header)
    }

    /// Sleeps on a claim whose low half [`Claim::announce_wait`] has returned.
    pub fn wait(&self, slot: u32, low_half: u32, timeout: std::time::Duration) {
        self.claims.wait(self.claim_offset(slot), low_half, timeout);
    }

    pub fn wake(&self, slot: u32) {
        self.claims.wake(self.claim_offset(slot), i32::MAX as u32);
    }

    /// Returns the notice in the slot if the request was answered, for requests offered as spinning. The claim is
    /// answered then, too; only the claim reports a death.
    #[inline]
    #[must_use]
    pub fn notice(&self, slot: u32, generation: u32) -> Option<ReplyHeader> {
        assert!(slot < self.shape.slots());
        // Acquire: pairs with the Release in `InstanceSide::answer`, so that the reply is seen.
        let word = self.claims.word(self.shape.reply_notice(slot)).load(Ordering::Acquire);
        let (status, length) = noticed(word, generation)?;
        self.claims.prefetch(self.shape.reply(slot), PREFETCHED_LENGTH.min(self.shape.payload_length_max()));
        self.prefetch(slot);
        Some(ReplyHeader { status, length: length.min(self.shape.payload_length_max() as u32) })
    }

    /// Header of an answered slot's reply; the length is clamped to the slot's limit.
    #[inline]
    #[must_use]
    pub fn reply_header(&self, slot: u32) -> ReplyHeader {
        // Relaxed: ordered by the Acquire load of the claim.
        let word = self.claims.word(self.claim_offset(slot) + 8).load(Ordering::Relaxed);
        let length = ((word >> 32) as u32).min(self.shape.payload_length_max() as u32);
        ReplyHeader { status: word as u32, length }
    }

    /// Replaces `into` by the reply.
    #[inline]
    pub fn read_reply(&self, slot: u32, header: ReplyHeader, into: &mut Vec<u8>) {
        self.claims.load_into(self.shape.reply(slot), header.length as usize, into);
    }

    /// Releases the pages of a free slot beyond `kept_bytes` each of request and reply.
    ///
    /// # Errors
    /// As [`Region::release_pages`].
    #[cfg(not(loom))]
    pub fn release_pages(&self, slot: u32, kept_bytes: usize) -> Result<(), LogError> {
        assert!(slot < self.shape.slots());
        let (request, next) = (self.shape.request(slot), self.shape.request(slot + 1));
        let kept = kept_bytes.min(next - request);
        self.requests.release_pages(request + kept, next - request - kept)?;
        let (reply, next) = (self.shape.reply_notice(slot), self.shape.reply_notice(slot + 1));
        let kept = kept_bytes.min(next - reply);
        self.claims.release_pages(reply + kept, next - reply - kept)
    }

    /// Reactor: announces that it sleeps and wants its eventfd written. It must check [`CallTable::take_done`] and
    /// [`CallTable::take_unclaimed`] once more after this.
    pub fn announce_reactor(&self) {
        // Relaxed: the fence pairs with the one in `InstanceSide::answer`.
        self.claims.word(REACTOR_PARKED).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub fn withdraw_reactor(&self) {
        // Relaxed: an instance that still sees it asleep makes one needless call.
        self.claims.word(REACTOR_PARKED).store(0, Ordering::Relaxed);
    }

    /// Reactor: whether an instance has passed a ring on since the last check; another one must be rung.
    #[must_use]
    pub fn take_unclaimed(&self) -> bool {
        let untaken = self.claims.word(UNTAKEN);
        // Relaxed: a hint. Loaded first, so that the cache line stays shared.
        untaken.load(Ordering::Relaxed) != 0 && untaken.swap(0, Ordering::Relaxed) != 0
    }

    /// Reactor: answered slots among `word` × 64 … + 63 since the last check, one bit each. A hint: the claim is
    /// authoritative.
    ///
    /// # Panics
    /// If there are fewer slots.
    #[must_use]
    pub fn take_done(&self, word: u32) -> u64 {
        assert!(word * 64 < self.shape.slots());
        let done = self.claims.word(DONE + word as usize * 8);
        // Relaxed load first, so that the cache line stays shared. The Acquire pairs with the Release of the instance.
        if done.load(Ordering::Relaxed) == 0 { 0 } else { done.swap(0, Ordering::Acquire) }
    }
}

/// Writer's state of the offer rings; for one thread at a time.
#[derive(Debug)]
pub struct OfferRings {
    shape: CallTableShape,
    tails: [u64; CLASSES],
    /// Reads nothing from the region, which another process may have overwritten.
    entries: Box<[u64]>,
    offered: Box<[u32]>,
}

impl OfferRings {
    #[must_use]
    pub fn new(shape: CallTableShape) -> Self {
        let entries = vec![0; CLASSES * shape.ring_length()].into();
        Self { shape, tails: [0; CLASSES], entries, offered: vec![0; shape.slots() as usize].into() }
    }

    /// Offers a written request, to the instance `target` or to all (0).
    #[inline]
    pub fn offer(&mut self, table: &CallTable, class: usize, slot: u32, generation: u32, (target, spins): (u32, bool)) {
        table.claim(slot).offer(generation, target, spins);
        crash_point("call_offered_before_entry");
        self.offered[slot as usize] = generation;
        self.enter(table, class, slot, generation);
    }

    #[inline]
    fn enter(&mut self, table: &CallTable, class: usize, mut slot: u32, mut generation: u32) {
        // Twice as many entries as slots: at most half of them are offered, so this ends.
        loop {
            let position = self.tails[class];
            let entry = u64::from(generation) << 32 | u64::from(slot);
            let overwritten = std::mem::replace(&mut self.entries[self.shape.ring_entry(class, position)], entry);
            // Relaxed: published by the tail.
            table.requests.word(self.shape.offer(class, position)).store(entry, Ordering::Relaxed);
            self.tails[class] = position + 1;
            // Relaxed: published by this tail or a later one, under which it belongs to another position.
            let latest = table.requests.word(self.shape.latest(class));
            latest.store(latest_word(position, slot, generation), Ordering::Relaxed);
            crash_point("call_entered_before_tail");
            // Release: a reader of the tail sees the entry and the offer before it (pairs with the Acquire in
            // `InstanceSide::take`).
            table.requests.word(TAILS + class * 8).store(position + 1, Ordering::Release);
            if position < self.shape.ring_length() as u64 {
                return;
            }
            let (old_slot, old_generation) = (overwritten as u32, (overwritten >> 32) as u32);
            // The claim is in the cache of an instance: loaded only if the slot still has the same request.
            if self.offered[old_slot as usize] != old_generation {
                return;
            }
            let old = table.claim(old_slot).load();
            if old.generation() != old_generation || old.state() != Some(ClaimState::Offered) {
                return;
            }
            // Still offered, so it gets another entry.
            (slot, generation) = (old_slot, old_generation);
        }
    }
}
