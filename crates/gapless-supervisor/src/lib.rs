//! Starts the processes that a file names, in their order, watches them, starts again what dies, and is so far out of the
//! way that its own death stops nothing.
//!
//! One program in several roles: the *guardian* has no configuration, is the parent of all copies and keeps how they ended;
//! the *supervisor* decides; the *launcher* is what a copy is before it becomes the program of the file.
//!
//! | module | what lives there |
//! |---|---|
//! | [`driver`] | the role of the supervisor: what the rules say is done, and what happens is told to them |
//! | [`control`] | what a person's commands say to a supervisor |
//! | [`foreground`] | what a command needs that stays, as a service of systemd or as process 1 |
//! | [`supervision`] | what shall run, what does, and what follows from it; without processes, files or clocks |
//! | [`config`] | the file of a supervisor, read and checked whole |
//! | [`guardian`] | the role of the guardian, its protocol, and the supervisor's side of it |
//! | [`launch`] | the role of the launcher |
//! | [`control_groups`] | control groups of copies, where the machine allows them |
//! | `listening` | the sockets of the state directory |
//! | `packets` | one end of a connection |
//! | `silence` | whether a peer says nothing any more |
//! | [`logs`] | logs that are kept below a limit while others write them, and read on over that |
//! | [`state_directory`] | what stands in the directory: intents, locks, what is remembered of copies |
//! | [`role`] | how the program is started in one of its roles |
//! | [`end_status`] | [`EndStatus`]: how a process has ended |
//! | `process_facts` | what the kernel tells of a process |
//! | `clock` | the machine's clocks |
//! | `variables` | [`Variables`]: the environment of a process |
//! | `copy_name` | [`CopyName`] |
//! | [`error`] | [`SupervisorError`] |

#![forbid(unsafe_code)]

mod clock;
pub mod config;
pub mod control;
pub mod control_groups;
mod copy_name;
pub mod driver;
pub mod end_status;
pub mod error;
pub mod foreground;
pub mod guardian;
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
pub use copy_name::{CopyName, CopyNameError};
pub use end_status::EndStatus;
pub use error::SupervisorError;
pub use variables::Variables;
