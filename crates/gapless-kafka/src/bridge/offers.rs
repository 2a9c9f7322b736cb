//! [`Offers`]: the routes that the other processes of the domain serve.

use super::ready::{Ready, Source};
use crate::presence::{OfferedInstance, OfferedRoute};
use gapless_rpc::domain::{KnownRoute, KnownRouteState, RouteWatch};
use gapless_rpc::{Domain, RpcError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The routes of the domain, watched.
pub(super) struct Offers {
    _watch: RouteWatch,
}

impl Offers {
    /// Begins to watch.
    ///
    /// # Errors
    /// A directory that cannot be watched.
    pub(super) fn watch(domain: &Domain, ready: &Arc<Ready>) -> Result<Self, RpcError> {
        let woken = Arc::clone(ready);
        let _watch = domain.watch_routes(move || woken.signal(Source::Routes))?;
        ready.signal(Source::Routes);
        Ok(Self { _watch })
    }

    /// The routes of this moment.
    pub(super) fn now(domain: &Domain) -> Vec<OfferedRoute> {
        offered(domain.offered_routes())
    }
}

/// One route for all of its ordinary copies. Its types are those of the oldest version, which copies of newer ones read, too.
fn offered(known: Vec<KnownRoute>) -> Vec<OfferedRoute> {
    let mut routes = BTreeMap::<String, OfferedRoute>::new();
    for copy in known {
        let is_there = matches!(copy.state, KnownRouteState::Open | KnownRouteState::Suspended);
        let Some((request, reply)) = copy.types.filter(|_| is_there && copy.stands_for.is_empty()) else { continue };
        let instance = OfferedInstance {
            identity: copy.identity,
            name: format!("{} {}", copy.process_name.as_deref().unwrap_or("process"), copy.process_id),
            workers: copy.workers,
            is_open: copy.state == KnownRouteState::Open,
        };
        let route = routes.entry(copy.route.clone()).or_insert_with(|| OfferedRoute {
            route: copy.route,
            version: copy.version,
            metadata: copy.metadata,
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
