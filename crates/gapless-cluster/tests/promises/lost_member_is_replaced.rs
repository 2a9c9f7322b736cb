//! Members that lost their partners or directories: no member loses frames of a quorum afterwards.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, Traffic, id};
use gapless_client::stream_layout::StreamLayout;
use gapless_cluster::ClusterMember;
use gapless_cluster::config::MemberKind;
use gapless_cluster::consensus::MemberRole;
use gapless_cluster::member::recover::{ForcedRecovery, KeptJournal};
use gapless_cluster::member::requests::{AdminCommand, AdminOutcome, NewMember};
use gapless_stream::sequencer_state_writer;
use std::time::Duration;

#[test]
fn forced_recovery_continues_alone() {
    let mut cluster = Cluster::start(2);
    let traffic = Traffic::begin(&cluster);
    traffic.continues();
    let sent = traffic.end();
    cluster.has_exactly(sent);
    let old = cluster.config(1);
    let refused = ForcedRecovery::open(&old, |_| Ok(Vec::new())).err().unwrap().to_string();
    assert!(refused.contains("in use by process"), "a member that runs: {refused}");
    // A second start is refused, and changes no small file.
    let small = || ["instance", "voting", "ballot"].map(|name| std::fs::read(cluster.directory(1).join(name)).unwrap());
    let before = small();
    let refused = ClusterMember::start(&old).err().unwrap().to_string();
    assert!(refused.contains("in use by process") && small() == before, "{refused}");
    cluster.forget(2).stop().unwrap();
    cluster.forget(1).stop().unwrap();

    let recovery = ForcedRecovery::open(&old, |_| Ok(Vec::new())).unwrap();
    assert!(recovery.last_sequence() >= sent && recovery.committed_sequence() <= recovery.last_sequence());
    let states = |kept: &KeptJournal<'_>| {
        Ok(sequencer_state_writer::adopt(&StreamLayout::new(kept.root).state(), kept.identity)?)
    };
    recovery.apply(7, states).unwrap();
    let refused = cluster.try_start(1).err().unwrap().to_string();
    assert!(refused.contains("incarnation 7") && refused.contains("file 1"), "{refused}");
    cluster.incarnation = 7;
    let refused = cluster.try_start(2).err().unwrap().to_string();
    assert!(refused.contains("incarnation 1") && refused.contains("file 7"), "{refused}");

    cluster.first = 1;
    cluster.start_one(1);
    let traffic = Traffic::begin(&cluster);
    traffic.continues();
    let all = sent + traffic.end();
    cluster.has_exactly(all);
    cluster.first = 2;
    cluster.incarnation = 1;
    cluster.start_one(2);
    cluster.wait("its first turn", |cluster| cluster.get(2).status());
    std::thread::sleep(Duration::from_secs(1));
    let status = cluster.get(2).status().unwrap();
    assert_eq!((status.consensus.role == MemberRole::Leader, status.links[0].1), (false, false));
    let status = cluster.get(1).status().unwrap();
    assert_eq!((status.consensus.role, status.members.voters), (MemberRole::Leader, vec![id(1)]));
    drop(cluster.forget(2));

    cluster.first = 1;
    cluster.incarnation = 7;
    assert_eq!(cluster.make_room(), 3);
    let new = |number: u64| NewMember {
        member: id(number),
        addresses: vec![cluster.address(3)],
        kind: MemberKind::Full,
        replaces: None,
    };
    let patience = Duration::from_secs(30);
    assert!(matches!(cluster.leading().ask(AdminCommand::Add(new(2)), patience), Some(AdminOutcome::NotChanged(_))));
    assert_eq!(cluster.leading().ask(AdminCommand::Add(new(3)), patience), Some(AdminOutcome::Begun));
    cluster.join(3);
    cluster.has_exactly(all);
    cluster.restart();
    cluster.has_exactly(all);
}

#[test]
fn lost_directory_is_replaced() {
    let mut cluster = Cluster::start(3);
    let traffic = Traffic::begin(&cluster);
    let leader = cluster.leader();
    let lost = leader % 3 + 1;
    traffic.continues();
    cluster.forget(lost).stop().unwrap();
    std::fs::remove_dir_all(cluster.directory(lost)).unwrap();
    cluster.start_one(lost);
    let reason = cluster.failure(lost);
    let words = format!("cluster add --replace {lost}");
    assert!(reason.contains("another directory") && reason.contains(&words), "{reason}");
    drop(cluster.forget(lost));
    let refused = cluster.wait("what is said of it", |cluster| {
        let mut refused = cluster.running().filter_map(ClusterMember::status).flat_map(|status| status.refused);
        refused.find(|(member, _)| *member == id(lost))
    });
    assert!(refused.1.contains(&words), "{}", refused.1);
    traffic.continues();
    let number = cluster.make_room();
    let new = NewMember {
        member: id(number),
        addresses: vec![cluster.address(number)],
        kind: MemberKind::Full,
        replaces: Some(id(lost)),
    };
    assert_eq!(cluster.leading().ask(AdminCommand::Add(new), Duration::from_secs(30)), Some(AdminOutcome::Begun));
    cluster.join(number);
    cluster.wait("the replacement", |cluster| {
        let status = cluster.leading().status()?;
        (status.members.voters.contains(&id(number)) && !status.members.contains(id(lost))).then_some(())
    });
    traffic.continues();
    let sent = traffic.end();
    cluster.has_exactly(sent);
}
