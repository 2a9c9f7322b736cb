//! Failing disks: errors from the kernel (seccomp), or a file system that is too small.

use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// EIO from fdatasync, fsync and msync.
    Sync,
    /// EIO from pwrite.
    Write,
    /// ENOSPC from fallocate, ftruncate and pwrite.
    Space,
    Create,
}

impl Fault {
    const ALL: [Self; 4] = [Self::Sync, Self::Write, Self::Space, Self::Create];

    fn name(self) -> String {
        format!("{self:?}")
    }

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

    fn calls(self) -> BTreeMap<i64, Vec<SeccompRule>> {
        let always = |call| (call, Vec::new());
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

    fn begin(self) {
        let action = SeccompAction::Errno(self.errno().raw_os_error() as u32);
        let machine = std::env::consts::ARCH.try_into().unwrap();
        let filter = SeccompFilter::new(self.calls(), SeccompAction::Allow, action, machine).unwrap();
        seccompiler::apply_filter_all_threads(&BpfProgram::try_from(filter).unwrap()).unwrap();
    }
}

fn fault_file(config: &Path) -> PathBuf {
    config.with_extension("fault")
}

pub fn set_fault(config: &Path, fault: Fault) {
    std::fs::write(fault_file(config), fault.name()).unwrap();
}

pub fn clear_fault(config: &Path) {
    let _ = std::fs::remove_file(fault_file(config));
}

pub fn install_fault(config: &Path) {
    let file = fault_file(config);
    let Ok(name) = std::fs::read_to_string(&file) else { return };
    let Some(fault) = Fault::ALL.into_iter().find(|fault| fault.name() == name) else { return };
    std::fs::remove_file(file).unwrap();
    fault.begin();
}
