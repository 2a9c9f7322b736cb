//! [`Places`]: a broker, two domains with a bridge each, and the server in one of them.

use super::arguments::Plan;
use gapless_load::network::{NAME, failed};
use gapless_load::rpc::payloads::served;
use gapless_measure::child_process::{Child, Role};
use gapless_measure::own_directory::OwnDirectory;
use gapless_measure::{BenchError, Result};
use gapless_rpc::{CallOptions, Domain};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The script that starts a broker, from the folder of the project.
const SCRIPT: &str = "benchmarks/peers/kafka/broker";
/// The heap and the compiler of a broker that is measured.
const JAVA: &str = "-Xmx2g -XX:TieredStopAtLevel=4";
/// Longest wait for the first call.
const PATIENCE: Duration = Duration::from_secs(60);

/// Everything that a measurement needs. Parts end in this order.
pub(super) struct Places<'a> {
    /// The caller's domain.
    pub(super) domain: Domain,
    pub(super) server: Child<'a>,
    /// The caller's and the server's bridge.
    pub(super) bridges: [Child<'a>; 2],
    pub(super) brokers: String,
    _broker: Option<Child<'a>>,
    _directory: OwnDirectory,
}

#[derive(Deserialize)]
struct Listening {
    address: String,
}

impl<'a> Places<'a> {
    /// Starts all of it, and waits until a call comes through.
    ///
    /// # Errors
    /// No script, Java or Maven for a broker; a process that ends too early; no answer in a minute.
    pub(super) fn start(plan: &Plan, interrupted: &'a AtomicBool) -> Result<Self> {
        let name = format!("gapless-bench-network-{}", std::process::id());
        let directory = OwnDirectory::create(&std::env::temp_dir(), &name)?;
        let (mut broker, mut brokers) = (None, plan.brokers.clone().unwrap_or_default());
        if plan.brokers.is_none() {
            let mut started = start_broker(&directory.path().join("kafka"), interrupted)?;
            brokers = started.receive::<Listening>()?.address;
            broker = Some(started);
        }
        let (near, far) = (directory.path().join("near"), directory.path().join("far"));
        let mut server = Child::start(NAME, "the server", (Role::RpcPayloads, &far), interrupted)?;
        server.receive::<u64>()?;
        let domain = served::open(&near)?;
        let bridge = |name: &str, lists: &str, domain: &Path| {
            let file = bridge_file(directory.path(), (name, lists), &brokers, domain)?;
            Child::start(NAME, "a bridge", (Role::NetworkBridge, &file), interrupted)
        };
        let bridges =
            [bridge("near", "take = [\"payloads/*\"]", &near)?, bridge("far", "offer = [\"payloads/*\"]", &far)?];
        let patient = CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() };
        let one_way = domain.caller::<Vec<u8>, bool>(served::ONE_WAY).map_err(failed)?;
        one_way.call_with(Vec::new(), &patient).map_err(failed)?;
        let two_way = domain.caller::<Vec<u8>, Vec<u8>>(served::TWO_WAY).map_err(failed)?;
        two_way.call_with(Vec::new(), &patient).map_err(failed)?;
        Ok(Self { domain, server, bridges, brokers, _broker: broker, _directory: directory })
    }

    /// CPU time of server and bridges, ns.
    pub(super) fn cpu_ns(&mut self) -> Result<(u64, u64)> {
        let server = self.server.ask(&true)?;
        let [near, far] = &mut self.bridges;
        Ok((server, near.ask::<u64>(&true)? + far.ask::<u64>(&true)?))
    }
}

fn start_broker<'a>(data: &Path, interrupted: &'a AtomicBool) -> Result<Child<'a>> {
    let script = PathBuf::from(SCRIPT);
    if !script.is_file() {
        let reason = format!("{SCRIPT} is not here: run it in the project's folder, or name brokers with --brokers");
        return Err(BenchError::Option(reason));
    }
    let mut command = Command::new(script);
    command.env("GAPLESS_KAFKA_JAVA", JAVA).arg("--data").arg(data);
    Child::spawn(NAME, "the broker", command, interrupted)
}

fn bridge_file(folder: &Path, (name, lists): (&str, &str), brokers: &str, domain: &Path) -> Result<PathBuf> {
    let file = folder.join(format!("{name}.toml"));
    let brokers: Vec<String> = brokers.split(',').map(|broker| format!("{broker:?}")).collect();
    let text = format!(
        "{lists}\n[kafka]\nbrokers = [{}]\nname = \"{name}\"\nprefix = \"gapless-bench-{}\"\n[domain]\ndirectory = {:?}\n[limits]\ncalls_per_peer \
         = 4096\nbytes_per_peer = 268435456\n",
        brokers.join(", "),
        std::process::id(),
        domain
    );
    std::fs::write(&file, text).map_err(|source| BenchError::io("write", &file, source))?;
    Ok(file)
}
