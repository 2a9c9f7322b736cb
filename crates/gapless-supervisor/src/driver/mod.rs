//! The driver: the role of the supervisor as a process. What the rules of [`supervision`](crate::supervision) say is done
//! here by files, signals and the guardian; what happens to processes is told to them. It decides nothing.
//!
//! Killed at any instant, it leaves all that the next one needs in the state directory: what is to be started is written
//! before it is asked for, and what runs says so by its lock.
//!
//! | module | what lives there |
//! |---|---|
//! | `service` | [`run`]: the role itself: its loop |
//! | `taking_over` | what runs already, and what has ended unseen |
//! | `acting` | what the rules say, done |
//! | `watching` | what happens to processes: what the guardian tells, what pidfds and probes show |
//! | `watched` | a process that runs, until it and all that it has left have ended |
//! | `minding` | that the guardian hears, and that commands can come |
//! | `serving` | what commands ask for, and the answers |
//! | `connections` | the control socket |
//! | `readiness` | `Probe`: whether a copy is ready |
//! | `growing_pause` | `GrowingPause`: when something is looked at that is looked at more and more rarely |
//! | `standby_look` | `StandbyLook`: whether a copy of a singleton stands by |
//! | `draining` | copies finish what they serve before they are stopped |
//! | `tending` | what is to be found out of routes, and what was |
//! | `routes` | what copies serve, and whether they answer |
//! | `complaint` | `Complaint`: what fails at each look, logged once a second |
//! | `hearing` | what copies say of themselves |
//! | `notices` | `Notices`: the socket on which they do |
//! | `changed_files` | whether the file in force, a program or an input is another one |
//! | `taking_files` | what follows from that |
//! | `log_notices` | what the keeper of logs has found |
//! | `launch_plans` | from the file to the intent of a copy |
//! | `journal` | what outlives a supervisor, and the log of events |

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
