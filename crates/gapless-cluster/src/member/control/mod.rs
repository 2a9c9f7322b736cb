//! Control socket of a member, `cluster.socket` in its directory: a request is one line of JSON, and so is the answer.

mod line_stream;
mod status_report;

pub use status_report::{DivergenceReport, MemberReport, StatusReport};

use super::requests::{AdminCommand, AdminOutcome, NewMember};
use super::shared::MemberShared;
use crate::ClusterError;
use crate::config::MemberKind;
use crate::consensus::MemberId;
use gapless_agent::checked_file;
use gapless_agent::thread::spawn_helper;
use gapless_agent::{Waker, socket_file};
use gapless_transport::Tier;
use gapless_transport::peer_process::PeerProcess;
use line_stream::LineStream;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const REQUEST_LENGTH_MAX: usize = 4096;
const ANSWER_LENGTH_MAX: usize = 1 << 20;
/// Each for a client's request, the agent's answer, and its transmission.
const TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AdminRequest {
    Status,
    Transfer {
        to: u64,
    },
    Add {
        member: u64,
        addresses: Vec<String>,
        kind: String,
        /// Removed when the new member becomes a voter.
        replaces: Option<u64>,
    },
    Upgrade {
        version: u32,
    },
    Remove {
        member: u64,
    },
    /// Snapshot of the service here; answered once it is on the device.
    Snapshot,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminAnswer {
    Status(Box<StatusReport>),
    Begun,
    Snapshot {
        member: u64,
        sequence: u64,
    },
    /// The request had no effect, for this reason.
    Refused(String),
}

const FILE_CHECK_INTERVAL_NS: u64 = 500_000_000;
const SOCKET: &str = "cluster.socket";

/// Sends a request to the member in `directory`.
///
/// # Errors
/// No member runs there, or it does not answer.
pub fn ask(directory: &Path, request: &AdminRequest) -> Result<AdminAnswer, ClusterError> {
    ask_within(directory, request, 2 * TIMEOUT)
}

/// Like [`ask`], for longer requests such as a snapshot.
///
/// # Errors
/// No member runs there, or no answer within `timeout`.
pub fn ask_within(directory: &Path, request: &AdminRequest, timeout: Duration) -> Result<AdminAnswer, ClusterError> {
    let path = directory.join(SOCKET);
    let error = |source| ClusterError::System { action: format!("asking the member at {}", path.display()), source };
    let silent = |process: Option<PeerProcess>| {
        let standstill =
            process.and_then(|process| Some(format!("process {} {}", process.id(), process.standstill()?)));
        let why = standstill.unwrap_or_else(|| match process {
            Some(process) => format!("is process {} stopped, or stuck?", process.id()),
            None => "is it stopped, or stuck?".to_owned(),
        });
        let what = format!("it does not answer within {} s; {why}", timeout.as_secs_f64());
        error(std::io::Error::new(ErrorKind::TimedOut, what))
    };
    let stream = LineStream::connect(&path, Instant::now() + timeout).map_err(|source| match source.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => {
            error(std::io::Error::new(source.kind(), "it does not run"))
        }
        ErrorKind::TimedOut => silent(lock_holder_process(directory)),
        _ => error(source),
    })?;
    let failed = |source: std::io::Error| match source.kind() {
        ErrorKind::TimedOut => silent(PeerProcess::of(stream.stream())),
        _ => error(source),
    };
    let line = serde_json::to_string(request).map_err(|error| failed(error.into()))?;
    stream.write_line(&line).map_err(failed)?;
    let answer = stream.read_line(ANSWER_LENGTH_MAX).map_err(failed)?;
    serde_json::from_str(&answer).map_err(|error| failed(error.into()))
}

/// The holder of the directory's lock has written its process number there.
fn lock_holder_process(directory: &Path) -> Option<PeerProcess> {
    let holder = gapless_journal::lock_holder(directory).ok()??;
    let (number, _) = holder.strip_prefix("process ")?.split_once(' ')?;
    number.parse().ok().map(PeerProcess::numbered)
}

/// Dropping ends the thread and removes the socket.
pub(super) struct ControlThread {
    path: PathBuf,
    stopping: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl ControlThread {
    /// Listens in `directory`, whose lock this process holds.
    pub fn start(directory: &Path, cluster: &str, tier: Tier, shared: Arc<MemberShared>) -> Result<Self, ClusterError> {
        Self::start_with(directory, cluster, tier, shared, TIMEOUT)
    }

    fn start_with(
        directory: &Path,
        cluster: &str,
        tier: Tier,
        shared: Arc<MemberShared>,
        request_timeout: Duration,
    ) -> Result<Self, ClusterError> {
        let path = directory.join(SOCKET);
        let failed = |source| ClusterError::System { action: format!("listening at {}", path.display()), source };
        match checked_file::remove(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut listener = listen(&path).map_err(failed)?;
        let stopping = Arc::<AtomicBool>::default();
        let waker = Waker::new().map_err(failed)?;
        let (seen, cluster, own_waker, own_path) =
            (Arc::clone(&stopping), cluster.to_owned(), waker.clone(), path.clone());
        let run = move || {
            // Relaxed: the flag guards no data.
            while !seen.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        // A client with an invalid request harms only itself.
                        let deadline = Instant::now() + request_timeout;
                        if let Err(error) = answer(stream, deadline, &cluster, tier, &shared, &seen) {
                            tracing::debug!(%error, "a request was not answered");
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        own_waker.wait_watching(FILE_CHECK_INTERVAL_NS, &[listener.as_fd()]);
                        if let Some(again) = listen_again(&own_path) {
                            listener = again;
                        }
                    }
                    Err(_) => std::thread::sleep(PAUSE),
                }
            }
        };
        let thread = spawn_helper("gapless-cluster", run).map_err(ClusterError::Agent)?;
        Ok(Self { path, stopping, waker, thread: Some(thread) })
    }
}

/// Replaces a removed socket file; `None` if it exists, or cannot be made.
fn listen_again(path: &Path) -> Option<UnixListener> {
    let is_missing = matches!(path.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound);
    let again = is_missing.then(|| listen(path).ok()).flatten()?;
    tracing::warn!("the socket {} was removed, and was made again", path.display());
    Some(again)
}

/// Opens a socket for this user alone: it listens only after its mode is set.
fn listen(path: &Path) -> std::io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    socket_file::bind_for_user(&socket, path, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, 128)?;
    Ok(socket.into())
}

impl Drop for ControlThread {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.waker.interrupt();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = checked_file::remove(&self.path);
    }
}

fn answer(
    stream: UnixStream,
    deadline: Instant,
    cluster: &str,
    tier: Tier,
    shared: &Arc<MemberShared>,
    stopping: &Arc<AtomicBool>,
) -> std::io::Result<()> {
    let stream = LineStream::accepted(stream, deadline, Arc::clone(stopping))?;
    let line = stream.read_line(REQUEST_LENGTH_MAX)?;
    let answer = match serde_json::from_str(&line) {
        Ok(AdminRequest::Status) => match shared.status() {
            Some(status) => AdminAnswer::Status(Box::new(StatusReport::new(cluster, tier, &status))),
            None => AdminAnswer::Refused("the member has only just started; ask again".to_owned()),
        },
        Ok(AdminRequest::Transfer { to }) => match MemberId::new(to) {
            Some(to) => command(shared, AdminCommand::Transfer(to)),
            None => AdminAnswer::Refused(format!("{to} is no member")),
        },
        Ok(AdminRequest::Add { member, addresses, kind, replaces }) => {
            match new_member(member, addresses, &kind, replaces) {
                Ok(new) => command(shared, AdminCommand::Add(new)),
                Err(reason) => AdminAnswer::Refused(reason),
            }
        }
        Ok(AdminRequest::Snapshot) => return answer_snapshot(stream, shared, stopping),
        Ok(AdminRequest::Upgrade { version }) => command(shared, AdminCommand::Upgrade(version)),
        Ok(AdminRequest::Remove { member }) => match MemberId::new(member) {
            Some(member) => command(shared, AdminCommand::Remove(member)),
            None => AdminAnswer::Refused(format!("{member} is no member")),
        },
        Err(error) => AdminAnswer::Refused(format!("that is no request: {error}")),
    };
    write(stream, &answer)
}

fn write(stream: LineStream, answer: &AdminAnswer) -> std::io::Result<()> {
    stream.until(Instant::now() + TIMEOUT).write_line(&serde_json::to_string(answer)?)
}

/// On a separate thread: a large state takes a while, and other clients ask for the status meanwhile.
fn answer_snapshot(stream: LineStream, shared: &Arc<MemberShared>, stopping: &Arc<AtomicBool>) -> std::io::Result<()> {
    let (shared, stopping) = (Arc::clone(shared), Arc::clone(stopping));
    let run = move || {
        // Relaxed: the flag guards no data.
        let answer = match shared.snapshot(&|| stopping.load(Ordering::Relaxed)) {
            Ok(sequence) => {
                let member = shared.status().map_or(0, |status| status.member.get());
                AdminAnswer::Snapshot { member, sequence }
            }
            Err(reason) => AdminAnswer::Refused(reason),
        };
        // The client may have disconnected.
        if let Err(error) = write(stream, &answer) {
            tracing::debug!(%error, "a request was not answered");
        }
    };
    spawn_helper("gapless-asked", run).map(drop).map_err(std::io::Error::other)
}

fn new_member(member: u64, addresses: Vec<String>, kind: &str, replaces: Option<u64>) -> Result<NewMember, String> {
    let id = |number| MemberId::new(number).ok_or_else(|| format!("{number} is no number of a member"));
    let found = MemberKind::NAMES.iter().find(|(name, _)| *name == kind);
    let Some((_, kind)) = found else { return Err(format!("{kind:?} is no kind of member")) };
    Ok(NewMember { member: id(member)?, addresses, kind: *kind, replaces: replaces.map(id).transpose()? })
}

fn command(shared: &MemberShared, command: AdminCommand) -> AdminAnswer {
    match shared.ask(command, TIMEOUT) {
        Some(AdminOutcome::Begun) => AdminAnswer::Begun,
        Some(AdminOutcome::Refused(reason)) => AdminAnswer::Refused(reason.to_string()),
        Some(AdminOutcome::NotChanged(reason)) => AdminAnswer::Refused(reason.to_string()),
        Some(AdminOutcome::NotUpgraded(reason)) => AdminAnswer::Refused(reason),
        None => AdminAnswer::Refused("the member does not answer; it may be busy, or stopping".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_journal::DirectoryLock;
    use gapless_testkit::wait::until;
    use gapless_transport::socket_path::connect_stream;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn socket_belongs_to_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = listen(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        let _client = UnixStream::connect(&path).unwrap();
        assert!(listener.accept().is_ok());
    }

    fn trickle(mut stream: UnixStream) -> usize {
        let mut sent = 0;
        while stream.write_all(b" ").is_ok() {
            sent += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
        sent
    }

    #[test]
    fn full_backlog_times_out() {
        let folder = tempfile::tempdir().unwrap();
        let _lock = DirectoryLock::take(folder.path()).unwrap();
        let _listener = listen(&folder.path().join(SOCKET)).unwrap();
        let mut waiting = Vec::new();
        while let Ok(socket) = connect_stream(&folder.path().join(SOCKET)) {
            waiting.push(socket);
        }
        let told = ask_within(folder.path(), &AdminRequest::Status, Duration::from_millis(20)).unwrap_err().to_string();
        let expected = format!("within 0.02 s; is process {} stopped, or stuck?", std::process::id());
        assert!(told.ends_with(&expected), "{told}");
    }

    #[test]
    fn trickled_answer_times_out() {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let trickling = std::thread::spawn(move || trickle(listener.accept().unwrap().0));
        let told =
            ask_within(folder.path(), &AdminRequest::Status, Duration::from_millis(200)).unwrap_err().to_string();
        assert!(told.contains("within 0.2 s"), "{told}");
        assert!(trickling.join().unwrap() <= 200);
    }

    #[test]
    fn trickled_request_times_out() {
        let folder = tempfile::tempdir().unwrap();
        let shared = Arc::new(MemberShared::new(Waker::new().unwrap()));
        let timeout = Duration::from_millis(200);
        let _control = ControlThread::start_with(folder.path(), "cluster", Tier::Quorum, shared, timeout).unwrap();
        let sent = trickle(UnixStream::connect(folder.path().join(SOCKET)).unwrap());
        assert!(sent < REQUEST_LENGTH_MAX, "{sent}");
        until("the next request is answered", || {
            matches!(ask(folder.path(), &AdminRequest::Status), Ok(AdminAnswer::Refused(_)))
        });
    }

    #[test]
    fn trickled_request_delays_no_stop() {
        let (client, server) = UnixStream::pair().unwrap();
        let stopping = Arc::<AtomicBool>::default();
        let shared = Arc::new(MemberShared::new(Waker::new().unwrap()));
        let asking = std::thread::spawn({
            let stopping = Arc::clone(&stopping);
            move || {
                (&client).write_all(b" ").unwrap();
                stopping.store(true, Ordering::Relaxed);
                trickle(client)
            }
        });
        let deadline = Instant::now() + TIMEOUT;
        let ended = answer(server, deadline, "cluster", Tier::Quorum, &shared, &stopping).unwrap_err().to_string();
        assert_eq!(ended, "the member stops");
        assert!(asking.join().unwrap() < REQUEST_LENGTH_MAX);
    }
}
