//! `RelayBuilder` and `Relay`: a route served as bytes.

use super::request::RelayedRequest;
use crate::domain::{Domain, OfferedRelay};
use crate::error::RpcError;
use crate::message::described::TypeDescription;
use crate::registry::{Instance, RouteDescription, RouteState};
use crate::server::counters::InstanceStatistics;
use crate::server::puller::Puller;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Describes a route that is served elsewhere; [`RelayBuilder::open`] offers it here.
#[must_use = "a relay is offered when it is opened"]
#[derive(Debug)]
pub struct RelayBuilder {
    domain: Domain,
    description: RouteDescription,
}

impl Domain {
    /// Starts the description of a route whose calls this process carries elsewhere.
    pub fn relay(&self, route: &str) -> RelayBuilder {
        let description = RouteDescription {
            name: route.to_owned(),
            state: RouteState::Open,
            version: String::new(),
            metadata: Vec::new(),
            request: TypeDescription::default(),
            reply: TypeDescription::default(),
            workers: 1,
            stands_for: Vec::new(),
        };
        RelayBuilder { domain: self.clone(), description }
    }
}

impl RelayBuilder {
    /// Types of the route, as the instances elsewhere describe them; without them, callers use their own.
    pub fn describe(mut self, request: TypeDescription, reply: TypeDescription) -> Self {
        (self.description.request, self.description.reply) = (request, reply);
        self
    }

    /// The application's version of the route, for display.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.description.version = version.into();
        self
    }

    /// Adds a name and a value to the route's metadata.
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.description.metadata.push((name.into(), value.into()));
        self
    }

    /// Instances elsewhere that the relay stands for, [`INSTANCES_MAX`](super::INSTANCES_MAX) at most; without any it
    /// is an ordinary instance.
    pub fn stands_for(mut self, instances: Vec<Instance>) -> Self {
        self.description.stands_for = instances;
        self
    }

    /// Number of the route's workers elsewhere, for display; default 1.
    pub const fn workers(mut self, workers: u32) -> Self {
        self.description.workers = workers;
        self
    }

    /// Offers the route to other processes only.
    ///
    /// # Errors
    /// The name is invalid, this process serves the route already, the description is too long or has too many
    /// instances, the domain has only one process, or the machine has no memory or descriptors left.
    pub fn open(self) -> Result<Relay, RpcError> {
        let route = self.description.name.as_str().into();
        let offered = self.domain.offer_relay(self.description)?;
        Ok(Relay { puller: Puller::new(Arc::clone(offered.served())), route, offered })
    }
}

/// A route whose requests are taken as bytes. Dropping it withdraws the route; taken requests can still be answered.
#[must_use = "a relay is withdrawn when it is dropped"]
pub struct Relay {
    puller: Puller,
    route: Arc<str>,
    offered: OfferedRelay,
}

impl Relay {
    /// Name of the route.
    #[must_use]
    pub fn route(&self) -> &str {
        self.offered.route()
    }

    /// Takes the next request, if any, by class and in turn over callers. Unreadable and expired requests and queries
    /// of the relay itself are answered here.
    pub fn take(&mut self) -> Option<RelayedRequest> {
        while self.offered.is_here() {
            let claimed = self.puller.take_relayed()?;
            if let Some(request) = RelayedRequest::read(claimed, &self.route, &self.offered) {
                return Some(request);
            }
        }
        None
    }

    /// Like [`Relay::take`], for a task. `None` when the route was drained, here or by another process. After 64
    /// requests in a row it lets other tasks run.
    pub fn poll_take(&mut self, task: &mut Context<'_>) -> Poll<Option<RelayedRequest>> {
        while self.offered.is_here() {
            match self.puller.poll_take_relayed(task) {
                Poll::Ready(Some(claimed)) => {
                    if let Some(request) = RelayedRequest::read(claimed, &self.route, &self.offered) {
                        return Poll::Ready(Some(request));
                    }
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(None)
    }

    /// Replaces the instances that it stands for, [`INSTANCES_MAX`](super::INSTANCES_MAX) at most.
    ///
    /// # Errors
    /// The description is too long or has too many instances, or the domain is closed; nothing changes.
    pub fn set_stands_for(&self, instances: Vec<Instance>) -> Result<(), RpcError> {
        self.offered.change(|description| description.stands_for = instances)
    }

    /// Sets the number of the route's workers elsewhere, for display.
    ///
    /// # Errors
    /// The domain is closed.
    pub fn set_workers(&self, workers: u32) -> Result<(), RpcError> {
        self.offered.change(|description| description.workers = workers)
    }

    /// Sets the types of the route for later callers. Earlier callers keep the agreed version of the reply; without an
    /// instance that writes it, their calls end as a mismatch.
    ///
    /// # Errors
    /// As for [`Relay::set_stands_for`].
    pub fn set_description(&self, request: TypeDescription, reply: TypeDescription) -> Result<(), RpcError> {
        self.offered.change(|description| (description.request, description.reply) = (request, reply))
    }

    /// Sets version and metadata of the route, for display.
    ///
    /// # Errors
    /// As for [`Relay::set_stands_for`].
    pub fn set_metadata(&self, version: String, metadata: Vec<(String, String)>) -> Result<(), RpcError> {
        self.offered.change(|description| (description.version, description.metadata) = (version, metadata))
    }

    /// Reports whether it takes requests, now or after a resume; false once drained.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.offered.is_served()
    }

    /// Number of other processes with attached tables.
    #[must_use]
    pub fn callers(&self) -> usize {
        if self.offered.is_here() { self.offered.served().callers() } else { 0 }
    }

    /// Counters of the relay.
    #[must_use]
    pub fn statistics(&self) -> InstanceStatistics {
        self.offered.counters().statistics()
    }

    /// Takes no new requests; taken ones go on.
    pub fn drain(&self) {
        self.offered.drain();
    }
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay").field("route", &self.route()).finish_non_exhaustive()
    }
}
