//! `Offers`: the routes that the other processes of the domain serve.

use super::ready::{ReadySources, WorkSource};
use crate::presence::{OfferedInstance, OfferedRoute};
use gapless_rpc::domain::{KnownRoute, KnownRouteState, RouteWatch};
use gapless_rpc::{Domain, RpcError};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct Offers {
    _watch: RouteWatch,
}

impl Offers {
    pub(super) fn watch(domain: &Domain, ready: &Arc<ReadySources>) -> Result<Self, RpcError> {
        let woken = Arc::clone(ready);
        let _watch = domain.watch_routes(move || woken.signal(WorkSource::Routes))?;
        ready.signal(WorkSource::Routes);
        Ok(Self { _watch })
    }

    pub(super) fn now(domain: &Domain) -> Vec<OfferedRoute> {
        offered(domain.offered_routes())
    }
}

/// Offers each route once for all of its ordinary instances, with the types of the oldest version, which newer
/// instances read, too.
fn offered(known: Vec<KnownRoute>) -> Vec<OfferedRoute> {
    let mut routes = BTreeMap::<String, OfferedRoute>::new();
    for served in known {
        let is_there = matches!(served.state, KnownRouteState::Open | KnownRouteState::Suspended);
        let Some((request, reply)) = served.types.filter(|_| is_there && served.stands_for.is_empty()) else {
            continue;
        };
        let instance = OfferedInstance {
            identity: served.identity,
            name: format!("{} {}", served.process_name.as_deref().unwrap_or("process"), served.process_id),
            workers: served.workers,
            is_open: served.state == KnownRouteState::Open,
        };
        let route = routes.entry(served.route.clone()).or_insert_with(|| OfferedRoute {
            route: served.route,
            version: served.version,
            metadata: served.metadata,
            request: request.clone(),
            reply: reply.clone(),
            instances: Vec::new(),
            in_flight: 0,
        });
        if request.version < route.request.version {
            route.request = request;
        }
        if reply.version < route.reply.version {
            route.reply = reply;
        }
        route.instances.push(instance);
    }
    let mut routes: Vec<_> = routes.into_values().collect();
    routes.iter_mut().for_each(|route| route.instances.sort_by_key(|instance| instance.identity));
    routes
}
