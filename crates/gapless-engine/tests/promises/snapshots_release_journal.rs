//! A snapshot requested by a member's socket covers the handled frames; the other members take none, and older segments
//! are deleted as far as the settings allow.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use crate::replicas::{Caller, Cluster, PATIENCE, wait};
use gapless_client::polled::MessageType;
use gapless_client::stream_layout::StreamLayout;
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::member::control::{AdminAnswer, AdminRequest, ask, ask_within};
use gapless_engine::{Context, Handlers, Reject, Service};
use gapless_journal::JournalReader;
use gapless_schema::Encoding;
use std::path::PathBuf;

const NUMBER: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

#[derive(Default)]
struct Count(u64);

impl Service for Count {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(NUMBER.schema, |it: &mut Self, _: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            it.0 += 1;
            context.reply_with(NUMBER, &it.0.to_le_bytes())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes")?);
        Ok(())
    }
}

fn layout(cluster: &Cluster, member: usize) -> StreamLayout {
    let config = ClusterConfig::load(cluster.file(member)).unwrap();
    StreamLayout::new(config.stream().directory().unwrap())
}

fn snapshots(cluster: &Cluster, member: usize) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(layout(cluster, member).snapshots()) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn first_sequence(cluster: &Cluster, member: usize) -> u64 {
    JournalReader::open(layout(cluster, member).journal()).unwrap().first_sequence()
}

#[test]
fn snapshot_frees_older_segments() {
    let mut cluster = Cluster::new(3, "retention_bytes = \"2 MiB\"\n");
    (1..=3).for_each(|member| cluster.start(member, Count::default()).unwrap());
    let leader = cluster.leader();
    let mut caller = Caller::new(&cluster, NUMBER);
    caller.length = 1_000;
    caller.call_until(&mut cluster, 8_000);
    assert!((1..=3).all(|member| first_sequence(&cluster, member) == 1), "no snapshot covers anything yet");

    let follower = leader % 3 + 1;
    for (asked, total) in [(follower, 9_000), (leader, 10_000)] {
        let before = cluster.of(asked).handled_sequence();
        let directory = layout(&cluster, asked).root().to_path_buf();
        let taken = std::thread::spawn(move || ask_within(&directory, &AdminRequest::Snapshot, PATIENCE).unwrap());
        caller.call_until(&mut cluster, total);
        let AdminAnswer::Snapshot { member, sequence } = taken.join().unwrap() else { panic!("no snapshot") };
        assert_eq!(member, asked as u64);
        assert!(sequence >= before, "the snapshot is at {sequence}, {before} were handled before");
        let found = snapshots(&cluster, asked);
        let name = format!("{sequence:020}.snapshot");
        assert!(found.iter().any(|path| path.ends_with(&name)), "{name} is not among {found:?}");
        wait("segments before the snapshot to go", || (first_sequence(&cluster, asked) > 1).then_some(()));
        let first = first_sequence(&cluster, asked);
        assert!(first <= sequence + 1, "the journal begins at {first}, the snapshot stands at {sequence}");
    }
    let third = 6 - leader - follower;
    assert!(snapshots(&cluster, third).is_empty(), "the other member takes no snapshot");
    assert_eq!(first_sequence(&cluster, third), 1);

    let root = layout(&cluster, follower).root().to_path_buf();
    let again = |_| match ask_within(&root, &AdminRequest::Snapshot, PATIENCE).unwrap() {
        AdminAnswer::Snapshot { sequence, .. } => sequence,
        other => panic!("{other:?}"),
    };
    assert_eq!(again(()), again(()));

    cluster.ends_equal(&[1, 2, 3]);
    (1..=3).for_each(|member| cluster.start(member, Count::default()).unwrap());
    let mut caller = Caller::new(&cluster, NUMBER);
    caller.call_until(&mut cluster, 1);
    assert_eq!(caller.replies[&1], 10_001_u64.to_le_bytes());
}

#[test]
fn witness_takes_no_snapshot() {
    let mut cluster = Cluster::new(3, "");
    for member in 1..=3 {
        let text = std::fs::read_to_string(cluster.file(member)).unwrap();
        let text = text.replace("[[member]]\nid = 3\n", "[[member]]\nid = 3\nkind = \"witness\"\n");
        std::fs::write(cluster.file(member), text).unwrap();
        cluster.start(member, Count::default()).unwrap();
    }
    cluster.leader();
    let refusal = wait("an answer", || match ask(layout(&cluster, 3).root(), &AdminRequest::Snapshot).unwrap() {
        AdminAnswer::Refused(reason) => Some(reason),
        other => panic!("{other:?}"),
    });
    assert!(refusal.starts_with("a witness runs no service"), "{refusal}");
}
