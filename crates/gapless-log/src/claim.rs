//! [`Claim`]: ownership of a request, in one word between its caller and all instances of its route. Every transition
//! is one compare-and-swap, so after any death the word shows how far the request had come.
//!
//! ```text
//!  claim word:  generation u32 | holder u24 | flags u4 | state u4
//!
//!             offer            claim            begin          answer
//!      free ────────▶ offered ────────▶ claimed ──────▶ begun ────────▶ answered ──▶ free
//!       ▲                │                 │              │                 ▲
//!       └── take back ───┘                 └── withdraw ──┴──▶ withdrawn ───┘
//! ```
//!
//! While a request is offered, the holder is the only instance that may take it, or 0.

use crate::sync::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimState {
    Free = 0,
    /// Any instance, or the target, may take it.
    Offered = 1,
    /// An instance has taken it and its handler has not begun.
    Claimed = 2,
    Begun = 3,
    Answered = 4,
    /// The caller no longer waits; not free until its holder has noticed or is dead.
    Withdrawn = 5,
}

impl ClaimState {
    const fn from_value(value: u64) -> Option<Self> {
        Some(match value {
            0 => Self::Free,
            1 => Self::Offered,
            2 => Self::Claimed,
            3 => Self::Begun,
            4 => Self::Answered,
            5 => Self::Withdrawn,
            _ => return None,
        })
    }
}

const STATE_MASK: u64 = 0xf;
const WAITS_FLAG: u64 = 1 << 4;
const NOTIFY_FLAG: u64 = 1 << 5;
const REVOKED_FLAG: u64 = 1 << 6;
const SPINS_FLAG: u64 = 1 << 7;
const HOLDER_SHIFT: u32 = 8;
const GENERATION_SHIFT: u32 = 32;

pub const INSTANCE_NUMBER_MAX: u32 = (1 << 24) - 1;

/// Another process may have written anything: an undefined state reads as [`None`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ClaimWord(u64);

impl ClaimWord {
    const fn new(generation: u32, holder: u32, flags: u64, state: ClaimState) -> Self {
        assert!(holder <= INSTANCE_NUMBER_MAX);
        Self((generation as u64) << GENERATION_SHIFT | (holder as u64) << HOLDER_SHIFT | flags | state as u64)
    }

    /// Number of the request in its slot.
    #[must_use]
    pub const fn generation(self) -> u32 {
        (self.0 >> GENERATION_SHIFT) as u32
    }

    #[must_use]
    pub const fn holder(self) -> u32 {
        (self.0 >> HOLDER_SHIFT) as u32 & INSTANCE_NUMBER_MAX
    }

    #[must_use]
    pub const fn state(self) -> Option<ClaimState> {
        ClaimState::from_value(self.0 & STATE_MASK)
    }

    const fn flags(self) -> u64 {
        self.0 & (WAITS_FLAG | NOTIFY_FLAG | REVOKED_FLAG | SPINS_FLAG)
    }

    /// The caller has revoked the holder, which is dead or disconnected.
    #[must_use]
    pub const fn is_revoked(self) -> bool {
        self.0 & REVOKED_FLAG != 0
    }

    #[must_use]
    pub const fn low_half(self) -> u32 {
        self.0 as u32
    }

    const fn with(self, holder: u32, state: ClaimState) -> Self {
        Self::new(self.generation(), holder, self.flags(), state)
    }
}

impl std::fmt::Debug for ClaimWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of generation {} by {}", self.state(), self.generation(), self.holder())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToWake {
    pub waits: bool,
    pub notify: bool,
    pub spins: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerTransition {
    Answered(ToWake),
    /// The reply is ignored, and the slot is the caller's again.
    Withdrawn,
    /// The slot holds another request: the caller has revoked this instance.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// The slot is free.
    TakenBack,
    /// An instance has it: the slot is in quarantine.
    NotBegun {
        holder: u32,
    },
    /// The handler has begun: the slot is in quarantine.
    Begun {
        holder: u32,
    },
    Answered,
    /// The slot does not hold this request.
    Lost,
}

impl Withdrawal {
    #[must_use]
    pub const fn holder(self) -> Option<u32> {
        match self {
            Self::TakenBack | Self::Answered | Self::Lost => None,
            Self::NotBegun { holder } | Self::Begun { holder } => Some(holder),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Claim<'a>(&'a AtomicU64);

impl<'a> Claim<'a> {
    #[must_use]
    pub const fn new(word: &'a AtomicU64) -> Self {
        Self(word)
    }

    #[inline]
    #[must_use]
    pub fn load(self) -> ClaimWord {
        // Acquire: pairs with the Release of every transition, so that request and reply are seen with their states.
        ClaimWord(self.0.load(Ordering::Acquire))
    }

    /// Release publishes this side's writes; Acquire shows the other side's before its last transition.
    #[inline]
    fn step(self, from: ClaimWord, to: ClaimWord) -> Result<(), ClaimWord> {
        match self.0.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(found) => Err(ClaimWord(found)),
        }
    }

    /// Owner of a slot with a written request: offers it to the instance `target`, or to all (0). A caller that `spins`
    /// polls a separate word, so as not to take the claim's cache line from the instance.
    #[inline]
    pub fn offer(self, generation: u32, target: u32, spins: bool) {
        let flags = if spins { SPINS_FLAG } else { 0 };
        // Release: an instance that sees the offer sees the request (pairs with the Acquire of `load` and `claim`).
        self.0.store(ClaimWord::new(generation, target, flags, ClaimState::Offered).0, Ordering::Release);
    }

    /// False if another was faster, or the caller has taken the request back, or is about to because it was revoked.
    #[inline]
    #[must_use]
    pub fn claim(self, seen: ClaimWord, holder: u32) -> bool {
        let is_meant = seen.holder() == 0 || seen.holder() == holder;
        is_meant && !seen.is_revoked() && seen.state() == Some(ClaimState::Offered) && {
            // The caller may set a flag between the load and the exchange.
            let mut from = seen;
            loop {
                match self.step(from, from.with(holder, ClaimState::Claimed)) {
                    Ok(()) => break true,
                    Err(found)
                        if !found.is_revoked()
                            && found.with(seen.holder(), ClaimState::Offered) == found
                            && found.generation() == seen.generation() =>
                    {
                        from = found
                    }
                    Err(_) => break false,
                }
            }
        }
    }

    /// False if the caller has withdrawn the request: call [`Claim::answer`] then, to give the slot back.
    #[inline]
    #[must_use]
    pub fn begin(self, generation: u32, holder: u32) -> bool {
        let mut found = self.load();
        loop {
            if !found.is(generation, holder, ClaimState::Claimed) {
                return false;
            }
            match self.step(found, found.with(holder, ClaimState::Begun)) {
                Ok(()) => return true,
                Err(other) => found = other,
            }
        }
    }

    /// The reply is written, or absent because the request was withdrawn.
    #[inline]
    pub fn answer(self, generation: u32, holder: u32) -> AnswerTransition {
        let mut found = self.load();
        loop {
            let is_withdrawn = found.is(generation, holder, ClaimState::Withdrawn);
            let is_held =
                found.is(generation, holder, ClaimState::Begun) || found.is(generation, holder, ClaimState::Claimed);
            if !is_withdrawn && !is_held {
                return AnswerTransition::Lost;
            }
            // SeqCst: the thread may next look at what others announced before they looked for this answer.
            let answered = found.with(holder, ClaimState::Answered).0;
            match self.0.compare_exchange(found.0, answered, Ordering::SeqCst, Ordering::Acquire).map_err(ClaimWord) {
                Ok(_) if is_withdrawn => return AnswerTransition::Withdrawn,
                Ok(_) => {
                    let is_set = |flag: u64| found.0 & flag != 0;
                    let (waits, notify, spins) = (is_set(WAITS_FLAG), is_set(NOTIFY_FLAG), is_set(SPINS_FLAG));
                    return AnswerTransition::Answered(ToWake { waits, notify, spins });
                }
                Err(other) => found = other,
            }
        }
    }

    /// Reports whether the caller has withdrawn the request, or `holder` has answered it.
    #[inline]
    #[must_use]
    pub fn is_withdrawn(self, generation: u32, holder: u32) -> bool {
        let found = self.load();
        !(found.is(generation, holder, ClaimState::Begun) || found.is(generation, holder, ClaimState::Claimed))
    }

    /// Owner: announces that a thread is about to sleep on the word, and returns the low half to sleep on; `None` if
    /// there is an answer or a revocation to see first.
    #[must_use]
    pub fn announce_wait(self, generation: u32) -> Option<u32> {
        self.set_flag(generation, WAITS_FLAG).map(ClaimWord::low_half)
    }

    /// Requests a signal by the owner's reactor. False if there is something to see already, as for
    /// [`Claim::announce_wait`].
    #[must_use]
    pub fn want_notice(self, generation: u32) -> bool {
        self.set_flag(generation, NOTIFY_FLAG).is_some()
    }

    /// Owner: revokes the instance `holder`, which is dead or disconnected. A thread that sleeps on the word, or is
    /// about to, sees a changed word. False if that instance neither has the request nor is its only target.
    pub fn revoke(self, holder: u32) -> bool {
        self.revoke_if(holder, |state| {
            matches!(state, Some(ClaimState::Offered | ClaimState::Claimed | ClaimState::Begun))
        })
    }

    /// False if it is not offered to `target`.
    pub fn revoke_offer(self, target: u32) -> bool {
        self.revoke_if(target, |state| state == Some(ClaimState::Offered))
    }

    fn revoke_if(self, holder: u32, is_meant: impl Fn(Option<ClaimState>) -> bool) -> bool {
        let mut found = self.load();
        while found.holder() == holder && is_meant(found.state()) {
            match self.step(found, ClaimWord(found.0 | REVOKED_FLAG)) {
                Ok(()) => return true,
                Err(other) => found = other,
            }
        }
        false
    }

    fn set_flag(self, generation: u32, flag: u64) -> Option<ClaimWord> {
        let mut found = self.load();
        loop {
            let is_under_way =
                matches!(found.state(), Some(ClaimState::Offered | ClaimState::Claimed | ClaimState::Begun));
            if found.generation() != generation || !is_under_way || found.is_revoked() {
                return None;
            }
            let wanted = ClaimWord(found.0 | flag);
            if wanted == found {
                return Some(found);
            }
            match self.step(found, wanted) {
                Ok(()) => return Some(wanted),
                Err(other) => found = other,
            }
        }
    }

    pub fn withdraw(self, generation: u32) -> Withdrawal {
        let mut found = self.load();
        loop {
            let holder = found.holder();
            let (to, outcome) = match found.state() {
                _ if found.generation() != generation => return Withdrawal::Lost,
                Some(ClaimState::Offered) => (ClaimState::Free, Withdrawal::TakenBack),
                Some(ClaimState::Claimed) => (ClaimState::Withdrawn, Withdrawal::NotBegun { holder }),
                Some(ClaimState::Begun) => (ClaimState::Withdrawn, Withdrawal::Begun { holder }),
                Some(ClaimState::Answered) => return Withdrawal::Answered,
                Some(ClaimState::Free | ClaimState::Withdrawn) | None => return Withdrawal::Lost,
            };
            match self.step(found, found.with(holder, to)) {
                Ok(()) => return outcome,
                Err(other) => found = other,
            }
        }
    }

    /// Owner, after the death of every process that could hold it, or after reading the answer.
    #[inline]
    pub fn free(self, generation: u32) {
        // Release: a thread that sees the word free or offered again has no access to the old request.
        self.0.store(ClaimWord::new(generation, 0, 0, ClaimState::Free).0, Ordering::Release);
    }
}

impl ClaimWord {
    fn is(self, generation: u32, holder: u32, state: ClaimState) -> bool {
        self.generation() == generation && self.holder() == holder && self.state() == Some(state)
    }
}
