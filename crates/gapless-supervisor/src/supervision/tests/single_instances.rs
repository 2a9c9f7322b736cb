//! Commands for a single instance, as `a.1`: stop, start, restart, reload.

use super::successors::take_over;
use super::{EndRequest, SECOND, SupervisionWorld, instance, process};
use crate::end_status::EndStatus;
use crate::supervision::event::{OperatorCommand, OperatorCommandError, ProcessAction};
use crate::supervision::instance::{InstanceEnd, InstanceProgress};

const ENDED: InstanceEnd = InstanceEnd::Status(EndStatus::Exited(0));

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn command(world: &mut SupervisionWorld, command: fn(Vec<String>) -> OperatorCommand, name: &str) {
    world.command(&command(names(&[name]))).unwrap();
}

fn up(more: &str, instances: &[&str]) -> SupervisionWorld {
    let mut world = SupervisionWorld::new(&(process("a", more) + &process("b", "after = [\"a\"]")));
    instances.iter().for_each(|name| world.report_ready(name));
    world.report_ready("b.1");
    world
}

#[test]
fn stopped_instance_stays_stopped() {
    let mut world = up("instances = { min = 2, max = 4 }", &["a.1", "a.2"]);
    command(&mut world, OperatorCommand::Stop, "a.1");
    assert_eq!((world.end_request("a.1"), world.end_request("a.2")), (EndRequest::Stop, EndRequest::Nothing));
    world.report_end("a.1", ENDED);
    world.advance(100 * SECOND);
    assert_eq!(world.running(), ["a.2", "b.1"]);
    assert_eq!((world.progress("a.1"), world.supervision.processes()[0].scale()), (InstanceProgress::Stopped, 2));
    world.command(&OperatorCommand::Scale(vec![("a".to_owned(), 3)])).unwrap();
    assert_eq!(world.running(), ["a.2", "a.3", "b.1"], "it stays stopped when scaled up");
    world.report_ready("a.3");
    command(&mut world, OperatorCommand::Restart, "b");
    world.report_end("b.1", ENDED);
    assert_eq!(world.running(), ["a.2", "a.3", "b.1"]);
    command(&mut world, OperatorCommand::Stop, "a.3");
    world.report_end("a.3", ENDED);
    world.command(&OperatorCommand::Scale(vec![("a".to_owned(), 2)])).unwrap();
    world.command(&OperatorCommand::Scale(vec![("a".to_owned(), 3)])).unwrap();
    assert_eq!(world.running(), ["a.2", "a.3", "b.1"]);
    command(&mut world, OperatorCommand::Start, "a.1");
    assert_eq!(world.running(), ["a.1", "a.2", "a.3", "b.1"]);
}

#[test]
fn stopped_process_starts_in_part() {
    let mut world = up("instances = 3", &["a.1", "a.2", "a.3"]);
    command(&mut world, OperatorCommand::Stop, "a");
    ["a.1", "a.2", "a.3"].iter().for_each(|name| world.report_end(name, ENDED));
    assert_eq!(world.running(), ["b.1"]);
    command(&mut world, OperatorCommand::Start, "a.2");
    world.advance(SECOND);
    assert_eq!(world.running(), ["a.2", "b.1"]);
    command(&mut world, OperatorCommand::Restart, "a.3");
    assert_eq!(world.running(), ["a.2", "a.3", "b.1"], "a restart starts what is stopped");
    command(&mut world, OperatorCommand::Start, "a");
    assert_eq!(world.running(), ["a.1", "a.2", "a.3", "b.1"]);
    for number in 1..=3 {
        command(&mut world, OperatorCommand::Stop, &format!("a.{number}"));
        world.report_end(&format!("a.{number}"), ENDED);
    }
    command(&mut world, OperatorCommand::Restart, "b.1");
    world.report_end("b.1", ENDED);
    assert_eq!(world.running(), [] as [&str; 0]);
    command(&mut world, OperatorCommand::Start, "a.1");
    world.report_ready("a.1");
    assert_eq!(world.running(), ["a.1", "b.1"]);
}

#[test]
fn single_instance_is_restarted() {
    let mut world = up("instances = 2\nrestart = { restarts_max = 0 }", &["a.1", "a.2"]);
    command(&mut world, OperatorCommand::Restart, "a.2");
    assert_eq!((world.end_request("a.1"), world.end_request("a.2")), (EndRequest::Nothing, EndRequest::Stop));
    world.report_end("a.2", ENDED);
    world.report_ready("a.2");
    world.advance(SECOND);
    assert_eq!(world.stopped, [instance("a.2")], "only a.2, once");
    for name in ["a.1", "a.2"] {
        world.report_end(name, ENDED);
        assert_eq!(world.progress(name), InstanceProgress::Held);
    }
    command(&mut world, OperatorCommand::Start, "a.1");
    assert_eq!((world.running(), world.progress("a.2")), (names(&["a.1", "b.1"]), InstanceProgress::Held));
    command(&mut world, OperatorCommand::Stop, "a.2");
    assert_eq!(world.progress("a.2"), InstanceProgress::Stopped);
}

#[test]
fn reload_skips_stopped_instances() {
    let mut world = up("instances = 3\nready = { route = \"r\" }", &["a.1", "a.2", "a.3"]);
    command(&mut world, OperatorCommand::Reload, "a.2");
    assert_eq!(world.running(), ["a.1", "a.2", "a.3", "a.4", "b.1"], "one extra instance");
    assert!(world.stopped.is_empty());
    world.report_ready("a.4");
    assert_eq!(world.stopped, [instance("a.2")]);
    world.report_end("a.2", ENDED);
    world.report_ready("a.2");
    world.report_end("a.4", ENDED);
    world.advance(SECOND);
    assert_eq!(world.stopped, [instance("a.2"), instance("a.4")], "only a.2 and the extra one");

    command(&mut world, OperatorCommand::Stop, "a.1");
    world.report_end("a.1", ENDED);
    world.stopped.clear();
    command(&mut world, OperatorCommand::Reload, "a");
    for name in ["a.2", "a.3"] {
        if world.running.contains_key(&instance("a.4"))
            && !matches!(world.progress("a.4"), InstanceProgress::Ready { .. })
        {
            world.report_ready("a.4");
        }
        world.report_end(name, ENDED);
        world.report_ready(name);
    }
    world.report_end("a.4", ENDED);
    world.advance(SECOND);
    assert_eq!(world.stopped, [instance("a.2"), instance("a.3"), instance("a.4")]);
    assert_eq!(world.running(), ["a.2", "a.3", "b.1"]);
    command(&mut world, OperatorCommand::Reload, "a.1");
    assert_eq!(world.running(), ["a.2", "a.3", "b.1"]);
}

#[test]
fn stopped_singleton_fails_over() {
    let mut world = up("instances = 2\nsingleton = true", &["a.1"]);
    command(&mut world, OperatorCommand::Stop, "a.1");
    assert_eq!((world.end_request("a.1"), world.end_request("a.2")), (EndRequest::Stop, EndRequest::Nothing));
    world.report_end("a.1", ENDED);
    world.report_ready("a.2");
    assert_eq!(world.running(), ["a.2", "b.1"]);
}

#[test]
fn unknown_names_change_nothing() {
    let mut world = up("instances = { min = 2, max = 4 }", &["a.1", "a.2"]);
    for (name, expected) in [
        ("a.3", "a.3 is not a configured instance; a has 2 now, numbered from 1"),
        ("a.0", "\"a.0\" is no process of the file; a, b are"),
        ("a.x", "\"a.x\" is no process of the file; a, b are"),
        ("c.1", "\"c.1\" is no process of the file; a, b are"),
    ] {
        for command in
            [OperatorCommand::Start, OperatorCommand::Stop, OperatorCommand::Restart, OperatorCommand::Reload]
        {
            let error: OperatorCommandError = world.command(&command(names(&["a.1", name]))).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
    assert!(world.stopped.is_empty());
}

#[test]
fn takeover_keeps_single_stops() {
    let text = process("a", "instances = 2");
    let mut world = SupervisionWorld::new(&text);
    world.report_ready("a.1");
    world.report_ready("a.2");
    command(&mut world, OperatorCommand::Stop, "a.2");
    for _ in 0..2 {
        let actions = take_over(&mut world, &text);
        assert!(!actions.iter().any(|action| matches!(action, ProcessAction::Start { .. })), "{actions:?}");
        world.advance(SECOND);
        if world.running.contains_key(&instance("a.2")) {
            world.report_end("a.2", ENDED);
        }
        assert_eq!(world.running(), ["a.1"]);
    }
    assert_eq!(world.progress("a.2"), InstanceProgress::Stopped);
}
