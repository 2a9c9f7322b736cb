//! [`Writer`]: turns a command into its transaction. One thread, no clock, no disk.
//!
//! | module | what lives there |
//! |---|---|
//! | this | [`Writer`]: one command after the other |
//! | `intercepting` | the interceptors around a decision |
//! | `undertaking` | changes of one command to the cache, until they are kept or undone |
//! | `decision_models` | states of decision models in memory |
//! | `unindexed` | events that the index may not have yet |
//! | `cache` | the aggregates in memory |
//! | `lines` | queues of commands that wait for an aggregate |

mod cache;
mod decision_models;
mod intercepting;
mod lines;
#[cfg(test)]
mod tests;
mod undertaking;
mod unindexed;

pub(crate) use cache::{Cache, Cold, DueSnapshot, Load, Loaded, NotLoaded};
pub(crate) use decision_models::{DecisionModels, LoadedModel, ModelLoad};

use crate::aggregate::{Circumstances, Commanded, MessageType, NotDecided};
use crate::decision_model::LastOfFilter;
use crate::ending::Ending;
use crate::envelope::{Answer, Answered, Condition, Envelope};
use crate::handler::Interrupted;
use crate::identifiers::{Identifiers, Remembered};
use crate::identity::{Position, TypeKey};
use crate::interceptor::Intercepted;
use crate::model::{DecisionModelTypes, Handled, Model};
use crate::store::words;
use crate::transaction::CommandIdentity;
use gapless_message::headers::Headers;
use intercepting::said;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use undertaking::{Undertaking, UndertakingWorkspace};

/// Fields that the stream gives a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub sequence: u64,
    pub time_ns: u64,
    pub session: u64,
    pub number: u64,
}

#[derive(Clone, Copy)]
struct Here<'a> {
    stamp: &'a Stamp,
    length_max: usize,
    /// Identity under which its answer is remembered.
    identity: Option<CommandIdentity>,
}

impl Here<'_> {
    const fn position(&self) -> Position {
        Position { sequence: self.stamp.sequence, ordinal: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    Answered,
    /// The command has no effect, and its caller gets the writer's text.
    Failed(Failure),
    /// The command has no effect yet: an aggregate has to be loaded first.
    Later,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Unknown,
    Malformed,
    Panicked,
    /// Events or answer are too large, or do not encode.
    Inadmissible,
}

/// Runs commands, one after the other, and keeps answer and events of the last one.
pub(crate) struct Writer {
    model: Model,
    cache: Cache,
    decision_models: DecisionModels,
    identifiers: Identifiers,
    undertaking: Undertaking,
    answer: Vec<u8>,
    /// Outcome of the last command, with its number of events; `None` for a duplicate, which got the first answer
    /// again.
    answered: Option<(Answered, u32)>,
    text: String,
}

impl Writer {
    pub fn new(model: Model, identifiers: Identifiers, cache: Cache, decision_models: DecisionModels) -> Self {
        let (undertaking, answer, text) = (Undertaking::default(), Vec::new(), String::new());
        Self { model, cache, decision_models, identifiers, undertaking, answer, answered: None, text }
    }

    pub fn answer(&self) -> &[u8] {
        &self.answer
    }

    /// Whether the last command was accepted.
    pub fn has_accepted(&self) -> bool {
        matches!(self.answered, Some((Answered::Accepted, _)))
    }

    /// Outcome of the last command, with its number of events; `None` for a duplicate.
    #[inline]
    pub const fn answered_as(&self) -> Option<(Answered, u32)> {
        self.answered
    }

    /// Outcome of the last command, for logs.
    #[cold]
    pub fn outcome(&self, ran: Ran) -> String {
        match ran {
            Ran::Answered => Answer::read(&self.answer).map_or_else(
                |error| error.to_string(),
                |answer| format!("{:?}{}", answer.answered, if self.answered.is_none() { ", as before" } else { "" }),
            ),
            Ran::Failed(_) => format!("Failed: {}", self.text),
            Ran::Later => "Later".to_owned(),
        }
    }

    /// Encoded events of the last command.
    pub fn changes(&self) -> &[u8] {
        self.undertaking.changes()
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

    pub fn identifiers_mut(&mut self) -> &mut Identifiers {
        &mut self.identifiers
    }

    pub fn cache_mut(&mut self) -> (&mut Cache, &Model) {
        (&mut self.cache, &self.model)
    }

    /// Ends the turns of sessions that do not come. Returns whether any commands wait.
    #[inline]
    pub fn pass_over_the_dead(&mut self, now: impl FnOnce() -> Instant) -> bool {
        let Self { cache, decision_models, .. } = self;
        let has_lines = cache.has_lines();
        if has_lines {
            cache.expire_lines(now(), |session| decision_models.awaits(session));
        }
        has_lines
    }

    pub fn decision_models_mut(&mut self) -> (&mut DecisionModels, &DecisionModelTypes) {
        (&mut self.decision_models, &self.model.decision_models)
    }

    /// Runs a command. Answer and events have at most `length_max` bytes together.
    #[inline]
    pub fn run(&mut self, stamp: &Stamp, bytes: &[u8], length_max: usize) -> Ran {
        self.answer.clear();
        self.answered = None;
        self.undertaking.clear(&mut self.model.aggregates);
        let envelope = match Envelope::read(bytes) {
            Ok(envelope) => envelope,
            Err(error) => return self.failed(Failure::Malformed, error.to_string()),
        };
        let identity = envelope.identifier.map(|identifier| CommandIdentity { identifier, hash: hash_of(&envelope) });
        let mut here = Here { stamp, length_max, identity };
        if let Some(identity) = identity {
            match self.identifiers.find(identity, stamp.time_ns) {
                Remembered::No => {}
                Remembered::Same(answer) => {
                    self.answer.extend_from_slice(answer);
                    return self.without_events(&Here { identity: None, ..here });
                }
                Remembered::Other => {
                    // The first command with this identifier stays the remembered one.
                    here.identity = None;
                    return self.answered(&here, Answered::IdentifierReused, 0);
                }
            }
        }
        if !Headers::are_encoded(envelope.metadata) {
            return self.failed(Failure::Malformed, "its metadata are no headers".to_owned());
        }
        let drawn = Cell::new(0);
        let circumstances = Circumstances {
            time_ns: stamp.time_ns,
            sequence: stamp.sequence,
            session: stamp.session,
            number: stamp.number,
            metadata: envelope.metadata,
            drawn: &drawn,
        };
        self.undertaking.begin(identity, envelope.metadata, length_max);
        if !self.model.interceptors.is_empty() {
            return self.intercept(&here, &envelope, circumstances);
        }
        self.decide_or_handle(&here, &envelope, circumstances)
    }

    #[inline]
    fn decide_or_handle(&mut self, here: &Here<'_>, envelope: &Envelope<'_>, circumstances: Circumstances<'_>) -> Ran {
        if let Some(condition) = envelope.condition
            && let Some(ran) = self.fails_condition(here, condition)
        {
            return ran;
        }
        match envelope.aggregate {
            TypeKey::NONE => self.handle(here, envelope, circumstances),
            _ => self.decide(here, envelope, circumstances),
        }
    }

    fn intercept(&mut self, here: &Here<'_>, envelope: &Envelope<'_>, circumstances: Circumstances<'_>) -> Ran {
        let command = Intercepted::new(envelope, circumstances);
        let ran = match intercepting::before(&mut self.model.interceptors, &command) {
            Ok(Ok(())) => self.decide_or_handle(here, envelope, circumstances),
            Ok(Err(reason)) => {
                self.text = reason;
                self.answered(here, Answered::Intercepted, 0)
            }
            Err(panic) => self.failed(Failure::Panicked, format!("an interceptor panicked: {panic}")),
        };
        let Self { model, answer, text, .. } = self;
        let answer = Answer::read(answer);
        match (ran, &answer) {
            (Ran::Answered, Ok(answer)) => {
                intercepting::after(&mut model.interceptors, &command, &Ending::of_answer(answer));
            }
            (Ran::Failed(_), _) => intercepting::after(&mut model.interceptors, &command, &Ending::Failed(text)),
            _ => {}
        }
        ran
    }

    /// Result of a command whose condition fails; `None` if it holds.
    #[cold]
    fn fails_condition(&mut self, here: &Here<'_>, Condition { behind, filter }: Condition<'_>) -> Option<Ran> {
        if let Err(error) = LastOfFilter::check(filter) {
            return Some(self.failed(Failure::Malformed, error.to_string()));
        }
        let types = &self.model.decision_models.all;
        let from = Position { sequence: behind.sequence, ordinal: behind.ordinal.saturating_add(1) };
        let first = self.decision_models.deleted_before();
        if behind.sequence.saturating_add((behind.ordinal == u16::MAX).into()) < first {
            let reason = format!("its condition is about events behind {behind}, and those before {first} are deleted");
            return Some(self.failed(Failure::Inadmissible, reason));
        }
        let (of, tail) = ((DecisionModelTypes::LAST_OF_FILTER, filter), here.stamp.sequence - 1);
        let last = match self.decision_models.find(types, of, from, tail) {
            Ok(entry) => LastOfFilter::position(self.decision_models.state(entry)),
            Err(cold) => return Some(self.not_there(here, cold)),
        };
        let last = last.filter(|last| *last > behind)?;
        let found = Here { stamp: &Stamp { sequence: last.sequence, ..*here.stamp }, ..*here };
        Some(self.answered(&found, Answered::ConditionFailed, last.ordinal.into()))
    }

    /// Keeps a command's place although another one of its session waits. `bytes` may be a prefix of the command.
    #[cold]
    pub fn stand_in_line(&mut self, bytes: &[u8]) {
        // The arrival counts even if the needed aggregates are unknown or already loaded.
        self.cache.arrive();
        if let Ok(envelope) = Envelope::read(bytes)
            && let Some(index) = self.model.aggregates.find(envelope.aggregate)
        {
            self.cache.stand_in_line(&self.model.aggregates, index, envelope.id);
        }
    }

    #[inline]
    fn decide(&mut self, here: &Here<'_>, envelope: &Envelope<'_>, circumstances: Circumstances<'_>) -> Ran {
        let Self { model, cache, undertaking, .. } = self;
        let Some(index) = model.aggregates.find(envelope.aggregate) else {
            let name = model.names.aggregate_name(envelope.aggregate);
            return self.failed(Failure::Unknown, format!("the model has no aggregate {name}"));
        };
        let taken = model.aggregates.all[index].command();
        if taken.key != envelope.command {
            let name = model.aggregates.all[index].name();
            let other = model.names.message_name(envelope.command);
            return self.failed(Failure::Unknown, format!("{name} takes {}, and this is {other}", taken.name));
        }
        let entry = match cache.find(&model.aggregates, index, envelope.id) {
            Ok(entry) => entry,
            Err(cold) => return self.not_there(here, cold),
        };
        let version = cache.version(entry);
        if let Some(expected) = envelope.expected_version
            && expected != version
        {
            cache.drop_if_empty(entry);
            return self.answered(here, Answered::Conflict, version);
        }
        undertaking.touch(index, &mut model.aggregates);
        let aggregate = &mut model.aggregates.all[index];
        let command = Commanded::Bytes(envelope.version, envelope.payload);
        let decided =
            catch_unwind(AssertUnwindSafe(|| aggregate.decide(cache.state(entry), version, command, circumstances)));
        match decided {
            Ok(Ok(events)) => {
                let version = version + events.len() as u64;
                undertaking.add(entry, index, events);
                self.finish(here, version, None)
            }
            Ok(Err(reason)) => {
                cache.drop_if_empty(entry);
                self.not_decided(here, reason, version)
            }
            Err(panic) => {
                cache.drop_if_empty(entry);
                self.failed(Failure::Panicked, format!("decide panicked: {}", said(&*panic)))
            }
        }
    }

    #[cold]
    fn not_there(&mut self, here: &Here<'_>, cold: Cold) -> Ran {
        match cold {
            Cold::Loading => Ran::Later,
            Cold::NoIdentifier => {
                self.failed(Failure::Malformed, "its bytes are no identifier of such an aggregate".to_owned())
            }
            Cold::Quarantined(reason) => self.quarantined(here, reason),
        }
    }

    /// Answers that a needed aggregate or model cannot be loaded.
    fn quarantined(&mut self, here: &Here<'_>, reason: String) -> Ran {
        self.text = reason;
        self.answered(here, Answered::Quarantined, 0)
    }

    #[cold]
    fn not_decided(&mut self, here: &Here<'_>, reason: NotDecided, version: u64) -> Ran {
        match reason {
            NotDecided::NotFound => self.answered(here, Answered::NotFound, 0),
            NotDecided::AlreadyExists => self.answered(here, Answered::AlreadyExists, version),
            NotDecided::Refused(message, bytes) => {
                Answer {
                    answered: Answered::Refused,
                    message: message.key,
                    message_version: message.version,
                    position: here.position(),
                    aggregate_version: version,
                    events: 0,
                    rest: &bytes[..],
                }
                .write(&mut self.answer);
                self.answered = Some((Answered::Refused, 0));
                self.without_events(here)
            }
            NotDecided::NoCommand(error) => self.failed(Failure::Malformed, error.to_string()),
            NotDecided::Impossible(reason) => self.failed(Failure::Inadmissible, reason),
        }
    }

    fn handle(&mut self, here: &Here<'_>, envelope: &Envelope<'_>, circumstances: Circumstances<'_>) -> Ran {
        let Self { model, cache, decision_models, undertaking, .. } = self;
        let Model { aggregates, handlers, events, decision_models: types, names, .. } = model;
        let Some(handler) = handlers.get(&envelope.command) else {
            let name = names.message_name(envelope.command);
            return self.failed(Failure::Unknown, format!("the model has no handler of {name}"));
        };
        let mut workspace = UndertakingWorkspace {
            undertaking,
            cache,
            aggregates,
            decision_models,
            types,
            events,
            circumstances,
            interrupted: None,
        };
        let handled = catch_unwind(AssertUnwindSafe(|| {
            handler.handle(envelope.version, envelope.payload, circumstances, &mut workspace)
        }));
        let interrupted = workspace.interrupted.take();
        let handled = match (handled, interrupted) {
            // An interruption counts, whatever the handler returned.
            (Ok(_), Some(interrupted)) => Handled::Interrupted(interrupted),
            (Ok(handled), None) => handled,
            (Err(panic), _) => {
                self.undo();
                return self.failed(Failure::Panicked, format!("the handler panicked: {}", said(&*panic)));
            }
        };
        match handled {
            Handled::Done(message, reply) => self.finish(here, 0, Some((message, reply))),
            Handled::Refused(message, bytes) => {
                self.undo();
                self.not_decided(here, NotDecided::Refused(message, bytes), 0)
            }
            Handled::Interrupted(interrupted) => {
                self.undo();
                match interrupted {
                    Interrupted::Cold => Ran::Later,
                    Interrupted::Quarantined(reason) => self.quarantined(here, reason),
                    Interrupted::Impossible(reason) => self.failed(Failure::Inadmissible, reason),
                }
            }
            Handled::NoCommand(error) => self.failed(Failure::Malformed, error.to_string()),
        }
    }

    /// Encodes the decided events, applies them, and answers.
    #[inline]
    fn finish(&mut self, here: &Here<'_>, aggregate_version: u64, reply: Option<(MessageType, Vec<u8>)>) -> Ran {
        let Self { model, cache, undertaking, .. } = self;
        let events = match undertaking.encode(cache, &model.aggregates) {
            Ok(events) => events,
            Err(reason) => {
                self.undo();
                return self.failed(Failure::Inadmissible, reason);
            }
        };
        let (message, message_version, rest) = match &reply {
            Some((message, bytes)) => (message.key, message.version, &bytes[..]),
            None => (TypeKey::NONE, 0, &[][..]),
        };
        Answer {
            answered: Answered::Accepted,
            message,
            message_version,
            position: here.position(),
            aggregate_version,
            events: events.into(),
            rest,
        }
        .write(&mut self.answer);
        self.answered = Some((Answered::Accepted, events.into()));
        let length = self.answer.len() + undertaking.changes().len();
        if length > here.length_max {
            self.undo();
            return self.too_long(here, length);
        }
        let applied = catch_unwind(AssertUnwindSafe(|| undertaking.apply(cache, &model.aggregates)));
        if let Err(panic) = applied {
            // A panic leaves the state undefined.
            self.undo();
            return self.failed(Failure::Panicked, format!("apply panicked: {}", said(&*panic)));
        }
        undertaking.keep(cache, &model.aggregates, (here.stamp.sequence, here.stamp.time_ns));
        if self.decision_models.is_active() {
            let types = &self.model.decision_models.all;
            self.decision_models.decided(types, here.stamp.sequence, self.undertaking.changes());
        }
        if let Some(identity) = here.identity {
            self.identifiers.remember(identity, here.stamp.time_ns, &self.answer);
        }
        Ran::Answered
    }

    /// Undoes all changes of the command.
    #[cold]
    fn undo(&mut self) {
        self.undertaking.undo(&mut self.cache, &self.model.aggregates);
        self.decision_models.undo();
    }

    #[cold]
    fn answered(&mut self, here: &Here<'_>, answered: Answered, aggregate_version: u64) -> Ran {
        let mut identity = here.identity;
        let rest = match answered {
            Answered::Quarantined | Answered::Intercepted => self.text.as_bytes(),
            _ => &[],
        };
        if matches!(answered, Answered::Conflict | Answered::ConditionFailed | Answered::Quarantined) {
            // The caller may send it again with another expectation, or once the aggregate can be loaded. So it is not
            // remembered.
            identity = None;
            self.undertaking.forget_identifier();
        }
        Answer {
            answered,
            message: TypeKey::NONE,
            message_version: 0,
            position: here.position(),
            aggregate_version,
            events: 0,
            rest,
        }
        .write(&mut self.answer);
        self.answered = Some((answered, 0));
        self.without_events(&Here { identity, ..*here })
    }

    /// Completes an answer without events.
    #[cold]
    fn without_events(&mut self, here: &Here<'_>) -> Ran {
        self.undertaking.seal();
        let length = self.answer.len() + self.undertaking.changes().len();
        if length > here.length_max {
            return self.too_long(here, length);
        }
        if let Some(identity) = here.identity {
            self.identifiers.remember(identity, here.stamp.time_ns, &self.answer);
        }
        Ran::Answered
    }

    #[cold]
    fn too_long(&mut self, here: &Here<'_>, length: usize) -> Ran {
        let most = here.length_max;
        // Frees the memory of the large answer.
        self.answer = Vec::new();
        self.failed(Failure::Inadmissible, format!("its events and answer have {length} bytes, and {most} have room"))
    }

    #[cold]
    fn failed(&mut self, failure: Failure, text: String) -> Ran {
        self.text = text;
        Ran::Failed(failure)
    }
}

/// Hash of a command's target and content, without its metadata and expectations.
fn hash_of(envelope: &Envelope<'_>) -> u64 {
    let parts = [envelope.id, envelope.payload];
    let head = [u64::from(envelope.aggregate.0) << 32 | u64::from(envelope.command.0), u64::from(envelope.version)];
    let mut hash = head.iter().fold(0, |hash, word| gapless_wire::split_mix::finish(hash ^ word));
    for part in parts {
        hash = gapless_wire::split_mix::finish(hash ^ part.len() as u64);
        hash = words(part).fold(hash, |hash, word| gapless_wire::split_mix::finish(hash ^ word));
    }
    hash
}
