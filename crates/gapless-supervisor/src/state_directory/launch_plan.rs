//! [`LaunchPlan`]: the intent that is written before a copy is started, and [`LaunchFailure`]: why nothing came of it.

use crate::variables::Variables;
use gapless_agent::CpuMask;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// All that a launcher needs to become a copy. Read whole or not at all: a field that it does not know is an error, because
/// a copy without it would not be the one that was meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchPlan {
    /// Which start of this copy it is, from 1; no number comes twice.
    pub incarnation: u64,
    /// The program: a path, where it is relative seen from `folder`; a name without `/` is looked for in the `PATH` of
    /// `environment`.
    pub program: PathBuf,
    /// Its arguments, without its own name.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Its whole environment: nothing else is inherited.
    #[serde(default)]
    pub environment: Variables,
    /// Its working directory, absolute.
    pub folder: PathBuf,
    /// The file that its standard input is, absolute; `/dev/null` without one. It is opened as the user that the copy runs as.
    #[serde(default)]
    pub input: Option<PathBuf>,
    /// The user that it runs as; without it the guardian's.
    #[serde(default)]
    pub identity: Option<Identity>,
    /// The CPUs on which it runs, as `2-3`; where this machine does not allow that, it runs where it is and its log says so.
    #[serde(default, with = "cpu_mask_text")]
    pub cpus: Option<CpuMask>,
    /// What it may use.
    #[serde(default)]
    pub limits: Limits,
    /// The directory of its control group, which is made if its parent is there; where this machine does not allow that, it runs
    /// without one and its log says so.
    #[serde(default)]
    pub cgroup: Option<PathBuf>,
    /// Of a singleton, its lock: the program is begun when this is held.
    #[serde(default)]
    pub singleton: Option<PathBuf>,
    /// Where its output goes, absolute; opened for appending.
    pub log: PathBuf,
    /// The socket for its `READY=1`, absolute.
    #[serde(default)]
    pub notify_socket: Option<PathBuf>,
}

/// The user and groups of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The user's number.
    pub user: u32,
    /// The number of the user's group.
    pub group: u32,
    /// The numbers of the other groups.
    #[serde(default)]
    pub groups: Vec<u32>,
}

/// What a process may use; what is not named is not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Open files.
    #[serde(default)]
    pub files_max: Option<u64>,
    /// A core, bytes; 0 for none.
    #[serde(default)]
    pub core_bytes_max: Option<u64>,
    /// Memory, bytes: of the whole control group where that can be limited, else private memory of each process (`RLIMIT_DATA`).
    #[serde(default)]
    pub memory_bytes_max: Option<u64>,
}

/// Why a launcher did not become the copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchFailure {
    /// Of which intent.
    pub incarnation: u64,
    /// Whether the copy is running: only its lock was taken, and nothing is wrong.
    #[serde(default)]
    pub already_runs: bool,
    /// Whether the machine lacks something: room, memory, descriptors.
    #[serde(default)]
    pub is_shortage: bool,
    /// One line.
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
    fn a_plan_is_read_as_it_is_written_and_whole() {
        let plan = LaunchPlan {
            incarnation: 3,
            program: "./calculator".into(),
            arguments: vec!["copy".to_owned(), String::new()],
            environment: Variables::from_iter([("A".to_owned(), "b\n\"".to_owned())]),
            folder: "/tmp".into(),
            input: Some("/tmp/input".into()),
            identity: Some(Identity { user: 1, group: 2, groups: vec![3] }),
            cpus: CpuMask::of(&[0, 2]),
            limits: Limits { files_max: Some(64), core_bytes_max: Some(0), memory_bytes_max: None },
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
