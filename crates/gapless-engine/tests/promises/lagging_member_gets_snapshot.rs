//! A member that needs frames which its leader's journal no longer has gets the leader's snapshot, while commands
//! continue, and is equal byte by byte.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use crate::replicas::{Caller, Cluster, PATIENCE, wait};
use gapless_client::polled::MessageType;
use gapless_client::stream_layout::StreamLayout;
use gapless_cluster::config::{ClusterConfig, MemberKind};
use gapless_cluster::consensus::MemberId;
use gapless_cluster::member::control::{AdminAnswer, AdminRequest, ask_within};
use gapless_cluster::member::requests::{AdminCommand, AdminOutcome, NewMember};
use gapless_engine::{Context, Handlers, Reject, Service};
use gapless_journal::JournalReader;
use gapless_schema::Encoding;
use std::path::PathBuf;
use std::time::Instant;

const NUMBER: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const STATE_BYTES: usize = 1 << 20;

struct Sum {
    count: u64,
    sum: u64,
    bytes: Vec<u8>,
}

impl Default for Sum {
    fn default() -> Self {
        Self { count: 0, sum: 0, bytes: vec![0; STATE_BYTES] }
    }
}

impl Sum {
    fn add(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let number =
            payload.first_chunk().ok_or(Reject::from("8 bytes".to_owned())).map(|it| u64::from_le_bytes(*it))?;
        self.count += 1;
        self.sum = self.sum.wrapping_mul(31).wrapping_add(number);
        self.bytes[self.count as usize * 61 % STATE_BYTES] ^= number as u8;
        context.reply_with(NUMBER, &self.count.to_le_bytes())
    }
}

impl Service for Sum {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(NUMBER.schema, Self::add);
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        [self.count, self.sum].iter().for_each(|word| state.extend_from_slice(&word.to_le_bytes()));
        state.extend_from_slice(&self.bytes);
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let (words, bytes) = state.split_at_checked(16).ok_or("16 bytes")?;
        let word = |at: usize| u64::from_le_bytes(words[at..at + 8].try_into().unwrap());
        (self.count, self.sum, self.bytes) = (word(0), word(8), bytes.to_vec());
        Ok(())
    }
}

fn layout(cluster: &Cluster, member: usize) -> StreamLayout {
    let config = ClusterConfig::load(cluster.file(member)).unwrap();
    StreamLayout::new(config.stream().directory().unwrap())
}

fn first_sequence(cluster: &Cluster, member: usize) -> u64 {
    JournalReader::open(layout(cluster, member).journal()).unwrap().first_sequence()
}

fn start(count: usize) -> (Cluster, Caller) {
    let mut cluster = Cluster::new(count, "retention_bytes = \"2 MiB\"\n");
    (1..=count).for_each(|member| cluster.start(member, Sum::default()).unwrap());
    cluster.leader();
    let mut caller = Caller::new(&cluster, NUMBER);
    caller.length = 1_000;
    (cluster, caller)
}

fn forget(cluster: &mut Cluster, caller: &mut Caller, members: &[usize], sequence: u64) {
    // Later frames seal a segment covered by the snapshot.
    for _ in 0..4 {
        caller.call_more(cluster, 2_500);
        for member in members {
            let taken = ask_within(layout(cluster, *member).root(), &AdminRequest::Snapshot, PATIENCE).unwrap();
            assert!(matches!(taken, AdminAnswer::Snapshot { .. }), "{taken:?}");
        }
    }
    for member in members {
        wait("old segments to go", || (first_sequence(cluster, *member) > sequence + 1).then_some(()));
    }
}

fn starts_again(cluster: &mut Cluster, caller: &mut Caller, member: usize) {
    let directory = layout(cluster, member).root().to_path_buf();
    let deadline = Instant::now() + PATIENCE;
    while !directory.join("incoming/complete").exists() {
        assert!(Instant::now() < deadline, "the member fetches no state: {:?}", cluster.of(member).member().status());
        caller.call_more(cluster, 200);
        if cluster.members[member - 1].is_none() {
            break;
        }
    }
    wait("its end", || {
        cluster.end_failed();
        cluster.members[member - 1].is_none().then_some(())
    });
    let failure = &cluster.failures[&member];
    assert!(failure.contains("start it again to continue from there"), "{failure}");
    cluster.start(member, Sum::default()).unwrap();
    assert!(!directory.join("incoming").exists(), "the fetched state is removed");
    let recovered = cluster.of(member).recovered();
    assert!(recovered.snapshot_sequence > 0, "it began with a snapshot: {recovered:?}");
    assert!(first_sequence(cluster, member) > 1, "its journal begins after the fetched snapshot");
}

fn ends(mut cluster: Cluster, mut caller: Caller, members: &[usize]) {
    caller.call_more(&mut cluster, 500);
    assert!(caller.replies.iter().all(|(number, reply)| *reply == number.to_le_bytes()), "each was counted once");
    cluster.ends_equal(members);
}

#[test]
fn new_member_joins_under_load() {
    let (mut cluster, mut caller) = start(3);
    forget(&mut cluster, &mut caller, &[1, 2, 3], 1);
    let address = cluster.make_room();
    let member = NewMember {
        member: MemberId::new(4).unwrap(),
        addresses: vec![address],
        kind: MemberKind::Full,
        replaces: None,
    };
    let asked = cluster.of(cluster.leader()).member().ask(AdminCommand::Add(member), PATIENCE);
    assert_eq!(asked, Some(AdminOutcome::Begun));
    cluster.start(4, Sum::default()).unwrap();
    starts_again(&mut cluster, &mut caller, 4);
    let id = MemberId::new(4).unwrap();
    wait("its vote", || {
        let status = cluster.of(cluster.leader()).member().status()?;
        status.members.voters.contains(&id).then_some(())
    });
    ends(cluster, caller, &[1, 2, 3, 4]);
}

#[test]
fn returning_member_can_lead() {
    let (mut cluster, mut caller) = start(3);
    caller.call_more(&mut cluster, 100);
    let away = cluster.leader() % 3 + 1;
    let end = cluster.members[away - 1].take().unwrap().stop().unwrap();
    let others: Vec<usize> = (1..=3).filter(|member| *member != away).collect();
    forget(&mut cluster, &mut caller, &others, end);
    cluster.start(away, Sum::default()).unwrap();
    starts_again(&mut cluster, &mut caller, away);
    let id = MemberId::new(away as u64).unwrap();
    wait("its lead", || {
        let leader = cluster.leader();
        let _ = cluster.of(leader).member().ask(AdminCommand::Transfer(id), PATIENCE);
        (leader == away).then_some(())
    });
    ends(cluster, caller, &[1, 2, 3]);
}

#[test]
fn damaged_snapshot_is_refetched() {
    let (mut cluster, mut caller) = start(3);
    caller.call_more(&mut cluster, 100);
    let away = cluster.leader() % 3 + 1;
    let end = cluster.members[away - 1].take().unwrap().stop().unwrap();
    let others: Vec<usize> = (1..=3).filter(|member| *member != away).collect();
    forget(&mut cluster, &mut caller, &others, end);
    for member in &others {
        let newest = std::fs::read_dir(layout(&cluster, *member).snapshots()).unwrap();
        let newest: PathBuf = newest.map(|entry| entry.unwrap().path()).max().unwrap();
        let mut bytes = std::fs::read(&newest).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        std::fs::write(&newest, bytes).unwrap();
    }
    cluster.start(away, Sum::default()).unwrap();
    let incoming = layout(&cluster, away).root().join("incoming");
    for _ in 0..2 {
        wait("a snapshot that comes", || incoming.join("snapshots").exists().then_some(()));
        wait("its refusal", || (!incoming.exists()).then_some(()));
        caller.call_more(&mut cluster, 100);
        assert!(!cluster.of(away).must_start_again());
        assert!(cluster.of(away).failure().is_none());
    }
    for member in &others {
        let taken = ask_within(layout(&cluster, *member).root(), &AdminRequest::Snapshot, PATIENCE).unwrap();
        assert!(matches!(taken, AdminAnswer::Snapshot { .. }), "{taken:?}");
    }
    starts_again(&mut cluster, &mut caller, away);
    ends(cluster, caller, &[1, 2, 3]);
}

#[cfg(debug_assertions)]
const VICTIM_FILE: &str = "GAPLESS_TEST_VICTIM";

#[cfg(debug_assertions)]
#[test]
fn victim() {
    let Some(file) = std::env::var_os(VICTIM_FILE) else { return };
    // Ends the process if the test dies.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).unwrap();
    let config = ClusterConfig::load(file).unwrap();
    loop {
        let replica = gapless_engine::Replica::start(Sum::default(), Default::default(), &config).unwrap();
        while replica.failure().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(replica.must_start_again(), "{:?}", replica.failure());
    }
}

#[cfg(debug_assertions)]
#[test]
fn killed_transfer_continues() {
    use gapless_testkit::process::{Process, this_program};
    use std::os::unix::process::ExitStatusExt;

    let (mut cluster, mut caller) = start(3);
    caller.call_more(&mut cluster, 100);
    let away = cluster.leader() % 3 + 1;
    let end = cluster.members[away - 1].take().unwrap().stop().unwrap();
    let others: Vec<usize> = (1..=3).filter(|member| *member != away).collect();
    forget(&mut cluster, &mut caller, &others, end);
    for point in gapless_agent::fault::SNAPSHOT_TRANSFER_CRASH_POINTS {
        let pass = if point == "snapshot_transfer_after_piece" { 3 } else { 1 };
        let mut command = this_program();
        command
            .args(["--exact", "lagging_member_gets_snapshot::victim"])
            .env(VICTIM_FILE, cluster.file(away))
            .env("GAPLESS_CRASH_POINT", format!("{point}:{pass}"))
            .stdout(std::process::Stdio::null());
        let status = Process::start_as(&mut command).wait_end(point);
        assert_eq!(status.signal(), Some(9), "at {point}: {status}");
        caller.call_more(&mut cluster, 100);
    }
    cluster.start(away, Sum::default()).unwrap();
    assert!(cluster.of(away).recovered().snapshot_sequence > 0, "the fetched state was complete");
    ends(cluster, caller, &[1, 2, 3]);
}
