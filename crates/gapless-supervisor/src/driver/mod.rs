//! The supervisor process: carries out the actions of the rules in [`supervision`](crate::supervision) by files,
//! signals and requests to the guardian, and passes events back to them. It makes no decisions of its own.
//!
//! It may be killed at any instant: starts are recorded in the state directory before they are requested, and running
//! instances hold locks there.
//!
//! | module | what lives there |
//! |---|---|
//! | `service` | [`run`]: the main loop |
//! | `takeover` | state after a restart of the supervisor or the guardian |
//! | `actions` | carries out actions of the rules |
//! | `process_events` | events from the guardian, pidfds and probes |
//! | `watched_instance` | a running process, until it and all descendants have ended |
//! | `guardian_liveness` | liveness of the guardian, reachability of the control socket |
//! | `requests` | requests of commands and their answers |
//! | `connections` | the control socket |
//! | `readiness` | `ReadinessProbe`: readiness of an instance |
//! | `poll_backoff` | `PollBackoff`: polls with growing intervals |
//! | `standby_probe` | `StandbyProbe`: whether an instance of a singleton is a standby |
//! | `draining` | instances finish their calls before they are stopped |
//! | `route_watch` | exchange with the thread of `routes` |
//! | `routes` | served routes, their pings and drains |
//! | `repeated_failure` | `RepeatedFailure`: rate-limited log of a repeated failure |
//! | `notifications` | notifications of instances, passed to the rules |
//! | `notify_sockets` | `NotifySockets`: the notification socket |
//! | `changed_files` | detects replaced configurations, programs and inputs |
//! | `file_reload` | applies them |
//! | `log_findings` | findings of the log keeper |
//! | `launch_plans` | launch plans from the configuration |
//! | `persistence` | persistent state, log of events |

mod actions;
mod changed_files;
mod connections;
mod draining;
mod file_reload;
mod guardian_liveness;
mod launch_plans;
mod log_findings;
mod notifications;
mod notify_sockets;
mod persistence;
mod poll_backoff;
mod process_events;
mod readiness;
mod repeated_failure;
mod requests;
mod route_watch;
mod routes;
mod service;
mod standby_probe;
mod takeover;
mod watched_instance;

pub use service::run;
