//! How a copy finds the socket on which it says that it is ready.

use super::NOTIFY_VARIABLE;
use crate::error::SupervisorError;
use crate::state_directory::LaunchPlan;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::path::Path;
use std::process::Command;

/// The longest path that an address takes, bytes.
const ADDRESS_BYTES_MAX: usize = 107;

/// Tells the program by its environment. Another user does not come into the state directory, so such a copy is given the
/// socket's folder, open; and so is one whose path is longer than an address. What is returned is to stay open.
pub fn pass_on(plan: &LaunchPlan, command: &mut Command) -> Result<Option<OwnedFd>, SupervisorError> {
    let Some(socket) = &plan.notify_socket else { return Ok(None) };
    let names = (socket.parent(), socket.file_name().map(Path::new));
    let is_reached = plan.identity.is_none() && socket.as_os_str().len() <= ADDRESS_BYTES_MAX;
    let (false, (Some(folder), Some(name))) = (is_reached, names) else {
        command.env(NOTIFY_VARIABLE, socket);
        return Ok(None);
    };
    // Inherited: without close-on-exec.
    let failed = SupervisorError::system(format!("opening {}", folder.display()));
    let opened = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).map_err(failed)?;
    command.env(NOTIFY_VARIABLE, Path::new(&format!("/proc/self/fd/{}", opened.as_raw_fd())).join(name));
    Ok(Some(opened))
}
