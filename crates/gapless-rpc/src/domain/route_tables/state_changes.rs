//! Requests to instances to change the state of a route, and the wait for their confirmation.

use super::{KnownInstance, RouteTables, TablesState};
use crate::error::RpcError;
use crate::registry::{InstanceNumber, PeerProcess, RouteDescription, RouteState};
use rustix::process::geteuid;
use std::sync::Arc;
use std::time::Instant;

impl RouteTables {
    /// Waits for confirmation until `until`; returns the last known state of each instance.
    pub(crate) fn change_route(
        &self,
        route: &str,
        to: RouteState,
        process_id: Option<u32>,
        until: Instant,
    ) -> Result<Vec<(Arc<PeerProcess>, RouteDescription)>, RpcError> {
        let state = self.lock();
        let of_instance = |(number, instance): (&InstanceNumber, &KnownInstance)| {
            let is_meant = process_id.is_none_or(|process_id| instance.process.process_id == process_id);
            let described = instance.routes.get(route).filter(|_| is_meant)?;
            Some((*number, Arc::clone(&instance.process), described.clone()))
        };
        let mut meant: Vec<_> = state.instances.iter().filter_map(of_instance).collect();
        drop(state);
        let own = geteuid().as_raw();
        if let Some((_, process, _)) = meant.iter().find(|(_, process, _)| ![0, process.user_id].contains(&own)) {
            let PeerProcess { process_id, user_id, .. } = **process;
            let reason = format!("process {process_id} is of the user {user_id}, who alone may change what it serves");
            return Err(RpcError::Option { option: "route", reason });
        }
        for (number, ..) in &meant {
            self.io().map_or(Ok(()), |io| io.change(*number, route, to))?;
        }
        let state_of = |state: &TablesState, number: &InstanceNumber| {
            let described = state.instances.get(number).and_then(|instance| instance.routes.get(route));
            described.map_or(RouteState::Gone, |route| route.state)
        };
        let wanted = if to == RouteState::Draining { RouteState::Gone } else { to };
        let left = until.saturating_duration_since(Instant::now());
        let is_over = |now: RouteState| [wanted, RouteState::Gone].contains(&now);
        self.wait_until(left, |state| meant.iter().all(|(number, ..)| is_over(state_of(state, number))));
        let state = self.lock();
        for (number, _, described) in &mut meant {
            described.state = state_of(&state, number);
        }
        Ok(meant.into_iter().map(|(_, process, described)| (process, described)).collect())
    }
}
