//! Each command has its effect once and gets its reply, each timer fires once, and all instances reach the same state,
//! although leaders are killed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it says what it has done")]

use crate::replica_processes;
use crate::replica_processes::{
    CLIENTS, COMMANDS, COUNTS, Cluster, HEARD, KILLS, Numbers, PATIENCE, client, kill_leaders, number_of,
};
use gapless_client::PolledClient;
use gapless_engine::{Context, Handlers, Reject, Replica, ReplicaOptions, Service};
use gapless_testkit::scenarios::Module;
use gapless_transport::token::random_token;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const REPLICA: &str = "killed_replica_keeps_replies::replica";

pub fn run_as_replica_if_requested() {
    replica_processes::run_as_replica_if_requested(REPLICA, |config| {
        let options = ReplicaOptions { snapshot_interval_frames: Some(2_000), ..ReplicaOptions::default() };
        Replica::start(NumberLog::default(), options, config).unwrap()
    });
}

pub fn module() -> Module {
    // The scenarios wait more than they compute.
    Module::new(module_path!())
        .side_by_side(2)
        .scenario("a_stopped_leader_is_left", a_stopped_leader_is_left)
        .scenario("three_members", || survives(None))
        .scenario("with_a_witness", || survives(Some(3)))
}

#[derive(Default)]
struct NumberLog {
    numbers: Vec<u64>,
    fired: Vec<u64>,
}

impl NumberLog {
    fn hear(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let number = number_of(payload)?;
        self.numbers.push(number);
        context.set_numbered_timer(number, context.time_ns() + 3_000_000);
        context.reply_with(HEARD, payload)
    }

    fn count(&mut self, _: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let counts = [self.numbers.len() as u64, self.fired.len() as u64].map(u64::to_le_bytes).concat();
        context.reply_with(COUNTS, &counts)
    }
}

impl Service for NumberLog {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(HEARD.schema, Self::hear);
        handlers.on_bytes(COUNTS.schema, Self::count);
    }

    fn on_timer(&mut self, timer: u64, _: &mut Context<'_>) -> Result<(), Reject> {
        self.fired.push(timer);
        Ok(())
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&(self.numbers.len() as u64).to_le_bytes());
        self.numbers.iter().chain(&self.fired).for_each(|number| state.extend_from_slice(&number.to_le_bytes()));
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let mut words = state.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        let count = words.next().ok_or("no count")? as usize;
        self.numbers = words.by_ref().take(count).collect();
        self.fired = words.collect();
        Ok(())
    }
}

fn survives(witness: Option<usize>) {
    let mut cluster = Cluster::start(REPLICA, witness);
    cluster.leader();
    let sockets = cluster.sockets();
    let mut senders: Vec<_> = (1..=CLIENTS).map(|owner| Numbers::new(&sockets, owner)).collect();
    let longest = kill_leaders(&mut cluster, &mut senders);
    for sender in &senders {
        let expected: BTreeMap<u64, u64> = (1..=sender.sent).map(|n| (n, sender.owner << 32 | n)).collect();
        assert!(sender.replies == expected, "each command of client {} has its own reply", sender.owner);
    }
    let all = CLIENTS * COMMANDS * KILLS as u64;
    let deadline = Instant::now() + PATIENCE;
    let sender = &mut senders[0];
    loop {
        let counts = sender.client.call(sender.session, COUNTS, &[], PATIENCE).unwrap().payload;
        let [heard, fired] = [0, 8].map(|at| u64::from_le_bytes(counts[at..at + 8].try_into().unwrap()));
        assert_eq!(heard, all, "each command has had its effect once");
        assert!(fired <= all, "each timer fires once");
        if fired == all {
            break;
        }
        assert!(Instant::now() < deadline, "{fired} of {all} timers have fired");
    }
    let again: u64 = senders.iter().map(|sender| sender.again).sum();
    drop(senders);
    cluster.settle();
    let last = cluster.stop();
    let newest = |member: &usize| {
        let directory = cluster.layout(*member).snapshots();
        let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|each| each.unwrap().path()).collect();
        paths.sort();
        let newest = paths.pop().unwrap();
        (newest.file_name().unwrap().to_owned(), std::fs::read(&newest).unwrap())
    };
    let snapshots: Vec<_> = cluster.full().iter().map(newest).collect();
    assert!(
        snapshots.windows(2).all(|pair| pair[0] == pair[1]),
        "the instances differ: {:?}",
        snapshots.iter().map(|each| &each.0).collect::<Vec<_>>()
    );
    println!(
        "witness {witness:?}: {KILLS} leaders killed, {all} commands and timers once, {again} replies again, \
         longest silence {longest:?}, stopped at {last:?}"
    );
}

/// A signal stops the threads one by one; until then a command may still get its reply.
fn wait_until_stopped(pid: Pid) {
    let deadline = Instant::now() + PATIENCE;
    let tasks = format!("/proc/{}/task", pid.as_raw_nonzero());
    let stands = |task: std::io::Result<std::fs::DirEntry>| {
        let Ok(stat) = std::fs::read_to_string(task.unwrap().path().join("stat")) else { return true };
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    };
    while !std::fs::read_dir(&tasks).unwrap().all(stands) {
        assert!(Instant::now() < deadline, "the process is not stopped");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn a_stopped_leader_is_left() {
    let mut cluster = Cluster::start(REPLICA, None);
    let leader = cluster.leader();
    let mut sockets = cluster.sockets();
    sockets.swap(0, leader - 1);
    let mut first = client(&sockets);
    let session = first.open_session(random_token(), 16).unwrap();
    let call = |client: &mut PolledClient, session, message, number: u64| {
        client.call(session, message, &number.to_le_bytes(), PATIENCE).unwrap().payload
    };
    assert_eq!(number_of(&call(&mut first, session, HEARD, 1)).unwrap(), 1);
    // On a busy machine another member may lead by now.
    let before = first.welcome().process_id;
    let pids: Vec<_> = cluster.full().into_iter().map(|member| cluster.of(member).pid()).collect();
    let pid = pids.into_iter().find(|pid| pid.as_raw_nonzero().get() as u64 == before).expect("it is a member");
    kill_process(pid, Signal::STOP).unwrap();
    wait_until_stopped(pid);
    let since = Instant::now();
    assert_eq!(number_of(&call(&mut first, session, HEARD, 2)).unwrap(), 2, "by the next leader");
    let silence = since.elapsed();
    assert_ne!(first.welcome().process_id, before);
    let mut late = client(&sockets);
    let late_session = late.open_session(random_token(), 16).unwrap();
    assert_eq!(number_of(&call(&mut late, late_session, HEARD, 3)).unwrap(), 3);
    // The replica comes back deposed; commands sent before the stop have their effect once.
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(number_of(&call(&mut first, session, HEARD, 4)).unwrap(), 4);
    let counts = call(&mut first, session, COUNTS, 0);
    assert_eq!(number_of(&counts).unwrap(), 4, "each command has had its effect once");
    drop((first, late));
    cluster.stop();
    println!("a leader that stood still: a reply by the next one after {silence:?}");
}
