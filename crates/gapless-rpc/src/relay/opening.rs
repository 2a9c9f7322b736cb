//! [`RelayBuilder`] and [`Relay`]: a route is served as bytes.

use super::request::RelayedRequest;
use crate::domain::{Domain, OfferedRelay};
use crate::error::RpcError;
use crate::message::described::TypeDescription;
use crate::remote::copy::Puller;
use crate::served::counters::CopyStatistics;
use gapless_registry::{Instance, RouteDescription, RouteState};
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
    /// Begins to describe a route whose calls this process carries elsewhere.
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
    /// The types of the route, as the copies elsewhere describe them. Callers of a newer version speak this one. Without it callers speak
    /// their own, whatever that is.
    pub fn describe(mut self, request: TypeDescription, reply: TypeDescription) -> Self {
        (self.description.request, self.description.reply) = (request, reply);
        self
    }

    /// The application's version of the route, for people.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.description.version = version.into();
        self
    }

    /// A name and a value by which the application describes the route.
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.description.metadata.push((name.into(), value.into()));
        self
    }

    /// The instances elsewhere that it stands for, [`INSTANCES_MAX`](super::INSTANCES_MAX) at most. Without any it is an ordinary copy.
    pub fn stands_for(mut self, instances: Vec<Instance>) -> Self {
        self.description.stands_for = instances;
        self
    }

    /// The workers that the route has elsewhere, for people; 1 by default.
    pub const fn workers(mut self, workers: u32) -> Self {
        self.description.workers = workers;
        self
    }

    /// Offers the route to other processes; callers of this process do not find it.
    ///
    /// # Errors
    /// A name that no route can have; a route that this process serves already; a description that is too long, or of too many instances; a
    /// domain of one process; a machine without memory or descriptors.
    pub fn open(self) -> Result<Relay, RpcError> {
        let route = self.description.name.as_str().into();
        let offered = self.domain.offer_relay(self.description)?;
        Ok(Relay { puller: Puller::new(Arc::clone(offered.served())), route, offered })
    }
}

/// A route whose requests are taken as bytes, until this is dropped: then the route is withdrawn. Requests that were taken can be answered still.
#[must_use = "a relay is withdrawn when it is dropped"]
pub struct Relay {
    /// Dropped before the offer.
    puller: Puller,
    route: Arc<str>,
    offered: OfferedRelay,
}

impl Relay {
    /// The route.
    #[must_use]
    pub fn route(&self) -> &str {
        self.offered.route()
    }

    /// The next request, in the order of classes and the turns of callers, if there is one now. What cannot be read, or is late, is answered
    /// here, and so is what a tool asks of the relay itself.
    pub fn take(&mut self) -> Option<RelayedRequest> {
        while self.offered.is_here() {
            let claimed = self.puller.take_relayed()?;
            if let Some(request) = RelayedRequest::read(claimed, &self.route, &self.offered) {
                return Some(request);
            }
        }
        None
    }

    /// As [`Relay::take`] for a task, which is woken when there may be a request. `None`: there will be no more, because the route was drained,
    /// here or by another process. After 64 requests in a row it gives other tasks their turn.
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

    /// Stands for these instances from now on, [`INSTANCES_MAX`](super::INSTANCES_MAX) at most; all callers are told.
    ///
    /// # Errors
    /// A description that is too long, or of too many instances; a domain that is closed. It stands for the same instances as before then.
    pub fn set_stands_for(&self, instances: Vec<Instance>) -> Result<(), RpcError> {
        self.offered.change(|description| description.stands_for = instances)
    }

    /// Sets the number of workers that the route has elsewhere, for people.
    ///
    /// # Errors
    /// A domain that is closed.
    pub fn set_workers(&self, workers: u32) -> Result<(), RpcError> {
        self.offered.change(|description| description.workers = workers)
    }

    /// The types of the route, for callers that come from now on. Those that have called keep the version of the reply on which they have
    /// agreed: where no copy elsewhere writes it any more, their calls end as a mismatch.
    ///
    /// # Errors
    /// As of [`Relay::set_stands_for`].
    pub fn set_description(&self, request: TypeDescription, reply: TypeDescription) -> Result<(), RpcError> {
        self.offered.change(|description| (description.request, description.reply) = (request, reply))
    }

    /// The application's version of the route, and the names and values by which it describes it, for people; all callers are told.
    ///
    /// # Errors
    /// As of [`Relay::set_stands_for`].
    pub fn set_metadata(&self, version: String, metadata: Vec<(String, String)>) -> Result<(), RpcError> {
        self.offered.change(|description| (description.version, description.metadata) = (version, metadata))
    }

    /// Whether it takes requests, now or when another process resumes it. Not once it was drained.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.offered.is_served()
    }

    /// Other processes that have called, and have not gone.
    #[must_use]
    pub fn callers(&self) -> usize {
        if self.offered.is_here() { self.offered.served().callers() } else { 0 }
    }

    /// Counters of the relay.
    #[must_use]
    pub fn statistics(&self) -> CopyStatistics {
        self.offered.counters().statistics()
    }

    /// Takes nothing new from now on, and tells callers so. Requests that were taken go on.
    pub fn drain(&self) {
        self.offered.drain();
    }
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay").field("route", &self.route()).finish_non_exhaustive()
    }
}
