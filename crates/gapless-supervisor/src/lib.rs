//! Supervises processes: starts them in dependency order, watches and restarts them. Its own death stops none of them.
//!
//! One program has several roles. The *guardian* has no configuration; it is the parent of all instances and keeps
//! their exit statuses. The *supervisor* makes the decisions. The *launcher* prepares an instance and then calls exec.
//!
//! | module | what lives there |
//! |---|---|
//! | [`driver`] | the supervisor process: carries out the actions of the rules |
//! | [`control`] | protocol and client side of operators' commands |
//! | [`foreground`] | support for commands that stay, as a service of systemd or as process 1 |
//! | [`supervision`] | the rules, as a state machine without processes, files or clocks |
//! | [`config`] | the configuration file, parsed and validated |
//! | [`guardian`] | the guardian process, its protocol and its client |
//! | [`launch`] | the launcher |
//! | [`control_groups`] | control groups of instances, where the machine allows them |
//! | `listening` | sockets of the state directory |
//! | `packets` | packets over a connection |
//! | `silence` | liveness timeout of a peer |
//! | [`logs`] | log rotation, and following of rotated logs |
//! | [`state_directory`] | files of the state directory: launch plans, locks, persistent state |
//! | [`role`] | command line of each role |
//! | [`end_status`] | [`EndStatus`]: exit status or signal |
//! | `process_facts` | data of a process from `/proc` |
//! | `clock` | clocks of the machine |
//! | `variables` | [`Variables`]: environment of a process |
//! | `instance_name` | [`InstanceName`] |
//! | [`error`] | [`SupervisorError`] |

#![forbid(unsafe_code)]

mod clock;
pub mod config;
pub mod control;
pub mod control_groups;
pub mod driver;
pub mod end_status;
pub mod error;
pub mod foreground;
pub mod guardian;
mod instance_name;
pub mod launch;
mod listening;
pub mod logs;
mod packets;
mod process_facts;
pub mod role;
mod silence;
pub mod state_directory;
pub mod supervision;
mod variables;

pub use config::SupervisorConfig;
pub use end_status::EndStatus;
pub use error::SupervisorError;
pub use instance_name::{InstanceName, InstanceNameError};
pub use variables::Variables;
