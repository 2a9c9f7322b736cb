use crate::machines::{ALL, BridgePlan, TestMachine};
use crate::traffic::{NotedCalls, Traffic};
use gapless_testkit::kafka_broker::KafkaCluster;
use gapless_testkit::scenarios::Module;

pub fn module() -> Module {
    Module::new(module_path!()).side_by_side(crate::AT_A_TIME).scenario("a_leader_is_killed", a_leader_is_killed)
}

const INBOX: &str = "test.inbox.there";

fn a_leader_is_killed() {
    let Some(mut cluster) = KafkaCluster::start(3, &[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut one = there.instance("one");
    let mut notes = NotedCalls::of(&mut [&mut one]);
    let start = |machine: &TestMachine, offer, take| {
        machine.start(&BridgePlan { brokers: cluster.addresses(), ..machine.plan(String::new(), offer, take) })
    };
    let _bridges = (start(&here, "", ALL), start(&there, ALL, ""));
    here.until_answered_by("one");
    let traffic = Traffic::start(&here);
    traffic.wait_for_calls(50);
    // The second time, the returned node must have the records of the first one.
    for _ in 0..2 {
        let leader = cluster.leader(INBOX);
        cluster.node(leader).kill();
        here.until_answered_by("one");
        traffic.wait_for_calls(50);
        assert_ne!(cluster.leader(INBOX), leader);
        cluster.node(leader).restart();
        here.until_answered_by("one");
    }
    traffic.wait_for_calls(50);
    let kinds = traffic.end(&mut notes);
    assert!(kinds["reply"] >= 60, "{kinds:?}");
}
