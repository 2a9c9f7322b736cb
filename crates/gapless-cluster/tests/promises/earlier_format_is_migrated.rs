//! All directories are of an earlier format: each start reports it, and the cluster continues with the frames of one.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, Traffic, id};
use gapless_client::stream_layout::StreamLayout;
use gapless_cluster::ClusterError;
use gapless_cluster::config::MemberKind;
use gapless_cluster::member::member_check::check_member_files;
use gapless_cluster::member::recover::{ForcedRecovery, KeptJournal};
use gapless_cluster::member::requests::{AdminCommand, AdminOutcome, NewMember};
use gapless_stream::sequencer_state_writer;
use std::path::Path;
use std::time::Duration;

fn unseal(directory: &Path) {
    for name in ["instance", "instances", "incarnation", "voting"] {
        let path = directory.join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let (_, text) = text.split_once('\n').unwrap();
        // Earlier programs did not record the slot of `ballot` either.
        let fields: Vec<_> = text.split(' ').collect();
        let text = if name == "voting" { format!("{}\n", fields[..3].join(" ")) } else { text.to_owned() };
        std::fs::write(path, text).unwrap();
    }
    std::fs::remove_file(directory.join("directory")).unwrap();
}

#[test]
fn earlier_format_is_migrated() {
    let mut cluster = Cluster::start(3);
    let traffic = Traffic::begin(&cluster);
    traffic.continues();
    let sent = traffic.end();
    cluster.has_exactly(sent);
    // The last one has the frames of all, or more.
    for member in [3, 2, 1] {
        cluster.forget(member).stop().unwrap();
        unseal(&cluster.directory(member));
    }
    for member in 1..=3 {
        let names = ["instance", "voting", "ballot"];
        let files = || names.map(|name| std::fs::read(cluster.directory(member).join(name)).unwrap());
        let before = files();
        let refused = cluster.try_start(member).err().unwrap();
        assert!(matches!(refused, ClusterError::EarlierFormat { written_by: None, .. }), "{refused}");
        assert!(refused.to_string().contains("recover --force-single"), "{refused}");
        let found = check_member_files(&cluster.directory(member));
        assert!(matches!(found[..], [ClusterError::EarlierFormat { .. }]), "{found:?}");
        assert_eq!(files(), before, "nothing was changed");
    }
    let furthest = [3, 2, 1].into_iter().max_by_key(|member| {
        let recovery = ForcedRecovery::open(&cluster.config(*member), |_| Ok(Vec::new())).unwrap();
        (recovery.term(), recovery.last_sequence())
    });
    assert_eq!(furthest, Some(1));
    let states = |kept: &KeptJournal<'_>| {
        Ok(sequencer_state_writer::adopt(&StreamLayout::new(kept.root).state(), kept.identity)?)
    };
    ForcedRecovery::open(&cluster.config(1), |_| Ok(Vec::new())).unwrap().apply(7, states).unwrap();
    (cluster.first, cluster.incarnation) = (1, 7);
    cluster.start_one(1);
    let traffic = Traffic::begin(&cluster);
    traffic.continues();
    let all = sent + traffic.end();
    cluster.has_exactly(all);
    let number = cluster.make_room();
    let addresses = vec![cluster.address(number)];
    let new = NewMember { member: id(number), addresses, kind: MemberKind::Full, replaces: None };
    assert_eq!(cluster.leading().ask(AdminCommand::Add(new), Duration::from_secs(30)), Some(AdminOutcome::Begun));
    cluster.join(number);
    cluster.has_exactly(all);
}
