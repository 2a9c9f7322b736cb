//! The leader is killed in the middle of the work, and restarted.

use crate::audit::audit;
use crate::tellers::{Transfers, open_accounts};
use gapless::cluster::control::{AdminAnswer, AdminRequest, StatusReport, ask};
use gapless::cqrs::{
    BusOptions, CommandHostOptions, CommandMember, CommandModel, EventDirectory, Position, RetryPolicy,
};
use gapless::prelude::*;
use gapless::stream::StreamLayout;
use std::error::Error;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

const MEMBERS: [usize; 3] = [1, 2, 3];
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);

/// Runs a member until its input ends, as it does when its parent dies.
pub fn run_member(file: &Path, model: CommandModel) -> Result<(), Box<dyn Error>> {
    let member = CommandMember::start(model, CommandHostOptions::default(), &ClusterConfig::load(file)?)?;
    let (input, ended) = channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(input);
    });
    while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
        if let Some(failure) = member.replica().failure() {
            return Err(failure.into());
        }
    }
    member.stop()?;
    Ok(())
}

pub fn run(transfers: &Transfers) -> Result<(), Box<dyn Error>> {
    let root = tempfile::tempdir()?;
    let mut cluster = Cluster::start(root.path())?;
    let leader = cluster.leader()?;
    println!("member {leader} leads");
    // A command that the handle gives up is retried under its identifier, and has its effect once.
    let retry = RetryPolicy { attempts_max: 100, ..RetryPolicy::default() };
    let bus = CommandMember::bus_of(&cluster.sockets(), &BusOptions::default())?.with_retry(retry);
    open_accounts(&bus, transfers.accounts)?;
    std::thread::scope(|scope| {
        let work = scope.spawn(|| transfers.make(&bus));
        until("a third of the transfers", || work.is_finished() || transfers.outcomes() >= transfers.count / 3)?;
        cluster.kill(leader)?;
        println!("{transfers}, and member {leader} is killed");
        println!("member {} leads; member {leader} is started again", cluster.leader()?);
        cluster.start_member(leader)
    })?;
    println!("{transfers}: the same handle has gone on");
    let last = cluster.status(cluster.leader()?).map_or(0, |status| status.released_sequence);
    for member in MEMBERS {
        let has_all = |status: StatusReport| status.released_sequence >= last;
        until("a member that has everything", || cluster.status(member).is_some_and(has_all))?;
        print!("member {member} has ");
        let found = audit(EventDirectory::open(&cluster.directory(member))?.events(Position::default()))?;
        let accepted = transfers.accepted.load(Ordering::Relaxed);
        if found != accepted {
            return Err(format!("{accepted} transfers were accepted, and {found} are there").into());
        }
    }
    println!("each has the transfers that were accepted, and no other");
    cluster.stop()
}

/// Processes that still run are killed on drop.
struct Cluster<'a> {
    root: &'a Path,
    processes: Vec<Child>,
}

impl<'a> Cluster<'a> {
    fn start(root: &'a Path) -> Result<Self, Box<dyn Error>> {
        // A loopback address that no other process uses, so that a restarted member finds its port free.
        let [_, a, b, c] = std::process::id().to_be_bytes();
        let member = |id| format!("[[member]]\nid = {id}\naddresses = [\"127.{}.{b}.{c}:{}\"]\n", a + 1, 4100 + id);
        let members: String = MEMBERS.map(member).concat();
        let mut cluster = Self { root, processes: Vec::new() };
        for member in MEMBERS {
            let own =
                format!("[cluster]\nname = \"bank\"\nmember = {member}\n[stream]\ndirectory = \"member-{member}\"\n");
            std::fs::write(cluster.file(member), own + &members)?;
            let process = cluster.process(member)?;
            cluster.processes.push(process);
        }
        Ok(cluster)
    }

    fn file(&self, member: usize) -> PathBuf {
        self.root.join(format!("member-{member}.toml"))
    }

    fn directory(&self, member: usize) -> PathBuf {
        self.root.join(format!("member-{member}"))
    }

    fn sockets(&self) -> [PathBuf; 3] {
        MEMBERS.map(|member| StreamLayout::new(self.directory(member)).socket())
    }

    fn process(&self, member: usize) -> std::io::Result<Child> {
        Command::new(std::env::current_exe()?).arg("--member").arg(self.file(member)).stdin(Stdio::piped()).spawn()
    }

    fn start_member(&mut self, member: usize) -> Result<(), Box<dyn Error>> {
        self.processes[member - 1] = self.process(member)?;
        Ok(())
    }

    fn kill(&mut self, member: usize) -> std::io::Result<()> {
        let process = &mut self.processes[member - 1];
        process.kill()?;
        process.wait().map(drop)
    }

    fn status(&self, member: usize) -> Option<StatusReport> {
        match ask(&self.directory(member), &AdminRequest::Status) {
            Ok(AdminAnswer::Status(status)) => Some(*status),
            _ => None,
        }
    }

    fn leader(&self) -> Result<usize, Box<dyn Error>> {
        let mut leader = None;
        until("a member that leads", || {
            let leads = |member: &usize| self.status(*member).is_some_and(|status| status.role == "leader");
            leader = MEMBERS.into_iter().find(leads);
            leader.is_some()
        })?;
        leader.ok_or_else(|| "no member leads".into())
    }

    fn stop(mut self) -> Result<(), Box<dyn Error>> {
        self.processes.iter_mut().for_each(|process| drop(process.stdin.take()));
        for process in &mut self.processes {
            let status = process.wait()?;
            if !status.success() {
                return Err(format!("a member has ended with {status}").into());
            }
        }
        Ok(())
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > PATIENCE {
            return Err(format!("{what}: not within {PATIENCE:?}").into());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
