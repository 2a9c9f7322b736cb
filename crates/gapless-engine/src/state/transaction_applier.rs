//! [`TransactionApplier`]: a replicated state, changed by the stream's transactions. While its member leads, the
//! speculative executor owns the state; frames that it has run are not applied again.

use super::speculative_executor::SpeculativeExecutor;
use super::state_exchange::{
    LentState, ReturnedState, SpeculativeSpan, StateExchange, StateRequest, UnacknowledgedNotices,
};
use super::{ReplicatedState, ServiceFactory};
use crate::EngineError;
use crate::context::Context;
use crate::erased_service::{ErasedService, TransactionPosition, unhandled};
use crate::fold::{Fold, NoSink};
use crate::handler_guard::HandlerRefusal;
use crate::interruption::ANSWERING_AHEAD;
use crate::pending_query::{PendingQuery, QueryPlace};
use crate::query::QueryContext;
use crate::recovery::recover;
use crate::reject::Reject;
use crate::sessions::SessionTable;
use crate::store::StoreLimits;
use crate::store::snapshot::MAGIC;
use crate::timers::TimerTable;
use crate::transaction_layout::DecodedTransaction;
use gapless_agent::fault::mutant;
use gapless_agent::{Counter, CounterView, Counters, Waker};
use gapless_client::stream_layout::StreamLayout;
use gapless_log::StreamIdentity;
use gapless_message::request_description::RequestDescriptions;
use gapless_schema::Encoding;
use gapless_stream::Sequencer;
use gapless_stream::messages::QueryMessage;
use gapless_stream::sequencer::SequencerRules;
use std::any::Any;
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Hash of a replicated state.
const STATE_HASH: &str = "service.state_hash";
/// Rebuilds of a replicated state after frames in it were cut.
const STATES_REMADE: &str = "service.states_remade";

enum StateLocation {
    /// The state is here, as it is after the last frame; in a cell because writing a snapshot marks the written
    /// objects.
    Current(RefCell<Box<ReplicatedState>>),
    Speculative(Box<ReplicatedState>, SpeculativeSpan),
    Lent(StateRequest),
}

pub(crate) struct TransactionApplier {
    factory: ServiceFactory,
    requests: RequestDescriptions,
    limits: StoreLimits,
    location: StateLocation,
    hash: u64,
    counters: Option<StateCounters>,
    exchange: Option<Arc<StateExchange>>,
    request: Option<StateRequest>,
    /// A snapshot is due and waits for the state's return.
    snapshot_waits: bool,
    /// Answered by the executor, and to be taken.
    answered: Vec<PendingQuery>,
    lineage: u64,
    source: Option<(StreamLayout, StreamIdentity)>,
}

struct StateCounters {
    hash: Counter,
    rebuilt: Counter,
}

pub(crate) struct StateViews {
    pub hash: CounterView,
    #[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "nothing is cut without a cluster"))]
    pub rebuilt: CounterView,
}

/// Segments and snapshots may be deleted while they are read.
const ATTEMPTS_MAX: u32 = 3;

impl TransactionApplier {
    pub fn new(factory: ServiceFactory, limits: StoreLimits) -> Self {
        let state = Box::new(ReplicatedState::new(&factory, limits));
        Self {
            requests: state.service.requests().clone(),
            factory,
            limits,
            hash: state.store.state_hash(),
            location: StateLocation::Current(RefCell::new(state)),
            counters: None,
            exchange: None,
            request: None,
            snapshot_waits: false,
            answered: Vec::new(),
            lineage: 0,
            source: None,
        }
    }

    pub fn set_source(&mut self, layout: StreamLayout, identity: StreamIdentity) {
        self.source = Some((layout, identity));
    }

    pub fn speculative_executor(&mut self, leader: Waker) -> SpeculativeExecutor {
        let exchange = Arc::new(StateExchange::new(leader));
        self.exchange = Some(Arc::clone(&exchange));
        SpeculativeExecutor::new(exchange)
    }

    /// Attaches the applier to the agent that `waker` wakes, and adds the state's hash and rebuilds to `counters`.
    ///
    /// # Errors
    /// There is no room for its counters.
    pub fn attach(&mut self, waker: Waker, counters: &Counters) -> Result<StateViews, gapless_agent::Error> {
        if let Some(exchange) = &self.exchange {
            exchange.set_applier(waker);
            let answering = counters.add(ANSWERING_AHEAD)?;
            exchange.notify_executor(|slots| slots.answering = Some(answering));
        }
        let (hash, rebuilt) = (counters.add(STATE_HASH)?, counters.add(STATES_REMADE)?);
        let views = StateViews { hash: hash.view(), rebuilt: rebuilt.view() };
        hash.set(self.hash);
        self.counters = Some(StateCounters { hash, rebuilt });
        Ok(views)
    }

    fn set_hash(&mut self, hash: u64) {
        self.hash = hash;
        if let Some(counters) = &self.counters {
            counters.hash.set(hash);
        }
    }

    #[cold]
    fn leave_speculation(&mut self, sequence: u64) -> Result<(), EngineError> {
        let last_sequence = sequence - 1;
        if !self.make_current(last_sequence) {
            if mutant("keep_cut_state")
                && let StateLocation::Speculative(_, span) = &mut self.location
            {
                // Mutant: treats truncated frames as applied.
                span.to_sequence = last_sequence;
                self.make_current(last_sequence);
                return Ok(());
            }
            self.rebuild(last_sequence)?;
        }
        Ok(())
    }

    /// A speculative state becomes current once its frames are released.
    fn make_current(&mut self, last_sequence: u64) -> bool {
        if !matches!(&self.location, StateLocation::Speculative(_, span) if span.to_sequence <= last_sequence) {
            return matches!(self.location, StateLocation::Current(_));
        }
        let lent = StateLocation::Lent(StateRequest { after_sequence: last_sequence, term: 0 });
        if let StateLocation::Speculative(state, _) = std::mem::replace(&mut self.location, lent) {
            self.location = StateLocation::Current(RefCell::new(state));
        }
        true
    }

    fn lend(&mut self, last_sequence: u64, timers: &TimerTable, sessions: &SessionTable) -> Result<(), EngineError> {
        let Some(request) = self.request.filter(|request| request.after_sequence == last_sequence) else {
            return Ok(());
        };
        if !self.make_current(last_sequence) {
            // The frames were truncated, or the transaction never came back; a snapshot would wait forever for it.
            self.rebuild(last_sequence)?;
        }
        if self.snapshot_waits {
            // The snapshot is taken first; then it wakes the applier.
            return Ok(());
        }
        self.request = None;
        if let StateLocation::Current(state) = std::mem::replace(&mut self.location, StateLocation::Lent(request))
            && let Some(exchange) = &self.exchange
        {
            let (timers, notices) = (timers.clone(), UnacknowledgedNotices::of(sessions));
            let mut lent = Some(LentState { state: state.into_inner(), timers, notices, request });
            // An executor that has lost the lead would never return it.
            exchange.notify_executor(|slots| slots.lent = lent.take_if(|_| slots.request == Some(request)));
            if let Some(LentState { state, .. }) = lent {
                self.location = StateLocation::Current(RefCell::new(state));
            }
        }
        Ok(())
    }

    #[inline]
    fn poll_exchange(&mut self) {
        let Some(mut slots) = self.exchange.as_ref().and_then(|exchange| exchange.changes_for_applier()) else {
            return;
        };
        let (request, returned) = (slots.request, slots.returned.take());
        self.answered.append(&mut slots.answered);
        drop(slots);
        if let Some(ReturnedState { state, span }) = returned
            // Otherwise frames of another term were applied since, and the returned state is useless.
            && matches!(self.location, StateLocation::Lent(request) if request.after_sequence == span.from_sequence && request.term == span.term)
        {
            self.location = StateLocation::Speculative(state, span);
        }
        // The request for the lent state stays there.
        self.request =
            request.filter(|request| !matches!(&self.location, StateLocation::Lent(lent) if lent == request));
    }

    #[cold]
    fn rebuild(&mut self, sequence: u64) -> Result<(), EngineError> {
        let mut attempt = 1;
        let mut state = loop {
            match self.rebuilt(sequence) {
                Ok(state) => break state,
                Err(error) if attempt == ATTEMPTS_MAX => return Err(error),
                Err(error) => {
                    tracing::info!(%error, sequence, "a speculative state is rebuilt once more");
                    attempt += 1;
                }
            }
        };
        self.lineage += 1;
        state.lineage = self.lineage;
        self.set_hash(state.store.state_hash());
        self.location = StateLocation::Current(RefCell::new(state));
        if let Some(counters) = &self.counters {
            counters.rebuilt.add(1);
        }
        tracing::info!(sequence, "a speculative state, whose frames were cut, was rebuilt");
        Ok(())
    }

    fn rebuilt(&self, sequence: u64) -> Result<Box<ReplicatedState>, EngineError> {
        let mut fold = Fold::applying_transactions(Box::new(Self::new(Arc::clone(&self.factory), self.limits)));
        if sequence > 0 {
            let corrupt = |reason: String| EngineError::Corrupt { sequence, reason };
            let (layout, identity) = self.source.as_ref().ok_or_else(|| corrupt("no journal is known".to_owned()))?;
            let mut sequencer = Sequencer::new(SequencerRules::of_service(u64::MAX));
            let recovered = recover(layout, *identity, &mut fold, &mut sequencer, (&mut NoSink, None), sequence)?;
            if recovered.last_sequence != sequence {
                return Err(corrupt(format!("the state comes to {}, not to there", recovered.last_sequence)));
            }
        }
        let StateLocation::Current(state) = std::mem::replace(
            &mut Self::of(&mut fold).location,
            StateLocation::Lent(StateRequest { after_sequence: 0, term: 0 }),
        ) else {
            unreachable!("the state of a new fold is lent to nobody")
        };
        Ok(state.into_inner())
    }

    /// Returns the applier of `fold`.
    ///
    /// # Panics
    /// The fold's service is event-sourced.
    pub fn of(fold: &mut Fold) -> &mut Self {
        Self::in_fold(fold).expect("the fold applies transactions")
    }

    /// `None` if the fold is event-sourced.
    pub fn in_fold(fold: &mut Fold) -> Option<&mut Self> {
        let service: &mut dyn Any = &mut *fold.service;
        service.downcast_mut()
    }
}

impl ErasedService for TransactionApplier {
    fn requests(&self) -> Option<&RequestDescriptions> {
        Some(&self.requests)
    }

    fn versions(&self) -> RangeInclusive<u32> {
        1..=1
    }

    fn takes(&self, _: u32, _: Encoding) -> bool {
        false
    }

    fn handle(&mut self, schema: u32, encoding: Encoding, _: &[u8], _: &mut Context<'_>) -> Result<(), HandlerRefusal> {
        Err(unhandled(schema, encoding))
    }

    fn query_name(&self, schema: u32) -> Option<&'static str> {
        match &self.location {
            StateLocation::Current(state) => state.borrow().service.query_name(schema),
            _ => None,
        }
    }

    fn query(&self, query: &QueryMessage, context: &QueryContext, answer: &mut Vec<u8>) -> Result<(), HandlerRefusal> {
        let StateLocation::Current(state) = &self.location else {
            unreachable!("a query that is not lent finds the state here")
        };
        let state = state.borrow();
        state.service.query(&state.store, query, context, answer)
    }

    fn lend_query(&mut self, pending: PendingQuery, last_sequence: u64) -> QueryPlace {
        self.make_current(last_sequence);
        match (&self.location, &self.exchange) {
            (StateLocation::Lent(_), Some(exchange)) => {
                exchange.notify_executor(|slots| slots.queries.push_back(pending));
                QueryPlace::Lent
            }
            (StateLocation::Speculative(_, span), _) => QueryPlace::Unreleased(pending, span.to_sequence),
            _ => QueryPlace::Here(pending),
        }
    }

    fn take_lent_queries(&mut self) -> Vec<PendingQuery> {
        let mut taken = std::mem::take(&mut self.answered);
        if let Some(exchange) = &self.exchange
            && !matches!(self.location, StateLocation::Lent(_))
        {
            // The executor has returned the state with the queries that it did not answer.
            taken.extend(exchange.take_queries());
        }
        taken
    }

    fn lends_queries(&self) -> bool {
        !matches!(self.location, StateLocation::Current(_))
    }

    fn state_lineage(&self) -> u64 {
        self.lineage
    }

    fn on_timer(&mut self, _: u64, _: &mut Context<'_>) -> Result<(), Reject> {
        Ok(())
    }

    fn applies_transactions(&self) -> bool {
        true
    }

    // A frame of another term replaces the speculative ones: the state contains truncated frames, and is wrong.
    #[inline]
    fn before_frame(&mut self, sequence: u64, term: u64) -> Result<(), EngineError> {
        match &self.location {
            StateLocation::Current(_) => Ok(()),
            StateLocation::Lent(request) if sequence <= request.after_sequence || term == request.term => Ok(()),
            StateLocation::Speculative(_, span) if sequence <= span.to_sequence && term == span.term => Ok(()),
            _ => self.leave_speculation(sequence),
        }
    }

    fn apply(
        &mut self,
        &TransactionPosition { sequence, .. }: &TransactionPosition,
        read: &DecodedTransaction<'_>,
    ) -> Result<(), String> {
        let StateLocation::Current(state) = &mut self.location else {
            // The state contains the transaction already.
            self.set_hash(read.hash);
            return Ok(());
        };
        let ReplicatedState { store, layout, .. } = &mut **state.get_mut();
        if !read.changes.is_empty() {
            store.apply(read.changes).map_err(|error| error.to_string())?;
        }
        let hash = store.state_hash();
        if *layout == read.layout && hash != read.hash {
            return Err(format!(
                "the state behind it has hash {hash:016x} here, {:016x} where frame {sequence} was made: this copy \
                 differs since then; start it anew with an empty directory",
                read.hash
            ));
        }
        self.set_hash(hash);
        Ok(())
    }

    fn between_batches(
        &mut self,
        last_sequence: u64,
        timers: &TimerTable,
        sessions: &SessionTable,
    ) -> Result<(), EngineError> {
        self.poll_exchange();
        self.lend(last_sequence, timers, sessions)
    }

    fn can_snapshot(&mut self, last_sequence: u64, is_final: bool) -> Result<bool, EngineError> {
        if !self.make_current(last_sequence) {
            if is_final && matches!(self.location, StateLocation::Speculative(..)) {
                // The stop does not wait to learn whether its frames are released.
                self.rebuild(last_sequence)?;
            } else {
                if let (StateLocation::Lent(_), false, Some(exchange)) =
                    (&self.location, self.snapshot_waits, &self.exchange)
                {
                    exchange.notify_executor(|slots| slots.is_recalled = true);
                }
                self.snapshot_waits = true;
                return Ok(false);
            }
        }
        if std::mem::take(&mut self.snapshot_waits)
            && let Some(exchange) = &self.exchange
        {
            exchange.notify_applier(|_| {});
        }
        Ok(true)
    }

    fn snapshot(&self, out: &mut Vec<u8>) {
        let StateLocation::Current(state) = &self.location else {
            unreachable!("a snapshot is asked for where it can be taken")
        };
        state.borrow_mut().store.write_snapshot(out).expect("memory takes it, and no other snapshot is under way");
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let StateLocation::Current(state) = &mut self.location else { return Err("the state is lent".to_owned()) };
        if !bytes.starts_with(&MAGIC) {
            return Err("it is of an event-sourced service, and this one is state-replicated".to_owned());
        }
        let store = &mut state.get_mut().store;
        let mut rest = bytes;
        store.read_snapshot(&mut rest).map_err(|error| error.to_string())?;
        if !rest.is_empty() {
            return Err(format!("{} bytes behind the state", rest.len()));
        }
        let hash = store.state_hash();
        self.set_hash(hash);
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::super::{StateHandlers, StateService, factory_of};
    use super::*;
    use crate::store::Store;
    use gapless_stream::transactions::Transactions;

    struct Nothing;

    impl StateService for Nothing {
        fn handlers(_: &mut StateHandlers<Self>) {}
    }

    #[test]
    fn withdrawn_request_keeps_state() {
        let mut applier = TransactionApplier::new(factory_of(|_: &mut Store| Nothing), StoreLimits::default());
        let mut executor = applier.speculative_executor(Waker::new().unwrap());
        let mut fold = Fold::applying_transactions(Box::new(applier));
        executor.lead(1, 0);
        TransactionApplier::of(&mut fold).poll_exchange();
        executor.follow(0);
        let (timers, sessions) = (fold.timers.clone(), SessionTable::default());
        TransactionApplier::of(&mut fold).lend(0, &timers, &sessions).unwrap();
        assert!(fold.can_snapshot(true).unwrap(), "a clean stop does not wait");

        executor.lead(2, 0);
        fold.between_batches().unwrap();
        assert!(executor.poll(0), "the next leader gets the state");
        assert!(!fold.can_snapshot(true).unwrap());
        executor.follow(0);
        fold.between_batches().unwrap();
        assert!(fold.can_snapshot(true).unwrap());
    }

    #[test]
    fn truncation_unblocks_a_snapshot() {
        let mut applier = TransactionApplier::new(factory_of(|_: &mut Store| Nothing), StoreLimits::default());
        let mut executor = applier.speculative_executor(Waker::new().unwrap());
        let mut fold = Fold::applying_transactions(Box::new(applier));
        executor.lead(1, 0);
        fold.between_batches().unwrap();
        assert!(executor.poll(0));
        assert!(!fold.can_snapshot(false).unwrap());
        assert!(!executor.poll(8));
        fold.between_batches().unwrap();
        assert!(!fold.can_snapshot(false).unwrap(), "the frames are not released");
        executor.follow(8);
        executor.lead(2, 0);
        fold.between_batches().unwrap();
        assert!(fold.can_snapshot(false).unwrap(), "the state is rebuilt without the truncated frames");
        fold.between_batches().unwrap();
        assert!(executor.poll(0), "the new leader gets the state");
    }
}
