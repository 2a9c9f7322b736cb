//! Address of the notification socket for an instance.

use super::NOTIFY_VARIABLE;
use crate::error::SupervisorError;
use crate::state_directory::LaunchPlan;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::path::Path;
use std::process::Command;

const ADDRESS_BYTES_MAX: usize = 107;

/// Sets the environment variable. If another user may not enter the state directory, or the path is too long, the
/// instance inherits a descriptor of the socket's directory, which must stay open until exec.
pub fn pass_on(plan: &LaunchPlan, command: &mut Command) -> Result<Option<OwnedFd>, SupervisorError> {
    let Some(socket) = &plan.notify_socket else { return Ok(None) };
    let names = (socket.parent(), socket.file_name().map(Path::new));
    let is_reached = plan.identity.is_none() && socket.as_os_str().len() <= ADDRESS_BYTES_MAX;
    let (false, (Some(folder), Some(name))) = (is_reached, names) else {
        command.env(NOTIFY_VARIABLE, socket);
        return Ok(None);
    };
    // Inherited, so without close-on-exec.
    let failed = SupervisorError::system(format!("opening {}", folder.display()));
    let opened = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).map_err(failed)?;
    command.env(NOTIFY_VARIABLE, Path::new(&format!("/proc/self/fd/{}", opened.as_raw_fd())).join(name));
    Ok(Some(opened))
}
