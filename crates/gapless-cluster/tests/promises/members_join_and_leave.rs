#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, PATIENCE, Traffic, id};
use gapless_cluster::ClusterMember;
use gapless_cluster::config::MemberKind;
use gapless_cluster::member::requests::{AdminCommand, AdminOutcome, MembershipChangeError, NewMember};
use std::time::Duration;

fn new(cluster: &mut Cluster, kind: MemberKind, replaces: Option<u64>) -> NewMember {
    let number = cluster.make_room();
    NewMember { member: id(number), addresses: vec![cluster.address(number)], kind, replaces: replaces.map(id) }
}

#[track_caller]
fn begin(cluster: &Cluster, command: AdminCommand) {
    // The previous change may be in progress, or another member may lead by now.
    cluster.wait("the beginning of the change", |cluster| match cluster.leading().ask(command.clone(), PATIENCE) {
        Some(AdminOutcome::Begun) => Some(()),
        Some(AdminOutcome::NotChanged(MembershipChangeError::UnderWay | MembershipChangeError::NotLeader { .. })) => {
            None
        }
        other => panic!("{other:?}"),
    });
}

#[track_caller]
fn votes(cluster: &Cluster, number: u64) {
    cluster.wait("its vote on every member", |cluster| {
        let knows = |member: &ClusterMember| {
            member.status().is_some_and(|status| {
                status.members.voters.contains(&id(number)) && status.members.voters_outgoing.is_empty()
            })
        };
        cluster.running().all(knows).then_some(())
    });
}

#[test]
fn member_is_added_and_one_removed() {
    let mut cluster = Cluster::start(3);
    let traffic = Traffic::begin(&cluster);
    let new = new(&mut cluster, MemberKind::Full, None);
    begin(&cluster, AdminCommand::Add(new));
    cluster.join(4);
    votes(&cluster, 4);
    traffic.continues();

    let leader = cluster.leader();
    let goes = leader % 3 + 1;
    begin(&cluster, AdminCommand::Remove(id(goes)));
    let reason = cluster.failure(goes);
    assert!(reason.contains("was removed from its cluster"), "{reason}");
    assert!(cluster.forget(goes).stop().is_err());
    let refused = cluster.try_start(goes).err().unwrap().to_string();
    assert!(refused.contains("does not start again"), "{refused}");
    traffic.continues();
    cluster.wait("three members on each", |cluster| {
        let is_right = |member: &ClusterMember| {
            let status = member.status()?;
            let linked = status.links.len() == 2 && status.links.iter().all(|(peer, ..)| *peer != id(goes));
            (linked && !status.members.contains(id(goes))).then_some(())
        };
        cluster.running().all(|member| is_right(member).is_some()).then_some(())
    });
    let sent = traffic.end();
    cluster.has_exactly(sent);

    // The records count: the files still name the first three.
    cluster.restart();
    let traffic = Traffic::begin(&cluster);
    traffic.continues();
    let more = traffic.end();
    cluster.has_exactly(sent + more);
    let leader = cluster.leading().status().unwrap();
    assert_eq!(leader.members.voters.len(), 3);
    assert!(leader.members.voters.contains(&id(4)) && !leader.members.contains(id(goes)));

    let again = NewMember { member: id(2), addresses: vec!["h:1".to_owned()], kind: MemberKind::Full, replaces: None };
    let refused = cluster.leading().ask(AdminCommand::Add(again), Duration::from_secs(30));
    assert!(matches!(refused, Some(AdminOutcome::NotChanged(_))), "{refused:?}");
}

#[test]
fn member_is_replaced_in_one_change() {
    let mut cluster = Cluster::start(3);
    let traffic = Traffic::begin(&cluster);
    let leader = cluster.leader();
    let old = leader % 3 + 1;
    drop(cluster.forget(old));
    let new = new(&mut cluster, MemberKind::Full, Some(old));
    begin(&cluster, AdminCommand::Add(new.clone()));
    let another = NewMember { member: id(9), addresses: vec!["h:1".to_owned()], ..new };
    cluster.wait("a no, because one is joining", |cluster| {
        match cluster.leading().ask(AdminCommand::Add(another.clone()), Duration::from_secs(30)) {
            Some(AdminOutcome::NotChanged(MembershipChangeError::IsJoining(joining))) if joining == id(4) => Some(()),
            // The change is not committed yet, or another member leads now.
            Some(AdminOutcome::NotChanged(
                MembershipChangeError::UnderWay | MembershipChangeError::NotLeader { .. },
            )) => None,
            other => panic!("{other:?}"),
        }
    });
    cluster.join(4);
    votes(&cluster, 4);
    cluster.wait("the old one to be gone", |cluster| {
        let status = cluster.leading().status()?;
        (!status.members.contains(id(old))).then_some(())
    });
    traffic.continues();
    let sent = traffic.end();
    cluster.has_exactly(sent);
    cluster.start_one(old);
    let reason = cluster.failure(old);
    assert!(reason.contains("was removed from its cluster"), "{reason}");
    drop(cluster.forget(old));
}

#[test]
fn absentee_returns_after_changes() {
    let mut cluster = Cluster::start(3);
    // The lowest number without the lead: it does not know members added later, so it cannot connect to them.
    let away = if cluster.leader() == 1 { 2 } else { 1 };
    drop(cluster.forget(away));
    let mut others: Vec<u64> = cluster.members.keys().copied().collect();
    let mut sent = 0;
    for number in [4, 5] {
        let leader = cluster.leader();
        let old = match others.iter().position(|each| *each != leader) {
            Some(at) => others.remove(at),
            None => {
                let asked = cluster.leading().ask(AdminCommand::Transfer(id(4)), Duration::from_secs(30));
                assert_eq!(asked, Some(AdminOutcome::Begun));
                cluster.wait("another leader", |cluster| (cluster.leader() == 4).then_some(()));
                others.remove(0)
            }
        };
        let new = new(&mut cluster, MemberKind::Full, Some(old));
        assert_eq!(new.member, id(number));
        begin(&cluster, AdminCommand::Add(new));
        cluster.join(number);
        let reason = cluster.failure(old);
        assert!(reason.contains("was removed from its cluster"), "{reason}");
        drop(cluster.forget(old));
        votes(&cluster, number);
        let traffic = Traffic::begin(&cluster);
        traffic.continues();
        sent += traffic.end();
    }
    cluster.start_one(away);
    cluster.has_exactly(sent);
    votes(&cluster, 5);
}

#[test]
fn unsafe_change_is_refused() {
    let mut cluster = Cluster::start(3);
    let leader = cluster.leader();
    let ask = |cluster: &Cluster, command| cluster.leading().ask(command, Duration::from_secs(30)).unwrap();
    let refused = ask(&cluster, AdminCommand::Remove(id(leader)));
    assert_eq!(refused, AdminOutcome::NotChanged(MembershipChangeError::Leads(id(leader))));
    assert_eq!(
        ask(&cluster, AdminCommand::Remove(id(7))),
        AdminOutcome::NotChanged(MembershipChangeError::NotMember(id(7)))
    );
    let follower = leader % 3 + 1;
    let said = cluster.wait("a follower that knows its leader", |cluster| {
        let elsewhere = cluster.get(follower).ask(AdminCommand::Remove(id(leader)), Duration::from_secs(30)).unwrap();
        let AdminOutcome::NotChanged(MembershipChangeError::NotLeader { leader }) = elsewhere else {
            panic!("{elsewhere:?}")
        };
        leader
    });
    assert!(said.contains(&cluster.address(leader)), "{said}");
    drop(cluster.forget(follower));
    let third = 6 - leader - follower;
    cluster.wait("a leader that misses it", |cluster| {
        let few = AdminOutcome::NotChanged(MembershipChangeError::TooFewLive { voters: 2, needed: 2, live: 1 });
        let status = cluster.leading().status()?;
        let is_missed = status.links.iter().any(|(peer, is_connected, _)| *peer == id(follower) && !is_connected);
        (is_missed && ask(cluster, AdminCommand::Remove(id(third))) == few).then_some(())
    });
}

#[test]
fn witness_and_learner_join() {
    let mut cluster = Cluster::start(1);
    let traffic = Traffic::begin(&cluster);
    let witness = new(&mut cluster, MemberKind::Witness, None);
    begin(&cluster, AdminCommand::Add(witness));
    cluster.join_as(2, "witness");
    votes(&cluster, 2);
    let learner = new(&mut cluster, MemberKind::Learner, None);
    begin(&cluster, AdminCommand::Add(learner));
    cluster.join_as(3, "learner");
    traffic.continues();
    let sent = traffic.end();
    cluster.has_exactly(sent);
    let members = cluster.leading().status().unwrap().members;
    assert_eq!((members.voters, members.witnesses, members.learners), (vec![id(1), id(2)], vec![id(2)], vec![id(3)]));
}
