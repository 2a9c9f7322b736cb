//! `CommandModel`: the types of aggregates and handlers of a bus.

use crate::aggregate::{Aggregate, DecisionContext, ErasedAggregate, MessageTypeId, SnapshotFormat, TypedAggregate};
use crate::decision_model::{DecisionModel, ErasedDecisionModel, LastOfFilter, TypedDecisionModel};
use crate::error::ModelError;
use crate::handler::{CommandHandler, HandlerContext, HandlerError, Interruption, InterruptionReason, Workspace};
use crate::identity::{AggregateId, TypeKey};
use crate::interceptor::HandlerInterceptor;
use crate::names::{EventLayout, MessageRole, TypeNames};
use crate::snapshots::SnapshotPolicy;
use gapless_message::{Message, MessageError};
use rustc_hash::{FxHashMap, FxHashSet};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The types that a bus uses.
#[derive(Default)]
#[must_use = "a model does nothing by itself"]
pub struct CommandModel {
    aggregates: Vec<Box<dyn ErasedAggregate>>,
    handlers: Vec<(MessageTypeId, Box<dyn ErasedHandler>)>,
    decision_models: Vec<(TypeId, Arc<dyn ErasedDecisionModel>)>,
    events: Vec<MessageTypeId>,
    messages: Vec<MessageTypeId>,
    names: TypeNames,
    event_layouts: Vec<EventLayout>,
    ambiguous: FxHashSet<TypeKey>,
    interceptors: Vec<Box<dyn HandlerInterceptor>>,
    /// `None`: only version 1.
    versions: Option<RangeInclusive<u32>>,
}

impl std::fmt::Debug for CommandModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.aggregates.iter().map(|aggregate| aggregate.name()).collect();
        let handled: Vec<_> = self.handlers.iter().map(|(command, _)| command.name).collect();
        f.debug_struct("CommandModel").field("aggregates", &names).field("handled", &handled).finish()
    }
}

impl CommandModel {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a type of aggregates.
    pub fn aggregate<A: Aggregate>(self) -> Self {
        self.with::<A>(None)
    }

    /// Adds a type with snapshot files, for aggregates with many events. Files of the same layout and version are read:
    /// raise the version whenever *apply* yields another state for the same events.
    pub fn aggregate_with_snapshots<A: Aggregate + Message>(self, policy: SnapshotPolicy) -> Self {
        self.with::<A>(Some(SnapshotFormat::of::<A>(policy)))
    }

    fn with<A: Aggregate>(mut self, snapshot_format: Option<SnapshotFormat>) -> Self {
        self.aggregates.push(Box::new(TypedAggregate::<A>::new(snapshot_format)));
        self.messages.extend([
            MessageTypeId::of::<A::Command>(),
            MessageTypeId::of::<A::Event>(),
            MessageTypeId::of::<A::Refusal>(),
        ]);
        self.names.add_aggregate(A::NAME, A::Id::FORM);
        self.add_name::<A::Command>(MessageRole::Command);
        self.add_name::<A::Event>(MessageRole::Event);
        self.add_name::<A::Refusal>(MessageRole::Refusal);
        self.event_layouts.push(EventLayout::of::<A::Event>());
        self
    }

    fn add_name<M: Message>(&mut self, role: MessageRole) {
        if !self.names.add_message::<M>(role) {
            self.ambiguous.insert(TypeKey::of(M::TYPE_NAME));
        }
    }

    /// Adds a handler.
    pub fn handler<H: CommandHandler>(mut self, handler: H) -> Self {
        self.handlers.push((MessageTypeId::of::<H::Command>(), Box::new(handler)));
        self.messages.extend([
            MessageTypeId::of::<H::Command>(),
            MessageTypeId::of::<H::Reply>(),
            MessageTypeId::of::<H::Refusal>(),
        ]);
        self.add_name::<H::Command>(MessageRole::Command);
        self.add_name::<H::Reply>(MessageRole::Reply);
        self.add_name::<H::Refusal>(MessageRole::Refusal);
        self
    }

    /// Adds a type of events for [`HandlerContext::record`].
    pub fn event<E: Message>(mut self) -> Self {
        self.events.push(MessageTypeId::of::<E>());
        self.messages.push(MessageTypeId::of::<E>());
        self.add_name::<E>(MessageRole::Event);
        self.event_layouts.push(EventLayout::of::<E>());
        self
    }

    /// Adds a type of decision models for [`HandlerContext::read`].
    pub fn decision_model<M: DecisionModel>(mut self) -> Self {
        self.decision_models.push((TypedDecisionModel::<M>::id(), Arc::new(TypedDecisionModel::<M>::new())));
        self
    }

    /// Adds an interceptor of all commands, after the others.
    pub fn interceptor(mut self, interceptor: impl HandlerInterceptor) -> Self {
        self.interceptors.push(Box::new(interceptor));
        self
    }

    /// Sets the versions, by default 1 alone. The service acts as the version of the last mark in the stream, which an
    /// operator has the leader append once every member has it; see [`Aggregate::event_version`]. A program without it
    /// stops at the mark.
    pub fn versions(mut self, versions: RangeInclusive<u32>) -> Self {
        self.versions = Some(versions);
        self
    }

    pub(crate) fn finish(mut self) -> Result<CheckedModel, ModelError> {
        let versions = self.versions.take().unwrap_or(1..=1);
        if versions.is_empty() || *versions.start() == 0 || *versions.end() > u16::MAX.into() {
            return Err(ModelError::Versions { first: *versions.start(), last: *versions.end() });
        }
        let mut names = BTreeMap::new();
        for message in &self.messages {
            if u16::try_from(message.version).is_err() || message.version == 0 {
                return Err(ModelError::Version { name: message.name, version: message.version });
            }
            distinct(&mut names, message.key, message.name)?;
        }
        for aggregate in &mut self.aggregates {
            let newest = aggregate.event();
            for version in versions.clone() {
                aggregate.become_version(version);
                let written = aggregate.event().version;
                if !(1..=newest.version).contains(&written) {
                    return Err(ModelError::Version { name: newest.name, version: written });
                }
            }
        }
        let mut by_key = FxHashMap::default();
        let mut names = BTreeMap::new();
        for (index, aggregate) in self.aggregates.iter().enumerate() {
            distinct(&mut names, aggregate.key(), aggregate.name())?;
            if by_key.insert(aggregate.key(), index).is_some() {
                return Err(ModelError::Twice(aggregate.name()));
            }
        }
        let mut handlers = FxHashMap::default();
        for (command, handler) in std::mem::take(&mut self.handlers) {
            if handlers.insert(command.key, handler).is_some() {
                return Err(ModelError::Twice(command.name));
            }
        }
        let events = self.events.iter().map(|event| event.key).collect();
        let decision_models = DecisionModelTypes::new(std::mem::take(&mut self.decision_models))?;
        let snapshots_every = self.aggregates.iter().map(|aggregate| {
            let events = aggregate.snapshot_format().map_or(0, |files| files.policy.events);
            if events == 0 { 0 } else { u64::from(events).next_power_of_two() }
        });
        let snapshots_every = snapshots_every.collect();
        let aggregates = AggregateTypes { all: std::mem::take(&mut self.aggregates), by_key, snapshots_every };
        let Self { interceptors, names, mut event_layouts, ambiguous, .. } = self;
        event_layouts.retain(|layout| !ambiguous.contains(&layout.key()));
        Ok(CheckedModel { aggregates, handlers, events, decision_models, interceptors, versions, names, event_layouts })
    }
}

/// A name may appear twice, because two aggregates may share a message.
fn distinct(names: &mut BTreeMap<TypeKey, &'static str>, key: TypeKey, name: &'static str) -> Result<(), ModelError> {
    match names.insert(key, name) {
        Some(other) if other != name => Err(ModelError::SameKey(other, name)),
        _ => Ok(()),
    }
}

pub(crate) struct CheckedModel {
    pub aggregates: AggregateTypes,
    pub handlers: FxHashMap<TypeKey, Box<dyn ErasedHandler>>,
    pub interceptors: Vec<Box<dyn HandlerInterceptor>>,
    pub versions: RangeInclusive<u32>,
    /// Types of events without an aggregate.
    pub events: FxHashSet<TypeKey>,
    pub decision_models: DecisionModelTypes,
    /// Names of the model and of the stream.
    pub names: TypeNames,
    pub event_layouts: Vec<EventLayout>,
}

pub(crate) struct DecisionModelTypes {
    pub all: Vec<Arc<dyn ErasedDecisionModel>>,
    by_id: FxHashMap<TypeId, usize>,
}

impl DecisionModelTypes {
    /// Index of [`LastOfFilter`].
    pub const LAST_OF_FILTER: usize = 0;

    fn new(types: Vec<(TypeId, Arc<dyn ErasedDecisionModel>)>) -> Result<Self, ModelError> {
        let (mut all, mut by_id): (Vec<Arc<dyn ErasedDecisionModel>>, _) = (Vec::new(), FxHashMap::default());
        all.push(Arc::new(LastOfFilter));
        for (id, model) in types {
            if by_id.insert(id, all.len()).is_some() {
                return Err(ModelError::Twice(model.name()));
            }
            all.push(model);
        }
        Ok(Self { all, by_id })
    }

    /// The application has any.
    pub fn has_any(&self) -> bool {
        !self.by_id.is_empty()
    }

    pub fn find(&self, id: TypeId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }
}

pub(crate) struct AggregateTypes {
    pub all: Vec<Box<dyn ErasedAggregate>>,
    by_key: FxHashMap<TypeKey, usize>,
    /// Snapshot interval in events; a power of two, or 0.
    pub snapshots_every: Vec<u64>,
}

impl AggregateTypes {
    /// Sets the version as which the service acts.
    pub fn become_version(&mut self, version: u32) {
        self.all.iter_mut().for_each(|aggregate| aggregate.become_version(version));
    }

    #[inline]
    pub fn find(&self, key: TypeKey) -> Option<usize> {
        match &self.all[..] {
            [only] => (only.key() == key).then_some(0),
            _ => self.by_key.get(&key).copied(),
        }
    }
}

#[derive(Debug)]
pub(crate) enum HandlerResult {
    Done(MessageTypeId, Vec<u8>),
    Refused(MessageTypeId, Vec<u8>),
    Interrupted(InterruptionReason),
    NoCommand(MessageError),
}

pub(crate) trait ErasedHandler: Send {
    fn handle(
        &self,
        version: u32,
        bytes: &[u8],
        context: DecisionContext<'_>,
        workspace: &mut dyn Workspace,
    ) -> HandlerResult;
}

impl<H: CommandHandler> ErasedHandler for H {
    fn handle(
        &self,
        version: u32,
        bytes: &[u8],
        context: DecisionContext<'_>,
        workspace: &mut dyn Workspace,
    ) -> HandlerResult {
        let command = match H::Command::decode_as(version, bytes) {
            Ok(command) => command,
            Err(error) => return HandlerResult::NoCommand(error),
        };
        match CommandHandler::handle(self, command, &mut HandlerContext { context, workspace }) {
            Ok(reply) => encode_result(&reply, HandlerResult::Done),
            Err(HandlerError::Refused(refusal)) => encode_result(&refusal, HandlerResult::Refused),
            Err(HandlerError::Interrupted(Interruption(interrupted))) => HandlerResult::Interrupted(interrupted),
        }
    }
}

fn encode_result<M: Message>(
    message: &M,
    handled: impl FnOnce(MessageTypeId, Vec<u8>) -> HandlerResult,
) -> HandlerResult {
    let mut bytes = Vec::new();
    match message.encode(&mut bytes) {
        Ok(()) => handled(MessageTypeId::of::<M>(), bytes),
        Err(error) => HandlerResult::Interrupted(InterruptionReason::Impossible(error.to_string())),
    }
}
