//! Machine, kernel and commit of a figure, read at run time from `/proc`, `/sys` and `.git`. A value that cannot be
//! read is absent; nothing here fails.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    #[serde(default)]
    pub cpu: String,
    /// Logical CPUs that this process may use.
    #[serde(default)]
    pub cores: usize,
    #[serde(default)]
    pub kernel: String,
    #[serde(default)]
    pub memory_bytes: u64,
    /// Frequency governor of the first CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<String>,
    /// CPU's hypervisor flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_machine: Option<bool>,
    /// Transparent huge pages: the mode in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<String>,
    /// Taken when the report was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_average_1m: Option<f64>,
    /// `debug` or `release`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Environment {
    #[must_use]
    pub fn capture() -> Self {
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        let meminfo = read("/proc/meminfo").unwrap_or_default();
        Self {
            cpu: cpu_model(&cpuinfo).unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: crate::affinity::available_cpus().len(),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
            memory_bytes: total_memory_bytes(&meminfo).unwrap_or(0),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            virtual_machine: cpu_flags(&cpuinfo).map(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled").and_then(|text| in_brackets(&text)),
            load_average_1m: read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
            build: Some(if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }
    }

    #[must_use]
    pub fn summary(&self) -> String {
        let gibibytes = self.memory_bytes as f64 / f64::from(1 << 30);
        let kind = if self.virtual_machine == Some(true) { ", virtual machine" } else { "" };
        format!("{}, {} cores, {gibibytes:.1} GiB, Linux {}{kind}", self.cpu, self.cores, self.kernel)
    }
}

/// The commit at or above the current directory, in hexadecimal. Read from git's files, so that no git need be
/// installed; `None` outside a clone.
#[must_use]
pub fn commit() -> Option<String> {
    commit_at(&std::env::current_dir().ok()?)
}

fn commit_at(directory: &Path) -> Option<String> {
    let git = directory.ancestors().find_map(git_directory)?;
    let head = std::fs::read_to_string(git.join("HEAD")).ok()?;
    let Some(reference) = head.trim().strip_prefix("ref: ") else { return as_commit(&head) };
    // A work tree has its own HEAD, but shares the branches with its clone.
    let shared = match std::fs::read_to_string(git.join("commondir")) {
        Ok(path) => git.join(path.trim()),
        Err(_) => git,
    };
    if let Ok(text) = std::fs::read_to_string(shared.join(reference)) {
        return as_commit(&text);
    }
    let packed = std::fs::read_to_string(shared.join("packed-refs")).ok()?;
    packed.lines().find_map(|line| as_commit(line.strip_suffix(reference)?))
}

/// A directory in a clone; in a work tree a file that names one.
fn git_directory(directory: &Path) -> Option<PathBuf> {
    let git = directory.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = std::fs::read_to_string(git).ok()?;
    Some(directory.join(text.trim().strip_prefix("gitdir: ")?))
}

fn as_commit(text: &str) -> Option<String> {
    let text = text.trim();
    let is_commit = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| text.to_owned())
}

fn read(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim())
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    value_of(cpuinfo, "model name").or_else(|| value_of(cpuinfo, "Model")).map(str::to_owned)
}

fn cpu_flags(cpuinfo: &str) -> Option<&str> {
    value_of(cpuinfo, "flags")
}

fn total_memory_bytes(meminfo: &str) -> Option<u64> {
    let kibibytes: u64 = value_of(meminfo, "MemTotal")?.split(' ').next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

fn in_brackets(text: &str) -> Option<String> {
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn this_machine_is_described() {
        let environment = Environment::capture();
        assert!(!environment.cpu.is_empty() && !environment.kernel.is_empty());
        assert!(environment.cores > 0 && environment.memory_bytes > 0);
        assert!(environment.summary().contains(&environment.kernel));
    }

    #[test]
    fn proc_files_are_read() {
        let cpuinfo = "processor\t: 0\nmodel name\t: AMD EPYC: x\nflags\t\t: fpu hypervisor sse\n";
        assert_eq!(cpu_model(cpuinfo).as_deref(), Some("AMD EPYC: x"));
        assert_eq!(cpu_flags(cpuinfo), Some("fpu hypervisor sse"));
        assert_eq!(total_memory_bytes("MemTotal:       16 kB\n"), Some(16 * 1024));
        assert_eq!(in_brackets("always [madvise] never").as_deref(), Some("madvise"));
    }

    #[test]
    fn commit_is_found_in_every_layout() {
        let directory = tempfile::tempdir().unwrap();
        let git = directory.path().join(".git");
        let below = directory.path().join("a/b");
        std::fs::create_dir_all(git.join("refs/heads")).unwrap();
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(commit_at(&below), None);
        std::fs::write(git.join("packed-refs"), format!("# pack-refs\n{COMMIT} refs/heads/main\n")).unwrap();
        assert_eq!(commit_at(&below).as_deref(), Some(COMMIT));
        let newer = COMMIT.replace('0', "f");
        std::fs::write(git.join("refs/heads/main"), format!("{newer}\n")).unwrap();
        assert_eq!(commit_at(&below), Some(newer));
        std::fs::write(git.join("HEAD"), format!("{COMMIT}\n")).unwrap();
        assert_eq!(commit_at(&below).as_deref(), Some(COMMIT));
    }

    #[test]
    fn without_git_there_is_no_commit() {
        assert_eq!(commit_at(tempfile::tempdir().unwrap().path()), None);
    }
}
