//! The supervisor process: carries out the actions of the rules in [`supervision`](crate::supervision) by files,
//! signals and requests to the guardian, and passes events back to them. It makes no decisions of its own.
//!
//! It may be killed at any instant: starts are recorded in the state directory before they are requested, and running
//! instances hold locks there.
//!
//! | module | what lives there |
//! |---|---|
//! | `service` | [`run`]: the main loop |
//! | `taking_over` | state after a restart of the supervisor or the guardian |
//! | `acting` | carries out actions of the rules |
//! | `watching` | events from the guardian, pidfds and probes |
//! | `watched` | a running process, until it and all descendants have ended |
//! | `minding` | liveness of the guardian, reachability of the control socket |
//! | `serving` | requests of commands and their answers |
//! | `connections` | the control socket |
//! | `readiness` | `Probe`: readiness of an instance |
//! | `growing_pause` | `GrowingPause`: polls with growing intervals |
//! | `standby_look` | `StandbyLook`: whether an instance of a singleton is a standby |
//! | `draining` | instances finish their calls before they are stopped |
//! | `tending` | exchange with the thread of `routes` |
//! | `routes` | served routes, their pings and drains |
//! | `complaint` | `Complaint`: rate-limited log of a repeated failure |
//! | `hearing` | notifications of instances, passed to the rules |
//! | `notices` | `Notices`: the notification socket |
//! | `changed_files` | detects replaced configurations, programs and inputs |
//! | `taking_files` | applies them |
//! | `log_notices` | findings of the log keeper |
//! | `launch_plans` | launch plans from the configuration |
//! | `journal` | persistent state, log of events |

mod acting;
mod changed_files;
mod complaint;
mod connections;
mod draining;
mod growing_pause;
mod hearing;
mod journal;
mod launch_plans;
mod log_notices;
mod minding;
mod notices;
mod readiness;
mod routes;
mod service;
mod serving;
mod standby_look;
mod taking_files;
mod taking_over;
mod tending;
mod watched;
mod watching;

pub use service::run;
