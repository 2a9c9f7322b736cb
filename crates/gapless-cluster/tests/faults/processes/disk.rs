//! Failing disks for a member's process: from some moment on the kernel answers its calls with an error (seccomp), or
//! its directory is on a separate file system, which is too small.

use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Calls that the kernel fails from now on.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// Syncs fail: fdatasync, fsync and msync give EIO.
    Sync,
    /// Writes fail: pwrite gives EIO.
    Write,
    /// There is no room for anything new: fallocate, ftruncate and pwrite give ENOSPC.
    Space,
    /// No file or directory can be made: EIO.
    Create,
}

impl Fault {
    const ALL: [Self; 4] = [Self::Sync, Self::Write, Self::Space, Self::Create];

    fn name(self) -> String {
        format!("{self:?}")
    }

    /// Returns the words of the member's error.
    pub fn words(self) -> &'static str {
        match self {
            Self::Space => "no space",
            Self::Sync | Self::Write | Self::Create => "Input/output error",
        }
    }

    fn errno(self) -> Errno {
        match self {
            Self::Space => Errno::NOSPC,
            Self::Sync | Self::Write | Self::Create => Errno::IO,
        }
    }

    /// Returns the calls that fail, each always or by some of its arguments.
    fn calls(self) -> BTreeMap<i64, Vec<SeccompRule>> {
        let always = |call| (call, Vec::new());
        // The flags are the third argument.
        let creates = u64::from(rustix::fs::OFlags::CREATE.bits());
        let condition =
            SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(creates), creates).unwrap();
        let calls = match self {
            Self::Sync => vec![always(libc::SYS_fdatasync), always(libc::SYS_fsync), always(libc::SYS_msync)],
            Self::Write => vec![always(libc::SYS_pwrite64)],
            Self::Space => {
                vec![always(libc::SYS_fallocate), always(libc::SYS_ftruncate), always(libc::SYS_pwrite64)]
            }
            Self::Create => vec![
                (libc::SYS_openat, vec![SeccompRule::new(vec![condition]).unwrap()]),
                always(libc::SYS_mkdir),
                always(libc::SYS_mkdirat),
            ],
        };
        calls.into_iter().collect()
    }

    /// Makes all threads of this process meet the fault from now on.
    fn begin(self) {
        let action = SeccompAction::Errno(self.errno().raw_os_error() as u32);
        let machine = std::env::consts::ARCH.try_into().unwrap();
        let filter = SeccompFilter::new(self.calls(), SeccompAction::Allow, action, machine).unwrap();
        seccompiler::apply_filter_all_threads(&BpfProgram::try_from(filter).unwrap()).unwrap();
    }
}

/// Returns the file that names the fault of the member with this configuration.
fn fault_file(config: &Path) -> PathBuf {
    config.with_extension("fault")
}

/// Makes the member with this configuration meet the fault until it is started again.
pub fn set_fault(config: &Path, fault: Fault) {
    std::fs::write(fault_file(config), fault.name()).unwrap();
}

/// Removes the fault of a member that ended before it read its file.
pub fn clear_fault(config: &Path) {
    let _ = std::fs::remove_file(fault_file(config));
}

/// Begins this member's process with the fault that its file names.
pub fn install_fault(config: &Path) {
    let file = fault_file(config);
    let Ok(name) = std::fs::read_to_string(&file) else { return };
    // The file may still be incomplete.
    let Some(fault) = Fault::ALL.into_iter().find(|fault| fault.name() == name) else { return };
    std::fs::remove_file(file).unwrap();
    fault.begin();
}
