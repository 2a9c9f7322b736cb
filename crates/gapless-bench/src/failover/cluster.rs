//! [`BenchCluster`]: members, each a process of this program, with the settings of `gapless cluster new`.

use super::failed;
use crate::child_process::{Child, ChildRole};
use crate::own_directory::OwnDirectory;
use crate::ports::free_ports;
use crate::{BenchError, Result};
use gapless::prelude::Duration;
use gapless_client::stream_layout::StreamLayout;
use gapless_load::failover::member::{MemberProcessAnswer, MemberProcessAssignment, MemberProcessRequest};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

pub(super) const MEMBERS: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(120);
/// Between two looks at a member: each costs it a wake-up.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The kinds of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Membership {
    /// Three that vote and run the service
    Full,
    /// A primary and its backup, and a third that only stores and votes
    Witness,
}

impl Membership {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Full => "3 full members",
            Self::Witness => "primary + backup + witness",
        }
    }

    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Witness => "witness",
        }
    }

    const fn serves(self, member: usize) -> bool {
        matches!(self, Self::Full) || member != MEMBERS
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct BenchMemberStatus {
    pub leads: bool,
    pub connected: u64,
    pub handled: u64,
}

/// Members from 1 on; dropping kills them and removes their directory.
pub(super) struct BenchCluster<'a> {
    // Dropped before the directory, which they would go on filling.
    members: Vec<Option<Child<'a>>>,
    root: OwnDirectory,
    membership: Membership,
    interrupted: &'a AtomicBool,
    pub plan: String,
}

impl<'a> BenchCluster<'a> {
    pub fn start(parent: &Path, membership: Membership, interrupted: &'a AtomicBool) -> Result<Self> {
        let name = format!(".gapless-failover-{}-{}", std::process::id(), membership.key());
        let root = OwnDirectory::create(parent, &name)?;
        let members = (0..MEMBERS).map(|_| None).collect();
        let mut cluster = Self { root, membership, members, interrupted, plan: String::new() };
        let ports = free_ports(Ipv4Addr::LOCALHOST.into(), MEMBERS)?;
        for member in 1..=MEMBERS {
            let path = cluster.file(member);
            let text = cluster.text(member, &ports);
            std::fs::write(&path, text).map_err(|source| BenchError::io("write", &path, source))?;
        }
        for member in 1..=MEMBERS {
            cluster.start_one(member)?;
        }
        Ok(cluster)
    }

    fn file(&self, member: usize) -> PathBuf {
        self.root.path().join(format!("member-{member}.toml"))
    }

    fn text(&self, member: usize, ports: &[u16]) -> String {
        let mut text = format!("[cluster]\nname = \"failover\"\nmember = {member}\n");
        for (at, port) in ports.iter().enumerate() {
            let kind = if self.membership.serves(at + 1) { "full" } else { "witness" };
            text += &format!("[[member]]\nid = {}\naddresses = [\"127.0.0.1:{port}\"]\nkind = \"{kind}\"\n", at + 1);
        }
        text + &format!("[stream]\ndirectory = \"member-{member}\"\n")
    }

    pub fn start_one(&mut self, member: usize) -> Result<()> {
        let file = std::fs::canonicalize(self.file(member));
        let file = file.map_err(|source| BenchError::io("find", &self.file(member), source))?;
        let (name, assignment) = (format!("member {member}"), MemberProcessAssignment { file });
        let mut process = Child::start(super::NAME, &name, (ChildRole::FailoverMember, &assignment), self.interrupted)?;
        let MemberProcessAnswer::Running(plan) = process.receive()? else {
            return Err(failed(format!("{name} did not answer that it runs")));
        };
        self.plan = plan;
        self.members[member - 1] = Some(process);
        Ok(())
    }

    pub fn sockets(&self) -> Vec<PathBuf> {
        let socket = |member| StreamLayout::new(self.root.path().join(format!("member-{member}"))).socket();
        (1..=MEMBERS).filter(|member| self.membership.serves(*member)).map(socket).collect()
    }

    pub fn follower(&self, leader: usize) -> Result<usize> {
        let is_one =
            |member: &usize| *member != leader && self.membership.serves(*member) && self.members[member - 1].is_some();
        let all = (leader..leader + MEMBERS).map(|at| at % MEMBERS + 1);
        all.into_iter().find(is_one).ok_or_else(|| failed("only one member runs the service"))
    }

    pub fn ask(&mut self, member: usize, request: MemberProcessRequest) -> Result<MemberProcessAnswer> {
        let process = self.members[member - 1].as_mut().expect("only who runs is asked");
        match process.ask(&request)? {
            MemberProcessAnswer::Refused(reason) => Err(failed(format!("member {member}: {reason}"))),
            answer => Ok(answer),
        }
    }

    pub fn status(&mut self, member: usize) -> Result<BenchMemberStatus> {
        match self.ask(member, MemberProcessRequest::Status)? {
            MemberProcessAnswer::Status { leads, connected, handled } => {
                Ok(BenchMemberStatus { leads, connected, handled })
            }
            other => Err(failed(format!("member {member} was asked for its status and answered {other:?}"))),
        }
    }

    /// Kills without waiting; [`Self::reap`] waits.
    pub fn kill(&mut self, member: usize) {
        if let Some(process) = &mut self.members[member - 1] {
            process.kill();
        }
    }

    pub fn reap(&mut self, member: usize) {
        self.members[member - 1] = None;
    }

    fn until<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Result<Option<T>>) -> Result<T> {
        let since = Instant::now();
        loop {
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            if since.elapsed() > TIMEOUT {
                return Err(failed(format!("{what}: not within {} s", TIMEOUT.as_secs())));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until a member that runs the service leads.
    pub fn leader(&mut self) -> Result<usize> {
        let membership = self.membership;
        self.until("a leader", |cluster| {
            for member in (1..=MEMBERS).filter(|member| membership.serves(*member)) {
                if cluster.members[member - 1].is_some() && cluster.status(member)?.leads {
                    return Ok(Some(member));
                }
            }
            Ok(None)
        })
    }

    /// Waits until every member is connected and has what the leader has handled by now.
    pub fn wait_until_level(&mut self) -> Result<()> {
        let leader = self.leader()?;
        let goal = self.status(leader)?.handled;
        self.until("a member that catches up", |cluster| {
            // All of them are asked, so that one that has failed says so.
            let statuses = (1..=MEMBERS).map(|member| cluster.status(member)).collect::<Result<Vec<_>>>()?;
            let is_level =
                |status: &BenchMemberStatus| status.handled >= goal && status.connected + 1 >= MEMBERS as u64;
            Ok(statuses.iter().all(is_level).then_some(()))
        })
    }

    pub fn stop(mut self) -> Result<()> {
        for member in 1..=MEMBERS {
            if self.members[member - 1].is_none() {
                continue;
            }
            self.ask(member, MemberProcessRequest::Stop)?;
            if let Some(process) = self.members[member - 1].take() {
                process.finish()?;
            }
        }
        Ok(())
    }
}
