//! The backup of a clustered run: waits for a primary, runs the member and the service that its requests describe, and
//! reports the state of the service. A child process on one machine, a command on two hosts. Both sides exchange lines
//! of JSON over TCP.

use super::hot_threads::{NamedThread, of_this_process};
use super::{NAME, failed};
use crate::child_process::{OrphanPolicy, Parent, write_line};
use crate::options::{MessageEncoding, ServiceKind};
use crate::own_directory::OwnDirectory;
use crate::ports::free_ports;
use crate::resources::process_cpu_ns;
use crate::{BenchError, Result};
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::consensus::MemberId;
use gapless_cluster::member::requests::AdminCommand;
use gapless_engine::Replica;
use gapless_load::canonical::form::CarFunctions;
use gapless_wire::checksum::crc32c;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const LINE_LENGTH_MAX: u64 = 1 << 20;
/// Silence after which the other side counts as gone.
const TIMEOUT: Duration = Duration::from_secs(60);
pub(super) const PRIMARY: u64 = 1;
pub(super) const BACKUP: u64 = 2;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BackupRequest {
    Clock,
    Port,
    Start(Box<BackupAssignment>),
    HandOver,
    State,
    Stop,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BackupAssignment {
    /// The member's file, but for its directory.
    pub config: String,
    pub encoding: String,
    /// Event sourcing or state replication.
    pub program: String,
    /// Parent of the directory of a backup on the primary's machine.
    pub parent: Option<PathBuf>,
    pub is_kept: bool,
}

/// Options of a backup that is a command of its own.
#[derive(Default)]
pub(super) struct BackupSettings {
    /// Parent of its directory, which stays.
    pub log_location: Option<PathBuf>,
    /// CPUs of the member, in the place of those that its primary says.
    pub cpus: Option<Vec<usize>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BackupAnswer {
    /// ns since the epoch.
    Clock(u64),
    Port(u16),
    Done,
    Started {
        cpus: Option<String>,
        plan: Vec<String>,
    },
    State(CopySnapshot),
    /// CPU time of this process since its start, ns, and its threads.
    Stopped {
        cpu_ns: u64,
        threads: Vec<NamedThread>,
    },
    Failed(String),
}

/// The state of one instance of the service: two instances that have handled the same messages are equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CopySnapshot {
    pub sequence: u64,
    pub length_bytes: u64,
    /// CRC-32C of the snapshot.
    pub checksum: u32,
}

impl CopySnapshot {
    pub(super) fn of(directory: &Path, sequence: u64) -> Result<Self> {
        let path = directory.join("snapshots").join(format!("{sequence:020}.snapshot"));
        let bytes = std::fs::read(&path).map_err(|source| BenchError::io("read", &path, source))?;
        Ok(Self { sequence, length_bytes: bytes.len() as u64, checksum: crc32c(&bytes) })
    }
}

pub(super) struct BackupConnection {
    reader: BufReader<TcpStream>,
    actions: ActionTexts,
}

#[derive(Clone, Copy)]
struct ActionTexts {
    send: &'static str,
    receive: &'static str,
}

const WITH_BACKUP: ActionTexts = ActionTexts { send: "send to the backup", receive: "receive from the backup" };
const WITH_PRIMARY: ActionTexts = ActionTexts { send: "send to the primary", receive: "receive from the primary" };

impl BackupConnection {
    pub(super) fn to(address: &str) -> Result<Self> {
        let cannot = |source| BenchError::System { action: "reach the backup", source };
        let mut last = std::io::Error::other(format!("{address} is no address"));
        for address in address.to_socket_addrs().map_err(cannot)? {
            match TcpStream::connect_timeout(&address, Duration::from_secs(10)) {
                Ok(stream) => return Self::over(stream, WITH_BACKUP),
                Err(error) => last = error,
            }
        }
        Err(cannot(last))
    }

    fn over(stream: TcpStream, actions: ActionTexts) -> Result<Self> {
        let prepared = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(TIMEOUT)));
        prepared.map_err(|source| BenchError::system("prepare the connection to the other side", source))?;
        Ok(Self { reader: BufReader::new(stream), actions })
    }

    pub(super) fn own_ip(&self) -> Result<IpAddr> {
        let address = self.reader.get_ref().local_addr();
        Ok(address.map_err(|source| BenchError::system("look at the connection to the backup", source))?.ip())
    }

    pub(super) fn other_ip(&self) -> Result<IpAddr> {
        let address = self.reader.get_ref().peer_addr();
        Ok(address.map_err(|source| BenchError::system("look at the connection to the backup", source))?.ip())
    }

    fn send(&mut self, value: &impl Serialize) -> Result<()> {
        let written = write_line(self.reader.get_mut(), value);
        written.map_err(|source| BenchError::system(self.actions.send, source))
    }

    fn receive(&mut self) -> Result<Option<String>> {
        let mut line = String::new();
        let read = (&mut self.reader).take(LINE_LENGTH_MAX).read_line(&mut line);
        match read.map_err(|source| BenchError::system(self.actions.receive, source))? {
            0 => Ok(None),
            _ => Ok(Some(line)),
        }
    }

    pub(super) fn ask(&mut self, request: &BackupRequest) -> Result<BackupAnswer> {
        self.send(request)?;
        let line = self.receive()?;
        Self::parse_answer(line.as_deref())
    }

    /// Asks while `turn` is called again and again; its failure ends the waiting. For a primary whose agents take turns
    /// on this thread: the backup may need them for its answer.
    pub(super) fn ask_while(
        &mut self,
        request: &BackupRequest,
        mut turn: impl FnMut() -> Result<usize>,
    ) -> Result<BackupAnswer> {
        self.send(request)?;
        let receive = self.actions.receive;
        let cannot = |source| BenchError::system(receive, source);
        self.reader.get_ref().set_nonblocking(true).map_err(cannot)?;
        let since = Instant::now();
        let mut line = String::new();
        let received = loop {
            // A part of a line that has arrived stays in the buffer.
            match (&mut self.reader).take(LINE_LENGTH_MAX).read_line(&mut line) {
                Ok(length) => break Ok(length > 0),
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => break Err(cannot(error)),
                Err(_) if since.elapsed() > TIMEOUT => {
                    break Err(failed(format!("the backup has not answered for {} s", TIMEOUT.as_secs())));
                }
                Err(_) => {}
            }
            if let Err(error) = turn() {
                break Err(error);
            }
        };
        self.reader.get_ref().set_nonblocking(false).map_err(cannot)?;
        Self::parse_answer(received?.then_some(&*line))
    }

    fn parse_answer(line: Option<&str>) -> Result<BackupAnswer> {
        let line = line.ok_or_else(|| failed("the backup has gone"))?;
        match serde_json::from_str(line)? {
            BackupAnswer::Failed(reason) => Err(failed(format!("the backup: {reason}"))),
            answer => Ok(answer),
        }
    }

    /// Lead of the other side's clock, ns, and its uncertainty: half of the round trip.
    pub(super) fn clock_offset_ns(&mut self) -> Result<(i64, u64)> {
        let mut best = (0, u64::MAX);
        for _ in 0..200 {
            let before = epoch_ns();
            let BackupAnswer::Clock(there) = self.ask(&BackupRequest::Clock)? else {
                return Err(not_answered("the time"));
            };
            let after = epoch_ns();
            let uncertainty = after.saturating_sub(before) / 2;
            if uncertainty < best.1 {
                best = (there as i64 - (before + uncertainty) as i64, uncertainty);
            }
        }
        Ok(best)
    }
}

pub(super) fn not_answered(asked: &str) -> BenchError {
    failed(format!("the backup was asked for {asked} and answered something else; is it of another version?"))
}

fn epoch_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// A backup as a child of its primary: answers where it listens, serves it, and ends with it.
pub(crate) fn main() -> Result<()> {
    let parent = Parent::listen(NAME, OrphanPolicy::Notice)?;
    let listener = listen("127.0.0.1:0")?;
    let address = listener.local_addr().map_err(|source| BenchError::system("look at the port", source))?;
    parent.send(&address)?;
    serve(&listener, &BackupSettings::default(), &|| parent.check_running().is_err())
}

/// A backup as a command of its own: serves one primary after another until it is interrupted.
pub(super) fn run(address: &str, own: &BackupSettings, interrupted: &AtomicBool) -> Result<()> {
    let listener = listen(address)?;
    eprintln!("backup: waits at {address} for its primary; Ctrl-C ends it");
    let is_over = || interrupted.load(Ordering::Relaxed);
    while !is_over() {
        match serve(&listener, own, &is_over) {
            Ok(()) => eprintln!("backup: the primary has gone; waits for another"),
            Err(error) => eprintln!("backup: {error}; waits for another primary"),
        }
    }
    Ok(())
}

fn listen(address: &str) -> Result<TcpListener> {
    let addresses: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|source| BenchError::System { action: "look up the backup's address", source })?
        .collect();
    TcpListener::bind(&addresses[..]).map_err(|source| BenchError::system("listen for a primary", source))
}

fn serve(listener: &TcpListener, own: &BackupSettings, is_over: &dyn Fn() -> bool) -> Result<()> {
    let cannot = |source| BenchError::system("listen for a primary", source);
    listener.set_nonblocking(true).map_err(cannot)?;
    let stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if is_over() {
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(cannot(error)),
        }
    };
    stream.set_nonblocking(false).map_err(cannot)?;
    let mut connection = BackupConnection::over(stream, WITH_PRIMARY)?;
    let mut running: Option<RunningBackup> = None;
    // A row of a long run is longer than a question may take to be answered.
    let no_limit = connection.reader.get_ref().set_read_timeout(None);
    no_limit.map_err(cannot)?;
    while let Some(text) = connection.receive()? {
        let request = serde_json::from_str(&text)?;
        let answer =
            carry_out(request, &mut running, own).unwrap_or_else(|error| BackupAnswer::Failed(error.to_string()));
        connection.send(&answer)?;
    }
    Ok(())
}

struct RunningBackup {
    /// Before its directory: it writes there until it has stopped.
    replica: Replica,
    directory: OwnDirectory,
    cpu_before_ns: u64,
    cpus: Option<String>,
}

fn carry_out(
    request: BackupRequest,
    running: &mut Option<RunningBackup>,
    own: &BackupSettings,
) -> Result<BackupAnswer> {
    let none = || failed("no member runs here");
    match request {
        BackupRequest::Clock => Ok(BackupAnswer::Clock(epoch_ns())),
        BackupRequest::Port => Ok(BackupAnswer::Port(free_ports(Ipv4Addr::UNSPECIFIED.into(), 1)?[0])),
        BackupRequest::Start(assignment) => {
            *running = None;
            let started = running.insert(start(&assignment, own)?);
            let plan = started.replica.plan().to_string().lines().map(|line| line.trim().to_owned()).collect();
            Ok(BackupAnswer::Started { cpus: started.cpus.clone(), plan })
        }
        BackupRequest::HandOver => {
            let running = running.as_ref().ok_or_else(none)?;
            let to = MemberId::new(PRIMARY).expect("it is not 0");
            // Refused where this one does not lead, which is as good.
            let _ = running.replica.member().ask(AdminCommand::Transfer(to), TIMEOUT);
            Ok(BackupAnswer::Done)
        }
        BackupRequest::State => {
            let RunningBackup { replica, directory, .. } = running.as_ref().ok_or_else(none)?;
            let sequence = replica.snapshot().map_err(failed)?;
            Ok(BackupAnswer::State(CopySnapshot::of(directory.path(), sequence)?))
        }
        BackupRequest::Stop => {
            let stopped = running.take().ok_or_else(none)?;
            let (cpu_ns, threads) = (process_cpu_ns() - stopped.cpu_before_ns, of_this_process());
            if let Some(failure) = stopped.replica.failure() {
                return Err(failed(failure));
            }
            Ok(BackupAnswer::Stopped { cpu_ns, threads })
        }
    }
}

fn start(assignment: &BackupAssignment, own: &BackupSettings) -> Result<RunningBackup> {
    let encoding: MessageEncoding = assignment.encoding.parse().map_err(BenchError::Option)?;
    let directory = match (&assignment.parent, &own.log_location) {
        (Some(parent), _) => OwnDirectory::create(parent, "backup")?.kept(assignment.is_kept),
        (None, Some(parent)) => OwnDirectory::create_with_parent(parent, "gapless-canonical-backup")?.kept(true),
        (None, None) => OwnDirectory::create(Path::new("."), &format!(".gapless-backup-{}", std::process::id()))?,
    };
    let mut text = assignment.config.clone();
    if let Some(cpus) = &own.cpus {
        text = text.lines().filter(|line| !line.starts_with(CPUS_KEY)).map(|line| format!("{line}\n")).collect();
        text += &cpus_line(cpus);
    }
    let config = parse(&text, directory.path())?;
    let cpu_before_ns = process_cpu_ns();
    let program = if assignment.program == ServiceKind::Sr.name() { ServiceKind::Sr } else { ServiceKind::Es };
    let started = CarFunctions::of(encoding).start_replica(program, false, &config);
    let replica = started.map_err(failed)?;
    let cpus = config.event_stream_options().sequencer_cpus.map(|cpus| cpus.to_string());
    Ok(RunningBackup { replica, directory, cpu_before_ns, cpus })
}

const CPUS_KEY: &str = "sequencer_cpus";

pub(super) fn cpus_line(cpus: &[usize]) -> String {
    let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
    format!("{CPUS_KEY} = \"{}\"\n", list.join(","))
}

pub(super) fn parse(config: &str, directory: &Path) -> Result<ClusterConfig> {
    let text = config.replace("[stream]\n", &format!("[stream]\ndirectory = {:?}\n", directory.display().to_string()));
    ClusterConfig::parse(&text, "canonical").map_err(failed)
}
