//! Kafka 4 brokers for tests: started, killed, restarted on the same port and data, stopped.

use crate::ports::own_loopback;
use crate::process::Process;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const PORT: u16 = 9092;
const CONTROLLER_PORT: u16 = 9093;
const INTERNAL_PORT: u16 = 9094;

/// A broker with its own loopback address; ends with its test.
#[derive(Debug)]
pub struct KafkaBroker {
    host: String,
    data: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    process: Option<Process>,
    /// Metadata, and records if no other folder was given.
    folder: TempDir,
}

/// Nodes replicate each other's records; each has its own loopback address.
#[derive(Debug)]
pub struct KafkaCluster {
    nodes: Vec<KafkaBroker>,
}

impl KafkaBroker {
    /// `arguments` are those of `benchmarks/peers/kafka/broker`. Returns `None` and prints a note without Java or
    /// Maven.
    ///
    /// # Panics
    /// If it does not start, or without Java or Maven if `GAPLESS_NEEDS_BROKER` is 1.
    #[track_caller]
    pub fn start(arguments: &[&str]) -> Option<Self> {
        Self::start_at(own_loopback(), None, arguments)
    }

    /// Starts at a loopback address, with its records in `data`, such as a small disk.
    ///
    /// # Panics
    /// See [`start`](Self::start).
    #[track_caller]
    pub fn start_at(host: Ipv4Addr, data: Option<&Path>, arguments: &[&str]) -> Option<Self> {
        let mut broker = is_fetched().then(|| Self::new(host, data, arguments))?;
        broker.restart();
        Some(broker)
    }

    /// Adds environment variables, such as those of a library that shifts its clock.
    ///
    /// # Panics
    /// See [`start`](Self::start).
    #[track_caller]
    pub fn start_in(environment: &[(String, String)]) -> Option<Self> {
        let mut broker = is_fetched().then(|| Self::new(own_loopback(), None, &[]))?;
        environment.clone_into(&mut broker.environment);
        broker.restart();
        Some(broker)
    }

    /// Does not start it.
    fn new(host: Ipv4Addr, data: Option<&Path>, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let data = data.map_or_else(|| folder.path().join("data"), |data| data.join("data"));
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Self { host: host.to_string(), data, arguments, environment: Vec::new(), process: None, folder }
    }

    /// `host:port`, the same after a restart.
    pub fn address(&self) -> String {
        format!("{}:{PORT}", self.host)
    }

    /// Keeps the records, and waits until it serves.
    ///
    /// # Panics
    /// If it does not start.
    #[track_caller]
    pub fn restart(&mut self) {
        self.begin();
        self.until_serving();
    }

    /// Uses other arguments, such as another password.
    ///
    /// # Panics
    /// If it does not start.
    #[track_caller]
    pub fn restart_with(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        self.restart();
    }

    #[track_caller]
    fn begin(&mut self) {
        self.kill();
        let mut command = Command::new(script());
        command.args(["--host", &self.host, "--port", &PORT.to_string()]);
        command.args(["--controller-port", &CONTROLLER_PORT.to_string()]);
        command.args(["--internal-port", &INTERNAL_PORT.to_string()]);
        command.arg("--data").arg(&self.data).arg("--metadata").arg(self.folder.path().join("metadata"));
        command.args(&self.arguments).stdin(Stdio::piped());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        self.process = Some(Process::start(&mut command));
    }

    #[track_caller]
    fn until_serving(&mut self) {
        let line = self.process().next_line().expect("the broker starts; its reason stands above");
        assert!(line.contains(&self.address()), "the broker said {line}");
    }

    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Returns its output; `benchmarks/peers/kafka/README.md` lists the arguments.
    ///
    /// # Panics
    /// If the client fails.
    #[track_caller]
    pub fn java_client(&self, arguments: &[&str]) -> String {
        run_java("--peer", &self.address(), arguments)
    }

    /// Adds permissions, `USER:OPERATION:TOPIC_PREFIX`, at run time.
    ///
    /// # Panics
    /// If the broker refuses.
    #[track_caller]
    pub fn allow(&self, rules: &[&str]) {
        run_java("--operator", &format!("{}:{INTERNAL_PORT}", self.host), &[&["allow"], rules].concat());
    }

    /// Returns the running process.
    ///
    /// # Panics
    /// If it was killed.
    #[track_caller]
    pub fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("it runs")
    }
}

impl KafkaCluster {
    /// `None` as for [`KafkaBroker::start`].
    ///
    /// # Panics
    /// See [`KafkaBroker::start`].
    #[track_caller]
    pub fn start(count: usize, arguments: &[&str]) -> Option<Self> {
        if !is_fetched() {
            return None;
        }
        let hosts: Vec<_> = (0..count).map(|_| own_loopback()).collect();
        let voters = (1..).zip(&hosts).map(|(id, host)| format!("{id}@{host}:{CONTROLLER_PORT}"));
        let voters = voters.collect::<Vec<_>>().join(",");
        let node = |(id, host): (usize, &Ipv4Addr)| {
            let id = id.to_string();
            KafkaBroker::new(*host, None, &[&["--node", &id, "--voters", &voters][..], arguments].concat())
        };
        let mut nodes: Vec<_> = (1..).zip(&hosts).map(node).collect();
        // Small heaps, because all nodes run next to the tested program; no log of each retry.
        let java = "-Xmx384m -Dorg.slf4j.simpleLogger.defaultLogLevel=off".to_owned();
        let java = ("GAPLESS_KAFKA_JAVA".to_owned(), java);
        nodes.iter_mut().for_each(|node| node.environment.push(java.clone()));
        // All start before the first wait: no node serves before most of them run.
        nodes.iter_mut().for_each(KafkaBroker::begin);
        nodes.iter_mut().for_each(KafkaBroker::until_serving);
        Some(Self { nodes })
    }

    pub fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(KafkaBroker::address).collect()
    }

    /// Number of the leader of partition 0.
    ///
    /// # Panics
    /// If there is no such topic.
    #[track_caller]
    pub fn leader(&self, topic: &str) -> usize {
        let alive = self.nodes.iter().find(|node| node.process.is_some()).expect("a node runs");
        let id = run_java("--operator", &alive.address(), &["leader", topic]);
        id.trim().parse::<usize>().expect("the client prints a number") - 1
    }

    /// Numbers begin at 0.
    pub fn node(&mut self, number: usize) -> &mut KafkaBroker {
        &mut self.nodes[number]
    }
}

#[cfg(feature = "certificates")]
pub struct CertificateAuthority(rcgen::Issuer<'static, rcgen::KeyPair>);

#[cfg(feature = "certificates")]
impl CertificateAuthority {
    /// Writes its certificate to `ca.pem`.
    ///
    /// # Panics
    /// If the folder cannot be written.
    pub fn new(folder: &Path) -> Self {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut authority = rcgen::CertificateParams::new(Vec::new()).expect("an authority without names");
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let pem = authority.self_signed(&key).expect("a certificate").pem();
        std::fs::write(folder.join("ca.pem"), pem).expect("the folder can be written");
        Self(rcgen::Issuer::new(authority, key))
    }

    /// Writes key and certificate to `broker.pem`, valid until the first day of a year.
    ///
    /// # Panics
    /// If the folder cannot be written.
    pub fn certify(&self, folder: &Path, host: Ipv4Addr, until_year: i32) {
        let mut broker = rcgen::CertificateParams::new(vec![host.to_string()]).expect("an address is a name");
        broker.distinguished_name.push(rcgen::DnType::CommonName, "broker");
        broker.not_before = rcgen::date_time_ymd(2000, 1, 1);
        broker.not_after = rcgen::date_time_ymd(until_year, 1, 1);
        broker.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = broker.signed_by(&key, &self.0).expect("a certificate");
        let pem = key.serialize_pem() + &certificate.pem();
        std::fs::write(folder.join("broker.pem"), pem).expect("the folder can be written");
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks/peers/kafka/broker")
}

/// The address follows the first argument.
#[track_caller]
fn run_java(client: &str, address: &str, arguments: &[&str]) -> String {
    let (name, others) = arguments.split_first().expect("the first argument says what to do");
    let mut command = Command::new(script());
    let output = command.args([client, name, address]).args(others).stdin(Stdio::null()).output();
    let output = output.expect("the script of the broker is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {}: {said}", output.status);
    String::from_utf8(output.stdout).expect("the client prints text")
}

/// Downloads once; false and a note if a program is missing.
#[track_caller]
fn is_fetched() -> bool {
    // The script's exit code.
    const MISSING: i32 = 3;
    let output = Command::new(script()).arg("--fetch").output().expect("the script of the broker is there");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return true;
    }
    let is_missing = output.status.code() == Some(MISSING);
    let is_needed = std::env::var_os("GAPLESS_NEEDS_BROKER").is_some_and(|value| value == "1");
    assert!(is_missing && !is_needed, "Kafka cannot be fetched: {}: {said}", output.status);
    println!("SKIPPED: {}", said.trim());
    false
}
