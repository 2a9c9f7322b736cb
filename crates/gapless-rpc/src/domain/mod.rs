//! [`Domain`]: where routes are served and called. Processes that open the same domain meet in it; one that is of this process alone
//! meets nobody.
//!
//! | module | what lives there |
//! |---|---|
//! | `opening` | [`Domain`]: opened, closed, asked for its routes |
//! | `route_builder` | [`RouteBuilder`]: a route is offered |
//! | `served_route` | [`ServedRoute`]: it is suspended, drained, withdrawn |
//! | `notices` | what a process tells those that have called it |
//! | `forwarding` | where a handler's request goes on to |
//! | `membership` | what this process has of a domain |
//! | `counter_files` | [`read_counters`], [`read_calls`]: what copies and callers count, for other processes |
//! | `calling` | the calling half: tables, and the copies that they are brought to |
//! | `serving` | the serving half: routes, and the callers that have brought tables |

mod calling;
mod counter_files;
mod forwarding;
mod membership;
mod notices;
mod opening;
mod route_builder;
mod served_route;
mod serving;

pub use counter_files::{CallReading, CopyReading, read_calls, read_counters};
pub use opening::{Domain, DomainOptions, KnownRoute};
pub use route_builder::{RouteBuilder, ServeReach};
pub use served_route::ServedRoute;
