//! A member's control socket, `cluster.socket` in its directory: a request is one line of JSON, and so is the answer.
//! For `gapless cluster …` and for scripts; the directory's permissions decide who may connect.

use super::requests::{AdminCommand, NewMember, Outcome};
use super::shared::{MemberShared, MemberStatus};
use crate::ClusterError;
use crate::config::MemberKind;
use crate::consensus::{MemberId, Parting, Role};
use gapless_agent::thread::spawn_helper;
use gapless_agent::{Waker, socket_file};
use gapless_transport::Tier;
use gapless_transport::peer_process::PeerProcess;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest request, bytes.
const REQUEST_LENGTH_MAX: u64 = 4096;
/// The longest answer that is read, bytes.
const ANSWER_LENGTH_MAX: u64 = 1 << 20;
/// The time for a connected client to send its request, and for the agent to answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The pause before the next look at a socket that is readable and gives no connection: the system has no descriptor
/// left.
const PAUSE: Duration = Duration::from_millis(5);

/// A request to a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The state of the member.
    Status,
    /// Transfer leadership to another member.
    Transfer {
        to: u64,
    },
    Add {
        member: u64,
        /// Where the other members reach it, `host:port`.
        addresses: Vec<String>,
        /// `full`, `witness` or `learner`.
        kind: String,
        /// The member that is removed when the new one becomes a voter.
        replaces: Option<u64>,
    },
    /// Let the service act as another version of itself.
    Upgrade {
        version: u32,
    },
    Remove {
        member: u64,
    },
    /// Take a snapshot of the service that runs here. Answered when the snapshot is on the device.
    Snapshot,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Status(Box<StatusReport>),
    /// The request is being carried out.
    Begun,
    Snapshot {
        member: u64,
        /// The sequence that the snapshot covers.
        sequence: u64,
    },
    /// The request had no effect, for this reason.
    Refused(String),
}

/// The state of a member, for people and programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    pub cluster: String,
    pub member: u64,
    /// `leader`, `follower` or `candidate`.
    pub role: String,
    /// The newest term that it knows.
    pub term: u64,
    /// The leader, as far as it knows.
    pub leader: Option<u64>,
    /// How durable a message is before any member releases it.
    pub tier: String,
    /// The last sequence that readers here see.
    pub released_sequence: u64,
    /// The last sequence that is journaled here.
    pub journaled_sequence: u64,
    /// Open sessions.
    pub sessions: u64,
    /// The sequence up to which frames are being fetched from the leader's journal.
    pub fetching_to: Option<u64>,
    /// Refused messages of other members, since the start.
    pub messages_refused: u64,
    /// Messages of the leader for which the window had no room, since the start.
    pub messages_dropped: u64,
    /// On a new member: the voters from which it has not received a message yet. It takes part once it has received one
    /// from each.
    #[serde(default)]
    pub waits_for: Vec<u64>,
    /// Whether its machine has lost power and it has not caught up since, so that its vote counts only with
    /// everybody's.
    #[serde(default)]
    pub is_behind: bool,
    /// The newest sequence at which the states of the full members were compared here, while this member led.
    #[serde(default)]
    pub compared_sequence: Option<u64>,
    /// The members whose logs diverge from this one's: one of the directories was replaced by an older copy, or
    /// exchanged.
    #[serde(default)]
    pub parted: Vec<PartedReport>,
    /// How often such a log was found, since the start.
    #[serde(default)]
    pub partings: u64,
    /// How far the stream's time is ahead of this machine's clock, ms; `None` as long as it is not known.
    #[serde(default)]
    pub time_ahead_ms: Option<i64>,
    pub members: Vec<MemberReport>,
}

impl StatusReport {
    /// Why the member cannot do its part, if it cannot.
    #[must_use]
    pub fn illness(&self) -> Option<&'static str> {
        if !self.parted.is_empty() {
            Some("its log and that of another member are not of one history")
        } else if !self.waits_for.is_empty() {
            Some("it does not take part yet")
        } else if self.leader.is_none() {
            Some("no leader is known")
        } else if self.is_behind {
            Some("it has not caught up since its machine lost power")
        } else {
            None
        }
    }
}

/// A member, as another one sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberReport {
    pub member: u64,
    /// `voter`, `witness`, `learner`, or `joining`: a learner that becomes a voter or a witness.
    pub kind: String,
    /// The addresses that the members have agreed on.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Whether there is a connection to it; for the reporting member itself, always true.
    pub is_connected: bool,
    /// The sequence that it has, as its leader knows; `None` on a member that does not lead, and until a new leader knows it.
    pub matched_sequence: Option<u64>,
    /// How many frames it lags, as its leader knows; `None` likewise.
    pub lag_frames: Option<u64>,
    /// Why it was refused at its last connection, if it was.
    #[serde(default)]
    pub refused: Option<String>,
}

/// Where the log of a member diverges from that of the reporting member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartedReport {
    pub member: u64,
    /// The newest sequence up to which both are known to be equal.
    pub same_sequence: Option<u64>,
    /// The oldest entry at which they are known to differ.
    pub index: u64,
    /// The last sequence up to there, as this member has it.
    pub sequence: u64,
}

impl PartedReport {
    fn new(member: MemberId, Parting { same, other }: &Parting) -> Self {
        let same_sequence = same.map(|position| position.sequence);
        Self { member: member.get(), same_sequence, index: other.index, sequence: other.sequence }
    }
}

impl StatusReport {
    fn new(cluster: &str, tier: Tier, status: &MemberStatus) -> Self {
        let consensus = &status.consensus;
        let members = &status.members;
        let report = |member: MemberId| {
            let details = members.details_of(member);
            let kind = if details.is_some_and(|details| details.joining.is_some()) {
                "joining"
            } else if members.witnesses.contains(&member) {
                "witness"
            } else if members.votes(member) {
                "voter"
            } else {
                "learner"
            };
            // Every log has a first entry: at 0 a new leader does not know yet how much that member has.
            let peer = consensus.peers.iter().find(|peer| peer.member == member && peer.matched_index > 0);
            let is_self = member == status.member;
            let leads = consensus.role == Role::Leader;
            let own = (is_self && leads).then_some((consensus.end.sequence, 0));
            let seen = peer.map(|peer| (peer.matched_sequence, peer.lag_frames)).or(own);
            MemberReport {
                member: member.get(),
                kind: kind.to_owned(),
                addresses: details.map(|details| details.addresses.clone()).unwrap_or_default(),
                is_connected: is_self || status.links.iter().any(|(other, is, _)| *other == member && *is),
                matched_sequence: seen.map(|(sequence, _)| sequence),
                lag_frames: seen.map(|(_, lag)| lag),
                refused: status.refused.iter().find(|(other, _)| *other == member).map(|(_, why)| why.clone()),
            }
        };
        let role = match consensus.role {
            Role::Leader => "leader",
            Role::Follower => "follower",
            Role::Candidate => "candidate",
        };
        Self {
            cluster: cluster.to_owned(),
            member: status.member.get(),
            role: role.to_owned(),
            term: consensus.term,
            leader: consensus.leader.map(MemberId::get),
            tier: tier.name().to_owned(),
            released_sequence: status.released_sequence,
            journaled_sequence: status.journaled_sequence,
            sessions: status.sessions,
            fetching_to: status.fetching_to,
            messages_refused: consensus.refused_messages,
            messages_dropped: status.dropped_full,
            waits_for: status.waits_for.iter().map(|member| member.get()).collect(),
            is_behind: consensus.is_behind,
            compared_sequence: status.compared_sequence,
            parted: status.parted.iter().map(|(member, parting)| PartedReport::new(*member, parting)).collect(),
            partings: status.partings,
            time_ahead_ms: status.time_ahead_ns.map(|ahead_ns| ahead_ns / 1_000_000),
            members: members.all().into_iter().map(report).collect(),
        }
    }
}

/// The socket's file is looked for this often, ns.
const FILE_CHECK_INTERVAL_NS: u64 = 500_000_000;
/// The socket in the directory of a member.
const SOCKET: &str = "cluster.socket";

/// Sends a request to the member in `directory`.
///
/// # Errors
/// No member runs there, or it does not answer.
pub fn ask(directory: &Path, request: &Request) -> Result<Answer, ClusterError> {
    ask_within(directory, request, 2 * TIMEOUT)
}

/// Like [`ask`], for requests that take longer: a snapshot.
///
/// # Errors
/// No member runs there, or it does not answer within `timeout`.
pub fn ask_within(directory: &Path, request: &Request, timeout: Duration) -> Result<Answer, ClusterError> {
    let path = directory.join(SOCKET);
    let error = |source| ClusterError::System { action: format!("asking the member at {}", path.display()), source };
    let mut stream = UnixStream::connect(&path).map_err(|source| match source.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => {
            error(std::io::Error::new(source.kind(), "it does not run"))
        }
        _ => error(source),
    })?;
    let process = PeerProcess::of(&stream);
    let failed = |source: std::io::Error| match source.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            let standstill =
                process.and_then(|process| Some(format!("process {} {}", process.id(), process.standstill()?)));
            let why = standstill.unwrap_or_else(|| "is it stopped, or stuck?".to_owned());
            let what = format!("it does not answer within {} s; {why}", timeout.as_secs_f64());
            error(std::io::Error::new(ErrorKind::TimedOut, what))
        }
        _ => error(source),
    };
    stream.set_read_timeout(Some(timeout)).map_err(failed)?;
    stream.set_write_timeout(Some(timeout)).map_err(failed)?;
    let mut line = serde_json::to_string(request).map_err(|error| failed(error.into()))?;
    line.push('\n');
    stream.write_all(line.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    BufReader::new(stream.take(ANSWER_LENGTH_MAX)).read_line(&mut answer).map_err(failed)?;
    serde_json::from_str(&answer).map_err(|error| failed(error.into()))
}

/// The thread that answers; dropping it ends it and removes the socket.
pub(super) struct ControlThread {
    path: PathBuf,
    stopping: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl ControlThread {
    /// Listens in `directory`, whose lock this process holds.
    pub fn start(directory: &Path, cluster: &str, tier: Tier, shared: Arc<MemberShared>) -> Result<Self, ClusterError> {
        let path = directory.join(SOCKET);
        let failed = |source| ClusterError::System { action: format!("listening at {}", path.display()), source };
        match std::fs::remove_file(&path) {
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
                        // A client that sends an invalid request, or disconnects, harms only itself.
                        if let Err(error) = answer(stream, &cluster, tier, &shared, &seen) {
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

/// Another socket where somebody has removed the file; `None` where it stands, or cannot be made, as without its directory.
fn listen_again(path: &Path) -> Option<UnixListener> {
    let is_missing = matches!(path.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound);
    let again = is_missing.then(|| listen(path).ok()).flatten()?;
    tracing::warn!("the socket {} was removed, and was made again", path.display());
    Some(again)
}

/// A socket of this user's: nobody connects before it has its mode, because it does not listen until then.
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
        let _ = std::fs::remove_file(&self.path);
    }
}

fn answer(
    stream: UnixStream,
    cluster: &str,
    tier: Tier,
    shared: &Arc<MemberShared>,
    stopping: &Arc<AtomicBool>,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = String::new();
    BufReader::new((&stream).take(REQUEST_LENGTH_MAX)).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(Request::Status) => match shared.status() {
            Some(status) => Answer::Status(Box::new(StatusReport::new(cluster, tier, &status))),
            None => Answer::Refused("the member has only just started; ask again".to_owned()),
        },
        Ok(Request::Transfer { to }) => match MemberId::new(to) {
            Some(to) => command(shared, AdminCommand::Transfer(to)),
            None => Answer::Refused(format!("{to} is no member")),
        },
        Ok(Request::Add { member, addresses, kind, replaces }) => {
            match new_member(member, addresses, &kind, replaces) {
                Ok(new) => command(shared, AdminCommand::Add(new)),
                Err(reason) => Answer::Refused(reason),
            }
        }
        Ok(Request::Snapshot) => return answer_snapshot(stream, shared, stopping),
        Ok(Request::Upgrade { version }) => command(shared, AdminCommand::Upgrade(version)),
        Ok(Request::Remove { member }) => match MemberId::new(member) {
            Some(member) => command(shared, AdminCommand::Remove(member)),
            None => Answer::Refused(format!("{member} is no member")),
        },
        Err(error) => Answer::Refused(format!("that is no request: {error}")),
    };
    write(&stream, &answer)
}

fn write(mut stream: &UnixStream, answer: &Answer) -> std::io::Result<()> {
    let mut text = serde_json::to_string(answer)?;
    text.push('\n');
    stream.write_all(text.as_bytes())
}

/// On a thread of its own: a large state takes a while, and other clients ask for the status meanwhile.
fn answer_snapshot(stream: UnixStream, shared: &Arc<MemberShared>, stopping: &Arc<AtomicBool>) -> std::io::Result<()> {
    let (shared, stopping) = (Arc::clone(shared), Arc::clone(stopping));
    let run = move || {
        // Relaxed: the flag guards no data.
        let answer = match shared.snapshot(&|| stopping.load(Ordering::Relaxed)) {
            Ok(sequence) => {
                let member = shared.status().map_or(0, |status| status.member.get());
                Answer::Snapshot { member, sequence }
            }
            Err(reason) => Answer::Refused(reason),
        };
        // The client may have disconnected.
        if let Err(error) = write(&stream, &answer) {
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

fn command(shared: &MemberShared, command: AdminCommand) -> Answer {
    match shared.ask(command, TIMEOUT) {
        Some(Outcome::Begun) => Answer::Begun,
        Some(Outcome::Refused(reason)) => Answer::Refused(reason.to_string()),
        Some(Outcome::NotChanged(reason)) => Answer::Refused(reason.to_string()),
        Some(Outcome::NotUpgraded(reason)) => Answer::Refused(reason),
        None => Answer::Refused("the member does not answer; it may be busy, or stopping".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn its_socket_is_of_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = listen(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        let _client = UnixStream::connect(&path).unwrap();
        assert!(listener.accept().is_ok());
    }
}
