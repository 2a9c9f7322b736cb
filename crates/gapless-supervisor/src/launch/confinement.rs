//! Resource limits and identity of an instance.

use crate::control_groups;
use crate::error::SupervisorError;
use crate::instance_name::InstanceName;
use crate::state_directory::LaunchPlan;
use rustix::fs::{Gid, Uid};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::fs::File;
use std::io::Write;

/// Joins the control group; true if it also limits memory. On an error the instance runs without one; see
/// [`note_group`].
pub fn join_group(plan: &LaunchPlan) -> Result<bool, SupervisorError> {
    plan.cgroup.as_deref().map_or(Ok(false), |group| control_groups::join(group, plan.limits.memory_bytes_max))
}

pub fn note_group(joined: &Result<bool, SupervisorError>, name: &InstanceName, mut log: &File) {
    if let Err(error) = joined {
        // A log that cannot be written is left for the instance to notice.
        let _ = writeln!(log, "{name}: {error}");
    }
}

/// Sets the soft and hard limits; without a control group's memory limit (`has_memory`), limits private writable
/// memory. The address space is not limited: regions of routes take much of it, and are shared.
pub fn set_limits(plan: &LaunchPlan, has_memory: bool) -> Result<(), SupervisorError> {
    let limits = &plan.limits;
    let private = limits.memory_bytes_max.filter(|_| !has_memory);
    for (resource, name, most) in [
        (Resource::Nofile, "open files", limits.files_max),
        (Resource::Core, "bytes of a core", limits.core_bytes_max),
        (Resource::Data, "bytes of private memory", private),
    ] {
        if let Some(most) = most {
            let failed = SupervisorError::system(format!("setting the limit of {name} to {most}"));
            setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).map_err(failed)?;
        }
    }
    Ok(())
}

/// Pins the process to its CPUs, or logs a refusal.
pub fn pin(plan: &LaunchPlan, name: &InstanceName, mut log: &File) {
    if let Some(warning) = plan.cpus.and_then(|cpus| cpus.pin_current_thread().err()) {
        // A log that cannot be written is left for the instance to notice.
        let _ = writeln!(log, "{name}: {warning}");
    }
}

/// Changes user and groups of the calling thread, which must be the only one, permanently.
pub fn change_identity(plan: &LaunchPlan) -> Result<(), SupervisorError> {
    let Some(identity) = &plan.identity else { return Ok(()) };
    // The kernel takes -1 for "unchanged".
    if [identity.user, identity.group].iter().chain(&identity.groups).any(|number| *number == u32::MAX) {
        let reason = format!("no user or group has the number {}", u32::MAX);
        return Err(SupervisorError::damaged("launch".as_ref(), reason));
    }
    let (user, group) = (Uid::from_raw(identity.user), Gid::from_raw(identity.group));
    let groups = identity.groups.iter().map(|group| Gid::from_raw(*group)).collect::<Vec<_>>();
    let failed = |what: &str| SupervisorError::system(format!("{what} of user {} {}", identity.user, identity.group));
    // No change needs no privileges.
    let is_own = rustix::process::geteuid() == user && rustix::process::getegid() == group;
    if is_own && !user.is_root() {
        return Ok(());
    }
    set_thread_groups(&groups).map_err(failed("taking the groups"))?;
    set_thread_res_gid(group, group, group).map_err(failed("taking the group"))?;
    set_thread_res_uid(user, user, user).map_err(failed("taking the identity"))
}
