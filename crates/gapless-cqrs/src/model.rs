//! [`CommandModel`]: which aggregates and handlers there are.

use crate::aggregate::{Aggregate, Circumstances, ErasedAggregate, MessageType, StateFiles, TypedAggregate};
use crate::decision_model::{DecisionModel, ErasedDecisionModel, LastOfFilter, TypedDecisionModel};
use crate::error::ModelError;
use crate::handler::{CommandHandler, Interrupted, Interruption, Stop, Work, Workspace};
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

/// Which aggregates and handlers there are: what the writer decides with.
#[derive(Default)]
#[must_use = "a model does nothing by itself"]
pub struct CommandModel {
    aggregates: Vec<Box<dyn ErasedAggregate>>,
    handlers: Vec<(MessageType, Box<dyn ErasedHandler>)>,
    decision_models: Vec<(TypeId, Arc<dyn ErasedDecisionModel>)>,
    /// Of no aggregate.
    events: Vec<MessageType>,
    messages: Vec<MessageType>,
    names: TypeNames,
    event_layouts: Vec<EventLayout>,
    /// Names that several types of different layouts have.
    ambiguous: FxHashSet<TypeKey>,
    interceptors: Vec<Box<dyn HandlerInterceptor>>,
    /// Without any, version 1 alone.
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
    /// A model of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a type of aggregates.
    pub fn aggregate<A: Aggregate>(self) -> Self {
        self.with::<A>(None)
    }

    /// With a type of aggregates whose states are kept in files by the way: one with many events is not made of all of them. The state is a
    /// message. Files are read by a program with the same layout and version of it: the version grows whenever *apply* makes something else of the
    /// same events.
    pub fn aggregate_with_snapshots<A: Aggregate + Message>(self, policy: SnapshotPolicy) -> Self {
        self.with::<A>(Some(StateFiles::of::<A>(policy)))
    }

    fn with<A: Aggregate>(mut self, state_files: Option<StateFiles>) -> Self {
        self.aggregates.push(Box::new(TypedAggregate::<A>::new(state_files)));
        self.messages.extend([
            MessageType::of::<A::Command>(),
            MessageType::of::<A::Event>(),
            MessageType::of::<A::Refusal>(),
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

    /// With a handler of commands that are no single aggregate's.
    pub fn handler<H: CommandHandler>(mut self, handler: H) -> Self {
        self.handlers.push((MessageType::of::<H::Command>(), Box::new(handler)));
        self.messages.extend([
            MessageType::of::<H::Command>(),
            MessageType::of::<H::Reply>(),
            MessageType::of::<H::Refusal>(),
        ]);
        self.add_name::<H::Command>(MessageRole::Command);
        self.add_name::<H::Reply>(MessageRole::Reply);
        self.add_name::<H::Refusal>(MessageRole::Refusal);
        self
    }

    /// With events of a type that are no aggregate's, for [`Work::record`].
    pub fn event<E: Message>(mut self) -> Self {
        self.events.push(MessageType::of::<E>());
        self.messages.push(MessageType::of::<E>());
        self.add_name::<E>(MessageRole::Event);
        self.event_layouts.push(EventLayout::of::<E>());
        self
    }

    /// With a type of decision models, for [`Work::read`].
    pub fn decision_model<M: DecisionModel>(mut self) -> Self {
        self.decision_models.push((TypedDecisionModel::<M>::id(), Arc::new(TypedDecisionModel::<M>::new())));
        self
    }

    /// With an interceptor of all its commands, behind those that were added before.
    pub fn interceptor(mut self, interceptor: impl HandlerInterceptor) -> Self {
        self.interceptors.push(Box::new(interceptor));
        self
    }

    /// With these versions of the model, instead of 1 alone. Which of them the stream's service acts as, a mark in the stream says, which an operator
    /// has the one that leads append when every member has the version; [`Aggregate::event_version`] says what that changes. A program without it stops there.
    pub fn versions(mut self, versions: RangeInclusive<u32>) -> Self {
        self.versions = Some(versions);
        self
    }

    /// Looks whether the stream can tell everything apart.
    pub(crate) fn finish(mut self) -> Result<Model, ModelError> {
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
            let events = aggregate.state_files().map_or(0, |files| files.policy.events);
            if events == 0 { 0 } else { u64::from(events).next_power_of_two() }
        });
        let snapshots_every = snapshots_every.collect();
        let aggregates = Aggregates { all: std::mem::take(&mut self.aggregates), by_key, snapshots_every };
        let Self { interceptors, names, mut event_layouts, ambiguous, .. } = self;
        event_layouts.retain(|layout| !ambiguous.contains(&layout.key()));
        Ok(Model { aggregates, handlers, events, decision_models, interceptors, versions, names, event_layouts })
    }
}

/// The same name may come twice: two aggregates may share a message.
fn distinct(names: &mut BTreeMap<TypeKey, &'static str>, key: TypeKey, name: &'static str) -> Result<(), ModelError> {
    match names.insert(key, name) {
        Some(other) if other != name => Err(ModelError::SameKey(other, name)),
        _ => Ok(()),
    }
}

/// A model that was looked at.
pub(crate) struct Model {
    pub aggregates: Aggregates,
    pub handlers: FxHashMap<TypeKey, Box<dyn ErasedHandler>>,
    pub interceptors: Vec<Box<dyn HandlerInterceptor>>,
    pub versions: RangeInclusive<u32>,
    /// Of no aggregate.
    pub events: FxHashSet<TypeKey>,
    pub decision_models: DecisionModelTypes,
    /// What types are called, here and in the stream.
    pub names: TypeNames,
    pub event_layouts: Vec<EventLayout>,
}

/// The types of decision models.
pub(crate) struct DecisionModelTypes {
    pub all: Vec<Arc<dyn ErasedDecisionModel>>,
    by_id: FxHashMap<TypeId, usize>,
}

impl DecisionModelTypes {
    /// The index of [`LastOfFilter`].
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

    /// Whether the application has any.
    pub fn has_any(&self) -> bool {
        !self.by_id.is_empty()
    }

    /// The index of a type.
    pub fn find(&self, id: TypeId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }
}

/// The types of aggregates.
pub(crate) struct Aggregates {
    pub all: Vec<Box<dyn ErasedAggregate>>,
    by_key: FxHashMap<TypeKey, usize>,
    /// A snapshot is due when so many events have come; a power of two, or 0.
    pub snapshots_every: Vec<u64>,
}

impl Aggregates {
    /// The stream's service acts as this version from now on.
    pub fn become_version(&mut self, version: u32) {
        self.all.iter_mut().for_each(|aggregate| aggregate.become_version(version));
    }

    /// The index of a type.
    #[inline]
    pub fn find(&self, key: TypeKey) -> Option<usize> {
        match &self.all[..] {
            [only] => (only.key() == key).then_some(0),
            _ => self.by_key.get(&key).copied(),
        }
    }
}

/// What a handler's call gives.
#[derive(Debug)]
pub(crate) enum Handled {
    /// Its reply.
    Done(MessageType, Vec<u8>),
    Refused(MessageType, Vec<u8>),
    Interrupted(Interrupted),
    NoCommand(MessageError),
}

/// A handler without its types.
pub(crate) trait ErasedHandler: Send {
    fn handle(
        &self,
        version: u32,
        bytes: &[u8],
        circumstances: Circumstances<'_>,
        workspace: &mut dyn Workspace,
    ) -> Handled;
}

impl<H: CommandHandler> ErasedHandler for H {
    fn handle(
        &self,
        version: u32,
        bytes: &[u8],
        circumstances: Circumstances<'_>,
        workspace: &mut dyn Workspace,
    ) -> Handled {
        let command = match H::Command::decode_as(version, bytes) {
            Ok(command) => command,
            Err(error) => return Handled::NoCommand(error),
        };
        match CommandHandler::handle(self, command, &mut Work { circumstances, workspace }) {
            Ok(reply) => encoded(&reply, Handled::Done),
            Err(Stop::Refused(refusal)) => encoded(&refusal, Handled::Refused),
            Err(Stop::Interrupted(Interruption(interrupted))) => Handled::Interrupted(interrupted),
        }
    }
}

fn encoded<M: Message>(message: &M, handled: impl FnOnce(MessageType, Vec<u8>) -> Handled) -> Handled {
    let mut bytes = Vec::new();
    match message.encode(&mut bytes) {
        Ok(()) => handled(MessageType::of::<M>(), bytes),
        Err(error) => Handled::Interrupted(Interrupted::Impossible(error.to_string())),
    }
}
