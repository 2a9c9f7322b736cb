//! Tests of a process that has no descriptor left.

use crate::process::this_program;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const ALONE: &str = "GAPLESS_TEST_ALONE";

/// Runs the test `path`, as its harness names it, in a separate process, whose limits it may lower. Returns true there,
/// and false in the parent after success.
///
/// # Panics
/// If the test failed in the separate process.
#[track_caller]
pub fn is_alone(path: &str) -> bool {
    if std::env::var_os(ALONE).is_some_and(|alone| *alone == *path) {
        return true;
    }
    let output = this_program().args([path, "--exact", "--nocapture", "--test-threads=1"]).env(ALONE, path).output();
    let output = output.expect("a test starts itself again");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let is_passed = output.status.success() && stdout.contains("1 passed");
    assert!(is_passed, "{path} alone: {}\n{stdout}\n{stderr}", output.status);
    false
}

/// Limit under which this process can open `count` more files.
#[must_use]
pub fn files_max_with(count: usize) -> u64 {
    let listed = std::fs::read_dir("/proc/self/fd").expect("a process sees its descriptors");
    let numbers = listed.map(|entry| entry.expect("a descriptor").file_name());
    let mut used: Vec<u64> = numbers.filter_map(|name| name.to_str()?.parse().ok()).collect();
    // The directory's own descriptor had the lowest free number.
    used.retain(|number| std::fs::read_link(format!("/proc/self/fd/{number}")).is_ok());
    (0..).filter(|number| !used.contains(number)).nth(count).expect("numbers have no end")
}

/// Allows at most `count` more files, until the result is dropped.
#[must_use]
pub fn leave_files(count: usize) -> DescriptorLimit {
    let before = getrlimit(Resource::Nofile);
    let lowered = Rlimit { current: Some(files_max_with(count)), ..before };
    setrlimit(Resource::Nofile, lowered).expect("a limit may be lowered");
    DescriptorLimit(before)
}

pub struct DescriptorLimit(Rlimit);

impl Drop for DescriptorLimit {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.0).expect("the former limit may be restored");
    }
}
