//! Axon Framework 4, whose rows alternate with ours: the program in `benchmarks/peers/axon`, built by Maven and run by
//! Java where both are found.

use crate::commands::arguments::CommandsPlan;
use crate::commands::axon_case::{AXON, AxonCase};
use crate::commands::{NAME, check_interrupted};
use gapless_load::peers::broker;
use gapless_measure::child_process::Child;
use gapless_measure::own_directory::OwnDirectory;
use gapless_measure::reporting::{keys, not_measured, put, word};
use gapless_measure::{BenchError, Result};
use gapless_measure::{CpuPerMessage, Row, RowConfig};
use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

macro_rules! source {
    ($path:literal) => {
        ($path, include_str!(concat!("../../../../benchmarks/peers/axon/", $path)))
    };
}

const SOURCES: [(&str, &str); 9] = [
    source!("pom.xml"),
    source!("src/main/java/gapless/Main.java"),
    source!("src/main/java/gapless/Settings.java"),
    source!("src/main/java/gapless/Buses.java"),
    source!("src/main/java/gapless/Counter.java"),
    source!("src/main/java/gapless/Identifiers.java"),
    source!("src/main/java/gapless/LastEventStore.java"),
    source!("src/main/java/gapless/StrongCache.java"),
    source!("src/main/resources/META-INF/services/org.axonframework.common.IdentifierFactory"),
];

const INSTALL: &str = "apt install default-jdk-headless maven";
/// Warm-up: Java compiles hot code only while it runs.
const WARM_UP_MIN: Duration = Duration::from_secs(4);
const HEAP: [&str; 3] = ["-Xms4g", "-Xmx4g", "-XX:+UseParallelGC"];

pub(crate) struct Axon {
    java: PathBuf,
    directory: PathBuf,
    _own: Option<OwnDirectory>,
}

const BESIDE: &str = "benchmarks/peers/axon";
const BUILT: &str = "target/classes/gapless/Main.class";
pub(crate) const BUILDS: &str = "mvn -q -B -f benchmarks/peers/axon process-classes";

#[derive(Debug, Deserialize)]
struct AxonOutput {
    counted: u64,
    elapsed_ns: u64,
    cpu_ns: u64,
    collected_ns: u64,
    wrong: u64,
    first_wrong: Option<String>,
    axon: String,
    java: String,
    heap_bytes_max: u64,
}

pub(crate) fn find_programs() -> gapless_load::peers::Result<(PathBuf, PathBuf)> {
    broker::find("java", INSTALL).and_then(|java| Ok((java, broker::find("mvn", INSTALL)?)))
}

impl Axon {
    pub(crate) fn built() -> gapless_load::peers::Result<Option<Self>> {
        Self::built_in(Path::new(BESIDE))
    }

    fn built_in(directory: &Path) -> gapless_load::peers::Result<Option<Self>> {
        let java = broker::find("java", INSTALL)?;
        Ok(is_built(directory).then(|| Self { java, directory: directory.to_owned(), _own: None }))
    }

    /// The inner error names the missing part.
    ///
    /// # Errors
    /// A directory that cannot be made, an interrupt.
    pub(crate) fn build(plan: &CommandsPlan, interrupted: &AtomicBool) -> Result<std::result::Result<Self, String>> {
        let (java, maven) = match find_programs() {
            Ok(found) => found,
            Err(missing) => return Ok(Err(missing.to_string())),
        };
        let name = format!(".gapless-axon-{}", std::process::id());
        let directory = OwnDirectory::create(&plan.directory, &name)?;
        for (path, text) in SOURCES {
            let path = directory.path().join(path);
            let written =
                path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, text));
            written.map_err(|source| BenchError::io("write", &path, source))?;
        }
        let mut command = Command::new(maven);
        command.args(["-q", "-B", "process-classes"]).current_dir(directory.path());
        let output = command.output().map_err(|source| BenchError::system("start Maven", source))?;
        check_interrupted(interrupted)?;
        if output.status.success() {
            return Ok(Ok(Self { java, directory: directory.path().to_owned(), _own: Some(directory) }));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let reason = text.lines().find(|line| line.contains("ERROR")).unwrap_or("it says nothing");
        Ok(Err(format!("Maven ended with {}: {}", output.status, reason.replace(char::is_control, " "))))
    }

    pub(crate) fn measure(&self, case: &AxonCase, plan: &CommandsPlan, interrupted: &AtomicBool) -> Result<Row> {
        let long = plan.warm_up.max(WARM_UP_MIN);
        let warm_up = plan.extent.pick(plan.warm_up, long, long);
        let mut command = Command::new(&self.java);
        command
            .current_dir(&self.directory)
            .args(HEAP)
            .arg(format!("-Didentifiers={}", word(case.identifiers)))
            .args(case.setup.properties())
            .args(["-cp", "target/classes:target/lib/*", "gapless.Main", word(case.bus).as_str()])
            .args([case.aggregates, 0].map(|number| number.to_string()))
            .args([warm_up, plan.time].map(|time| time.as_secs_f64().to_string()))
            .arg(plan.in_flight.to_string());
        let mut child = Child::spawn(NAME, "Axon", command, interrupted)?;
        let printed: AxonOutput = child.receive()?;
        child.finish()?;
        Ok(row(case, plan, &printed))
    }
}

fn is_built(directory: &Path) -> bool {
    directory.join(BUILT).is_file() && directory.join("target/lib").is_dir()
}

fn row(case: &AxonCase, plan: &CommandsPlan, printed: &AxonOutput) -> Row {
    let counted = printed.counted.max(1) as f64;
    let extra = json!({
        "aggregates": case.aggregates, "identifiers": word(case.identifiers), "in_flight": plan.in_flight,
        "setup": word(case.setup), "axon": printed.axon, "java": printed.java, "heap_bytes_max": printed.heap_bytes_max,
    });
    let config = RowConfig {
        name: Some(format!("{AXON} {}", word(case.bus))),
        encoding: Some("objects".to_owned()),
        payload_bytes: Some(0),
        extra: keys(extra),
        ..config()
    };
    let mut row = Row {
        config,
        throughput_per_s: Some((counted * 1e9 / printed.elapsed_ns.max(1) as f64).round()),
        sent: Some(printed.counted),
        elapsed_ns: Some(printed.elapsed_ns),
        cpu_ns_per_message: Some(CpuPerMessage { driver: 0.0, service: printed.cpu_ns as f64 / counted }),
        verified: Some(printed.wrong == 0),
        notes: printed.first_wrong.clone().into_iter().collect(),
        ..Row::default()
    };
    put(&mut row, "wrong", printed.wrong);
    put(&mut row, "collected_ns", printed.collected_ns);
    row
}

fn config() -> RowConfig {
    RowConfig {
        name: Some(AXON.to_owned()),
        mode: Some("throughput".to_owned()),
        tier: Some("memory".to_owned()),
        ..RowConfig::default()
    }
}

pub(crate) fn missing(reason: &str) -> Row {
    let mut row = not_measured(config(), reason);
    row.notes.push(format!("Axon was not measured: {reason}"));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_has_class_and_libraries() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!is_built(directory.path()));
        let class = directory.path().join(BUILT);
        std::fs::create_dir_all(class.parent().unwrap()).unwrap();
        std::fs::write(&class, "").unwrap();
        assert!(!is_built(directory.path()), "without its libraries it does not start");
        std::fs::create_dir(directory.path().join("target/lib")).unwrap();
        assert!(is_built(directory.path()));
    }

    #[test]
    fn build_command_uses_search_folder() {
        assert!(BUILDS.contains(BESIDE));
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(project.join(BESIDE).join("pom.xml").is_file());
    }
}
