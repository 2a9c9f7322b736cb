//! What the next supervisor knows of the one before, by its memory as it stands in the file.

use super::{SECOND, World, config, copy, has_other_environment, process};
use crate::end_status::EndStatus;
use crate::supervision::copy::{End, Progress};
use crate::supervision::event::{Action, Command, Event};
use crate::supervision::{Memory, Supervision};

/// The supervisor of a world is killed, and the next one takes over what runs.
pub(super) fn succeed(world: &mut World, text: &str) -> Vec<Action> {
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
fn a_start_that_never_was_counts_for_nothing() {
    let text = process("a", "copies = 2\nrestart = { restarts_max = 2 }");
    let mut world = World::new(&text);
    world.is_ready("a.1");
    world.is_ready("a.2");
    world.ends("a.1", End::Status(EndStatus::Exited(1)));
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
fn who_takes_over_knows_what_was_counted() {
    let text = process("a", "copies = 3\nrestart = { restarts_max = 2 }");
    let mut world = World::new(&text);
    world.is_ready("a.1");
    world.is_ready("a.2");
    world.ends("a.1", End::Status(EndStatus::Exited(1)));
    let memory = world.supervision.memory();
    let memory: Memory = serde_json::from_str(&serde_json::to_string(&memory).unwrap()).unwrap();
    let mut next = Supervision::new(&config(&text), memory);
    let mut actions = Vec::new();
    next.adopt(world.now_ns, &copy("a.2"), 2, 77);
    next.lose_others(world.now_ns, |_, _| Some(End::Unseen), &mut actions);
    let starts: Vec<_> = actions.iter().filter(|action| matches!(action, Action::Start { .. })).collect();
    // The second failure of the first copy waits; the third copy had not failed before.
    assert_eq!(starts, [&Action::Start { copy: copy("a.3"), incarnation: 5 }]);
    assert!(actions.contains(&Action::Watch { copy: copy("a.2"), incarnation: 2, process_id: 77 }));
    let copies = &next.processes()[0].copies;
    assert!(matches!(copies[&1].progress(), Progress::BackingOff { .. }));
    assert_eq!((copies[&1].memory.restarts, copies[&1].memory.incarnation), (2, 4));
    assert!(matches!(copies[&2].progress(), Progress::Ready { .. }));
}

#[test]
fn a_copy_that_is_being_stopped_keeps_its_grace_over_supervisors() {
    let text = process("a", "stop = { grace = \"4 s\" }");
    let mut world = World::new(&text);
    world.is_ready("a.1");
    world.command(&Command::Stop(Vec::new())).unwrap();
    let kill_at_ns = world.now_ns + 4 * SECOND;
    assert_eq!(world.progress("a.1"), Progress::Stopping { kill_at_ns, is_killed: false });
    for _ in 0..3 {
        world.now_ns += SECOND;
        let actions = succeed(&mut world, &text);
        assert_eq!(world.progress("a.1"), Progress::Stopping { kill_at_ns, is_killed: false });
        // Whether it has got its signal the driver knows.
        let again = |action: &Action| matches!(action, Action::Stop { kill_at_ns: at_ns, .. } if *at_ns == kill_at_ns);
        assert_eq!(actions.iter().filter(|action| again(action)).count(), 1, "{actions:?}");
    }
    world.passes(SECOND);
    assert_eq!(world.progress("a.1"), Progress::Stopping { kill_at_ns, is_killed: true });
    let actions = succeed(&mut world, &text);
    assert!(!actions.iter().any(|action| matches!(action, Action::Stop { .. } | Action::Kill { .. })), "{actions:?}");
}

#[test]
fn a_copy_that_is_to_start_anew_does_so_under_the_next_supervisor() {
    for policy in ["always", "on-failure", "never"] {
        let text = process("a", &format!("restart = {{ policy = \"{policy}\", restarts_max = 0 }}"));
        let mut world = World::new(&text);
        world.is_ready("a.1");
        world.command(&Command::Restart(Vec::new())).unwrap();
        let actions = succeed(&mut world, &text);
        assert!(!actions.iter().any(|action| matches!(action, Action::Start { .. })));
        world.ends("a.1", End::Status(EndStatus::Exited(0)));
        assert_eq!(world.running(), ["a.1"], "{policy}");
        assert_eq!(world.supervision.memory().processes["a"].copies[&1].restarts, 0, "{policy}: it has not failed");
    }
}

#[test]
fn a_restart_that_ended_held_is_over_when_a_new_file_comes() {
    let text = process("a", "restart = { restarts_max = 0 }");
    let mut world = World::new(&text);
    world.is_ready("a.1");
    world.command(&Command::Restart(Vec::new())).unwrap();
    world.ends("a.1", End::Status(EndStatus::Exited(0)));
    world.ends("a.1", End::Status(EndStatus::Exited(1)));
    assert_eq!(world.progress("a.1"), Progress::Held);
    let memory = world.supervision.memory().processes["a"].clone();
    assert!(!memory.copies[&1].restart_requested && memory.copies[&1].generation == memory.generation);
    world.command(&Command::Reload(Vec::new())).unwrap();
    assert_eq!(world.running(), ["a.1"]);
}

#[test]
fn what_a_copy_has_said_of_itself_is_known_to_the_next_supervisor() {
    let text = [
        process("a", "ready = \"notify\""),
        process("b", "after = [{ process = \"a\", is = \"initialised\" }]"),
        process("c", "singleton = true\ncopies = 2\nready_within = \"5 s\""),
    ]
    .concat();
    let mut world = World::new(&text);
    for name in ["a.1", "c.2"] {
        world.runs(name);
    }
    let incarnation = |world: &World, name| world.running[&copy(name)].0;
    let said = Event::Initialised { copy: copy("a.1"), incarnation: incarnation(&world, "a.1") };
    let mut actions = Vec::new();
    world.supervision.handle(world.now_ns, said, &mut actions);
    assert!(actions.contains(&Action::Remember), "{actions:?}");
    world.act(actions);
    world.say(Event::Standby { copy: copy("c.2"), incarnation: incarnation(&world, "c.2") });
    world.is_ready("c.1");
    world.is_ready("b.1");
    world.ends("b.1", End::Status(EndStatus::Exited(1)));
    assert!(world.running.contains_key(&copy("b.1")));
    world.ends("b.1", End::Status(EndStatus::Exited(1)));
    assert!(matches!(world.progress("b.1"), Progress::BackingOff { .. }));
    let actions = succeed(&mut world, &text);
    world.act(actions);
    assert!(matches!(world.progress("a.1"), Progress::Starting { is_initialised: true, .. }));
    assert!(matches!(world.progress("b.1"), Progress::BackingOff { .. }), "its pause goes on");
    assert!(matches!(world.progress("c.2"), Progress::Starting { is_standby: true, .. }));
    world.passes(SECOND);
    assert!(world.running.contains_key(&copy("b.1")), "what it is after is initialised still");
}

#[test]
fn what_the_file_does_not_name_any_more_goes_on_ending() {
    let text = [process("a", ""), process("b", "stop = { grace = \"7 s\" }")].concat();
    let mut world = World::new(&text);
    world.is_ready("a.1");
    world.is_ready("b.1");
    let mut actions = Vec::new();
    let without = process("a", "");
    world.supervision.replace(world.now_ns, &config(&without), has_other_environment, &mut actions);
    world.act(actions);
    let progress = world.progress("b.1");
    assert_eq!(progress, Progress::Stopping { kill_at_ns: world.now_ns + 7 * SECOND, is_killed: false });
    world.now_ns += SECOND;
    succeed(&mut world, &without);
    assert_eq!(world.progress("b.1"), progress);
    world.ends("b.1", End::Status(EndStatus::Exited(0)));
    assert_eq!(world.supervision.processes().len(), 1);
}

#[test]
fn a_task_whose_end_nobody_saw_is_held_and_says_why() {
    for policy in ["on-failure", "never"] {
        let text = process("a", &format!("once = true\nrestart = {{ policy = \"{policy}\" }}"));
        let mut world = World::new(&text);
        world.is_ready("a.1");
        world.ends("a.1", End::Unseen);
        assert_eq!(world.progress("a.1"), Progress::Held);
        let memory = world.supervision.memory().processes["a"].copies[&1].clone();
        assert!(memory.last_reason.unwrap().starts_with("its end was not seen"));
        world.command(&Command::Start(Vec::new())).unwrap();
        world.ends("a.1", End::Status(EndStatus::Exited(0)));
        assert_eq!(world.progress("a.1"), Progress::Done);
    }
}
