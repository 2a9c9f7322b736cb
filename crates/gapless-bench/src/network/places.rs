//! `KafkaBrokers`, which all systems share, and `CallEnds`: two domains with a bridge each, and the server in one of
//! them.

use super::arguments::NetworkPlan;
use gapless_load::network::run_topics::{RunTopics, TopicRemoval};
use gapless_load::network::{NAME, failed};
use gapless_load::peers::broker::find;
use gapless_load::rpc::payloads::cycles::CycleCallers;
use gapless_load::rpc::payloads::served;
use gapless_measure::child_process::{Child, ChildRole};
use gapless_measure::own_directory::OwnDirectory;
use gapless_measure::{BenchError, Result};
use gapless_rpc::{CallOptions, Domain, Reach};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const SCRIPT: &str = "benchmarks/peers/kafka/broker";
const FETCH: &str = "benchmarks/peers/kafka/broker --fetch";
const INSTALL: &str = "apt install default-jdk-headless maven";
const JAVA: &str = "-Xmx2g -XX:TieredStopAtLevel=4";
const TIMEOUT: Duration = Duration::from_secs(60);
const BRIDGES: [&str; 2] = ["near", "far"];

/// Fetches nothing.
///
/// # Errors
/// The reason, with the command that helps.
pub(crate) fn find_kafka() -> std::result::Result<(), String> {
    let script = script()?;
    let mut command = Command::new(script);
    command.arg("--is-fetched").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("Kafka is not fetched; in the project's folder: {FETCH}")),
        Err(error) => Err(format!("{SCRIPT}: {error}")),
    }
}

fn script() -> std::result::Result<PathBuf, String> {
    let script = PathBuf::from(SCRIPT);
    if !script.is_file() {
        return Err(format!("{SCRIPT} is not here: run it in the project's folder"));
    }
    find("java", INSTALL).map(|_| script).map_err(|missing| missing.to_string())
}

/// Fields drop in this order.
pub(super) struct KafkaBrokers<'a> {
    pub(super) addresses: String,
    pub(super) topics: RunTopics,
    _removed: Option<TopicRemoval>,
    _process: Option<Child<'a>>,
    directory: OwnDirectory,
}

#[derive(Deserialize)]
struct ListenAddress {
    address: String,
}

impl<'a> KafkaBrokers<'a> {
    /// Starts a broker, unless the plan names some.
    ///
    /// # Errors
    /// No script, Java or Maven; a broker that ends too early.
    pub(super) fn start(plan: &NetworkPlan, interrupted: &'a AtomicBool) -> Result<Self> {
        let name = format!("gapless-bench-network-{}", std::process::id());
        let directory = OwnDirectory::create(&std::env::temp_dir(), &name)?;
        let topics = RunTopics::default();
        if let Some(addresses) = plan.brokers.clone() {
            let _removed = Some(TopicRemoval::new(&addresses, topics.all(&BRIDGES)));
            return Ok(Self { addresses, topics, _removed, _process: None, directory });
        }
        let script =
            script().map_err(|missing| BenchError::Option(format!("{missing}, or name brokers with --brokers")))?;
        let mut command = Command::new(script);
        command.env("GAPLESS_KAFKA_JAVA", JAVA).arg("--data").arg(directory.path().join("kafka"));
        let mut process = Child::spawn(NAME, "the broker", command, interrupted)?;
        let addresses = process.receive::<ListenAddress>()?.address;
        Ok(Self { addresses, topics, _removed: None, _process: Some(process), directory })
    }

    pub(super) fn java(&self, role: &str, interrupted: &'a AtomicBool) -> Result<Child<'a>> {
        let script = script().map_err(BenchError::Option)?;
        let mut command = Command::new(script);
        let java = format!("{JAVA} -Dtopics={}", self.topics.java());
        command.env("GAPLESS_KAFKA_JAVA", java).args(["--peer", role, &self.addresses]);
        Child::spawn(NAME, &format!("the Java {role}"), command, interrupted)
    }

    fn bridge(&self, name: &str, lists: &str, domain: &Path, interrupted: &'a AtomicBool) -> Result<Child<'a>> {
        let file = self.directory.path().join(format!("{name}.toml"));
        let brokers: Vec<String> = self.addresses.split(',').map(|broker| format!("{broker:?}")).collect();
        let text = format!(
            "{lists}\n[kafka]\nbrokers = [{}]\nname = \"{name}\"\nprefix = {:?}\n[domain]\ndirectory = {domain:?}\n[limits]\n\
             calls_per_peer = 4096\nbytes_per_peer = 268435456\n",
            brokers.join(", "),
            self.topics.prefix(),
        );
        std::fs::write(&file, text).map_err(|source| BenchError::io("write", &file, source))?;
        Child::start(NAME, "a bridge", (ChildRole::NetworkBridge, &file), interrupted)
    }
}

/// Fields drop in this order.
pub(super) struct CallEnds<'a> {
    pub(super) callers: CycleCallers,
    pub(super) domain: Domain,
    server: Child<'a>,
    bridges: [Child<'a>; 2],
}

impl<'a> CallEnds<'a> {
    /// Starts server and bridges, and waits until a call comes through.
    ///
    /// # Errors
    /// A process that ends too early; no answer in a minute.
    pub(super) fn start(broker: &KafkaBrokers<'a>, interrupted: &'a AtomicBool) -> Result<Self> {
        let directories = BRIDGES.map(|name| broker.directory.path().join(name));
        let [near, far] = &directories;
        let mut server = Child::start(NAME, "the server", (ChildRole::RpcPayloads, far), interrupted)?;
        server.receive::<u64>()?;
        let domain = served::open(near)?;
        let bridges = [
            broker.bridge(BRIDGES[0], "take = [\"payloads/*\"]", near, interrupted)?,
            broker.bridge(BRIDGES[1], "offer = [\"payloads/*\"]", far, interrupted)?,
        ];
        let patient = CallOptions { timeout: Some(TIMEOUT), wait_for_route: Some(TIMEOUT), ..CallOptions::default() };
        let one_way = domain.caller::<Vec<u8>, bool>(served::ONE_WAY).map_err(failed)?;
        one_way.call_with(Vec::new(), &patient).map_err(failed)?;
        let two_way = domain.caller::<Vec<u8>, Vec<u8>>(served::TWO_WAY).map_err(failed)?;
        two_way.call_with(Vec::new(), &patient).map_err(failed)?;
        let callers = CycleCallers::new(&domain, Reach::OtherProcesses)?;
        Ok(Self { callers, domain, server, bridges })
    }

    /// Server and bridges so far, ns.
    pub(super) fn cpu_ns(&mut self) -> Result<[u64; 2]> {
        let server = self.server.ask(&true)?;
        let [near, far] = &mut self.bridges;
        Ok([server, near.ask::<u64>(&true)? + far.ask::<u64>(&true)?])
    }
}
