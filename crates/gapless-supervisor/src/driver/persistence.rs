//! `PersistentState`: persistent state of the supervisor.

use super::changed_files::StartedVersions;
use crate::control::protocol::EventRecord;
use crate::error::SupervisorError;
use crate::instance_name::InstanceName;
use crate::logs::LogFollower;
use crate::state_directory::{ProcessIdentity, StateDirectory, files};
use crate::supervision::PersistentSupervision;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const TAIL_BYTES: u64 = 4096;
const LAST_LINES: usize = 5;
const LINE_CHARACTERS_MAX: usize = 200;

/// Format version of [`PersistentState`]; others are read as far as possible.
pub const STATE_VERSION: u32 = 2;
const FORMER_VERSION: u32 = 1;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PersistentState {
    /// [`STATE_VERSION`]; 0 before it was introduced.
    pub version: u32,
    /// Boot identifier; after another boot no process runs and monotonic times are void.
    pub boot: String,
    pub is_ending: bool,
    pub supervision: PersistentSupervision,
    /// Notes by instance name; `copies` in files of earlier versions.
    #[serde(alias = "copies")]
    pub instances: BTreeMap<String, InstanceNotes>,
    /// Versions of programs and inputs of processes that reload on a change.
    #[serde(flatten)]
    pub started_versions: StartedVersions,
}

/// Persistent state of an instance outside the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstanceNotes {
    /// Path of the log at the last start.
    pub log: PathBuf,
    /// Length of the log at the last start.
    pub log_begin: u64,
    /// Last incarnation that was sent its stop signal.
    pub signalled_incarnation: u64,
    /// Last `STATUS=` text.
    pub status: String,
    /// Time of the last state change by the clock of the rules, ns.
    pub changed_ns: u64,
    /// Time of the last state change by the boot-time clock, which runs on during suspend, ns.
    pub changed_boot_ns: u64,
    /// Last lines of its output before its last failure.
    pub last_lines: Vec<String>,
}

impl PersistentState {
    /// Reads the previous supervisor's state; after another boot only its last incarnation.
    pub fn read(directory: &StateDirectory) -> Result<Self, SupervisorError> {
        let boot = ProcessIdentity::of_this()?.boot;
        let found = directory.read_state::<serde_json::Value>().unwrap_or_else(|error| {
            // Running instances are found by their locks; only counters are lost.
            tracing::error!("what the supervisor before remembered is lost: {error}");
            None
        });
        let found = found.map(Self::of_any_version).unwrap_or_default();
        if found.boot == boot {
            return Ok(found);
        }
        let supervision = PersistentSupervision {
            last_incarnation: found.supervision.last_incarnation,
            ..PersistentSupervision::default()
        };
        Ok(Self { boot, supervision, ..Self::default() })
    }

    /// Keeps at least boot, last incarnation and shutdown.
    fn of_any_version(found: serde_json::Value) -> Self {
        let version = found["version"].as_u64().unwrap_or(0);
        if ![FORMER_VERSION, STATE_VERSION].map(u64::from).contains(&version) {
            tracing::warn!(
                "what the supervisor before remembered is of version {version}, and this is {STATE_VERSION}"
            );
        }
        let parts = || {
            let last_incarnation = found["supervision"]["last_incarnation"].as_u64().unwrap_or(0);
            Self {
                boot: found["boot"].as_str().unwrap_or_default().to_owned(),
                is_ending: found["is_ending"].as_bool().unwrap_or(false),
                supervision: PersistentSupervision { last_incarnation, ..PersistentSupervision::default() },
                ..Self::default()
            }
        };
        Self::deserialize(&found).unwrap_or_else(|error| {
            tracing::error!("what the supervisor before remembered of instances is lost: {error}");
            parts()
        })
    }
}

#[derive(Debug)]
pub struct EventLog {
    path: PathBuf,
    file: Option<File>,
}

impl EventLog {
    pub const fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Appends a line, or loses it: a full disk blocks nothing.
    pub fn append(&mut self, record: &EventRecord) {
        if let Err(error) = self.try_append(record) {
            tracing::warn!("{}: {error}", self.path.display());
            self.file = None;
        }
    }

    fn try_append(&mut self, record: &EventRecord) -> io::Result<()> {
        if self.file.is_none() {
            let opened = files::open_to_write(&self.path, OFlags::APPEND, Mode::from_raw_mode(0o640));
            self.file = Some(opened.map_err(io::Error::other)?.into());
        }
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(&line))
    }
}

/// Last lines of a log after the position `begin`.
pub fn last_lines(log: &Path, begin: u64) -> Vec<String> {
    let end = LogFollower::end_of(log);
    // Truncated in the meantime.
    let begin = if begin > end { 0 } else { begin };
    let mut follower = LogFollower::at(log, begin.max(end.saturating_sub(TAIL_BYTES)));
    let mut bytes = Vec::new();
    while let Ok(piece) = follower.read_now(TAIL_BYTES as usize)
        && !piece.bytes.is_empty()
        && bytes.len() < 2 * TAIL_BYTES as usize
    {
        bytes.extend(piece.bytes);
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().rev().filter(|line| !line.trim().is_empty()).take(LAST_LINES);
    let cut = |line: &str| line.chars().filter(|c| !c.is_control()).take(LINE_CHARACTERS_MAX).collect();
    let mut lines: Vec<String> = lines.map(cut).collect();
    lines.reverse();
    lines
}

/// Key of an instance in [`PersistentState::instances`].
pub fn key(instance: &InstanceName) -> String {
    instance.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_are_read_in_part() {
        let text = r#"{"boot":"b","is_ending":true,"supervision":{"last_incarnation":7,"processes":{"a":{"is_wanted":false,
            "scale":3,"generation":2,"was_up":true,"copies":{"1":{"incarnation":5,"restarts":4,"is_running":true,"is_ready":true}}}}}}"#;
        let old = PersistentState::of_any_version(serde_json::from_str(text).unwrap());
        let process = &old.supervision.processes["a"];
        assert_eq!((old.boot.as_str(), old.is_ending, old.supervision.last_incarnation), ("b", true, 7));
        assert_eq!((process.is_wanted, process.scale, process.instances[&1].restarts), (false, Some(3), 4));
        let text = text
            .replace("{\"boot\"", "{\"version\":99,\"boot\"")
            .replace("\"restarts\":4", "\"progress\":\"dreaming\"");
        let new = PersistentState::of_any_version(serde_json::from_str(&text).unwrap());
        assert_eq!((new.boot.as_str(), new.is_ending, new.supervision.last_incarnation), ("b", true, 7));
        assert!(new.supervision.processes.is_empty());
        assert_eq!(PersistentState::of_any_version(serde_json::Value::Null), PersistentState::default());
    }
}
