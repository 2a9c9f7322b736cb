//! Takeover by a successor from the persistent state, encoded and decoded as in its file.

use super::{SECOND, World, config, copy, has_other_environment, process};
use crate::end_status::EndStatus;
use crate::supervision::copy::{End, Progress};
use crate::supervision::event::{Action, Command, Event};
use crate::supervision::{Memory, Supervision};

/// Replaces the supervisor, as after a crash; the successor takes over the running instances.
pub(super) fn take_over(world: &mut World, text: &str) -> Vec<Action> {
    let memory = serde_json::to_string(&world.supervision.memory()).unwrap();
    let memory: Memory = serde_json::from_str(&memory).unwrap();
    world.supervision = Supervision::new(&config(text), memory);
    let mut actions = Vec::new();
    for (copy, (incarnation, _)) in &world.running {
        world.supervision.adopt(world.now_ns, copy, *incarnation, 77);
    }
    world.supervision.lose_others(world.now_ns, |_, _| Some(End::Unseen), &mut actions);
    actions
}

#[test]
fn unmade_start_is_no_failure() {
    let text = process("a", "copies = 2\nrestart = { restarts_max = 2 }");
    let mut world = World::new(&text);
    world.report_ready("a.1");
    world.report_ready("a.2");
    world.report_end("a.1", End::Status(EndStatus::Exited(1)));
    assert_eq!(world.running[&copy("a.1")].0, 3);
    let mut next = Supervision::new(&config(&text), world.supervision.memory());
    let mut actions = Vec::new();
    next.adopt(world.now_ns, &copy("a.2"), 2, 77);
    next.lose_others(world.now_ns, |_, incarnation| (incarnation != 3).then_some(End::Unseen), &mut actions);
    let starts: Vec<_> = actions.iter().filter(|action| matches!(action, Action::Start { .. })).collect();
    assert_eq!(starts, [&Action::Start { copy: copy("a.1"), incarnation: 4 }]);
    assert_eq!(next.processes()[0].copies().map(|(_, copy)| copy.memory.restarts).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn takeover_keeps_failure_counts() {
    let text = process("a", "copies = 3\nrestart = { restarts_max = 2 }");
    let mut world = World::new(&text);
    world.report_ready("a.1");
    world.report_ready("a.2");
    world.report_end("a.1", End::Status(EndStatus::Exited(1)));
    let memory = world.supervision.memory();
    let memory: Memory = serde_json::from_str(&serde_json::to_string(&memory).unwrap()).unwrap();
    let mut next = Supervision::new(&config(&text), memory);
    let mut actions = Vec::new();
    next.adopt(world.now_ns, &copy("a.2"), 2, 77);
    next.lose_others(world.now_ns, |_, _| Some(End::Unseen), &mut actions);
    let starts: Vec<_> = actions.iter().filter(|action| matches!(action, Action::Start { .. })).collect();
    // a.1 has failed for the second time, so it backs off; a.3 has failed for the first time.
    assert_eq!(starts, [&Action::Start { copy: copy("a.3"), incarnation: 5 }]);
    assert!(actions.contains(&Action::Watch { copy: copy("a.2"), incarnation: 2, process_id: 77 }));
    let copies = &next.processes()[0].copies;
    assert!(matches!(copies[&1].progress(), Progress::BackingOff { .. }));
    assert_eq!((copies[&1].memory.restarts, copies[&1].memory.incarnation), (2, 4));
    assert!(matches!(copies[&2].progress(), Progress::Ready { .. }));
}

#[test]
fn takeover_keeps_grace_period() {
    let text = process("a", "stop = { grace = \"4 s\" }");
    let mut world = World::new(&text);
    world.report_ready("a.1");
    world.command(&Command::Stop(Vec::new())).unwrap();
    let kill_at_ns = world.now_ns + 4 * SECOND;
    assert_eq!(world.progress("a.1"), Progress::Stopping { kill_at_ns, is_killed: false });
    for _ in 0..3 {
        world.now_ns += SECOND;
        let actions = take_over(&mut world, &text);
        assert_eq!(world.progress("a.1"), Progress::Stopping { kill_at_ns, is_killed: false });
        // The driver knows whether the signal was sent before.
        let again = |action: &Action| matches!(action, Action::Stop { kill_at_ns: at_ns, .. } if *at_ns == kill_at_ns);
        assert_eq!(actions.iter().filter(|action| again(action)).count(), 1, "{actions:?}");
    }
    world.advance(SECOND);
    assert_eq!(world.progress("a.1"), Progress::Stopping { kill_at_ns, is_killed: true });
    let actions = take_over(&mut world, &text);
    assert!(!actions.iter().any(|action| matches!(action, Action::Stop { .. } | Action::Kill { .. })), "{actions:?}");
}

#[test]
fn takeover_keeps_restarts() {
    for policy in ["always", "on-failure", "never"] {
        let text = process("a", &format!("restart = {{ policy = \"{policy}\", restarts_max = 0 }}"));
        let mut world = World::new(&text);
        world.report_ready("a.1");
        world.command(&Command::Restart(Vec::new())).unwrap();
        let actions = take_over(&mut world, &text);
        assert!(!actions.iter().any(|action| matches!(action, Action::Start { .. })));
        world.report_end("a.1", End::Status(EndStatus::Exited(0)));
        assert_eq!(world.running(), ["a.1"], "{policy}");
        assert_eq!(world.supervision.memory().processes["a"].copies[&1].restarts, 0, "{policy}: it is not a failure");
    }
}

#[test]
fn reload_starts_held_instance() {
    let text = process("a", "restart = { restarts_max = 0 }");
    let mut world = World::new(&text);
    world.report_ready("a.1");
    world.command(&Command::Restart(Vec::new())).unwrap();
    world.report_end("a.1", End::Status(EndStatus::Exited(0)));
    world.report_end("a.1", End::Status(EndStatus::Exited(1)));
    assert_eq!(world.progress("a.1"), Progress::Held);
    let memory = world.supervision.memory().processes["a"].clone();
    assert!(!memory.copies[&1].restart_requested && memory.copies[&1].generation == memory.generation);
    world.command(&Command::Reload(Vec::new())).unwrap();
    assert_eq!(world.running(), ["a.1"]);
}

#[test]
fn takeover_keeps_stages() {
    let text = [
        process("a", "ready = \"notify\""),
        process("b", "after = [{ process = \"a\", is = \"initialised\" }]"),
        process("c", "singleton = true\ncopies = 2\nready_within = \"5 s\""),
    ]
    .concat();
    let mut world = World::new(&text);
    for name in ["a.1", "c.2"] {
        world.report_started(name);
    }
    let incarnation = |world: &World, name| world.running[&copy(name)].0;
    let said = Event::Initialised { copy: copy("a.1"), incarnation: incarnation(&world, "a.1") };
    let mut actions = Vec::new();
    world.supervision.handle(world.now_ns, said, &mut actions);
    assert!(actions.contains(&Action::Remember), "{actions:?}");
    world.act(actions);
    world.handle(Event::Standby { copy: copy("c.2"), incarnation: incarnation(&world, "c.2") });
    world.report_ready("c.1");
    world.report_ready("b.1");
    world.report_end("b.1", End::Status(EndStatus::Exited(1)));
    assert!(world.running.contains_key(&copy("b.1")));
    world.report_end("b.1", End::Status(EndStatus::Exited(1)));
    assert!(matches!(world.progress("b.1"), Progress::BackingOff { .. }));
    let actions = take_over(&mut world, &text);
    world.act(actions);
    assert!(matches!(world.progress("a.1"), Progress::Starting { is_initialised: true, .. }));
    assert!(matches!(world.progress("b.1"), Progress::BackingOff { .. }), "its backoff continues");
    assert!(matches!(world.progress("c.2"), Progress::Starting { is_standby: true, .. }));
    world.advance(SECOND);
    assert!(world.running.contains_key(&copy("b.1")), "its dependency is still initialised");
}

#[test]
fn removed_process_keeps_ending() {
    let text = [process("a", ""), process("b", "stop = { grace = \"7 s\" }")].concat();
    let mut world = World::new(&text);
    world.report_ready("a.1");
    world.report_ready("b.1");
    let mut actions = Vec::new();
    let without = process("a", "");
    world.supervision.replace(world.now_ns, &config(&without), has_other_environment, &mut actions);
    world.act(actions);
    let progress = world.progress("b.1");
    assert_eq!(progress, Progress::Stopping { kill_at_ns: world.now_ns + 7 * SECOND, is_killed: false });
    world.now_ns += SECOND;
    take_over(&mut world, &without);
    assert_eq!(world.progress("b.1"), progress);
    world.report_end("b.1", End::Status(EndStatus::Exited(0)));
    assert_eq!(world.supervision.processes().len(), 1);
}

#[test]
fn unseen_task_end_is_held() {
    for policy in ["on-failure", "never"] {
        let text = process("a", &format!("once = true\nrestart = {{ policy = \"{policy}\" }}"));
        let mut world = World::new(&text);
        world.report_ready("a.1");
        world.report_end("a.1", End::Unseen);
        assert_eq!(world.progress("a.1"), Progress::Held);
        let memory = world.supervision.memory().processes["a"].copies[&1].clone();
        assert!(memory.last_reason.unwrap().starts_with("its end was not seen"));
        world.command(&Command::Start(Vec::new())).unwrap();
        world.report_end("a.1", End::Status(EndStatus::Exited(0)));
        assert_eq!(world.progress("a.1"), Progress::Done);
    }
}
