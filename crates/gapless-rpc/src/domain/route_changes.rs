//! Suspending, resuming and draining routes of other processes.

use super::known_routes::KnownRoute;
use super::opening::Domain;
use crate::error::RpcError;
use crate::registry::RouteState;
use crate::route_name;
use std::time::{Duration, Instant};

impl Domain {
    /// Suspends a route in one other process or all, as [`ServedRoute::suspend`](super::ServedRoute::suspend) does
    /// locally. Waits up to `timeout` for confirmation. Returns each instance with its last known state.
    ///
    /// # Errors
    /// The name is not one of an application's route; the process belongs to another user (a group may call, but only
    /// the serving user may change a route); or the directory cannot be watched or listed.
    pub fn suspend_route(
        &self,
        route: &str,
        process_id: Option<u32>,
        timeout: Duration,
    ) -> Result<Vec<KnownRoute>, RpcError> {
        self.change_route(route, RouteState::Suspended, process_id, timeout)
    }

    /// Like [`Domain::suspend_route`], but takes calls again: `open`.
    ///
    /// # Errors
    /// Like [`Domain::suspend_route`].
    pub fn resume_route(
        &self,
        route: &str,
        process_id: Option<u32>,
        timeout: Duration,
    ) -> Result<Vec<KnownRoute>, RpcError> {
        self.change_route(route, RouteState::Open, process_id, timeout)
    }

    /// Like [`Domain::suspend_route`], but the route finishes the calls that have begun, and is withdrawn: `gone`. Its
    /// process goes on, and learns of it by [`ServedRoute::is_served`](super::ServedRoute::is_served).
    ///
    /// # Errors
    /// Like [`Domain::suspend_route`].
    pub fn drain_route(
        &self,
        route: &str,
        process_id: Option<u32>,
        timeout: Duration,
    ) -> Result<Vec<KnownRoute>, RpcError> {
        self.change_route(route, RouteState::Draining, process_id, timeout)
    }

    fn change_route(
        &self,
        route: &str,
        to: RouteState,
        process_id: Option<u32>,
        timeout: Duration,
    ) -> Result<Vec<KnownRoute>, RpcError> {
        self.shared.check_process()?;
        route_name::check_own(route)?;
        let until = Instant::now() + timeout;
        self.routes(timeout)?;
        let Some(machine) = &self.shared.machine else { return Ok(Vec::new()) };
        let changed = machine.calling.change_route(route, to, process_id, until)?;
        Ok(changed.into_iter().map(|(process, route)| KnownRoute::new(&process, route)).collect())
    }
}
