//! Standard input of an instance: a file, or `/dev/null`.

use crate::error::SupervisorError;
use crate::state_directory::LaunchPlan;
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::process::Stdio;

/// Whether the type is allowed: a regular file or character device. A pipe without a writer would never have input.
pub fn is_input(kind: std::fs::FileType) -> bool {
    kind.is_file() || kind.is_char_device()
}

/// Opens the input; call it after the change of user, whose permissions apply.
pub fn open(plan: &LaunchPlan) -> Result<Stdio, SupervisorError> {
    let Some(path) = &plan.input else { return Ok(Stdio::null()) };
    let failed = || SupervisorError::system(format!("opening its input {}", path.display()));
    // Does not block on a pipe without a writer, and acquires no controlling terminal.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(failed())?;
    let mode = rustix::fs::fstat(&opened).map_err(failed())?.st_mode;
    if !matches!(FileType::from_raw_mode(mode), FileType::RegularFile | FileType::CharacterDevice) {
        return Err(SupervisorError::damaged(path, "it is to be the input, and is no file"));
    }
    rustix::fs::fcntl_setfl(&opened, OFlags::empty()).map_err(failed())?;
    Ok(File::from(opened).into())
}
