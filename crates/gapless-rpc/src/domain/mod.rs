//! [`Domain`]: where routes are served and called. Processes that open the same domain meet in it; one that is of this process alone
//! meets nobody.
//!
//! | module | what lives there |
//! |---|---|
//! | `opening` | [`Domain`]: opened, closed, asked for what is counted in it |
//! | `environment` | the domain that the environment names |
//! | `known_routes` | [`KnownRoute`]: the routes of other processes |
//! | `looking` | a function is called when the routes of other processes change |
//! | `route_builder` | [`RouteBuilder`]: a route is offered |
//! | `relaying` | a route is offered, and called, as bytes |
//! | `served_route` | [`ServedRoute`]: it is suspended, drained, withdrawn |
//! | `route_changes` | routes of other processes are suspended, resumed and drained |
//! | `notices` | what a process tells those that have called it |
//! | `forwarding` | where a handler's request goes on to |
//! | `membership` | what this process has of a domain |
//! | `counter_files` | [`read_domain`]: what copies and callers count, for other processes |
//! | `calling` | the calling half: tables, and the copies that they are offered to |
//! | `route_control` | what is done to a served route, by its own program or for another process |
//! | `serving` | the serving half: routes, and the callers whose tables are attached |

mod calling;
mod counter_files;
mod environment;
mod forwarding;
mod known_routes;
mod looking;
mod membership;
mod notices;
mod opening;
mod relaying;
mod route_builder;
mod route_changes;
mod route_control;
mod served_route;
mod serving;

pub use counter_files::{CallReading, CopyReading, DomainReading, UnreadableCounters, read_domain};
pub use gapless_registry::{DOMAIN_VARIABLE, Place};
pub use known_routes::{KnownRoute, KnownRouteState, KnownRoutes};
pub use looking::RouteWatch;
pub use opening::{Domain, DomainOptions};
pub(crate) use relaying::OfferedRelay;
pub use route_builder::{RouteBuilder, ServeReach};
pub use served_route::ServedRoute;
