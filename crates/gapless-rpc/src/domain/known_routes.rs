//! `KnownRoute`: routes of other processes, as far as this process knows or learns by asking.

use super::opening::Domain;
use super::route_tables::identity_of;
use crate::error::RpcError;
use crate::message::described::TypeDescription;
use crate::registry::{DomainDirectory, DomainLocation, Instance, Liveness, PeerProcess, RouteDescription, RouteState};
use crate::route_name::HIDDEN_PREFIX;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const ANSWER_MAX: Duration = Duration::from_millis(500);

/// A route served by an instance in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRoute {
    pub route: String,
    pub state: KnownRouteState,
    pub process_id: u32,
    /// Name that the process gave itself; `None` without an announcement.
    pub process_name: Option<String>,
    /// The application's version of the route.
    pub version: String,
    /// Metadata of the application, as pairs of name and value.
    pub metadata: Vec<(String, String)>,
    /// Types of request and reply, displayed as `Order v2`; `None` without an announcement.
    pub types: Option<(TypeDescription, TypeDescription)>,
    /// Threads or tasks that serve it in this instance; 0 without an announcement.
    pub workers: u32,
    /// Number of the instance, equal for every process of the domain, used to distribute keys; 0 without an
    /// announcement.
    pub identity: u64,
    /// Instances in other domains that this one relays to ([`crate::relay`]), if any.
    pub stands_for: Vec<Instance>,
}

/// State of an instance of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownRouteState {
    Open,
    /// Takes no calls until it is resumed.
    Suspended,
    /// Takes no calls, and finishes those that have begun.
    Draining,
    /// Drained by [`Domain::drain_route`], or gone meanwhile.
    Gone,
    /// The process is alive and does not answer.
    NotAnswering,
}

impl KnownRouteState {
    /// Text form: `open`, `suspended`, `draining`, `gone` or `not answering`.
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

/// Routes of other processes, by route and process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownRoutes {
    /// Routes of a process that does not answer are [`KnownRouteState::NotAnswering`].
    pub routes: Vec<KnownRoute>,
    /// Process ids of living serving processes that do not answer, ascending, also without a known route.
    pub silent_processes: Vec<u32>,
}

impl KnownRoute {
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

    fn of_silent(route: String, process_id: u32) -> Self {
        let (state, version, metadata) = (KnownRouteState::NotAnswering, String::new(), Vec::new());
        let (process_name, types, workers, identity, stands_for) = (None, None, 0, 0, Vec::new());
        Self { route, state, process_id, process_name, version, metadata, types, workers, identity, stands_for }
    }

    /// True for a route of the library itself, such as notices or the status of a bridge.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.route.starts_with(HIDDEN_PREFIX)
    }
}

impl Domain {
    /// Routes of other processes, as known after `timeout` at most. Each process is asked for a sign of life, for half
    /// a second at most; one that does not answer has the routes announced before, or else those in its counter files.
    ///
    /// # Errors
    /// The directory cannot be watched or listed, or the process or the machine has no descriptors left.
    pub fn routes(&self, timeout: Duration) -> Result<KnownRoutes, RpcError> {
        self.shared.check_process()?;
        let Some(machine) = &self.shared.machine else { return Ok(KnownRoutes::default()) };
        machine.io.discover()?;
        let until = Instant::now() + timeout;
        let Liveness { answering, silent: mut silent_processes } = machine.io.answers(timeout.min(ANSWER_MAX))?;
        silent_processes.sort_unstable();
        machine.calling.wait_until_discovered(&answering, until.saturating_duration_since(Instant::now()));
        let mut routes = self.known_routes();
        let not_answering = routes.iter_mut().filter(|route| silent_processes.contains(&route.process_id));
        not_answering.for_each(|route| route.state = KnownRouteState::NotAnswering);
        if !silent_processes.is_empty() {
            let is_unknown = |process_id| !routes.iter().any(|route| route.process_id == process_id);
            let counted = self.instance_statistics()?.into_iter().map(|instance| (instance.route, instance.process_id));
            let counted =
                counted.filter(|(_, process_id)| silent_processes.contains(process_id) && is_unknown(*process_id));
            let unknown_servers: Vec<_> =
                counted.map(|(route, process_id)| KnownRoute::of_silent(route, process_id)).collect();
            routes.extend(unknown_servers);
        }
        routes.sort_by(|a, b| (&a.route, a.process_id).cmp(&(&b.route, b.process_id)));
        Ok(KnownRoutes { routes, silent_processes })
    }

    /// Routes that other processes have announced since this process began to look ([`Domain::watch_routes`], a call),
    /// without [hidden](KnownRoute::is_hidden) ones. No process is asked.
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

    /// Processes that serve in this directory's domain and do not answer within `timeout`; for a program that does not
    /// open the domain.
    ///
    /// # Errors
    /// The directory is no domain of this user, or cannot be listed.
    pub fn silent_processes(directory: impl Into<PathBuf>, timeout: Duration) -> Result<Vec<u32>, RpcError> {
        let directory = DomainDirectory::open(&DomainLocation::Path(directory.into()), None)?;
        Ok(Liveness::ask(&directory, None, timeout)?.silent)
    }
}
