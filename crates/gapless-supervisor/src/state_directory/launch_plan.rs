//! `LaunchPlan`: written before an instance is started.

use crate::variables::Variables;
use gapless_agent::CpuMask;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Complete input of a launcher, written before the start. Unknown fields are errors: an instance without their effect
/// would not be the intended one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchPlan {
    /// Incarnation, from 1; unique.
    pub incarnation: u64,
    /// Program: a path, relative to `folder` if not absolute, or a name without `/`, looked up in the `PATH` of
    /// `environment`.
    pub program: PathBuf,
    /// Arguments without `argv[0]`.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Complete environment.
    #[serde(default)]
    pub environment: Variables,
    /// Working directory, absolute.
    pub folder: PathBuf,
    /// File for standard input, absolute, opened as the instance's user; `/dev/null` without one.
    #[serde(default)]
    pub input: Option<PathBuf>,
    /// User of the instance; by default that of the guardian.
    #[serde(default)]
    pub identity: Option<UserIdentity>,
    /// Allowed CPUs, as `2-3`; if the machine refuses them, the instance runs unpinned, with a note in its log.
    #[serde(default, with = "cpu_mask_text")]
    pub cpus: Option<CpuMask>,
    #[serde(default)]
    pub limits: ResourceLimits,
    /// Directory of the control group, created if its parent exists; if the machine refuses it, the instance runs
    /// without one, with a note in its log.
    #[serde(default)]
    pub cgroup: Option<PathBuf>,
    /// Lock of a singleton: the program starts once the launcher holds it.
    #[serde(default)]
    pub singleton: Option<PathBuf>,
    pub log: PathBuf,
    #[serde(default)]
    pub notify_socket: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserIdentity {
    pub user: u32,
    pub group: u32,
    /// Supplementary group ids.
    #[serde(default)]
    pub groups: Vec<u32>,
}

/// Resource limits of a process; `None` leaves a limit unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceLimits {
    #[serde(default)]
    pub files_max: Option<u64>,
    /// Length of a core dump, bytes; 0 for none.
    #[serde(default)]
    pub core_bytes_max: Option<u64>,
    /// Memory, bytes: of the control group if it can be limited, else private memory of each process (`RLIMIT_DATA`).
    #[serde(default)]
    pub memory_bytes_max: Option<u64>,
}

/// Reason why a launcher has not called exec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchFailure {
    pub incarnation: u64,
    /// The instance already runs, which is not an error.
    #[serde(default)]
    pub already_runs: bool,
    /// The machine lacks space, memory or descriptors.
    #[serde(default)]
    pub is_shortage: bool,
    pub reason: String,
}

mod cpu_mask_text {
    use gapless_agent::CpuMask;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "serde calls it so")]
    pub fn serialize<S: Serializer>(mask: &Option<CpuMask>, serializer: S) -> Result<S::Ok, S::Error> {
        mask.map(|mask| mask.to_string()).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<CpuMask>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_round_trip() {
        let plan = LaunchPlan {
            incarnation: 3,
            program: "./calculator".into(),
            arguments: vec!["instance".to_owned(), String::new()],
            environment: Variables::from_iter([("A".to_owned(), "b\n\"".to_owned())]),
            folder: "/tmp".into(),
            input: Some("/tmp/input".into()),
            identity: Some(UserIdentity { user: 1, group: 2, groups: vec![3] }),
            cpus: CpuMask::of(&[0, 2]),
            limits: ResourceLimits { files_max: Some(64), core_bytes_max: Some(0), memory_bytes_max: None },
            cgroup: Some("/sys/fs/cgroup/x".into()),
            singleton: Some("/tmp/singletons/a".into()),
            log: "/tmp/log".into(),
            notify_socket: Some("/tmp/notify.socket".into()),
        };
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<LaunchPlan>(&text).unwrap(), plan);
        let small = r#"{"incarnation":1,"program":"true","folder":"/","log":"/dev/null"}"#;
        assert_eq!(serde_json::from_str::<LaunchPlan>(small).unwrap().cpus, None);
        for wrong in [
            &small.replace("/\",", "/\",\"umask\":1,"),
            &small.replace("/\",", "/\",\"limits\":{\"files\":1},"),
            &small.replace("/\",", "/\",\"cpus\":\"3-2\","),
            &small.replace("\"program\":\"true\",", ""),
            &small.replace(":1,", ":-1,"),
        ] {
            assert!(serde_json::from_str::<LaunchPlan>(wrong).is_err(), "{wrong}");
        }
    }
}
