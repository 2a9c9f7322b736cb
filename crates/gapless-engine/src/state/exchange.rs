//! How the state goes from the part of a service that applies to the part that runs ahead, and back. Each of the two runs
//! on its own thread; there is one of everything at most, so nothing here can fill up.

use super::State;
use crate::sessions::SessionTable;
use crate::timers::TimerTable;
use gapless_agent::Waker;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Which frames stand between a state and what is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Behind which frame it was handed over.
    pub from: u64,
    /// Behind which it stands.
    pub at: u64,
    /// The term of the frames between.
    pub term: u64,
}

/// A state is wanted as it stands behind the frame `behind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub behind: u64,
    pub term: u64,
}

/// A state that is handed over, with what else a handler's outputs depend on.
pub(crate) struct Lent {
    pub state: Box<State>,
    pub timers: TimerTable,
    pub notices: Unreceived,
    pub wish: Wish,
}

/// A state that comes back.
pub(crate) struct Back {
    pub state: Box<State>,
    pub span: Span,
}

pub(crate) struct Slots {
    pub wish: Option<Wish>,
    pub lent: Option<Lent>,
    pub back: Option<Back>,
    /// The state is wanted back for a while.
    pub is_recalled: bool,
}

/// Between the two parts.
pub(crate) struct Exchange {
    slots: Mutex<Slots>,
    /// Something was put there for the one, or the other.
    for_follower: AtomicBool,
    for_leader: AtomicBool,
    follower: OnceLock<Waker>,
    leader: Waker,
}

impl Exchange {
    pub fn new(leader: Waker) -> Self {
        let slots = Mutex::new(Slots { wish: None, lent: None, back: None, is_recalled: false });
        let flags = (AtomicBool::new(false), AtomicBool::new(false));
        Self { slots, for_follower: flags.0, for_leader: flags.1, follower: OnceLock::new(), leader }
    }

    pub fn set_follower(&self, follower: Waker) {
        // There is one agent for each service.
        let _ = self.follower.set(follower);
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        // No holder panics between two of its changes.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something for the part that applies.
    pub fn tell_follower(&self, change: impl FnOnce(&mut Slots)) {
        change(&mut self.lock());
        // Release: pairs with the Acquire in news_for_follower.
        self.for_follower.store(true, Ordering::Release);
        if let Some(follower) = self.follower.get() {
            follower.wake();
        }
    }

    /// Changes something for the part that runs ahead.
    pub fn tell_leader(&self, change: impl FnOnce(&mut Slots)) {
        change(&mut self.lock());
        // Release: pairs with the Acquire in news_for_leader.
        self.for_leader.store(true, Ordering::Release);
        self.leader.wake();
    }

    #[inline]
    pub fn news_for_follower(&self) -> Option<MutexGuard<'_, Slots>> {
        // Acquire: whatever the other did before is seen. The swap is rare; looking is not.
        (self.for_follower.load(Ordering::Acquire) && self.for_follower.swap(false, Ordering::Acquire))
            .then(|| self.lock())
    }

    #[inline]
    pub fn news_for_leader(&self) -> Option<MutexGuard<'_, Slots>> {
        // Acquire: as above.
        (self.for_leader.load(Ordering::Acquire) && self.for_leader.swap(false, Ordering::Acquire)).then(|| self.lock())
    }
}

/// How many notices each session has not acknowledged, of sessions that were ever sent one.
#[derive(Default)]
pub(crate) struct Unreceived {
    /// The number of the last, and of the last that was acknowledged.
    by_session: FxHashMap<u64, (u64, u64)>,
}

impl Unreceived {
    pub fn of(sessions: &SessionTable) -> Self {
        let sent = sessions.iter().filter(|entry| entry.last_notice > 0);
        let by_session =
            sent.map(|entry| (entry.session, (entry.last_notice, entry.last_notice - entry.notices.len() as u64)));
        Self { by_session: by_session.collect() }
    }

    pub fn count(&self, session: u64) -> usize {
        self.by_session.get(&session).map_or(0, |(last, acknowledged)| (last - acknowledged) as usize)
    }

    /// One more.
    pub fn sent(&mut self, session: u64) {
        self.by_session.entry(session).or_default().0 += 1;
    }

    pub fn acknowledged(&mut self, session: u64, number: u64) {
        if let Some((last, acknowledged)) = self.by_session.get_mut(&session) {
            *acknowledged = number.clamp(*acknowledged, *last);
        }
    }

    pub fn closed(&mut self, session: u64) {
        self.by_session.remove(&session);
    }
}
