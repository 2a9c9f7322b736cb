//! The JSON object that every benchmark writes with `--json FILE`, as types.
//!
//! The form is stable: fields are added, never renamed or given another meaning. A field that was
//! not measured is absent. Keys that this version does not know are kept in `extra`, so that a newer
//! report can be read and written again without loss.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::environment::{Environment, commit};
use crate::{BenchError, Result};

/// The key in [`Row::extra`] for the reason of a failed row.
pub const FAILED: &str = "failed";

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub benchmark: String,
    /// Commit of the current directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    pub environment: Environment,
    /// Measured in the same run.
    #[serde(default)]
    pub floor: Vec<FloorRow>,
    #[serde(default)]
    pub rows: Vec<Row>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A latency (`p50_ns` …), a rate (`rate_per_s`) or a bandwidth (`bytes_per_s`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FloorRow {
    /// Name as in `gapless_measure::floor::FloorKind`.
    pub name: String,
    /// Bytes per message. A benchmark of N payload bytes has the floor of N + 64.
    pub payload_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// CPUs of the measuring threads; absent when not pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<usize>>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub config: RowConfig,
    /// Latency from the scheduled time; absent where not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<LatencyNs>,
    /// Throughput; absent where not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_per_s: Option<f64>,
    /// Messages injected in the counted section.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Length of the counted section, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_message: Option<CpuPerMessage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// Latency p50 / floor p50, or floor rate / rate: 1.0 is the machine itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor_ratio: Option<f64>,
    /// Floor of the ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor_name: Option<String>,
    /// Asked rate was reached; if not, the latencies are those of a failed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_reached: Option<bool>,
    /// Every message was accounted for and every content checked, outside the timed section.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// Messages without a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Replies beyond one per message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicated: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<IntervalRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Absent keys do not apply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RowConfig {
    /// `es` or `sr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// `latency` or `throughput`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// `direct` or `indirect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
    /// `sbe.serial` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// `memory`, `journal`, `sync` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// `min`, `default` or `max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clustered: Option<bool>,
    /// Transport between driver and service; `none` in one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u64>,
    /// Absent for "as fast as possible".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Quantity of the row, in benchmarks of many small things.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Sessions, wait strategy, thread plan …
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyNs {
    pub min: u64,
    pub mean: f64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub p99_99: u64,
    pub max: u64,
    pub count: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuPerMessage {
    pub driver: f64,
    /// Everything that is not the driver.
    pub service: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IntervalRow {
    /// Time after the start of the counted section.
    pub start_ns: u64,
    pub length_ns: u64,
    pub latency_ns: LatencyNs,
}

impl Report {
    /// Captures the machine and the current directory.
    #[must_use]
    pub fn new(benchmark: &str) -> Self {
        let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        // Without the folder of the build, which is private.
        let program = words.next().map_or_else(String::new, |path| {
            Path::new(&path).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or(path)
        });
        let command_line = std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ");
        Self {
            benchmark: benchmark.to_owned(),
            commit: commit(),
            command_line: Some(command_line),
            environment: Environment::capture(),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.notes.iter().any(|note| note.starts_with("interrupted"))
    }

    /// A short run shows that everything works, and no figure.
    #[must_use]
    pub fn is_quick(&self) -> bool {
        let words = self.command_line.iter().flat_map(|line| line.split_whitespace());
        words.into_iter().any(|word| word == "--quick") || self.notes.iter().any(|note| note.starts_with("a short run"))
    }

    pub fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(BenchError::Unreadable)
    }

    /// `-` is stdout; a file is replaced as a whole.
    ///
    /// # Errors
    /// When the target cannot be written.
    pub fn write_json(&self, target: &Path) -> Result<()> {
        let text = self.to_json()?;
        if target == Path::new("-") {
            return std::io::stdout()
                .write_all(text.as_bytes())
                .map_err(|source| BenchError::system("write the report to stdout", source));
        }
        std::fs::write(target, text).map_err(|source| BenchError::io("write", target, source))
    }

    /// Row of this name; of several the one whose payload is nearest.
    #[must_use]
    pub fn floor_row(&self, name: &str, payload_bytes: u64) -> Option<&FloorRow> {
        self.floor.iter().filter(|row| row.name == name).min_by_key(|row| row.payload_bytes.abs_diff(payload_bytes))
    }
}

impl RowConfig {
    /// Null where absent.
    #[must_use]
    pub fn value(&self, key: &str) -> Value {
        match key {
            "program" => json!(self.program),
            "mode" => json!(self.mode),
            "access" => json!(self.access),
            "encoding" => json!(self.encoding),
            "tier" => json!(self.tier),
            "cpu" => json!(self.cpu),
            "clustered" => json!(self.clustered),
            "transport" => json!(self.transport),
            "payload_bytes" => json!(self.payload_bytes),
            "rate_per_s" => json!(self.rate_per_s),
            "count" => json!(self.count),
            "name" => json!(self.name),
            other => self.extra.get(other).cloned().unwrap_or(Value::Null),
        }
    }
}

impl Row {
    #[must_use]
    pub fn has_missed_rate(&self) -> bool {
        self.latency_ns.is_some() && self.rate_reached == Some(false)
    }

    #[must_use]
    pub fn failure(&self) -> Option<String> {
        if let Some(reason) = self.extra.get(FAILED).and_then(Value::as_str) {
            return Some(reason.to_owned());
        }
        (self.verified == Some(false)).then(|| format!("the check failed: {}", self.notes.join("; ")))
    }

    /// Asked rate, if the run was sound and the machine did not reach it.
    #[must_use]
    pub fn missed_rate_per_s(&self) -> Option<u64> {
        self.config.rate_per_s.filter(|_| self.rate_reached == Some(false) && self.failure().is_none())
    }

    /// p50 by p50 if this row has a latency, else the floor's rate by this row's. Absent where they do not match, the
    /// divisor is zero, or the row is no result.
    pub fn compare_with(&mut self, floor: &FloorRow) {
        if self.failure().is_some() || self.missed_rate_per_s().is_some() {
            return;
        }
        let ratio = match (self.latency_ns, floor.p50_ns, self.throughput_per_s, floor.rate_per_s) {
            (Some(latency), Some(floor_ns), ..) if floor_ns > 0 => Some(latency.p50 as f64 / floor_ns as f64),
            (_, _, Some(rate), Some(floor_rate)) if rate > 0.0 => Some(floor_rate / rate),
            _ => None,
        };
        if let Some(ratio) = ratio {
            self.floor_ratio = Some((ratio * 100.0).round() / 100.0);
            self.floor_name = Some(floor.name.clone());
        }
    }
}

#[cfg(test)]
mod tests;
