//! Routes that other processes serve are suspended, resumed and drained.

use super::known_routes::KnownRoute;
use super::opening::Domain;
use crate::error::RpcError;
use crate::route_name;
use gapless_registry::RouteState;
use std::time::{Duration, Instant};

impl Domain {
    /// Has a route suspended that other processes serve, as [`ServedRoute::suspend`](super::ServedRoute::suspend) does in its own, by all of
    /// them or by one, and waits until they say that it is so, for `timeout` at most. The answer has a row for each copy, with the state in
    /// which it is known to be then: `suspended`, or another if that has not happened. If nobody serves the route, there are none.
    ///
    /// # Errors
    /// A name that no route of an application can have; a process of another user, unless this one is root's: where a group may call, only
    /// the user who serves may change anything; a directory that cannot be watched or listed.
    pub fn suspend_route(
        &self,
        route: &str,
        process_id: Option<u32>,
        timeout: Duration,
    ) -> Result<Vec<KnownRoute>, RpcError> {
        self.change_route(route, RouteState::Suspended, process_id, timeout)
    }

    /// As [`Domain::suspend_route`], but it takes calls again: `open`.
    ///
    /// # Errors
    /// As [`Domain::suspend_route`].
    pub fn resume_route(
        &self,
        route: &str,
        process_id: Option<u32>,
        timeout: Duration,
    ) -> Result<Vec<KnownRoute>, RpcError> {
        self.change_route(route, RouteState::Open, process_id, timeout)
    }

    /// As [`Domain::suspend_route`], but it takes no calls any more, finishes what it has begun, and is withdrawn: `gone`. Its process goes on,
    /// and learns of it by [`ServedRoute::is_served`](super::ServedRoute::is_served).
    ///
    /// # Errors
    /// As [`Domain::suspend_route`].
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
        // So that all are known that answer.
        self.routes(timeout)?;
        let Some(machine) = &self.shared.machine else { return Ok(Vec::new()) };
        let changed = machine.calling.change_route(route, to, process_id, until)?;
        Ok(changed.into_iter().map(|(process, route)| KnownRoute::new(&process, route)).collect())
    }
}
