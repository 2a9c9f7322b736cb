//! A bank on three members, killed one after the other with SIGKILL under load, mostly the leader, some at a named step
//! of a command. The members' journals finally agree, and a checker that reads only these compares them with the
//! tellers' outcomes, as in `killed_bank_keeps_commands`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bank_witness::answers;
use crate::bank_witness::process::BankProcess;
use crate::bank_witness::tellers::Tellers;
use gapless::cluster::control::{AdminAnswer, AdminRequest, StatusReport, ask};
use gapless::stream::StreamLayout;
use gapless_bus_checker::History;
use gapless_testkit::ports::own_loopback;
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{until, until_some};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

const MEMBERS: usize = 3;
const OUTCOMES_MAX: u64 = 1200;

pub fn module() -> Module {
    Module::new(module_path!()).with_choices("any_member_is_killed", any_member_is_killed)
}

struct Cluster<'a> {
    root: &'a Path,
    members: Vec<BankProcess>,
}

impl<'a> Cluster<'a> {
    fn start(root: &'a Path) -> Self {
        let host = own_loopback();
        let ports = ports(host);
        let all =
            (1..).zip(&ports).map(|(id, port)| format!("[[member]]\nid = {id}\naddresses = [\"{host}:{port}\"]\n"));
        let all: String = all.collect();
        let mut cluster = Self { root, members: Vec::new() };
        for member in 0..MEMBERS {
            let text = format!(
                "[cluster]\nname = \"bank\"\nmember = {}\n{all}[stream]\ndirectory = \"member-{member}\"\nwindow = \"8 MiB\"\n\
                 frame_length_max = \"4 KiB\"\n[journal]\nsegment_length = \"1280 KiB\"\n",
                member + 1
            );
            std::fs::write(cluster.file(member), text).unwrap();
            let process = BankProcess::start_member(&cluster.file(member), &[]);
            cluster.members.push(process);
        }
        cluster
    }

    fn file(&self, member: usize) -> PathBuf {
        self.root.join(format!("member-{member}.toml"))
    }

    fn directory(&self, member: usize) -> PathBuf {
        self.root.join(format!("member-{member}"))
    }

    fn sockets(&self) -> Vec<PathBuf> {
        (0..MEMBERS).map(|member| StreamLayout::new(self.directory(member)).socket()).collect()
    }

    fn status(&self, member: usize) -> Option<StatusReport> {
        match ask(&self.directory(member), &AdminRequest::Status) {
            Ok(AdminAnswer::Status(status)) => Some(*status),
            _ => None,
        }
    }

    fn leader(&self) -> usize {
        let leads = |member: &usize| self.status(*member).is_some_and(|status| status.role == "leader");
        until_some("a member leads", || (0..MEMBERS).find(leads))
    }

    fn ended(&mut self) -> Option<usize> {
        self.members.iter_mut().position(BankProcess::has_ended)
    }

    fn restart(&mut self, member: usize, step: Option<&str>) {
        let killed = self.members[member].kill();
        killed.unwrap_or_else(|problem| panic!("member {member}: {problem}"));
        let environment: Vec<_> = step.iter().map(|step| ("GAPLESS_CRASH_POINT", *step)).collect();
        self.members[member] = BankProcess::start_member(&self.file(member), &environment);
    }
}

/// All held at once, so that no two are equal.
fn ports(host: Ipv4Addr) -> Vec<u16> {
    let listeners: Vec<_> = (0..MEMBERS).map(|_| TcpListener::bind((host, 0)).unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

#[cfg(debug_assertions)]
fn step(random: &mut Random) -> Option<String> {
    use gapless_agent::fault::{CLUSTER_CRASH_POINTS, COMMAND_CRASH_POINTS};
    let point = match random.below(4) {
        0..=1 => random.pick(&COMMAND_CRASH_POINTS),
        2 => random.pick(&CLUSTER_CRASH_POINTS),
        _ => return None,
    };
    Some(format!("{point}:{}", 1 + random.below(300)))
}

#[cfg(not(debug_assertions))]
fn step(_: &mut Random) -> Option<String> {
    None
}

fn any_member_is_killed(random: &mut Random) {
    let root = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(root.path());
    let mut tellers = Tellers::start(&cluster.sockets(), random);
    let (mut killed_leaders, mut killed_themselves) = (0, 0);
    let (mut deaths, deaths_min) = (0, rounds(40, 6));
    while deaths < deaths_min || killed_leaders == 0 {
        deaths += 1;
        let goal = tellers.answered() + 1 + random.below(OUTCOMES_MAX);
        let ended = until_some("a member dies, or the bank answers", || match cluster.ended() {
            Some(ended) => Some(Some(ended)),
            None => (tellers.answered() >= goal || tellers.known().problem.is_some()).then_some(None),
        });
        killed_themselves += u32::from(ended.is_some());
        let victim = ended.unwrap_or_else(|| {
            let leader = cluster.leader();
            let victim = if random.below(3) > 0 { leader } else { random.below(MEMBERS as u64) as usize };
            killed_leaders += u32::from(victim == leader);
            victim
        });
        assert_eq!(tellers.known().problem, None, "before member {victim} is killed");
        let step = step(random);
        cluster.restart(victim, step.as_deref());
    }
    (0..MEMBERS).for_each(|member| cluster.restart(member, None));
    let goal = tellers.answered() + 300;
    until("the bank answers", || tellers.answered() >= goal || tellers.known().problem.is_some());
    tellers.finish();
    until("the members have the same", || {
        let ends = (0..MEMBERS)
            .map(|member| cluster.status(member).map(|status| (status.released_sequence, status.journaled_sequence)));
        let ends: Vec<_> = ends.collect();
        ends[0].is_some_and(|(released, journaled)| released == journaled) && ends.iter().all(|end| *end == ends[0])
    });
    cluster.members.iter_mut().for_each(|member| member.kill().unwrap());

    let histories: Vec<_> =
        (0..MEMBERS).map(|member| History::read(&cluster.directory(member).join("journal")).unwrap()).collect();
    let known = tellers.known();
    let (counts, balances) =
        answers::check_outcomes(&histories[0], &known).unwrap_or_else(|problem| panic!("{problem}"));
    for (member, history) in histories.iter().enumerate() {
        assert!(
            history.transactions() == histories[0].transactions(),
            "members 0 and {member} have other transactions"
        );
    }
    (0..MEMBERS).for_each(|member| cluster.members[member] = BankProcess::start_member(&cluster.file(member), &[]));
    answers::compare(&cluster.sockets(), &balances).unwrap_or_else(|problem| panic!("{problem}"));

    let repeated = tellers.repeated();
    println!(
        "{deaths} deaths, {killed_leaders} of leaders, {killed_themselves} at a step: {counts:?}, {} accounts, {repeated} commands came again",
        balances.len()
    );
    assert!(killed_leaders > 0 && counts.accepted > 0 && counts.refused > 0);
}
