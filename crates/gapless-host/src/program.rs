//! Programs of a host: [`Services`], and `Aggregates` with the feature `cqrs`.

use crate::HostError;
use crate::node::NodeService;
#[cfg(feature = "cluster")]
use crate::options::HostOptions;
use crate::options::ProgramKind;
use gapless_client::node::AnyLink;
#[cfg(feature = "cluster")]
use gapless_cluster::config::ClusterConfig;
#[cfg(feature = "cluster")]
use gapless_engine::Replica;
use gapless_engine::store::Store;
use gapless_engine::{Service, ServiceHost, ServiceHostOptions, StateService, StreamService, StreamServiceOptions};
#[cfg(feature = "cluster")]
use gapless_message::state;
use gapless_message::state::State;
use std::sync::Arc;

/// A service or a replicated state, as program of a [`Host`](crate::Host).
pub struct Services(pub(crate) Box<dyn Program>);

/// Aggregates and handlers, as program of a [`Host`](crate::Host).
#[cfg(feature = "cqrs")]
pub struct Aggregates {
    pub(crate) model: gapless_cqrs::CommandModel,
    pub(crate) options: gapless_cqrs::AggregateOptions,
}

type Node = Box<dyn NodeService>;

fn node_of<S: Service>(service: S, link: AnyLink, options: StreamServiceOptions) -> Result<Node, HostError> {
    Ok(Box::new(StreamService::new(service, link, options)?))
}

/// Starts services of one type, as often as a member needs.
pub(crate) trait Program: Send {
    fn kind(&self) -> ProgramKind;

    fn start(&mut self, options: ServiceHostOptions) -> Result<ServiceHost, HostError>;

    /// `None`: the program cannot be a node.
    ///
    /// # Errors
    /// The directory of the node cannot be read, or its snapshot cannot be used.
    fn start_node(&mut self, link: AnyLink, options: StreamServiceOptions) -> Option<Result<Node, HostError>>;

    #[cfg(feature = "cluster")]
    fn start_member(&mut self, options: &HostOptions, config: &ClusterConfig) -> Result<Replica, HostError>;
}

/// Writes the initial state at the first start on a member, because a later one begins with it, too.
pub(crate) struct FromInitial<S> {
    initial: Option<S>,
    #[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "only members start again"))]
    written: Vec<u8>,
}

impl<S: Service + State> FromInitial<S> {
    pub const fn new(initial: S) -> Self {
        Self { initial: Some(initial), written: Vec::new() }
    }

    #[cfg(feature = "cluster")]
    fn make(&mut self) -> Result<S, HostError> {
        if let Some(initial) = self.initial.take() {
            state::write(&initial, &mut self.written);
            return Ok(initial);
        }
        Ok(state::read(&self.written)?)
    }
}

impl<S: Service + State> Program for FromInitial<S> {
    fn kind(&self) -> ProgramKind {
        ProgramKind::Service
    }

    fn start(&mut self, options: ServiceHostOptions) -> Result<ServiceHost, HostError> {
        let initial = self.initial.take().expect("a stream of its own starts once");
        Ok(ServiceHost::start(initial, options)?)
    }

    fn start_node(&mut self, link: AnyLink, options: StreamServiceOptions) -> Option<Result<Node, HostError>> {
        let initial = self.initial.take().expect("a node starts once");
        Some(node_of(initial, link, options))
    }

    #[cfg(feature = "cluster")]
    fn start_member(&mut self, options: &HostOptions, config: &ClusterConfig) -> Result<Replica, HostError> {
        Ok(Replica::start(self.make()?, options.of_replica(), config)?)
    }
}

pub(crate) struct FromFunction<F>(pub F);

impl<S: Service, F: FnMut() -> S + Send> Program for FromFunction<F> {
    fn kind(&self) -> ProgramKind {
        ProgramKind::Service
    }

    fn start(&mut self, options: ServiceHostOptions) -> Result<ServiceHost, HostError> {
        Ok(ServiceHost::start((self.0)(), options)?)
    }

    fn start_node(&mut self, link: AnyLink, options: StreamServiceOptions) -> Option<Result<Node, HostError>> {
        Some(node_of((self.0)(), link, options))
    }

    #[cfg(feature = "cluster")]
    fn start_member(&mut self, options: &HostOptions, config: &ClusterConfig) -> Result<Replica, HostError> {
        Ok(Replica::start((self.0)(), options.of_replica(), config)?)
    }
}

pub(crate) struct OfState<F>(pub Arc<F>);

impl<S: StateService, F: Fn(&mut Store) -> S + Send + Sync + 'static> Program for OfState<F> {
    fn kind(&self) -> ProgramKind {
        ProgramKind::State
    }

    fn start(&mut self, options: ServiceHostOptions) -> Result<ServiceHost, HostError> {
        let make = Arc::clone(&self.0);
        Ok(ServiceHost::start_state(move |store| make(store), options)?)
    }

    fn start_node(&mut self, _: AnyLink, _: StreamServiceOptions) -> Option<Result<Node, HostError>> {
        None
    }

    #[cfg(feature = "cluster")]
    fn start_member(&mut self, options: &HostOptions, config: &ClusterConfig) -> Result<Replica, HostError> {
        let make = Arc::clone(&self.0);
        Ok(Replica::start_state(move |store| make(store), options.of_replicated_state(), config)?)
    }
}
