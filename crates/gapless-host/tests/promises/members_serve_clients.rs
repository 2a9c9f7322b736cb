//! Members of one process, each started by its file: clients of any of them follow the leader.

use crate::clusters::{Files, leader};
use crate::programs::{Account, Caller, Deposit, Hours, Sum, add, model};
use gapless_client::ClientOptions;
use gapless_cqrs::{Aggregate, BusOptions, RetryPolicy};
use gapless_host::{HostError, Phase, Role, Running};
use gapless_testkit::wait;
use std::time::Duration;

fn start(files: &Files, count: usize) -> Vec<Option<Running>> {
    (1..=count).map(|member| Some(files.host(member).service(Sum::default()).start().unwrap())).collect()
}

#[test]
fn client_goes_on_without_its_leader() {
    let files = Files::new(&["full"; 3], "");
    let mut members = start(&files, 3);
    let mut count = 0;
    // Every member leads once, at least one of them after a restart.
    for _ in 0..3 {
        let old = leader(&members);
        let mut callers = [1, 2, 3].map(|member| Caller::new(members[member - 1].as_ref().unwrap()));
        for caller in &mut callers {
            count += 1;
            assert_eq!(caller.add(&add(count)), count);
        }
        members[old - 1].take().unwrap().stop().unwrap();
        for caller in &mut callers {
            count += 1;
            assert_eq!(caller.add(&add(count)), count);
        }
        members[old - 1] = Some(files.host(old).service(Sum::default()).start().unwrap());
    }
    let newest = |host: &Option<Running>| host.as_ref().unwrap().status().handled;
    wait::until("all members to have all", || {
        let handled: Vec<u64> = members.iter().map(newest).collect();
        handled.iter().all(|each| *each == handled[0] && *each >= count)
    });
    for member in &members {
        member.as_ref().unwrap().stop().unwrap();
    }
}

#[test]
fn witness_has_no_service() {
    let files = Files::new(&["full", "full", "witness"], "");
    let members = start(&files, 3);
    let witness = members[2].as_ref().unwrap();
    let mut caller = Caller::new(witness);
    assert_eq!(caller.add(&add(1)), 1, "its client finds the leader");
    let status = witness.status();
    assert_eq!((status.role, status.handled, status.state_hash), (Role::Witness, 0, None));
    assert!(status.leader.is_some_and(|leader| leader < 3), "{status:?}");
    let error = witness.snapshot().unwrap_err().to_string();
    assert!(error.contains("a witness runs no service"), "{error}");
}

#[test]
fn bus_handle_follows_the_leader() {
    let files = Files::new(&["full"; 3], "");
    let host = |member| files.host(member).aggregates(model()).start().unwrap();
    let mut members: Vec<_> = (1..=3).map(|member| Some(host(member))).collect();
    let old = leader(&members);
    let follower = members[old % 3].as_ref().unwrap();
    let retry = RetryPolicy { attempts_max: 1000, ..RetryPolicy::default() };
    let bus = follower.bus(&BusOptions::default()).unwrap().with_retry(retry);
    assert_eq!(bus.call(Account::command(&1, &Deposit(1))).unwrap().version, 1);
    members[old - 1].take().unwrap().stop().unwrap();
    assert_eq!(bus.call(Account::command(&1, &Deposit(1))).unwrap().version, 2);
    let error = members[old % 3].as_ref().unwrap().snapshot().unwrap_err().to_string();
    assert!(error.contains("loaded from the whole stream"), "{error}");
}

#[test]
fn member_alone_finds_no_leader() {
    let files = Files::new(&["full", "full", "witness"], "");
    let first = files.host(1).service(Sum::default()).start().unwrap();
    let soon = ClientOptions { timeout: Duration::from_millis(50), ..ClientOptions::default() };
    // The connection succeeds without a leader; the session waits for one.
    let opened = first.polled_client(soon.clone()).and_then(|mut client| Ok(client.open_session(1, 1)?));
    assert!(matches!(opened, Err(HostError::Client(_))), "{opened:?}");
    assert_eq!(first.status().leader, None);
    // A new cluster begins when all its voters have met.
    let others = [2, 3].map(|member| files.host(member).service(Sum::default()).start().unwrap());
    assert_eq!(Caller::new(&first).add(&add(1)), 1);
    let error = others[1].advance(Duration::from_secs(1)).unwrap_err();
    assert!(matches!(error, HostError::Refused { .. }), "{error}");
}

#[test]
fn leader_begins_a_version() {
    let files = Files::new(&["full"; 3], "");
    let host = |member| files.host(member).service_from(Hours::default).start().unwrap();
    let members: Vec<_> = (1..=3).map(|member| Some(host(member))).collect();
    let leader = leader(&members);
    wait::until("a leader that knows the programs of all members", || {
        members[leader - 1].as_ref().unwrap().begin_version(2).is_ok()
    });
    let error = members[leader % 3].as_ref().unwrap().begin_version(2).unwrap_err();
    assert!(matches!(error, HostError::Refused { call: "begin_version", .. }), "{error}");
    assert_eq!(members[leader - 1].as_ref().unwrap().status().phase, Phase::Running);
}
