//! [`CommandWriter`]: turns a command into its transaction. One thread, no clock, no disk.

mod cache;
mod decision_models;
mod host_interface;
mod intercepting;
#[cfg(test)]
mod tests;
mod unindexed;
mod unit_of_work;
mod wait_queues;

pub(crate) use cache::{AggregateCache, AggregateLoad, DueSnapshot, LoadFailure, LoadedAggregate, NotInMemory};
pub(crate) use decision_models::{DecisionModels, LoadedModel, ModelLoad};

use crate::aggregate::{CommandInput, DecideError, DecisionContext, MessageTypeId};
use crate::decision_model::LastOfFilter;
use crate::envelope::{AnswerKind, CommandAnswer, CommandEnvelope, Condition};
use crate::handler::InterruptionReason;
use crate::identifiers::{IdentifierLookup, Identifiers};
use crate::identity::{Position, TypeKey};
use crate::interceptor::InterceptedCommand;
use crate::model::{CheckedModel, DecisionModelTypes, HandlerResult};
use crate::outcome::CommandOutcome;
use crate::store::words;
use crate::transaction::CommandIdentity;
use gapless_message::headers::Headers;
use intercepting::panic_text;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use unit_of_work::{HandlerWorkspace, UnitOfWork};

#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandStamp {
    pub sequence: u64,
    pub time_ns: u64,
    pub session: u64,
    pub number: u64,
}

#[derive(Clone, Copy)]
struct CommandContext<'a> {
    stamp: &'a CommandStamp,
    length_max: usize,
    /// Identifier under which the answer is remembered.
    identity: Option<CommandIdentity>,
}

impl CommandContext<'_> {
    const fn position(&self) -> Position {
        Position { sequence: self.stamp.sequence, ordinal: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunResult {
    Answered,
    Failed(RunFailure),
    /// No effect yet: an aggregate has to be loaded first.
    Later,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunFailure {
    Unknown,
    Malformed,
    Panicked,
    Inadmissible,
}

pub(crate) struct CommandWriter {
    model: CheckedModel,
    cache: AggregateCache,
    decision_models: DecisionModels,
    identifiers: Identifiers,
    unit_of_work: UnitOfWork,
    answer: Vec<u8>,
    /// Outcome of the last command, with its number of events; `None` for a duplicate, which got the first answer
    /// again.
    last_answer: Option<(AnswerKind, u32)>,
    text: String,
}

impl CommandWriter {
    pub fn new(
        model: CheckedModel,
        identifiers: Identifiers,
        cache: AggregateCache,
        decision_models: DecisionModels,
    ) -> Self {
        let (unit_of_work, answer, text) = (UnitOfWork::default(), Vec::new(), String::new());
        Self { model, cache, decision_models, identifiers, unit_of_work, answer, last_answer: None, text }
    }

    pub fn answer(&self) -> &[u8] {
        &self.answer
    }

    /// Whether the last command was accepted.
    pub fn has_accepted(&self) -> bool {
        matches!(self.last_answer, Some((AnswerKind::Accepted, _)))
    }

    /// Outcome and number of events; `None` for a duplicate.
    #[inline]
    pub const fn last_answer(&self) -> Option<(AnswerKind, u32)> {
        self.last_answer
    }

    /// Outcome of the last command, for logs.
    #[cold]
    pub fn outcome(&self, result: RunResult) -> String {
        match result {
            RunResult::Answered => CommandAnswer::read(&self.answer).map_or_else(
                |error| error.to_string(),
                |answer| format!("{:?}{}", answer.kind, if self.last_answer.is_none() { ", as before" } else { "" }),
            ),
            RunResult::Failed(_) => format!("Failed: {}", self.text),
            RunResult::Later => "Later".to_owned(),
        }
    }

    /// Encoded events of the last command.
    pub fn changes(&self) -> &[u8] {
        self.unit_of_work.changes()
    }

    /// Reason of the last failure.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Sets the version as which the stream's service acts from the next command on.
    #[cold]
    pub fn become_version(&mut self, version: u32) {
        self.model.aggregates.become_version(version);
    }

    pub fn cache_mut(&mut self) -> (&mut AggregateCache, &CheckedModel) {
        (&mut self.cache, &self.model)
    }

    pub fn decision_models_mut(&mut self) -> (&mut DecisionModels, &DecisionModelTypes) {
        (&mut self.decision_models, &self.model.decision_models)
    }

    /// Answer and events have at most `length_max` bytes together.
    #[inline]
    pub fn run(&mut self, stamp: &CommandStamp, bytes: &[u8], length_max: usize) -> RunResult {
        self.answer.clear();
        self.last_answer = None;
        self.unit_of_work.clear(&mut self.model.aggregates);
        let envelope = match CommandEnvelope::read(bytes) {
            Ok(envelope) => envelope,
            Err(error) => return self.fail(RunFailure::Malformed, error.to_string()),
        };
        let identity = envelope.identifier.map(|identifier| CommandIdentity { identifier, hash: hash_of(&envelope) });
        let mut context = CommandContext { stamp, length_max, identity };
        if let Some(identity) = identity {
            match self.identifiers.find(identity, stamp.time_ns) {
                IdentifierLookup::Unknown => {}
                IdentifierLookup::Same(answer) => {
                    self.answer.extend_from_slice(answer);
                    return self.finish_without_events(&CommandContext { identity: None, ..context });
                }
                IdentifierLookup::Other => {
                    // The first command with this identifier stays the remembered one.
                    context.identity = None;
                    return self.answer_as(&context, AnswerKind::IdentifierReused, 0);
                }
            }
        }
        if !Headers::are_encoded(envelope.metadata) {
            return self.fail(RunFailure::Malformed, "its metadata are no headers".to_owned());
        }
        let drawn = Cell::new(0);
        let decision_context = DecisionContext {
            time_ns: stamp.time_ns,
            sequence: stamp.sequence,
            session: stamp.session,
            number: stamp.number,
            metadata: envelope.metadata,
            drawn: &drawn,
        };
        self.unit_of_work.begin(identity, envelope.metadata, length_max);
        if !self.model.interceptors.is_empty() {
            return self.intercept(&context, &envelope, decision_context);
        }
        self.decide_or_handle(&context, &envelope, decision_context)
    }

    #[inline]
    fn decide_or_handle(
        &mut self,
        context: &CommandContext<'_>,
        envelope: &CommandEnvelope<'_>,
        decision_context: DecisionContext<'_>,
    ) -> RunResult {
        if let Some(condition) = envelope.condition
            && let Some(result) = self.check_condition(context, condition)
        {
            return result;
        }
        match envelope.aggregate {
            TypeKey::NONE => self.handle(context, envelope, decision_context),
            _ => self.decide(context, envelope, decision_context),
        }
    }

    fn intercept(
        &mut self,
        context: &CommandContext<'_>,
        envelope: &CommandEnvelope<'_>,
        decision_context: DecisionContext<'_>,
    ) -> RunResult {
        let command = InterceptedCommand::new(envelope, decision_context);
        let result = match intercepting::before(&mut self.model.interceptors, &command) {
            Ok(Ok(())) => self.decide_or_handle(context, envelope, decision_context),
            Ok(Err(reason)) => {
                self.text = reason;
                self.answer_as(context, AnswerKind::Intercepted, 0)
            }
            Err(panic) => self.fail(RunFailure::Panicked, format!("an interceptor panicked: {panic}")),
        };
        let Self { model, answer, text, .. } = self;
        let answer = CommandAnswer::read(answer);
        match (result, &answer) {
            (RunResult::Answered, Ok(answer)) => {
                intercepting::after(&mut model.interceptors, &command, &CommandOutcome::of_answer(answer));
            }
            (RunResult::Failed(_), _) => {
                intercepting::after(&mut model.interceptors, &command, &CommandOutcome::Failed(text))
            }
            _ => {}
        }
        result
    }

    #[cold]
    fn check_condition(
        &mut self,
        context: &CommandContext<'_>,
        Condition { after, filter }: Condition<'_>,
    ) -> Option<RunResult> {
        if let Err(error) = LastOfFilter::check(filter) {
            return Some(self.fail(RunFailure::Malformed, error.to_string()));
        }
        let types = &self.model.decision_models.all;
        let from = Position { sequence: after.sequence, ordinal: after.ordinal.saturating_add(1) };
        let first = self.decision_models.deleted_before();
        if after.sequence.saturating_add((after.ordinal == u16::MAX).into()) < first {
            let reason = format!("its condition is about events behind {after}, and those before {first} are deleted");
            return Some(self.fail(RunFailure::Inadmissible, reason));
        }
        let (of, tail) = ((DecisionModelTypes::LAST_OF_FILTER, filter), context.stamp.sequence - 1);
        let last = match self.decision_models.find(types, of, from, tail) {
            Ok(entry) => LastOfFilter::position(self.decision_models.state(entry)),
            Err(missing) => return Some(self.answer_missing(context, missing)),
        };
        let last = last.filter(|last| *last > after)?;
        let found = CommandContext { stamp: &CommandStamp { sequence: last.sequence, ..*context.stamp }, ..*context };
        Some(self.answer_as(&found, AnswerKind::ConditionFailed, last.ordinal.into()))
    }

    /// `bytes` may be a prefix of the command.
    #[cold]
    fn queue_unrun(&mut self, bytes: &[u8]) {
        // Counts even if the needed aggregates are unknown or already loaded.
        self.cache.record_arrival();
        if let Ok(envelope) = CommandEnvelope::read(bytes)
            && let Some(index) = self.model.aggregates.find(envelope.aggregate)
        {
            self.cache.keep_queue_position(&self.model.aggregates, index, envelope.id);
        }
    }

    #[inline]
    fn decide(
        &mut self,
        context: &CommandContext<'_>,
        envelope: &CommandEnvelope<'_>,
        decision_context: DecisionContext<'_>,
    ) -> RunResult {
        let Self { model, cache, unit_of_work, .. } = self;
        let Some(index) = model.aggregates.find(envelope.aggregate) else {
            let name = model.names.aggregate_name(envelope.aggregate);
            return self.fail(RunFailure::Unknown, format!("the model has no aggregate {name}"));
        };
        let expected = model.aggregates.all[index].command();
        if expected.key != envelope.command {
            let name = model.aggregates.all[index].name();
            let other = model.names.message_name(envelope.command);
            return self.fail(RunFailure::Unknown, format!("{name} takes {}, and this is {other}", expected.name));
        }
        let entry = match cache.find(&model.aggregates, index, envelope.id) {
            Ok(entry) => entry,
            Err(missing) => return self.answer_missing(context, missing),
        };
        let version = cache.version(entry);
        if let Some(expected) = envelope.expected_version
            && expected != version
        {
            cache.drop_if_empty(entry);
            return self.answer_as(context, AnswerKind::Conflict, version);
        }
        unit_of_work.touch(index, &mut model.aggregates);
        let aggregate = &mut model.aggregates.all[index];
        let command = CommandInput::Bytes(envelope.version, envelope.payload);
        let decided =
            catch_unwind(AssertUnwindSafe(|| aggregate.decide(cache.state(entry), version, command, decision_context)));
        match decided {
            Ok(Ok(events)) => {
                let version = version + events.len() as u64;
                unit_of_work.add(entry, index, events);
                self.finish(context, version, None)
            }
            Ok(Err(reason)) => {
                cache.drop_if_empty(entry);
                self.answer_undecided(context, reason, version)
            }
            Err(panic) => {
                cache.drop_if_empty(entry);
                self.fail(RunFailure::Panicked, format!("decide panicked: {}", panic_text(&*panic)))
            }
        }
    }

    #[cold]
    fn answer_missing(&mut self, context: &CommandContext<'_>, missing: NotInMemory) -> RunResult {
        match missing {
            NotInMemory::Loading => RunResult::Later,
            NotInMemory::NoIdentifier => {
                self.fail(RunFailure::Malformed, "its bytes are no identifier of such an aggregate".to_owned())
            }
            NotInMemory::Quarantined(reason) => self.answer_quarantined(context, reason),
        }
    }

    fn answer_quarantined(&mut self, context: &CommandContext<'_>, reason: String) -> RunResult {
        self.text = reason;
        self.answer_as(context, AnswerKind::Quarantined, 0)
    }

    #[cold]
    fn answer_undecided(&mut self, context: &CommandContext<'_>, reason: DecideError, version: u64) -> RunResult {
        match reason {
            DecideError::NotFound => self.answer_as(context, AnswerKind::NotFound, 0),
            DecideError::AlreadyExists => self.answer_as(context, AnswerKind::AlreadyExists, version),
            DecideError::Refused(message, bytes) => {
                CommandAnswer {
                    kind: AnswerKind::Refused,
                    message: message.key,
                    message_version: message.version,
                    position: context.position(),
                    aggregate_version: version,
                    events: 0,
                    rest: &bytes[..],
                }
                .write(&mut self.answer);
                self.last_answer = Some((AnswerKind::Refused, 0));
                self.finish_without_events(context)
            }
            DecideError::NoCommand(error) => self.fail(RunFailure::Malformed, error.to_string()),
            DecideError::Impossible(reason) => self.fail(RunFailure::Inadmissible, reason),
        }
    }

    fn handle(
        &mut self,
        context: &CommandContext<'_>,
        envelope: &CommandEnvelope<'_>,
        decision_context: DecisionContext<'_>,
    ) -> RunResult {
        let Self { model, cache, decision_models, unit_of_work, .. } = self;
        let CheckedModel { aggregates, handlers, events, decision_models: types, names, .. } = model;
        let Some(handler) = handlers.get(&envelope.command) else {
            let name = names.message_name(envelope.command);
            return self.fail(RunFailure::Unknown, format!("the model has no handler of {name}"));
        };
        let mut workspace = HandlerWorkspace {
            unit_of_work,
            cache,
            aggregates,
            decision_models,
            types,
            events,
            decision_context,
            interrupted: None,
        };
        let handled = catch_unwind(AssertUnwindSafe(|| {
            handler.handle(envelope.version, envelope.payload, decision_context, &mut workspace)
        }));
        let interrupted = workspace.interrupted.take();
        let handled = match (handled, interrupted) {
            (Ok(_), Some(interrupted)) => HandlerResult::Interrupted(interrupted),
            (Ok(handled), None) => handled,
            (Err(panic), _) => {
                self.roll_back();
                return self.fail(RunFailure::Panicked, format!("the handler panicked: {}", panic_text(&*panic)));
            }
        };
        match handled {
            HandlerResult::Done(message, reply) => self.finish(context, 0, Some((message, reply))),
            HandlerResult::Refused(message, bytes) => {
                self.roll_back();
                self.answer_undecided(context, DecideError::Refused(message, bytes), 0)
            }
            HandlerResult::Interrupted(interrupted) => {
                self.roll_back();
                match interrupted {
                    InterruptionReason::NotInMemory => RunResult::Later,
                    InterruptionReason::Quarantined(reason) => self.answer_quarantined(context, reason),
                    InterruptionReason::Impossible(reason) => self.fail(RunFailure::Inadmissible, reason),
                }
            }
            HandlerResult::NoCommand(error) => self.fail(RunFailure::Malformed, error.to_string()),
        }
    }

    #[inline]
    fn finish(
        &mut self,
        context: &CommandContext<'_>,
        aggregate_version: u64,
        reply: Option<(MessageTypeId, Vec<u8>)>,
    ) -> RunResult {
        let Self { model, cache, unit_of_work, .. } = self;
        let events = match unit_of_work.encode(cache, &model.aggregates) {
            Ok(events) => events,
            Err(reason) => {
                self.roll_back();
                return self.fail(RunFailure::Inadmissible, reason);
            }
        };
        let (message, message_version, rest) = match &reply {
            Some((message, bytes)) => (message.key, message.version, &bytes[..]),
            None => (TypeKey::NONE, 0, &[][..]),
        };
        CommandAnswer {
            kind: AnswerKind::Accepted,
            message,
            message_version,
            position: context.position(),
            aggregate_version,
            events: events.into(),
            rest,
        }
        .write(&mut self.answer);
        self.last_answer = Some((AnswerKind::Accepted, events.into()));
        let length = self.answer.len() + unit_of_work.changes().len();
        if length > context.length_max {
            self.roll_back();
            return self.too_long(context, length);
        }
        let applied = catch_unwind(AssertUnwindSafe(|| unit_of_work.apply(cache, &model.aggregates)));
        if let Err(panic) = applied {
            self.roll_back();
            return self.fail(RunFailure::Panicked, format!("apply panicked: {}", panic_text(&*panic)));
        }
        unit_of_work.commit(cache, &model.aggregates, (context.stamp.sequence, context.stamp.time_ns));
        if self.decision_models.is_active() {
            let types = &self.model.decision_models.all;
            self.decision_models.apply_decided(types, context.stamp.sequence, self.unit_of_work.changes());
        }
        if let Some(identity) = context.identity {
            self.identifiers.remember(identity, context.stamp.time_ns, &self.answer);
        }
        RunResult::Answered
    }

    #[cold]
    fn roll_back(&mut self) {
        self.unit_of_work.roll_back(&mut self.cache, &self.model.aggregates);
        self.decision_models.roll_back();
    }

    #[cold]
    fn answer_as(&mut self, context: &CommandContext<'_>, kind: AnswerKind, aggregate_version: u64) -> RunResult {
        let mut identity = context.identity;
        let rest = match kind {
            AnswerKind::Quarantined | AnswerKind::Intercepted => self.text.as_bytes(),
            _ => &[],
        };
        if matches!(kind, AnswerKind::Conflict | AnswerKind::ConditionFailed | AnswerKind::Quarantined) {
            // Not remembered, so that the caller may send it again with another expectation, or once the aggregate can
            // be loaded.
            identity = None;
            self.unit_of_work.forget_identifier();
        }
        CommandAnswer {
            kind,
            message: TypeKey::NONE,
            message_version: 0,
            position: context.position(),
            aggregate_version,
            events: 0,
            rest,
        }
        .write(&mut self.answer);
        self.last_answer = Some((kind, 0));
        self.finish_without_events(&CommandContext { identity, ..*context })
    }

    #[cold]
    fn finish_without_events(&mut self, context: &CommandContext<'_>) -> RunResult {
        self.unit_of_work.seal();
        let length = self.answer.len() + self.unit_of_work.changes().len();
        if length > context.length_max {
            return self.too_long(context, length);
        }
        if let Some(identity) = context.identity {
            self.identifiers.remember(identity, context.stamp.time_ns, &self.answer);
        }
        RunResult::Answered
    }

    #[cold]
    fn too_long(&mut self, context: &CommandContext<'_>, length: usize) -> RunResult {
        let most = context.length_max;
        self.answer = Vec::new();
        self.fail(RunFailure::Inadmissible, format!("its events and answer have {length} bytes, and {most} have room"))
    }

    #[cold]
    fn fail(&mut self, failure: RunFailure, text: String) -> RunResult {
        self.text = text;
        RunResult::Failed(failure)
    }
}

/// Hash of a command's target and content, without its metadata and expectations.
fn hash_of(envelope: &CommandEnvelope<'_>) -> u64 {
    let parts = [envelope.id, envelope.payload];
    let head = [u64::from(envelope.aggregate.0) << 32 | u64::from(envelope.command.0), u64::from(envelope.version)];
    let mut hash = head.iter().fold(0, |hash, word| gapless_wire::split_mix::finish(hash ^ word));
    for part in parts {
        hash = gapless_wire::split_mix::finish(hash ^ part.len() as u64);
        hash = words(part).fold(hash, |hash, word| gapless_wire::split_mix::finish(hash ^ word));
    }
    hash
}
