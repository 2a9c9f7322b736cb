//! [`Fold`]: state, sessions and timers as a fold over the stream. The same code runs live, in recovery and in a
//! debugging replay, with different [`Sink`]s.

mod due_timers;
mod event_stream;
mod policy;
mod refusal_effects;
mod sink;
mod transactions;

use crate::dead_letters::DeadLetter;
pub use policy::{CheckSnapshots, OnOtherOutputs, OnOtherProgram, OnPanic, OnUnhandled, Policy};
pub use refusal_effects::CheckRefusals;
use refusal_effects::SavedState;
pub(crate) use sink::DeadLettersOnly;
pub use sink::{NoSink, Sink};

use crate::EngineError;
use crate::context::Context;
use crate::erased_service::{ErasedService, TypedService};
use crate::handler_guard::{HandlerRefusal, describe, guard};
use crate::outputs::{ExecutionOutcome, Outputs};
use crate::query::{QueryContext, TypedQuery};
use crate::reject::Reject;
use crate::service::Service;
use crate::sessions::{SessionTable, StoredNotice};
use crate::timers::{TimerRequest, TimerTable};
use crate::transaction_layout::TransactionReply;
use crate::typed_command::unhandled_by_leader;
use gapless_message::request_description::Describe;
use gapless_message::{Message as _, contract};
use gapless_schema::Encoding;
use gapless_stream::handled_commands::HandledCommands;
use gapless_stream::logger::utc;
use gapless_stream::messages::QueryMessage;
use gapless_wire::control::{Refusal, RefusalCode, SessionOpen};
use gapless_wire::descriptor::{TRANSACTION_FLAG, UNHANDLED_FLAG};
use gapless_wire::mark::{FaultRules, Mark};
use gapless_wire::{Fragment, Frame, Kind};
use std::any::Any;

const DESCRIBE: u32 = contract::name_key(Describe::TYPE_NAME);

/// Whether a query asks for the service's types, not for its state.
pub(crate) fn is_description(query: &QueryMessage) -> bool {
    query.schema == DESCRIBE && query.encoding == Encoding::Postcard
}

/// State, sessions and timers after a prefix of the stream.
pub struct Fold {
    pub(crate) service: Box<dyn ErasedService>,
    policy: Policy,
    /// `None`: those of the policy apply.
    pub(crate) fault_rules: Option<FaultRules>,
    pub(crate) restored_sequence: u64,
    pub(crate) sessions: SessionTable,
    pub(crate) timers: TimerTable,
    pub(crate) last_sequence: u64,
    pub(crate) last_timestamp_ns: u64,
    pub(crate) version: u32,
    has_version: bool,
    pub(crate) outputs: Outputs,
    pub(crate) is_on_event_stream: bool,
    pub(crate) next_published: u64,
    pub(crate) message: Vec<u8>,
    fragments_missing: bool,
    first_fragment: (u64, u64),
    before: SavedState,
    /// The handlers ran on a leader; the fold applies their transactions.
    applies_transactions: bool,
}

impl Fold {
    #[must_use]
    pub fn new<S: Service>(service: S, policy: Policy) -> Self {
        Self::of(Box::new(TypedService::new(service)), policy)
    }

    fn of(service: Box<dyn ErasedService>, policy: Policy) -> Self {
        let mut outputs = Outputs::default();
        outputs.timer_schemas = service.timer_schemas();
        Self {
            has_version: service.versions().contains(&1),
            applies_transactions: service.applies_transactions(),
            service,
            policy,
            fault_rules: None,
            restored_sequence: 0,
            sessions: SessionTable::default(),
            timers: TimerTable::default(),
            last_sequence: 0,
            last_timestamp_ns: 0,
            version: 1,
            outputs,
            is_on_event_stream: false,
            next_published: 1,
            message: Vec::new(),
            fragments_missing: false,
            first_fragment: (0, 0),
            before: SavedState::default(),
        }
    }

    /// Returns the service's state.
    ///
    /// # Panics
    /// `S` is not the type that the fold was created with.
    #[must_use]
    pub fn service<S: Service>(&self) -> &S {
        let service: &dyn Any = &*self.service;
        let typed = service.downcast_ref::<TypedService<S>>();
        &typed.expect("a fold has the service that it was made of").service
    }

    #[must_use]
    pub fn state(&self) -> Vec<u8> {
        let mut state = Vec::new();
        self.service.snapshot(&mut state);
        state
    }

    pub(crate) const fn runs_handlers(&self) -> bool {
        !self.applies_transactions
    }

    /// Typed commands that this program handles; `None` for a service that applies transactions.
    pub(crate) fn handled_commands(&self) -> Option<HandledCommands> {
        self.service.handled_commands()
    }

    pub(crate) const fn policy(&self) -> &Policy {
        &self.policy
    }

    fn rules(&self) -> FaultRules {
        self.fault_rules.unwrap_or_else(|| self.policy.fault_rules())
    }

    /// Returns the policy's fault rules if they differ from the default and the stream has none yet.
    ///
    /// # Errors
    /// [`EngineError::FaultRules`]: the stream has fixed other rules.
    pub(crate) fn fault_rules_to_write(&self) -> Result<Option<FaultRules>, EngineError> {
        let asked = self.policy.fault_rules();
        match self.fault_rules {
            _ if self.applies_transactions => Ok(None),
            Some(fixed) if fixed != asked => Err(EngineError::FaultRules { fixed, asked }),
            Some(_) => Ok(None),
            None => Ok(Some(asked).filter(|asked| *asked != FaultRules::default())),
        }
    }

    pub(crate) fn skip(&mut self, sequences: impl IntoIterator<Item = u64>) {
        self.policy.skip_sequences.extend(sequences);
    }

    #[must_use]
    pub const fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    #[must_use]
    pub const fn last_timestamp_ns(&self) -> u64 {
        self.last_timestamp_ns
    }

    #[must_use]
    pub const fn sessions(&self) -> &SessionTable {
        &self.sessions
    }

    #[must_use]
    pub const fn is_mid_message(&self) -> bool {
        self.fragments_missing
    }

    /// Rewinds to before an incomplete message: its fragments have had no effect.
    pub(crate) fn forget_incomplete(&mut self, last_sequence: u64, last_timestamp_ns: u64) {
        self.message.clear();
        self.fragments_missing = false;
        self.last_sequence = last_sequence;
        self.last_timestamp_ns = last_timestamp_ns;
    }

    /// Prefetches memory for at most [`FRAMES_AHEAD`](gapless_wire::prefetch::FRAMES_AHEAD) frames of these sessions,
    /// applied next. Returns their number.
    #[inline]
    pub fn prefetch(&self, sessions: &[u64]) -> usize {
        self.sessions.prefetch(sessions)
    }

    /// Appends the answer of a query to the present state.
    ///
    /// # Errors
    /// The query is not known or malformed, its handler panicked, or the service acts as no version yet.
    pub(crate) fn query(&self, query: &QueryMessage, answer: &mut Vec<u8>) -> Result<(), HandlerRefusal> {
        if is_description(query) {
            return self.describe(&query.payload, answer);
        }
        let Self { last_sequence: sequence, last_timestamp_ns: time_ns, version, .. } = *self;
        if !self.has_version && !self.service.versions().contains(&version) {
            return Err(HandlerRefusal::Unhandled("the service acts as no version yet".to_owned()));
        }
        let context = QueryContext { sequence, time_ns, version };
        guard(|| self.service.query(query, &context, answer))
    }

    /// Answers [`Describe`], for a client whose request was not handled.
    #[cold]
    fn describe(&self, payload: &[u8], answer: &mut Vec<u8>) -> Result<(), HandlerRefusal> {
        TypedQuery::<Describe>::new().answer(payload, answer, |describe| {
            Ok(self.service.requests().map(|requests| requests.find(describe)).unwrap_or_default())
        })
    }

    /// Applies the next frame.
    ///
    /// # Errors
    /// A gap in the sequence, or a case that the policy makes an error.
    #[inline]
    pub fn apply(&mut self, frame: &Frame<'_>, sink: &mut dyn Sink) -> Result<(), EngineError> {
        let sequence = frame.sequence();
        if sequence != self.last_sequence + 1 {
            let reason = format!("sequence {} was due", self.last_sequence + 1);
            return Err(EngineError::Corrupt { sequence, reason });
        }
        if self.applies_transactions {
            self.service.before_frame(sequence, frame.term())?;
        }
        self.last_sequence = sequence;
        self.last_timestamp_ns = frame.timestamp_ns();
        match frame.kind() {
            Kind::Command if frame.fragment() == Fragment::WHOLE => self.command(frame, frame.payload(), sink),
            Kind::Command => self.fragment(frame, sink),
            Kind::SessionOpen => self.open(frame, sink),
            Kind::SessionClose => {
                self.sessions.close(frame.session());
                Ok(())
            }
            Kind::Acknowledge => {
                self.acknowledge(frame, sink);
                Ok(())
            }
            Kind::Timer if self.applies_transactions => self.timer_transaction(frame, sink),
            Kind::Timer => self.timer(frame, sink),
            Kind::Mark => self.mark(frame),
            kind @ (Kind::Event
            | Kind::Reply
            | Kind::Notice
            | Kind::TimerRequest
            | Kind::Consensus
            | Kind::Query
            | Kind::Answer) => Err(EngineError::Corrupt { sequence, reason: format!("a frame of kind {kind:?}") }),
        }
    }

    #[cold]
    fn mark(&mut self, frame: &Frame<'_>) -> Result<(), EngineError> {
        match Mark::from_bytes(frame.payload()) {
            Some(Mark::ServiceVersion { version }) => self.become_version(version, frame.sequence())?,
            // If two leaders started with different rules, the first one's hold.
            Some(Mark::FaultRules(rules)) => {
                self.fault_rules.get_or_insert(rules);
            }
            Some(Mark::Skipped { sequence })
                if sequence > self.restored_sequence && !self.policy.skip_sequences.contains(&sequence) =>
            {
                return Err(EngineError::NotSkipped { sequence, mark: frame.sequence() });
            }
            _ => {}
        }
        Ok(())
    }

    /// Makes the service act as `version`, which is active from `sequence` on.
    ///
    /// # Errors
    /// The service does not have this version.
    pub(crate) fn become_version(&mut self, version: u32, sequence: u64) -> Result<(), EngineError> {
        self.version = version;
        self.check_version(version, sequence)?;
        self.has_version = true;
        self.service.become_version(version);
        Ok(())
    }

    #[cold]
    fn check_version(&self, version: u32, sequence: u64) -> Result<(), EngineError> {
        let supported = self.service.versions();
        if supported.contains(&version) {
            return Ok(());
        }
        let (first, last) = supported.into_inner();
        Err(EngineError::Version { version, sequence, first, last })
    }

    #[cold]
    fn fragment(&mut self, frame: &Frame<'_>, sink: &mut dyn Sink) -> Result<(), EngineError> {
        let Some(message) = self.collect(frame) else { return Ok(()) };
        let outcome = self.command(frame, &message, sink);
        self.message = message;
        outcome
    }

    /// Returns the whole message with its last fragment; the caller gives the buffer back for reuse.
    pub(crate) fn collect(&mut self, frame: &Frame<'_>) -> Option<Vec<u8>> {
        if frame.fragment().index == 0 {
            self.message.clear();
            self.first_fragment = (frame.sequence(), frame.timestamp_ns());
        }
        self.message.extend_from_slice(frame.payload());
        self.fragments_missing = !frame.fragment().is_last();
        (!self.fragments_missing).then(|| std::mem::take(&mut self.message))
    }

    #[cold]
    fn open(&mut self, frame: &Frame<'_>, sink: &mut dyn Sink) -> Result<(), EngineError> {
        let sequence = frame.sequence();
        let Some(open) = SessionOpen::from_bytes(frame.payload()) else {
            return Err(EngineError::Corrupt { sequence, reason: "a malformed session open".to_owned() });
        };
        let entry = self.sessions.open(frame.session(), open.token, open.window_messages, frame.timestamp_ns());
        sink.opened(entry);
        Ok(())
    }

    /// Takes a place in the session's window and has a stored reply like a command, so that it is neither lost nor
    /// duplicated. The reply tells a client that this number was no command.
    #[cold]
    fn acknowledge(&mut self, frame: &Frame<'_>, sink: &mut dyn Sink) {
        let number = frame.payload().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let Some(entry) = self.sessions.get_mut(frame.session()) else { return };
        entry.acknowledge_notices(number);
        entry.last_active_ns = frame.timestamp_ns();
        let at = entry.next_slot(frame.session_seq());
        let slot = &mut entry.replies[at];
        slot.begin(frame);
        slot.refuse(&Refusal { code: RefusalCode::NotACommand, detail: 0, text: "it acknowledges notices" });
        sink.reply(entry, &entry.replies[at]);
    }

    fn command(&mut self, frame: &Frame<'_>, payload: &[u8], sink: &mut dyn Sink) -> Result<(), EngineError> {
        let (outcome, replied) = match (self.applies_transactions, frame.flags() & TRANSACTION_FLAG != 0) {
            (false, false) if frame.flags() & UNHANDLED_FLAG == 0 => (self.run(frame, payload)?, None),
            (false, false) => (self.leave_unhandled(frame, payload)?, None),
            (true, true) => self.transaction(frame, payload)?,
            (true, false) => (transactions::refuse_without_handlers(frame, &mut self.outputs)?, None),
            (false, true) => {
                let (found, expected) = ("a state-replicated", "event-sourced");
                return Err(EngineError::Kind { sequence: frame.sequence(), found, expected });
            }
        };
        let session_seq = frame.session_seq();
        let Some(entry) = self.sessions.get_mut(frame.session()) else {
            let (sequence, reason) = (frame.sequence(), format!("session {} is not open", frame.session()));
            return Err(EngineError::Corrupt { sequence, reason });
        };
        entry.last_active_ns = frame.timestamp_ns();
        let at = entry.next_slot(session_seq);
        let slot = &mut entry.replies[at];
        slot.begin(frame);
        let mut dead = None;
        match outcome {
            ExecutionOutcome::Done if self.outputs.reply_too_long.is_some() => {
                let length_bytes = self.outputs.reply_too_long.unwrap_or_default();
                let text = "the command is done; its reply is longer than any may be";
                slot.refuse(&Refusal { code: RefusalCode::ReplyTooLong, detail: length_bytes, text });
            }
            ExecutionOutcome::Done => {
                let staged = self.outputs.reply.as_ref().map(|draft| {
                    let payload = self.outputs.payload(draft);
                    TransactionReply { schema: draft.schema, encoding: draft.encoding, payload }
                });
                if let Some(reply) = replied.or(staged) {
                    slot.schema = reply.schema;
                    slot.flags = reply.encoding.flags();
                    slot.payload.extend_from_slice(reply.payload);
                }
            }
            ExecutionOutcome::Refused { code, detail, text, dead: is_dead } => {
                slot.refuse(&Refusal { code, detail, text: &text });
                dead = is_dead.then_some((code, text));
            }
        }
        sink.reply(entry, &entry.replies[at]);
        if let Some((code, reason)) = dead {
            let (sequence, session, schema) = (frame.sequence(), frame.session(), frame.schema());
            sink.dead_letter(DeadLetter { sequence, session, session_seq, schema, code, reason });
        }
        self.commit_side_outputs(sink);
        Ok(())
    }

    #[inline]
    pub(crate) fn run(&mut self, frame: &Frame<'_>, payload: &[u8]) -> Result<ExecutionOutcome, EngineError> {
        let (schema, encoding) = (frame.schema(), frame.encoding());
        let trigger = Trigger::message(frame, encoding == Encoding::Postcard);
        self.call(frame, trigger, |service, context| service.handle(schema, encoding, payload, context))
    }

    /// Refuses a typed command that the leader's program does not handle, even if this one does.
    #[cold]
    fn leave_unhandled(&mut self, frame: &Frame<'_>, payload: &[u8]) -> Result<ExecutionOutcome, EngineError> {
        self.call(frame, Trigger::message(frame, false), |_, _| Err(unhandled_by_leader(frame.schema(), payload)))
    }

    #[inline]
    fn call(
        &mut self,
        frame: &Frame<'_>,
        trigger: Trigger,
        handler: impl FnOnce(&mut dyn ErasedService, &mut Context<'_>) -> Result<(), HandlerRefusal>,
    ) -> Result<ExecutionOutcome, EngineError> {
        self.outputs.clear();
        let sequence = frame.sequence();
        if !self.has_version {
            self.check_version(self.version, sequence)?;
        }
        if !self.policy.skip_sequences.is_empty() && self.policy.skip_sequences.contains(&sequence) {
            let text = "skipped by an operator".to_owned();
            return Ok(ExecutionOutcome::Refused { code: RefusalCode::Rejected, detail: 0, text, dead: true });
        }
        let (session, session_seq) = trigger.origin();
        let mut context = Context {
            outputs: &mut self.outputs,
            sessions: &self.sessions,
            is_on_event_stream: self.is_on_event_stream,
            sequence,
            time_ns: frame.timestamp_ns(),
            session,
            session_seq,
            version: self.version,
            drawn: 0,
        };
        let service = &mut *self.service;
        self.before.take(self.policy.check_refusals, service);
        match guard(|| handler(service, &mut context)) {
            Ok(()) => Ok(ExecutionOutcome::Done),
            Err(refused) => self.refused(refused, trigger, sequence),
        }
    }

    fn refused(
        &mut self,
        refused: HandlerRefusal,
        trigger: Trigger,
        sequence: u64,
    ) -> Result<ExecutionOutcome, EngineError> {
        if !matches!(refused, HandlerRefusal::Typed(_)) {
            self.outputs.clear();
        }
        let (session, session_seq) = trigger.origin();
        let rules = self.rules();
        match refused {
            HandlerRefusal::Typed(name) if self.before.is_changed(&*self.service) => {
                let (message, reason) = (trigger.describe(&*self.service), name.to_owned());
                Err(EngineError::RefusalWithEffect { message, sequence, session, session_seq, reason })
            }
            HandlerRefusal::Rejected(Reject { text: reason, .. }) if self.before.is_changed(&*self.service) => {
                let message = trigger.describe(&*self.service);
                Err(EngineError::RefusalWithEffect { message, sequence, session, session_seq, reason })
            }
            HandlerRefusal::Panicked(reason) if !rules.panic_is_dead_letter => {
                let message = trigger.describe(&*self.service);
                Err(EngineError::HandlerPanicked { message, sequence, session, session_seq, reason })
            }
            HandlerRefusal::Unhandled(reason) if trigger.is_admitted() => {
                let message = trigger.describe(&*self.service);
                Err(EngineError::MissingMessage { message, sequence, session, session_seq, reason })
            }
            HandlerRefusal::Unhandled(reason) if rules.unhandled_stops => {
                let message = trigger.describe(&*self.service);
                Err(EngineError::Unhandled { message, sequence, session, session_seq, reason })
            }
            HandlerRefusal::Undecodable(reason) if rules.unhandled_stops => {
                let message = trigger.describe(&*self.service);
                Err(EngineError::Unhandled { message, sequence, session, session_seq, reason })
            }
            refused => Ok(refused.into()),
        }
    }

    #[inline]
    pub(crate) fn commit_side_outputs(&mut self, sink: &mut dyn Sink) {
        for draft in &self.outputs.published {
            sink.publish(draft.schema, draft.encoding, self.outputs.payload(draft));
        }
        for (session, draft) in &self.outputs.notices {
            // Notices for a session that is not open are dropped.
            let Some(entry) = self.sessions.get_mut(*session) else { continue };
            entry.last_notice += 1;
            entry.notices.push_back(StoredNotice {
                number: entry.last_notice,
                sequence: self.last_sequence,
                timestamp_ns: self.last_timestamp_ns,
                schema: draft.schema,
                encoding: draft.encoding,
                payload: self.outputs.payload(draft).to_vec(),
            });
            sink.notice(entry);
        }
        self.timers.apply(&self.outputs, |request| match request {
            TimerRequest::Set { timer, deadline_ns } => sink.set_timer(timer, deadline_ns),
            TimerRequest::Cancel { timer, deadline_ns } => sink.cancel_timer(timer, deadline_ns),
        });
    }
}

#[derive(Clone, Copy)]
enum Trigger {
    Message {
        schema: u32,
        encoding: Encoding,
        session: u64,
        session_seq: u64,
        /// A typed command that the leader's program handles, or a typed message that another instance may handle.
        is_admitted: bool,
    },
    /// `schema`: of the timer's message, which the program that set it handles.
    Timer { timer: u64, deadline_ns: u64, schema: Option<u32> },
}

impl Trigger {
    #[inline]
    fn message(frame: &Frame<'_>, is_admitted: bool) -> Self {
        let (schema, encoding) = (frame.schema(), frame.encoding());
        let (session, session_seq) = (frame.session(), frame.session_seq());
        Self::Message { schema, encoding, session, session_seq, is_admitted }
    }

    /// Whether another program has a handler for it, so that one without stops.
    const fn is_admitted(self) -> bool {
        matches!(self, Self::Message { is_admitted: true, .. } | Self::Timer { schema: Some(_), .. })
    }

    const fn origin(self) -> (u64, u64) {
        match self {
            Self::Message { session, session_seq, .. } => (session, session_seq),
            Self::Timer { .. } => (0, 0),
        }
    }

    fn describe(self, service: &dyn ErasedService) -> String {
        match self {
            Self::Message { schema, encoding, .. } => {
                let name = service.message_name(schema, encoding);
                name.map_or_else(|| describe(schema, encoding), str::to_owned)
            }
            Self::Timer { timer, deadline_ns, schema } => {
                let named = schema.map(|schema| {
                    service.timer_name(schema).map_or_else(|| describe(schema, Encoding::Postcard), str::to_owned)
                });
                let timer = named.unwrap_or_else(|| timer.to_string());
                format!("timer {timer} (due at {})", utc(deadline_ns))
            }
        }
    }
}

#[cfg(test)]
mod tests;
