//! [`SpeculativeExecutor`]: runs handlers before their commands enter the stream, in the leader's appending agent,
//! which owns the state meanwhile, and answers the queries of it.

use super::state_exchange::{
    LentState, ReturnedState, SpeculativeSpan, StateExchange, StateRequest, UnacknowledgedNotices,
};
use super::{ErasedStateService, ReplicatedState};
use crate::context::Context;
use crate::handler_guard::{HandlerRefusal, guard};
use crate::outputs::OUTPUT_LENGTH_MAX;
use crate::outputs::{ExecutionOutcome, Outputs};
use crate::pending_query::{POLL_NS_MAX, PendingQuery, SlowQueryLog, SpeculativeAnswer};
use crate::query::QueryContext;
use crate::sessions::NoticeReceivers;
use crate::store::Transaction;
use crate::timers::DueTimer;
use crate::transaction_layout::{put_hash, write_outputs, write_refusal};
use gapless_agent::Counter;
use gapless_agent::monotonic::monotonic_ns;
use gapless_stream::Sequencer;
use gapless_stream::transactions::{ExecutionResult, Transactions};
use gapless_wire::FrameHeader;
use gapless_wire::control::TimerFired;
use gapless_wire::descriptor::Encoding;
use std::collections::VecDeque;
use std::sync::Arc;

enum StateOwnership {
    Following,
    Requested(StateRequest),
    Owned(LentState),
}

pub(crate) struct SpeculativeExecutor {
    exchange: Arc<StateExchange>,
    ownership: StateOwnership,
    outputs: Outputs,
    /// Empty unless the state is owned.
    queries: VecDeque<PendingQuery>,
    answering: Option<Counter>,
    /// The last queries took their whole time: the next turn is for commands alone.
    rests: bool,
    slow: SlowQueryLog,
}

type HandlerCall<'a> =
    dyn FnMut(&dyn ErasedStateService, &mut Transaction<'_>, &mut Context<'_>) -> Result<(), HandlerRefusal> + 'a;

/// The sessions after all appended frames, as the appliers see them at the frame.
struct AppendedSessions<'a> {
    sequencer: &'a Sequencer,
    notices: &'a UnacknowledgedNotices,
}

impl NoticeReceivers for AppendedSessions<'_> {
    fn unacknowledged_notices(&self, session: u64) -> Option<usize> {
        self.sequencer.session(session).map(|_| self.notices.count(session))
    }
}

const NOT_OWNED: &str = "no command is handed in before the state is here";

impl SpeculativeExecutor {
    pub fn new(exchange: Arc<StateExchange>) -> Self {
        let (outputs, queries, slow) = (Outputs::default(), VecDeque::new(), SlowQueryLog::default());
        let ownership = StateOwnership::Following;
        Self { exchange, ownership, outputs, queries, answering: None, rests: false, slow }
    }

    #[cold]
    fn request_state(&mut self, request: StateRequest) {
        self.ownership = StateOwnership::Requested(request);
        self.exchange.notify_applier(|slots| slots.request = Some(request));
    }

    #[cold]
    fn return_state(&mut self, to_sequence: u64) {
        let ownership = std::mem::replace(&mut self.ownership, StateOwnership::Following);
        let queries = std::mem::take(&mut self.queries);
        self.exchange.notify_applier(|slots| {
            slots.request = None;
            slots.queries.extend(queries);
            let (lent, to_sequence) = match (ownership, slots.lent.take()) {
                (StateOwnership::Owned(lent), _) => (lent, to_sequence),
                (_, Some(lent)) => {
                    let to_sequence = lent.request.after_sequence;
                    (lent, to_sequence)
                }
                _ => return,
            };
            let span =
                SpeculativeSpan { from_sequence: lent.request.after_sequence, to_sequence, term: lent.request.term };
            slots.returned = Some(ReturnedState { state: lent.state, span });
        });
    }

    #[inline]
    fn poll_exchange(&mut self, last_sequence: u64) {
        let Some(mut slots) = self.exchange.changes_for_executor() else { return };
        let is_recalled = std::mem::take(&mut slots.is_recalled);
        if let Some(counter) = slots.answering.take() {
            self.answering = Some(counter);
        }
        if let StateOwnership::Requested(request) = self.ownership
            && let Some(lent) = slots.lent.take_if(|lent| lent.request == request)
        {
            self.outputs.timer_schemas = lent.state.service.timer_schemas();
            self.ownership = StateOwnership::Owned(lent);
        }
        if matches!(self.ownership, StateOwnership::Owned(_)) {
            self.queries.append(&mut slots.queries);
        }
        drop(slots);
        if let StateOwnership::Owned(LentState { request: StateRequest { term, .. }, .. }) = self.ownership
            && is_recalled
        {
            self.return_state(last_sequence);
            self.request_state(StateRequest { after_sequence: last_sequence, term });
        }
    }

    #[inline]
    fn run(
        &mut self,
        header: &FrameHeader,
        sequencer: &Sequencer,
        length_max: usize,
        out: &mut Vec<u8>,
        handler: &mut HandlerCall<'_>,
    ) {
        let StateOwnership::Owned(lent) = &mut self.ownership else { unreachable!("{NOT_OWNED}") };
        let ReplicatedState { service, store, layout, .. } = &mut *lent.state;
        let (begin, outputs) = (out.len(), &mut self.outputs);
        outputs.clear();
        let mut transaction = store.begin();
        let mut context = Context {
            // Only the leader runs handlers, in its one version.
            version: 1,
            outputs,
            sessions: &AppendedSessions { sequencer, notices: &lent.notices },
            is_on_event_stream: false,
            sequence: header.sequence,
            time_ns: header.timestamp_ns,
            session: header.session,
            session_seq: header.session_seq,
            drawn: 0,
        };
        let called = guard(|| handler(&**service, &mut transaction, &mut context));
        let outputs = &self.outputs;
        if matches!(called, Err(HandlerRefusal::Typed(_))) {
            transaction.roll_back();
            transaction = store.begin();
        }
        let done = match called {
            // A typed refusal is the reply of a transaction without changes.
            Ok(()) | Err(HandlerRefusal::Typed(_)) => {
                write_outputs(out, outputs, *layout);
                let left = (begin + length_max).saturating_sub(out.len());
                // Application code encodes objects here.
                guard(|| {
                    let committed = transaction.commit_within(out, left);
                    committed.map_err(|error| HandlerRefusal::Inadmissible(error.to_string()))
                })
            }
            Err(refused) => {
                transaction.roll_back();
                Err(refused)
            }
        };
        match done.map_or_else(ExecutionOutcome::from, |()| ExecutionOutcome::Done) {
            ExecutionOutcome::Done => {
                for (session, _) in outputs.notices.iter().filter(|(session, _)| sequencer.session(*session).is_some())
                {
                    lent.notices.sent(*session);
                }
                // The fold asks the sequencer for them.
                lent.timers.apply(outputs, |_| {});
            }
            ExecutionOutcome::Refused { code, detail, text, dead } => {
                out.truncate(begin);
                write_refusal(out, (code, detail), &text, dead, *layout);
            }
        }
        put_hash(out, begin, store.state_hash());
    }

    /// Answers queries for about [`POLL_NS_MAX`], from the state after all appended frames.
    #[cold]
    fn answer_some(&mut self, sequence: u64, time_ns: u64) {
        let StateOwnership::Owned(lent) = &self.ownership else { return };
        let ReplicatedState { service, store, lineage, .. } = &*lent.state;
        let context = QueryContext { sequence, time_ns, version: 1 };
        let begun_ns = monotonic_ns();
        let (mut before_ns, mut answered) = (begun_ns, Vec::new());
        while before_ns - begun_ns <= POLL_NS_MAX
            && let Some(mut pending) = self.queries.pop_front()
        {
            let mut bytes = Vec::new();
            let answering = |schema: u32| self.answering.iter().for_each(|counter| counter.set(schema.into()));
            answering(pending.query.schema);
            let called = guard(|| service.query(store, &pending.query, &context, &mut bytes));
            answering(0);
            let after_ns = monotonic_ns();
            let bytes = match called {
                Ok(()) if bytes.len() > OUTPUT_LENGTH_MAX => Err(HandlerRefusal::TooLong(bytes.len())),
                called => called.map(|()| bytes),
            };
            let handler_ns = after_ns - before_ns;
            self.slow.note(handler_ns, after_ns, || service.query_name(pending.query.schema));
            pending.answer = Some(SpeculativeAnswer { sequence, time_ns, lineage: *lineage, bytes, handler_ns });
            answered.push(pending);
            before_ns = after_ns;
        }
        self.rests = before_ns - begun_ns > POLL_NS_MAX;
        self.exchange.notify_applier(|slots| slots.answered.append(&mut answered));
        if !self.queries.is_empty() {
            self.exchange.wake_executor();
        }
    }
}

impl Transactions for SpeculativeExecutor {
    fn lead(&mut self, term: u64, last_sequence: u64) {
        self.request_state(StateRequest { after_sequence: last_sequence, term });
    }

    fn follow(&mut self, last_sequence: u64) {
        if !matches!(self.ownership, StateOwnership::Following) {
            self.return_state(last_sequence);
        }
    }

    #[inline]
    fn poll(&mut self, last_sequence: u64) -> bool {
        self.poll_exchange(last_sequence);
        matches!(self.ownership, StateOwnership::Owned(_))
    }

    #[inline]
    fn answer_queries(&mut self, last_sequence: u64, last_timestamp_ns: u64) {
        let rests = std::mem::take(&mut self.rests);
        match self.queries.is_empty() {
            true => {}
            false if rests => self.exchange.wake_executor(),
            false => self.answer_some(last_sequence, last_timestamp_ns),
        }
    }

    fn command(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        sequencer: &Sequencer,
        length_max: usize,
        out: &mut Vec<u8>,
    ) -> ExecutionResult {
        let encoding = Encoding::from_flags(header.flags);
        self.run(header, sequencer, length_max, out, &mut |service, store, context| {
            service.handle(store, header.schema, encoding, payload, context)
        });
        ExecutionResult::Done
    }

    fn is_set(&self, fired: TimerFired) -> bool {
        let StateOwnership::Owned(lent) = &self.ownership else { unreachable!("{NOT_OWNED}") };
        lent.timers.is_set(fired.timer, fired.deadline_ns)
    }

    fn timer(
        &mut self,
        header: &FrameHeader,
        fired: TimerFired,
        sequencer: &Sequencer,
        length_max: usize,
        out: &mut Vec<u8>,
    ) {
        let StateOwnership::Owned(lent) = &mut self.ownership else { unreachable!("{NOT_OWNED}") };
        let due = lent.timers.take(fired.timer, fired.deadline_ns).unwrap_or(DueTimer::Numbered(fired.timer));
        let head = fired.to_bytes();
        out.extend_from_slice(&head);
        self.run(header, sequencer, length_max - head.len(), out, &mut |service, store, context| {
            service.on_timer(&due, store, context)?;
            match context.outputs.reply.is_some() {
                true => Err(HandlerRefusal::Rejected("nobody waits for the reply to a timer".into())),
                false => Ok(()),
            }
        });
    }

    fn acknowledged(&mut self, session: u64, number: u64) {
        if let StateOwnership::Owned(lent) = &mut self.ownership {
            lent.notices.acknowledged(session, number);
        }
    }

    fn closed(&mut self, session: u64) {
        if let StateOwnership::Owned(lent) = &mut self.ownership {
            lent.notices.closed(session);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::super::transaction_applier::TransactionApplier;
    use super::super::{StateHandlers, StateService, factory_of};
    use super::*;
    use crate::fold::Fold;
    use crate::store::{Map, ObjectError, Store, StoreLimits, StoreObject};
    use gapless_agent::Waker;
    use gapless_stream::sequencer::SequencerRules;

    const SCHEMA: u32 = 1 << 16 | 1;

    struct Unlucky(u8);

    impl StoreObject for Unlucky {
        const TYPE: u64 = 1;
        const VERSION: u16 = 0;

        fn encode(&self, out: &mut Vec<u8>) -> Result<(), ObjectError> {
            assert_ne!(self.0, 13, "13 has no encoding");
            out.push(self.0);
            Ok(())
        }

        fn decode(_: u16, bytes: &[u8]) -> Result<Self, ObjectError> {
            Ok(Self(bytes[0]))
        }
    }

    struct Numbers(Map<u64, Unlucky>);

    impl StateService for Numbers {
        fn handlers(handlers: &mut StateHandlers<Self>) {
            handlers.on_bytes(SCHEMA, |service: &Self, store, payload, _| {
                store.insert(service.0, 1, Unlucky(payload[0]));
                store.insert(service.0, 2, Unlucky(payload[0]));
                Ok(())
            });
        }
    }

    #[test]
    fn encoder_panic_undoes_the_call() {
        let mut applier = TransactionApplier::new(
            factory_of(|store: &mut Store| Numbers(store.map(1, "numbers"))),
            StoreLimits::default(),
        );
        let mut executor = applier.speculative_executor(Waker::new().unwrap());
        let mut fold = Fold::applying_transactions(Box::new(applier));
        executor.lead(1, 0);
        fold.between_batches().unwrap();
        assert!(executor.poll(0));
        let sequencer = Sequencer::new(SequencerRules::of_service(u64::MAX));
        let mut run = |number: u8| {
            let mut out = Vec::new();
            let flags = Encoding::Opaque.flags();
            let header = FrameHeader { schema: SCHEMA, flags, ..FrameHeader::default() };
            executor.command(&header, &[number], &sequencer, 1024, &mut out);
            let mut outputs = Outputs::default();
            let read = crate::transaction_layout::read(&out, &mut outputs).unwrap();
            (read.hash, !read.changes.is_empty())
        };
        let (before, has_changes) = run(1);
        assert!(has_changes);
        assert_eq!(run(13), (before, false), "its changes are undone");
        assert_eq!(run(1), (before, false), "the state is unchanged");
        assert_ne!(run(2), (before, false));
    }
}
