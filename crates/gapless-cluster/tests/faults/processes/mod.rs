//! Members as processes of this executable, with a proxy between each two.

pub mod clock;
pub mod disk;
pub mod hosts;
pub mod leaders;
pub mod load;
pub mod proxy;
pub mod streams;

use gapless_cluster::ClusterMember;
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::member::control::{self, AdminAnswer, AdminRequest, StatusReport};
use gapless_testkit::ports::own_loopback;
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::wait::until_some;
use hosts::Hosts;
use proxy::Proxy;
use rustix::process::Signal;
use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(120);

const MEMBER: &str = "processes::member";

pub fn run_as_member_if_asked() {
    let Some(arguments) = started_as(MEMBER) else { return };
    let file = &arguments[0];
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    clock::install_clock(Path::new(file));
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    let run = || -> Result<(), Box<dyn std::error::Error>> {
        let mut member = ClusterMember::start(&ClusterConfig::load(file)?)?;
        loop {
            if std::fs::remove_file(stop_file(Path::new(file))).is_ok() {
                member.stop()?;
                std::process::exit(0);
            }
            disk::install_fault(Path::new(file));
            clock::install_clock(Path::new(file));
            match member.stream().failure() {
                Some(failure) if member.must_start_again() => {
                    println!("{failure}");
                    drop(member);
                    member = ClusterMember::start(&ClusterConfig::load(file)?)?;
                }
                Some(failure) => return Err(failure.into()),
                None => {}
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    if let Err(error) = run() {
        eprintln!("member failed: {error}");
    }
    std::process::exit(3);
}

fn stop_file(file: &Path) -> PathBuf {
    file.with_extension("stop")
}

#[derive(Clone, Copy, Debug)]
pub struct ClusterPlan {
    pub kinds: &'static [&'static str],
    pub tier: &'static str,
    pub election_timeout: &'static str,
}

pub const THREE: ClusterPlan =
    ClusterPlan { kinds: &["full", "full", "full"], tier: "quorum", election_timeout: "300 ms" };
pub const WITNESS: ClusterPlan = ClusterPlan { kinds: &["full", "full", "witness"], ..THREE };
pub const PATIENT: ClusterPlan = ClusterPlan { election_timeout: "1 s", ..THREE };

/// Plan for leaders that must not be deposed. A longer timeout helps no more: links give up a peer after 2 s of silence.
pub const STEADY: ClusterPlan = ClusterPlan { election_timeout: "3 s", ..THREE };

pub struct Cluster {
    pub root: tempfile::TempDir,
    plan: ClusterPlan,
    /// Empty if each member has its own host.
    addresses: Vec<SocketAddr>,
    /// By member and a higher one, which it connects to; empty if each has its own host.
    proxies: HashMap<(usize, usize), Proxy>,
    hosts: Option<Hosts>,
    members: Vec<Option<Process>>,
    armed: Vec<bool>,
}

impl Cluster {
    pub fn start(plan: ClusterPlan) -> Self {
        let mut cluster = Self::prepare(plan);
        (1..=plan.kinds.len()).for_each(|member| cluster.start_member(member, &[]));
        cluster
    }

    pub fn prepare(plan: ClusterPlan) -> Self {
        let count = plan.kinds.len();
        let host = own_loopback();
        let listeners: Vec<_> = (0..count).map(|_| TcpListener::bind((host, 0)).unwrap()).collect();
        let addresses: Vec<_> = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
        let pairs = (1..count).flat_map(|low| (low + 1..=count).map(move |high| (low, high)));
        let proxies = pairs.map(|(low, high)| ((low, high), Proxy::to(addresses[high - 1]))).collect();
        Self::with_files(plan, addresses, proxies, None)
    }

    pub fn start_on_hosts(plan: ClusterPlan) -> Self {
        let hosts = Hosts::new(plan.kinds.len());
        let mut cluster = Self::with_files(plan, Vec::new(), HashMap::new(), Some(hosts));
        (1..=plan.kinds.len()).for_each(|member| cluster.start_member(member, &[]));
        cluster
    }

    fn with_files(
        plan: ClusterPlan,
        addresses: Vec<SocketAddr>,
        proxies: HashMap<(usize, usize), Proxy>,
        hosts: Option<Hosts>,
    ) -> Self {
        let (root, count) = (tempfile::tempdir().unwrap(), plan.kinds.len());
        let members = (0..count).map(|_| None).collect();
        let cluster = Self { root, plan, addresses, proxies, hosts, members, armed: vec![false; count] };
        (1..=count).for_each(|member| cluster.write_file(member, &cluster.text(member)));
        cluster
    }

    pub fn text(&self, member: usize) -> String {
        let mut text = format!("[cluster]\nname = \"faults\"\nmember = {member}\ntier = \"{}\"\n", self.plan.tier);
        for (at, kind) in self.plan.kinds.iter().enumerate() {
            let other = at + 1;
            let address = match (&self.hosts, self.proxies.get(&(member, other))) {
                (Some(_), _) => Hosts::address(other),
                (None, Some(proxy)) => proxy.address.to_string(),
                (None, None) => self.addresses[at].to_string(),
            };
            text += &format!("[[member]]\nid = {other}\nkind = \"{kind}\"\naddresses = [\"{address}\"]\n");
        }
        text += &format!("[election]\ntimeout = \"{}\"\n", self.plan.election_timeout);
        text += &format!("[stream]\ndirectory = \"{}\"\n", self.directory(member).display());
        // Messages in several frames, and frequent segments and states.
        text += "window = \"8 MiB\"\nframe_length_max = 1_376\nmessage_length_max = \"64 KiB\"\n";
        text += "state_interval_frames = 2_000\nstate_interval_min = \"100 ms\"\n";
        text += "[journal]\nsegment_length = \"2 MiB\"\n";
        text
    }

    pub fn write_file(&self, member: usize, text: &str) {
        std::fs::write(self.file(member), text).unwrap();
    }

    fn file(&self, member: usize) -> PathBuf {
        self.root.path().join(format!("member-{member}.toml"))
    }

    pub fn directory(&self, member: usize) -> PathBuf {
        self.root.path().join(format!("member-{member}"))
    }

    pub fn journal(&self, member: usize) -> PathBuf {
        self.directory(member).join("journal")
    }

    pub fn address(&self, member: usize) -> SocketAddr {
        self.addresses[member - 1]
    }

    pub fn hosts(&self) -> &Hosts {
        self.hosts.as_ref().expect("the cluster was started on hosts")
    }

    pub fn count(&self) -> usize {
        self.members.len()
    }

    pub fn all(&self) -> std::ops::RangeInclusive<usize> {
        1..=self.members.len()
    }

    pub fn others(&self, member: usize) -> Vec<usize> {
        self.all().filter(|other| *other != member).collect()
    }

    pub fn full(&self) -> Vec<usize> {
        self.all().filter(|member| self.plan.kinds[member - 1] == "full").collect()
    }

    pub fn directories(&self) -> Vec<PathBuf> {
        self.all().map(|member| self.directory(member)).collect()
    }

    pub fn log(&self, member: usize) -> String {
        std::fs::read_to_string(self.log_file(member)).unwrap_or_default()
    }

    fn log_file(&self, member: usize) -> PathBuf {
        self.root.path().join(format!("log-{member}"))
    }

    pub fn start_member(&mut self, member: usize, environment: &[(&str, &str)]) {
        assert!(self.members[member - 1].is_none(), "member {member} runs already");
        let _ = std::fs::remove_file(stop_file(&self.file(member)));
        disk::clear_fault(&self.file(member));
        let log = std::fs::File::options().create(true).append(true).open(self.log_file(member)).unwrap();
        let mut command = match &self.hosts {
            Some(_) => Hosts::command(member, &std::env::current_exe().unwrap()),
            None => this_program(),
        };
        command.arg(MEMBER).arg(self.file(member)).envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.members[member - 1] = Some(Process::start_as(&mut command));
        self.armed[member - 1] = !environment.is_empty();
    }

    pub fn start_extra(&self, name: &str, text: &str) -> ExtraProcess {
        let file = self.root.path().join(format!("{name}.toml"));
        std::fs::write(&file, text).unwrap();
        let log = self.root.path().join(format!("log-{name}"));
        let output = std::fs::File::create(&log).unwrap();
        let mut command = this_program();
        command.arg(MEMBER).arg(file).stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        ExtraProcess { process: Process::start_as(&mut command), log }
    }

    fn signal(&self, member: usize, signal: Signal) {
        self.members[member - 1].as_ref().expect("the member runs").signal(signal);
    }

    pub fn pause(&self, member: usize) {
        self.signal(member, Signal::STOP);
    }

    pub fn go_on(&self, member: usize) {
        self.signal(member, Signal::CONT);
    }

    pub fn ask_to_stop(&self, member: usize) {
        std::fs::write(stop_file(&self.file(member)), "").unwrap();
    }

    pub fn fail_disk(&self, member: usize, fault: disk::Fault) {
        disk::set_fault(&self.file(member), fault);
    }

    /// A running process follows only if its clock was set before its start.
    pub fn set_clock(&self, member: usize, ahead_s: i64) {
        clock::set_offset(&self.file(member), ahead_s);
    }

    pub fn kill(&mut self, member: usize) {
        self.members[member - 1].take().expect("the member runs").kill();
    }

    pub fn has_died(&mut self, member: usize) -> bool {
        let Some(child) = &mut self.members[member - 1] else { return true };
        let Some(status) = child.ended() else { return false };
        assert_eq!(status.signal(), Some(9), "member {member}: {status}\n{}", self.log(member));
        self.members[member - 1] = None;
        true
    }

    pub fn wait_end(&mut self, member: usize) -> ExitStatus {
        self.wait_end_under(member, || std::thread::sleep(Duration::from_millis(5)))
    }

    pub fn wait_end_under(&mut self, member: usize, mut meanwhile: impl FnMut()) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        let mut child = self.members[member - 1].take().expect("the member runs");
        loop {
            if let Some(status) = child.ended() {
                return status;
            }
            if Instant::now() > deadline {
                child.kill();
                panic!("member {member} does not end:\n{}", self.log(member));
            }
            meanwhile();
        }
    }

    pub fn ends_within(&mut self, member: usize, time: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + time;
        loop {
            let ended = self.members[member - 1].as_mut().expect("the member runs").ended();
            if ended.is_some() {
                self.members[member - 1] = None;
                return ended;
            }
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn is_running(&self, member: usize) -> bool {
        self.members[member - 1].is_some()
    }

    /// `None` without an answer; not for a paused member.
    pub fn status(&self, member: usize) -> Option<StatusReport> {
        match control::ask(&self.directory(member), &AdminRequest::Status) {
            Ok(AdminAnswer::Status(report)) => Some(*report),
            _ => None,
        }
    }

    pub fn transfer(&self, member: usize, to: usize) {
        let _ = control::ask(&self.directory(member), &AdminRequest::Transfer { to: to as u64 });
    }

    /// First line of its log with all `words`.
    pub fn logged(&self, member: usize, words: &[&str]) -> Option<String> {
        let log = self.log(member);
        log.lines().find(|line| words.iter().all(|word| line.contains(word))).map(str::to_owned)
    }

    #[track_caller]
    pub fn wait_log(&mut self, member: usize, words: &[&str]) -> String {
        self.wait(&format!("{words:?} from member {member}"), |cluster| cluster.logged(member, words))
    }

    /// Members that end meanwhile are an error, except armed ones.
    #[track_caller]
    pub fn wait<T>(&mut self, what: &str, mut is_there: impl FnMut(&mut Self) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = is_there(self) {
                return found;
            }
            for member in self.all() {
                if self.armed[member - 1] {
                    self.has_died(member);
                } else if let Some(child) = &mut self.members[member - 1]
                    && let Some(status) = child.ended()
                {
                    panic!("{what}: member {member} has ended, {status}\n{}", self.log(member));
                }
            }
            if Instant::now() > deadline {
                for member in self.all() {
                    eprintln!("member {member}:\n{}", self.log(member));
                    if self.is_running(member) {
                        eprintln!("{:#?}", self.status(member));
                    }
                }
                panic!("{what} did not occur");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[track_caller]
    pub fn caught_up(&mut self, member: usize) {
        let others: Vec<usize> = self.all().filter(|other| self.is_running(*other)).collect();
        let released = |cluster: &Self, member| cluster.status(member).map_or(0, |status| status.released_sequence);
        let end = others.iter().map(|other| released(self, *other)).max().unwrap_or(0);
        self.wait("a member that has caught up", |cluster| {
            (!cluster.is_running(member) || released(cluster, member) >= end).then_some(())
        });
    }

    /// And whether `from` has the lower number: its direction is forward.
    pub fn between(&self, from: usize, to: usize) -> (&Proxy, bool) {
        (&self.proxies[&(from.min(to), from.max(to))], from < to)
    }

    pub fn hold(&self, from: usize, to: usize, is_held: bool) {
        let (proxy, is_forward) = self.between(from, to);
        proxy.way(is_forward).hold(is_held);
    }

    pub fn isolate(&self, member: usize, is_held: bool) {
        for other in self.all().filter(|other| *other != member) {
            self.hold(member, other, is_held);
            self.hold(other, member, is_held);
        }
    }
}

pub struct ExtraProcess {
    process: Process,
    log: PathBuf,
}

impl ExtraProcess {
    #[track_caller]
    pub fn wait_log(&self, words: &[&str]) -> String {
        until_some(&format!("{words:?}"), || {
            let log = std::fs::read_to_string(&self.log).unwrap();
            log.lines().find(|line| words.iter().all(|word| line.contains(word))).map(str::to_owned)
        })
    }

    #[track_caller]
    pub fn wait_end(&mut self) -> ExitStatus {
        self.process.wait_end("the end of another member")
    }
}
