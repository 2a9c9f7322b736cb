//! The launcher waits as a standby, so that the program need not know about it.

use crate::error::SupervisorError;
use crate::state_directory::{LaunchPlan, LockRecord, SingletonLock};
use std::ffi::CStr;

/// Name of a standby launcher, by which the supervisor and `ps` show it.
pub const STANDBY_NAME: &CStr = c"gapless-standby";
const LAUNCHER_NAME: &CStr = c"gapless-launch";

/// Opens the lock; before the change of user.
pub fn open(plan: &LaunchPlan) -> Result<Option<SingletonLock>, SupervisorError> {
    plan.singleton.as_deref().map(SingletonLock::open).transpose()
}

/// Waits until this is the active instance.
pub fn stand_by(lock: &SingletonLock, incarnation: u64) -> Result<(), SupervisorError> {
    if !lock.try_take()? {
        let failed = || SupervisorError::system("saying that it stands by");
        rustix::thread::set_name(STANDBY_NAME).map_err(failed())?;
        lock.wait()?;
        rustix::thread::set_name(LAUNCHER_NAME).map_err(failed())?;
    }
    lock.record(&LockRecord::of_this(incarnation)?)
}
