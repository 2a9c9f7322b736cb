//! Wrong wall clocks: replaces the kernel's clock function in the vDSO, so for every call of the process.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

static AHEAD_S: AtomicI64 = AtomicI64::new(0);
static IS_REPLACED: AtomicBool = AtomicBool::new(false);

fn clock_file(config: &Path) -> PathBuf {
    config.with_extension("clock")
}

/// Also after a restart; a running member follows only if the file existed at its start.
pub fn set_offset(config: &Path, ahead_s: i64) {
    let (file, next) = (clock_file(config), config.with_extension("clock-next"));
    std::fs::write(&next, ahead_s.to_string()).unwrap();
    std::fs::rename(next, file).unwrap();
}

pub fn is_possible() -> bool {
    let is_possible = cfg!(target_arch = "x86_64") && kernels_function().is_some();
    if !is_possible {
        println!("SKIPPED: the kernel's function for clocks is not found, or this is no x86-64");
    }
    is_possible
}

pub fn install_clock(config: &Path) {
    let Ok(ahead_s) = std::fs::read_to_string(clock_file(config)) else { return };
    AHEAD_S.store(ahead_s.parse().unwrap(), Ordering::SeqCst);
    if !IS_REPLACED.swap(true, Ordering::SeqCst) {
        replace();
    }
}

fn kernels_function() -> Option<u64> {
    // SAFETY: both names end with a zero; libraries that are loaded already stay loaded.
    let found = unsafe {
        let kernel = libc::dlopen(c"linux-vdso.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if kernel.is_null() {
            return None;
        }
        libc::dlsym(kernel, c"__vdso_clock_gettime".as_ptr())
    };
    (!found.is_null()).then_some(found as u64)
}

/// Must run before there are other threads.
fn replace() {
    let at = kernels_function().expect("is_possible was checked before");
    let ours = read_clock as extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;
    // mov rax, ours; jmp rax
    let mut code = vec![0x48, 0xb8];
    code.extend((ours as usize as u64).to_le_bytes());
    code.extend([0xff, 0xe0]);
    // Through this file the page need not be writable, and becomes this process's own.
    File::options().write(true).open("/proc/self/mem").unwrap().write_all_at(&code, at).unwrap();
}

extern "C" fn read_clock(clock: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    // SAFETY: the caller's pointer goes to the kernel, which checks it.
    let result = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) };
    if result == 0 && (clock == libc::CLOCK_REALTIME || clock == libc::CLOCK_REALTIME_COARSE) {
        // SAFETY: the kernel has just written there.
        unsafe { (*time).tv_sec += AHEAD_S.load(Ordering::SeqCst) };
    }
    result as libc::c_int
}
