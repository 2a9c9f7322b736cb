//! [`Domain`]: the place where routes are served and called. Processes that open the same domain reach each other; a
//! domain can also be private to one process.
//!
//! | module | what lives there |
//! |---|---|
//! | `opening` | [`Domain`]: opening, closing and statistics |
//! | `environment` | the domain named by the environment |
//! | `known_routes` | [`KnownRoute`]: the routes of other processes |
//! | `watch_routes` | a callback for changes of other processes' routes |
//! | `route_builder` | [`RouteBuilder`]: offers a route |
//! | `relaying` | routes offered, and called, as bytes |
//! | `served_route` | [`ServedRoute`]: suspend, drain, withdraw |
//! | `route_changes` | suspend, resume and drain routes of other processes |
//! | `notices` | messages from a process to its callers |
//! | `forwarding` | forwards by handlers |
//! | `membership` | this process's state of a domain |
//! | `counter_files` | [`read_domain`]: counters of instances and callers, for other processes |
//! | `route_tables` | the calling half: tables, and the instances that they are offered to |
//! | `route_control` | state changes of a served route, by its own program or for another process |

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
