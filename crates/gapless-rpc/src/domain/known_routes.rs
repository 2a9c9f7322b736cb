//! [`KnownRoute`]: what other processes serve, as far as this one knows, or finds out by asking them.

use super::calling::identity_of;
use super::opening::Domain;
use crate::error::RpcError;
use crate::message::described::TypeDescription;
use crate::route_name::HIDDEN_PREFIX;
use gapless_registry::{Answers, DomainDirectory, Instance, PeerProcess, Place, RouteDescription, RouteState};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a process has to answer.
const ANSWER_MAX: Duration = Duration::from_millis(500);

/// A route that a copy of another process serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRoute {
    /// Its name.
    pub route: String,
    /// Whether the copy takes calls.
    pub state: KnownRouteState,
    /// The copy's process id.
    pub process_id: u32,
    /// The name that the process gave itself; `None` if the process has told nothing.
    pub process_name: Option<String>,
    /// The application's version of the route.
    pub version: String,
    /// Pairs of name and value by which the application describes the route.
    pub metadata: Vec<(String, String)>,
    /// The types of request and reply, displayed as `Order v2`; `None` if the process has told nothing.
    pub types: Option<(TypeDescription, TypeDescription)>,
    /// Threads or tasks that serve it in that copy; 0 if the process has told nothing.
    pub workers: u32,
    /// The copy's number, the same for every process of the domain, by which keys are shared out; 0 if the process has told nothing.
    pub identity: u64,
    /// The instances elsewhere that the copy stands for ([`crate::relay`]); none for an ordinary copy.
    pub stands_for: Vec<Instance>,
}

/// The state of a copy of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownRouteState {
    /// It takes calls.
    Open,
    /// It takes no calls until it is resumed.
    Suspended,
    /// It takes no calls, and finishes those that have begun.
    Draining,
    /// It was drained by [`Domain::drain_route`], or has gone meanwhile.
    Gone,
    /// Its process lives and does not answer.
    NotAnswering,
}

impl KnownRouteState {
    /// In words: `open`, `suspended`, `draining`, `gone` or `not answering`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Suspended => "suspended",
            Self::Draining => "draining",
            Self::Gone => "gone",
            Self::NotAnswering => "not answering",
        }
    }
}

/// The routes of other processes, by route and process, and the processes that do not answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownRoutes {
    /// The routes that are known. Those of a process that does not answer are [`KnownRouteState::NotAnswering`].
    pub routes: Vec<KnownRoute>,
    /// Process ids of the processes that serve, live and do not answer, in ascending order. Of some of them no route is known.
    pub silent_processes: Vec<u32>,
}

impl KnownRoute {
    /// A route that a process has told of.
    pub(super) fn new(process: &PeerProcess, route: RouteDescription) -> Self {
        Self {
            route: route.name,
            state: match route.state {
                RouteState::Open => KnownRouteState::Open,
                RouteState::Suspended => KnownRouteState::Suspended,
                RouteState::Draining => KnownRouteState::Draining,
                RouteState::Gone => KnownRouteState::Gone,
            },
            process_id: process.process_id,
            process_name: Some(process.name.clone()),
            version: route.version,
            metadata: route.metadata,
            types: Some((route.request, route.reply)),
            workers: route.workers,
            identity: identity_of(process),
            stands_for: route.stands_for,
        }
    }

    /// A route that a process counts, which has told nothing and does not answer.
    fn of_silent(route: String, process_id: u32) -> Self {
        let (state, version, metadata) = (KnownRouteState::NotAnswering, String::new(), Vec::new());
        let (process_name, types, workers, identity, stands_for) = (None, None, 0, 0, Vec::new());
        Self { route, state, process_id, process_name, version, metadata, types, workers, identity, stands_for }
    }

    /// True for a route of the library itself: one on which a process receives notices, or a bridge is asked for its status.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.route.starts_with(HIDDEN_PREFIX)
    }
}

impl Domain {
    /// The routes that other processes serve, as they are known after `timeout` at most. Each process is asked whether it answers now, for
    /// half a second at most. The routes of a process that does not answer are those that it has told before; if it has told nothing,
    /// those that it counts.
    ///
    /// # Errors
    /// A directory that cannot be watched or listed; a process or a machine without descriptors.
    pub fn routes(&self, timeout: Duration) -> Result<KnownRoutes, RpcError> {
        self.shared.check_process()?;
        let Some(machine) = &self.shared.machine else { return Ok(KnownRoutes::default()) };
        machine.io.discover()?;
        let until = Instant::now() + timeout;
        let Answers { answering, silent: mut silent_processes } = machine.io.answers(timeout.min(ANSWER_MAX))?;
        silent_processes.sort_unstable();
        machine.calling.wait_until_discovered(&answering, until.saturating_duration_since(Instant::now()));
        let mut routes = self.known_routes();
        let not_answering = routes.iter_mut().filter(|route| silent_processes.contains(&route.process_id));
        not_answering.for_each(|route| route.state = KnownRouteState::NotAnswering);
        if !silent_processes.is_empty() {
            let is_unheard = |process_id| !routes.iter().any(|route| route.process_id == process_id);
            let counted = self.copy_statistics()?.into_iter().map(|copy| (copy.route, copy.process_id));
            let counted =
                counted.filter(|(_, process_id)| silent_processes.contains(process_id) && is_unheard(*process_id));
            let unheard: Vec<_> = counted.map(|(route, process_id)| KnownRoute::of_silent(route, process_id)).collect();
            routes.extend(unheard);
        }
        routes.sort_by(|a, b| (&a.route, a.process_id).cmp(&(&b.route, b.process_id)));
        Ok(KnownRoutes { routes, silent_processes })
    }

    /// The routes that other processes have told of by now, since this process has begun to look ([`Domain::watch_routes`], a call), without
    /// [hidden](KnownRoute::is_hidden) ones. Nobody is asked: the routes of a process that is stopped are as they were.
    #[must_use]
    pub fn offered_routes(&self) -> Vec<KnownRoute> {
        if self.shared.check_process().is_err() {
            return Vec::new();
        }
        let mut routes = self.known_routes();
        routes.retain(|route| !route.is_hidden());
        routes
    }

    fn known_routes(&self) -> Vec<KnownRoute> {
        let told = self.shared.machine.iter().flat_map(|machine| machine.calling.routes());
        told.map(|(process, route)| KnownRoute::new(&process, route)).collect()
    }

    /// The processes that serve in the domain of this directory, live, and do not answer within `timeout`, for a program that does not open
    /// the domain.
    ///
    /// # Errors
    /// A directory that is no domain of this user, or cannot be listed.
    pub fn silent_processes(directory: impl Into<PathBuf>, timeout: Duration) -> Result<Vec<u32>, RpcError> {
        let directory = DomainDirectory::open(&Place::Path(directory.into()), None)?;
        Ok(Answers::ask(&directory, None, timeout)?.silent)
    }
}
