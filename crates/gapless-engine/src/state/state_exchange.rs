//! [`StateExchange`]: hands the state from the applier to the speculative executor and back, between their threads.
//! Every slot holds at most one value, so no queue can fill up. Queries of the lent state are bounded by the applier's
//! agent.

use super::ReplicatedState;
use crate::pending_query::PendingQuery;
use crate::sessions::SessionTable;
use crate::timers::TimerTable;
use gapless_agent::{Counter, Waker};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Frames that the state contained before they were released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpeculativeSpan {
    pub from_sequence: u64,
    pub to_sequence: u64,
    pub term: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateRequest {
    pub after_sequence: u64,
    pub term: u64,
}

pub(crate) struct LentState {
    pub state: Box<ReplicatedState>,
    pub timers: TimerTable,
    pub notices: UnacknowledgedNotices,
    pub request: StateRequest,
}

pub(crate) struct ReturnedState {
    pub state: Box<ReplicatedState>,
    pub span: SpeculativeSpan,
}

pub(crate) struct ExchangeSlots {
    pub request: Option<StateRequest>,
    pub lent: Option<LentState>,
    pub returned: Option<ReturnedState>,
    /// The applier wants the state back for a snapshot.
    pub is_recalled: bool,
    /// To be answered by the executor.
    pub queries: VecDeque<PendingQuery>,
    pub answered: Vec<PendingQuery>,
    /// Shows the executor's query in progress.
    pub answering: Option<Counter>,
}

pub(crate) struct StateExchange {
    slots: Mutex<ExchangeSlots>,
    for_applier: AtomicBool,
    for_executor: AtomicBool,
    applier: OnceLock<Waker>,
    executor: Waker,
}

impl StateExchange {
    pub fn new(executor: Waker) -> Self {
        let slots = Mutex::new(ExchangeSlots {
            request: None,
            lent: None,
            returned: None,
            is_recalled: false,
            queries: VecDeque::new(),
            answered: Vec::new(),
            answering: None,
        });
        let flags = (AtomicBool::new(false), AtomicBool::new(false));
        Self { slots, for_applier: flags.0, for_executor: flags.1, applier: OnceLock::new(), executor }
    }

    pub fn set_applier(&self, applier: Waker) {
        // Each service has one agent, so it is set once.
        let _ = self.applier.set(applier);
    }

    /// Lets the executor, which calls it, run once more soon.
    pub fn wake_executor(&self) {
        self.executor.wake();
    }

    /// Takes the queries that the executor has not taken.
    pub fn take_queries(&self) -> VecDeque<PendingQuery> {
        std::mem::take(&mut self.lock().queries)
    }

    fn lock(&self) -> MutexGuard<'_, ExchangeSlots> {
        // No holder panics between two of its changes.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn notify_applier(&self, change: impl FnOnce(&mut ExchangeSlots)) {
        change(&mut self.lock());
        // Pairs with the Acquire in changes_for_applier.
        self.for_applier.store(true, Ordering::Release);
        if let Some(applier) = self.applier.get() {
            applier.wake();
        }
    }

    pub fn notify_executor(&self, change: impl FnOnce(&mut ExchangeSlots)) {
        change(&mut self.lock());
        // Pairs with the Acquire in changes_for_executor.
        self.for_executor.store(true, Ordering::Release);
        self.executor.wake();
    }

    #[inline]
    pub fn changes_for_applier(&self) -> Option<MutexGuard<'_, ExchangeSlots>> {
        // Pairs with the Release in notify_applier; the plain load keeps the frequent case cheap.
        (self.for_applier.load(Ordering::Acquire) && self.for_applier.swap(false, Ordering::Acquire))
            .then(|| self.lock())
    }

    #[inline]
    pub fn changes_for_executor(&self) -> Option<MutexGuard<'_, ExchangeSlots>> {
        // Pairs with the Release in notify_executor.
        (self.for_executor.load(Ordering::Acquire) && self.for_executor.swap(false, Ordering::Acquire))
            .then(|| self.lock())
    }
}

/// Per session, without sessions that were never sent one.
#[derive(Default)]
pub(crate) struct UnacknowledgedNotices {
    /// Number of the last notice, and of the last acknowledged one.
    by_session: FxHashMap<u64, (u64, u64)>,
}

impl UnacknowledgedNotices {
    pub fn of(sessions: &SessionTable) -> Self {
        let sent = sessions.iter().filter(|entry| entry.last_notice > 0);
        let by_session =
            sent.map(|entry| (entry.session, (entry.last_notice, entry.last_notice - entry.notices.len() as u64)));
        Self { by_session: by_session.collect() }
    }

    pub fn count(&self, session: u64) -> usize {
        self.by_session.get(&session).map_or(0, |(last, acknowledged)| (last - acknowledged) as usize)
    }

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
