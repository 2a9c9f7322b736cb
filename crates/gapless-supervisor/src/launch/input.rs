//! What the standard input of a copy is: a file, or `/dev/null`.

use crate::error::SupervisorError;
use crate::state_directory::LaunchPlan;
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::process::Stdio;

/// Whether a file of this kind may be the input: a file, or a device as `/dev/null`. A pipe would have nothing as long as nobody
/// writes into it.
pub fn is_input(kind: std::fs::FileType) -> bool {
    kind.is_file() || kind.is_char_device()
}

/// Opens it. By now this process is the user that the copy is, so it is a file that the copy may read itself.
pub fn open(plan: &LaunchPlan) -> Result<Stdio, SupervisorError> {
    let Some(path) = &plan.input else { return Ok(Stdio::null()) };
    let failed = || SupervisorError::system(format!("opening its input {}", path.display()));
    // Neither a pipe that nobody writes into holds it up, nor does a terminal become its own.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(failed())?;
    let mode = rustix::fs::fstat(&opened).map_err(failed())?.st_mode;
    if !matches!(FileType::from_raw_mode(mode), FileType::RegularFile | FileType::CharacterDevice) {
        return Err(SupervisorError::damaged(path, "it is to be the input, and is no file"));
    }
    rustix::fs::fcntl_setfl(&opened, OFlags::empty()).map_err(failed())?;
    Ok(File::from(opened).into())
}
