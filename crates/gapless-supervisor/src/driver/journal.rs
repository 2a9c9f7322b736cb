//! [`DriverMemory`]: what outlives a supervisor; [`EventLog`]: what has happened, a line each.

use super::changed_files::StartedWith;
use crate::control::protocol::EventRecord;
use crate::copy_name::CopyName;
use crate::error::SupervisorError;
use crate::logs::LogFollower;
use crate::state_directory::{ProcessIdentity, StateDirectory, files};
use crate::supervision::Memory;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes at the end of a log that are looked at for its last lines.
const TAIL_BYTES: u64 = 4096;
const LAST_LINES: usize = 5;
const LINE_CHARACTERS_MAX: usize = 200;

/// The version of [`DriverMemory`]. What another one has written is taken as far as it can be read.
pub const MEMORY_VERSION: u32 = 1;

/// What outlives a supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DriverMemory {
    /// [`MEMORY_VERSION`]; 0 of those from before there was one.
    pub version: u32,
    /// Of which boot it is: of another one nothing runs, and its clock means nothing.
    pub boot: String,
    /// Everything is to end.
    pub is_ending: bool,
    /// What the rules remember.
    pub supervision: Memory,
    /// Of each copy, what is beside them.
    pub copies: BTreeMap<String, CopyNotes>,
    /// The programs and inputs with which processes were started that start anew with others.
    #[serde(flatten)]
    pub started_with: StartedWith,
}

/// What is remembered of a copy beside the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CopyNotes {
    /// Where its log was when it was last started.
    pub log: PathBuf,
    /// The position of its end then.
    pub log_begin: u64,
    /// Which start of it was last asked by a signal to end.
    pub signalled_incarnation: u64,
    /// What it last said of itself (`STATUS=`).
    pub status: String,
    /// When its state changed last, by the clock of the rules, ns.
    pub changed_ns: u64,
    /// The same by a clock that goes on while the machine sleeps, ns.
    pub changed_boot_ns: u64,
    /// The last lines of its output when it last ended badly.
    pub last_lines: Vec<String>,
}

impl DriverMemory {
    /// What the supervisor before has left, as far as it holds now.
    pub fn read(directory: &StateDirectory) -> Result<Self, SupervisorError> {
        let boot = ProcessIdentity::of_this()?.boot;
        let found = directory.read_memory::<serde_json::Value>().unwrap_or_else(|error| {
            // What runs says so by its lock; only counts are lost.
            tracing::error!("what the supervisor before remembered is lost: {error}");
            None
        });
        let found = found.map(Self::of_any_version).unwrap_or_default();
        if found.boot == boot {
            return Ok(found);
        }
        let supervision = Memory { last_incarnation: found.supervision.last_incarnation, ..Memory::default() };
        Ok(Self { boot, supervision, ..Self::default() })
    }

    /// What another version has written may say other things of copies. What must not be lost is taken all the same: which
    /// numbers were given, and whether everything is to end.
    fn of_any_version(found: serde_json::Value) -> Self {
        let version = found["version"].as_u64().unwrap_or(0);
        if version != u64::from(MEMORY_VERSION) {
            tracing::warn!(
                "what the supervisor before remembered is of version {version}, and this is {MEMORY_VERSION}"
            );
        }
        let parts = || {
            let last_incarnation = found["supervision"]["last_incarnation"].as_u64().unwrap_or(0);
            Self {
                boot: found["boot"].as_str().unwrap_or_default().to_owned(),
                is_ending: found["is_ending"].as_bool().unwrap_or(false),
                supervision: Memory { last_incarnation, ..Memory::default() },
                ..Self::default()
            }
        };
        Self::deserialize(&found).unwrap_or_else(|error| {
            tracing::error!("what the supervisor before remembered of copies is lost: {error}");
            parts()
        })
    }
}

/// What has happened, a line each.
#[derive(Debug)]
pub struct EventLog {
    path: PathBuf,
    file: Option<File>,
}

impl EventLog {
    pub const fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Appends a line. What cannot be written is lost: nothing waits for a full disk.
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

/// The last lines of a log, behind the position `begin`.
pub fn last_lines(log: &Path, begin: u64) -> Vec<String> {
    let end = LogFollower::end_of(log);
    // One that somebody has emptied since.
    let begin = if begin > end { 0 } else { begin };
    let mut follower = LogFollower::at(log, begin.max(end.saturating_sub(TAIL_BYTES)));
    let mut bytes = Vec::new();
    while let Ok(piece) = follower.read(TAIL_BYTES as usize)
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

/// The name under which notes of a copy stand.
pub fn key(copy: &CopyName) -> String {
    copy.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_version_remembered_is_read_as_far_as_it_can_be() {
        let text = r#"{"boot":"b","is_ending":true,"supervision":{"last_incarnation":7,"processes":{"a":{"is_wanted":false,
            "scale":3,"generation":2,"was_up":true,"copies":{"1":{"incarnation":5,"restarts":4,"is_running":true,"is_ready":true}}}}}}"#;
        let old = DriverMemory::of_any_version(serde_json::from_str(text).unwrap());
        let process = &old.supervision.processes["a"];
        assert_eq!((old.boot.as_str(), old.is_ending, old.supervision.last_incarnation), ("b", true, 7));
        assert_eq!((process.is_wanted, process.scale, process.copies[&1].restarts), (false, Some(3), 4));
        // A newer one, whose copies say what this one does not know.
        let text = text
            .replace("{\"boot\"", "{\"version\":99,\"boot\"")
            .replace("\"restarts\":4", "\"progress\":\"dreaming\"");
        let new = DriverMemory::of_any_version(serde_json::from_str(&text).unwrap());
        assert_eq!((new.boot.as_str(), new.is_ending, new.supervision.last_incarnation), ("b", true, 7));
        assert!(new.supervision.processes.is_empty());
        assert_eq!(DriverMemory::of_any_version(serde_json::Value::Null), DriverMemory::default());
    }
}
