//! [`Domain`]: the place where routes are served and called. Processes that open the same domain reach each other; a
//! domain can also be private to one process.

mod counter_files;
mod environment;
mod forwarding;
mod known_routes;
mod membership;
mod notices;
mod opening;
mod relaying;
mod route_builder;
mod route_changes;
mod route_control;
mod route_tables;
mod served_route;
mod watch_routes;

pub use crate::registry::{DOMAIN_VARIABLE, DomainLocation};
pub use counter_files::{CallReading, DomainReading, InstanceReading, UnreadableCounters, read_domain};
pub use known_routes::{KnownRoute, KnownRouteState, KnownRoutes};
pub use opening::{Domain, DomainOptions};
pub(crate) use relaying::OfferedRelay;
pub use route_builder::{RouteBuilder, ServeReach};
pub use served_route::ServedRoute;
pub use watch_routes::RouteWatch;
