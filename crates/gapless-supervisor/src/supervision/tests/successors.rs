//! Takeover by a successor from the persistent state, encoded and decoded as in its file.

use super::{SECOND, SupervisionWorld, config, has_other_environment, instance, process};
use crate::end_status::EndStatus;
use crate::supervision::event::{OperatorCommand, ProcessAction, ProcessEvent};
use crate::supervision::instance::{InstanceEnd, InstanceProgress};
use crate::supervision::{PersistentSupervision, Supervision};

pub(super) fn take_over(world: &mut SupervisionWorld, text: &str) -> Vec<ProcessAction> {
    let persistent = serde_json::to_string(&world.supervision.persistent_state()).unwrap();
    let persistent: PersistentSupervision = serde_json::from_str(&persistent).unwrap();
    world.supervision = Supervision::new(&config(text), persistent);
    let mut actions = Vec::new();
    for (instance, (incarnation, _)) in &world.running {
        world.supervision.adopt(world.now_ns, instance, *incarnation, 77);
    }
    world.supervision.end_unadopted(world.now_ns, |_, _| Some(InstanceEnd::Unseen), &mut actions);
    actions
}

#[test]
fn unmade_start_is_no_failure() {
    let text = process("a", "instances = 2\nrestart = { restarts_max = 2 }");
    let mut world = SupervisionWorld::new(&text);
    world.report_ready("a.1");
    world.report_ready("a.2");
    world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(1)));
    assert_eq!(world.running[&instance("a.1")].0, 3);
    let mut next = Supervision::new(&config(&text), world.supervision.persistent_state());
    let mut actions = Vec::new();
    next.adopt(world.now_ns, &instance("a.2"), 2, 77);
    next.end_unadopted(world.now_ns, |_, incarnation| (incarnation != 3).then_some(InstanceEnd::Unseen), &mut actions);
    let starts: Vec<_> = actions.iter().filter(|action| matches!(action, ProcessAction::Start { .. })).collect();
    assert_eq!(starts, [&ProcessAction::Start { instance: instance("a.1"), incarnation: 4 }]);
    assert_eq!(
        next.processes()[0].instances().map(|(_, instance)| instance.persistent.restarts).collect::<Vec<_>>(),
        [1, 0]
    );
}

#[test]
fn takeover_keeps_failure_counts() {
    let text = process("a", "instances = 3\nrestart = { restarts_max = 2 }");
    let mut world = SupervisionWorld::new(&text);
    world.report_ready("a.1");
    world.report_ready("a.2");
    world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(1)));
    let persistent = world.supervision.persistent_state();
    let persistent: PersistentSupervision = serde_json::from_str(&serde_json::to_string(&persistent).unwrap()).unwrap();
    let mut next = Supervision::new(&config(&text), persistent);
    let mut actions = Vec::new();
    next.adopt(world.now_ns, &instance("a.2"), 2, 77);
    next.end_unadopted(world.now_ns, |_, _| Some(InstanceEnd::Unseen), &mut actions);
    let starts: Vec<_> = actions.iter().filter(|action| matches!(action, ProcessAction::Start { .. })).collect();
    assert_eq!(starts, [&ProcessAction::Start { instance: instance("a.3"), incarnation: 5 }]);
    assert!(actions.contains(&ProcessAction::Watch { instance: instance("a.2"), incarnation: 2, process_id: 77 }));
    let instances = &next.processes()[0].instances;
    assert!(matches!(instances[&1].progress(), InstanceProgress::BackingOff { .. }));
    assert_eq!((instances[&1].persistent.restarts, instances[&1].persistent.incarnation), (2, 4));
    assert!(matches!(instances[&2].progress(), InstanceProgress::Ready { .. }));
}

#[test]
fn takeover_keeps_grace_period() {
    let text = process("a", "stop = { grace = \"4 s\" }");
    let mut world = SupervisionWorld::new(&text);
    world.report_ready("a.1");
    world.command(&OperatorCommand::Stop(Vec::new())).unwrap();
    let kill_at_ns = world.now_ns + 4 * SECOND;
    assert_eq!(world.progress("a.1"), InstanceProgress::Stopping { kill_at_ns, is_killed: false });
    for _ in 0..3 {
        world.now_ns += SECOND;
        let actions = take_over(&mut world, &text);
        assert_eq!(world.progress("a.1"), InstanceProgress::Stopping { kill_at_ns, is_killed: false });
        let again = |action: &ProcessAction| matches!(action, ProcessAction::Stop { kill_at_ns: at_ns, .. } if *at_ns == kill_at_ns);
        assert_eq!(actions.iter().filter(|action| again(action)).count(), 1, "{actions:?}");
    }
    world.advance(SECOND);
    assert_eq!(world.progress("a.1"), InstanceProgress::Stopping { kill_at_ns, is_killed: true });
    let actions = take_over(&mut world, &text);
    assert!(
        !actions.iter().any(|action| matches!(action, ProcessAction::Stop { .. } | ProcessAction::Kill { .. })),
        "{actions:?}"
    );
}

#[test]
fn takeover_keeps_restarts() {
    for policy in ["always", "on-failure", "never"] {
        let text = process("a", &format!("restart = {{ policy = \"{policy}\", restarts_max = 0 }}"));
        let mut world = SupervisionWorld::new(&text);
        world.report_ready("a.1");
        world.command(&OperatorCommand::Restart(Vec::new())).unwrap();
        let actions = take_over(&mut world, &text);
        assert!(!actions.iter().any(|action| matches!(action, ProcessAction::Start { .. })));
        world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(0)));
        assert_eq!(world.running(), ["a.1"], "{policy}");
        assert_eq!(
            world.supervision.persistent_state().processes["a"].instances[&1].restarts,
            0,
            "{policy}: it is not a failure"
        );
    }
}

#[test]
fn reload_starts_held_instance() {
    let text = process("a", "restart = { restarts_max = 0 }");
    let mut world = SupervisionWorld::new(&text);
    world.report_ready("a.1");
    world.command(&OperatorCommand::Restart(Vec::new())).unwrap();
    world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(0)));
    world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(1)));
    assert_eq!(world.progress("a.1"), InstanceProgress::Held);
    let persistent = world.supervision.persistent_state().processes["a"].clone();
    assert!(
        !persistent.instances[&1].restart_requested && persistent.instances[&1].generation == persistent.generation
    );
    world.command(&OperatorCommand::Reload(Vec::new())).unwrap();
    assert_eq!(world.running(), ["a.1"]);
}

#[test]
fn takeover_keeps_stages() {
    let text = [
        process("a", "ready = \"notify\""),
        process("b", "after = [{ process = \"a\", is = \"initialised\" }]"),
        process("c", "singleton = true\ninstances = 2\nready_within = \"5 s\""),
    ]
    .concat();
    let mut world = SupervisionWorld::new(&text);
    for name in ["a.1", "c.2"] {
        world.report_started(name);
    }
    let incarnation = |world: &SupervisionWorld, name| world.running[&instance(name)].0;
    let event = ProcessEvent::Initialised { instance: instance("a.1"), incarnation: incarnation(&world, "a.1") };
    let mut actions = Vec::new();
    world.supervision.handle(world.now_ns, event, &mut actions);
    assert!(actions.contains(&ProcessAction::Persist), "{actions:?}");
    world.act(actions);
    world.handle(ProcessEvent::Standby { instance: instance("c.2"), incarnation: incarnation(&world, "c.2") });
    world.report_ready("c.1");
    world.report_ready("b.1");
    world.report_end("b.1", InstanceEnd::Status(EndStatus::Exited(1)));
    assert!(world.running.contains_key(&instance("b.1")));
    world.report_end("b.1", InstanceEnd::Status(EndStatus::Exited(1)));
    assert!(matches!(world.progress("b.1"), InstanceProgress::BackingOff { .. }));
    let actions = take_over(&mut world, &text);
    world.act(actions);
    assert!(matches!(world.progress("a.1"), InstanceProgress::Starting { is_initialised: true, .. }));
    assert!(matches!(world.progress("b.1"), InstanceProgress::BackingOff { .. }), "its backoff continues");
    assert!(matches!(world.progress("c.2"), InstanceProgress::Starting { is_standby: true, .. }));
    world.advance(SECOND);
    assert!(world.running.contains_key(&instance("b.1")), "its dependency is still initialised");
}

#[test]
fn removed_process_keeps_ending() {
    let text = [process("a", ""), process("b", "stop = { grace = \"7 s\" }")].concat();
    let mut world = SupervisionWorld::new(&text);
    world.report_ready("a.1");
    world.report_ready("b.1");
    let mut actions = Vec::new();
    let without = process("a", "");
    world.supervision.replace(world.now_ns, &config(&without), has_other_environment, &mut actions);
    world.act(actions);
    let progress = world.progress("b.1");
    assert_eq!(progress, InstanceProgress::Stopping { kill_at_ns: world.now_ns + 7 * SECOND, is_killed: false });
    world.now_ns += SECOND;
    take_over(&mut world, &without);
    assert_eq!(world.progress("b.1"), progress);
    world.report_end("b.1", InstanceEnd::Status(EndStatus::Exited(0)));
    assert_eq!(world.supervision.processes().len(), 1);
}

#[test]
fn unseen_task_end_is_held() {
    for policy in ["on-failure", "never"] {
        let text = process("a", &format!("once = true\nrestart = {{ policy = \"{policy}\" }}"));
        let mut world = SupervisionWorld::new(&text);
        world.report_ready("a.1");
        world.report_end("a.1", InstanceEnd::Unseen);
        assert_eq!(world.progress("a.1"), InstanceProgress::Held);
        let persistent = world.supervision.persistent_state().processes["a"].instances[&1].clone();
        assert!(persistent.last_reason.unwrap().starts_with("its end was not seen"));
        world.command(&OperatorCommand::Start(Vec::new())).unwrap();
        world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(0)));
        assert_eq!(world.progress("a.1"), InstanceProgress::Done);
    }
}
