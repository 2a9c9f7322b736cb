//! One copy is named, as `a.1`: it is stopped, started, restarted or reloaded by itself.

use super::successors::succeed;
use super::{Asked, SECOND, World, copy, process};
use crate::end_status::EndStatus;
use crate::supervision::copy::{End, Progress};
use crate::supervision::event::{Action, Command, CommandError};

const ENDED: End = End::Status(EndStatus::Exited(0));

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn command(world: &mut World, command: fn(Vec<String>) -> Command, name: &str) {
    world.command(&command(names(&[name]))).unwrap();
}

/// A process that is up in so many copies, and one that is after it.
fn up(more: &str, copies: &[&str]) -> World {
    let mut world = World::new(&(process("a", more) + &process("b", "after = [\"a\"]")));
    copies.iter().for_each(|name| world.is_ready(name));
    world.is_ready("b.1");
    world
}

#[test]
fn a_copy_that_is_stopped_stays_one_of_its_scale_and_nobody_takes_its_place() {
    let mut world = up("copies = { min = 2, max = 4 }", &["a.1", "a.2"]);
    command(&mut world, Command::Stop, "a.1");
    assert_eq!((world.is_asked("a.1"), world.is_asked("a.2")), (Asked::Stop, Asked::Nothing));
    world.ends("a.1", ENDED);
    world.passes(100 * SECOND);
    assert_eq!(world.running(), ["a.2", "b.1"]);
    assert_eq!((world.progress("a.1"), world.supervision.processes()[0].scale()), (Progress::Stopped, 2));
    world.command(&Command::Scale(vec![("a".to_owned(), 3)])).unwrap();
    assert_eq!(world.running(), ["a.2", "a.3", "b.1"], "scaled up, it stays stopped");
    // What is after its process waits for the others only.
    world.is_ready("a.3");
    command(&mut world, Command::Restart, "b");
    world.ends("b.1", ENDED);
    assert_eq!(world.running(), ["a.2", "a.3", "b.1"]);
    // What is scaled away is forgotten.
    command(&mut world, Command::Stop, "a.3");
    world.ends("a.3", ENDED);
    world.command(&Command::Scale(vec![("a".to_owned(), 2)])).unwrap();
    world.command(&Command::Scale(vec![("a".to_owned(), 3)])).unwrap();
    assert_eq!(world.running(), ["a.2", "a.3", "b.1"]);
    command(&mut world, Command::Start, "a.1");
    assert_eq!(world.running(), ["a.1", "a.2", "a.3", "b.1"]);
}

#[test]
fn of_a_stopped_process_one_copy_is_started_and_its_name_alone_means_all() {
    let mut world = up("copies = 3", &["a.1", "a.2", "a.3"]);
    command(&mut world, Command::Stop, "a");
    ["a.1", "a.2", "a.3"].iter().for_each(|name| world.ends(name, ENDED));
    assert_eq!(world.running(), ["b.1"]);
    command(&mut world, Command::Start, "a.2");
    world.passes(SECOND);
    assert_eq!(world.running(), ["a.2", "b.1"]);
    command(&mut world, Command::Restart, "a.3");
    assert_eq!(world.running(), ["a.2", "a.3", "b.1"], "a restart starts what is stopped");
    command(&mut world, Command::Start, "a");
    assert_eq!(world.running(), ["a.1", "a.2", "a.3", "b.1"]);
    // All of them, one by one: nobody waits for copies that are not to run, but for one.
    for number in 1..=3 {
        command(&mut world, Command::Stop, &format!("a.{number}"));
        world.ends(&format!("a.{number}"), ENDED);
    }
    command(&mut world, Command::Restart, "b.1");
    world.ends("b.1", ENDED);
    assert_eq!(world.running(), [] as [&str; 0]);
    command(&mut world, Command::Start, "a.1");
    world.is_ready("a.1");
    assert_eq!(world.running(), ["a.1", "b.1"]);
}

#[test]
fn one_copy_is_restarted_and_one_that_is_held_is_started() {
    let mut world = up("copies = 2\nrestart = { restarts_max = 0 }", &["a.1", "a.2"]);
    command(&mut world, Command::Restart, "a.2");
    assert_eq!((world.is_asked("a.1"), world.is_asked("a.2")), (Asked::Nothing, Asked::Stop));
    world.ends("a.2", ENDED);
    world.is_ready("a.2");
    world.passes(SECOND);
    assert_eq!(world.stopped, [copy("a.2")], "once, and no other");
    for name in ["a.1", "a.2"] {
        world.ends(name, ENDED);
        assert_eq!(world.progress(name), Progress::Held);
    }
    command(&mut world, Command::Start, "a.1");
    assert_eq!((world.running(), world.progress("a.2")), (names(&["a.1", "b.1"]), Progress::Held));
    command(&mut world, Command::Stop, "a.2");
    assert_eq!(world.progress("a.2"), Progress::Stopped);
}

#[test]
fn one_copy_is_reloaded_and_a_reload_of_all_passes_over_one_that_is_stopped() {
    let mut world = up("copies = 3\nready = { route = \"r\" }", &["a.1", "a.2", "a.3"]);
    command(&mut world, Command::Reload, "a.2");
    assert_eq!(world.running(), ["a.1", "a.2", "a.3", "a.4", "b.1"], "one more meanwhile");
    assert!(world.stopped.is_empty());
    world.is_ready("a.4");
    assert_eq!(world.stopped, [copy("a.2")]);
    world.ends("a.2", ENDED);
    world.is_ready("a.2");
    world.ends("a.4", ENDED);
    world.passes(SECOND);
    assert_eq!(world.stopped, [copy("a.2"), copy("a.4")], "and no other");

    command(&mut world, Command::Stop, "a.1");
    world.ends("a.1", ENDED);
    world.stopped.clear();
    command(&mut world, Command::Reload, "a");
    for name in ["a.2", "a.3"] {
        if world.running.contains_key(&copy("a.4")) && !matches!(world.progress("a.4"), Progress::Ready { .. }) {
            world.is_ready("a.4");
        }
        world.ends(name, ENDED);
        world.is_ready(name);
    }
    world.ends("a.4", ENDED);
    world.passes(SECOND);
    assert_eq!(world.stopped, [copy("a.2"), copy("a.3"), copy("a.4")]);
    assert_eq!(world.running(), ["a.2", "a.3", "b.1"]);
    // What is stopped is no reload's business.
    command(&mut world, Command::Reload, "a.1");
    assert_eq!(world.running(), ["a.2", "a.3", "b.1"]);
}

#[test]
fn a_singleton_s_active_copy_is_stopped_and_another_one_takes_over() {
    let mut world = up("copies = 2\nsingleton = true", &["a.1"]);
    command(&mut world, Command::Stop, "a.1");
    assert_eq!((world.is_asked("a.1"), world.is_asked("a.2")), (Asked::Stop, Asked::Nothing));
    world.ends("a.1", ENDED);
    world.is_ready("a.2");
    assert_eq!(world.running(), ["a.2", "b.1"]);
}

#[test]
fn names_that_mean_nobody_are_refused_and_nothing_has_changed() {
    let mut world = up("copies = { min = 2, max = 4 }", &["a.1", "a.2"]);
    for (name, expected) in [
        ("a.3", "a.3 is no copy that is asked for; a has 2 now, numbered from 1"),
        ("a.0", "\"a.0\" is no process of the file; a, b are"),
        ("a.x", "\"a.x\" is no process of the file; a, b are"),
        ("c.1", "\"c.1\" is no process of the file; a, b are"),
    ] {
        for command in [Command::Start, Command::Stop, Command::Restart, Command::Reload] {
            let error: CommandError = world.command(&command(names(&["a.1", name]))).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
    assert!(world.stopped.is_empty());
}

#[test]
fn the_next_supervisor_knows_which_copy_is_stopped() {
    let text = process("a", "copies = 2");
    let mut world = World::new(&text);
    world.is_ready("a.1");
    world.is_ready("a.2");
    command(&mut world, Command::Stop, "a.2");
    // While it still ends, and once it has ended.
    for _ in 0..2 {
        let actions = succeed(&mut world, &text);
        assert!(!actions.iter().any(|action| matches!(action, Action::Start { .. })), "{actions:?}");
        world.passes(SECOND);
        if world.running.contains_key(&copy("a.2")) {
            world.ends("a.2", ENDED);
        }
        assert_eq!(world.running(), ["a.1"]);
    }
    assert_eq!(world.progress("a.2"), Progress::Stopped);
}
