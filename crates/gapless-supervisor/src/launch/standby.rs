//! A copy of a singleton stands by as its launcher until no other one is active, so that its program need not know of it.

use crate::error::SupervisorError;
use crate::state_directory::{LaunchPlan, LockRecord, SingletonLock};
use std::ffi::CStr;

/// What a launcher is called that stands by: by this the supervisor knows it, and `ps` shows it.
pub const STANDBY_NAME: &CStr = c"gapless-standby";
/// And what it is called otherwise.
const LAUNCHER_NAME: &CStr = c"gapless-launch";

/// Opens the lock, while this process may.
pub fn open(plan: &LaunchPlan) -> Result<Option<SingletonLock>, SupervisorError> {
    plan.singleton.as_deref().map(SingletonLock::open).transpose()
}

/// Waits until it is the active one.
pub fn stand_by(lock: &SingletonLock, incarnation: u64) -> Result<(), SupervisorError> {
    if !lock.try_take()? {
        let failed = || SupervisorError::system("saying that it stands by");
        rustix::thread::set_name(STANDBY_NAME).map_err(failed())?;
        lock.wait()?;
        rustix::thread::set_name(LAUNCHER_NAME).map_err(failed())?;
    }
    lock.record(&LockRecord::of_this(incarnation)?)
}
