//! Tests of the rules: fixed sequences of events, and random ones.

use super::event::{OperatorCommand, OperatorCommandError, ProcessAction, ProcessEvent};
use super::instance::{InstanceEnd, InstanceProgress};
use super::{PersistentSupervision, Supervision};
use crate::config::SupervisorConfig;
use crate::config::process::ProcessConfig;
use crate::end_status::EndStatus;
use crate::instance_name::InstanceName;
use gapless_testkit::random::{Random, printed_seed, rounds};
use std::collections::BTreeMap;
use std::path::Path;

mod single_instances;
mod successors;

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

fn config(text: &str) -> SupervisorConfig {
    SupervisorConfig::parse(text, "test.toml", Path::new("/tmp/test.toml")).unwrap()
}

fn process(name: &str, more: &str) -> String {
    format!("[process.{name}]\ncommand = [\"/bin/true\"]\n{more}\n")
}

fn has_other_environment(old: &ProcessConfig, new: &ProcessConfig) -> bool {
    old.environment != new.environment
}

struct SupervisionWorld {
    supervision: Supervision,
    now_ns: u64,
    running: BTreeMap<InstanceName, (u64, EndRequest)>,
    started: Vec<InstanceName>,
    stopped: Vec<InstanceName>,
    last_incarnation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndRequest {
    Nothing,
    Stop,
    Kill,
}

fn instance(text: &str) -> InstanceName {
    text.parse().unwrap()
}

impl SupervisionWorld {
    fn new(text: &str) -> Self {
        let mut world = Self {
            supervision: Supervision::new(&config(text), PersistentSupervision::default()),
            now_ns: SECOND,
            running: BTreeMap::new(),
            started: Vec::new(),
            stopped: Vec::new(),
            last_incarnation: 0,
        };
        world.reconcile();
        world
    }

    fn reconcile(&mut self) {
        let mut actions = Vec::new();
        self.supervision.reconcile(self.now_ns, &mut actions);
        self.act(actions);
    }

    fn act(&mut self, actions: Vec<ProcessAction>) {
        for action in actions {
            match action {
                ProcessAction::Start { instance, incarnation } => {
                    assert!(!self.running.contains_key(&instance), "{instance} is started twice");
                    assert!(self.last_incarnation < incarnation, "{instance}: {incarnation} is not new");
                    self.last_incarnation = incarnation;
                    self.running.insert(instance.clone(), (incarnation, EndRequest::Nothing));
                    self.started.push(instance);
                }
                ProcessAction::Stop { instance, .. } => {
                    let (_, end_request) =
                        self.running.get_mut(&instance).unwrap_or_else(|| panic!("{instance} does not run"));
                    assert_ne!(*end_request, EndRequest::Stop, "{instance}");
                    if *end_request == EndRequest::Nothing {
                        *end_request = EndRequest::Stop;
                    }
                    self.stopped.push(instance);
                }
                ProcessAction::Kill { instance } => {
                    self.running.get_mut(&instance).unwrap_or_else(|| panic!("{instance} does not run")).1 =
                        EndRequest::Kill;
                }
                ProcessAction::Watch { .. } | ProcessAction::Persist | ProcessAction::Report(_) => {}
            }
        }
    }

    fn handle(&mut self, event: ProcessEvent) {
        let mut actions = Vec::new();
        self.supervision.handle(self.now_ns, event, &mut actions);
        self.act(actions);
    }

    fn report_started(&mut self, name: &str) {
        let (instance, (incarnation, _)) = (instance(name), self.running[&instance(name)]);
        self.handle(ProcessEvent::Started { instance, incarnation, process_id: 1 });
    }

    fn report_ready(&mut self, name: &str) {
        self.report_started(name);
        let (instance, (incarnation, _)) = (instance(name), self.running[&instance(name)]);
        self.handle(ProcessEvent::Ready { instance, incarnation });
    }

    fn report_end(&mut self, name: &str, end: InstanceEnd) {
        let instance = instance(name);
        let (incarnation, _) = self.running.remove(&instance).unwrap_or_else(|| panic!("{instance} does not run"));
        self.handle(ProcessEvent::Ended { instance, incarnation, end });
    }

    fn command(&mut self, command: &OperatorCommand) -> Result<(), OperatorCommandError> {
        let mut actions = Vec::new();
        let done = self.supervision.command(self.now_ns, command, &mut actions);
        self.act(actions);
        done
    }

    fn advance(&mut self, ns: u64) {
        self.now_ns += ns;
        self.reconcile();
    }

    fn running(&self) -> Vec<String> {
        self.running.keys().map(ToString::to_string).collect()
    }

    fn progress(&self, name: &str) -> InstanceProgress {
        let instance = instance(name);
        let process =
            self.supervision.processes().iter().find(|process| process.config.name == instance.process()).unwrap();
        process.instances[&instance.number()].progress()
    }

    fn end_request(&self, name: &str) -> EndRequest {
        self.running[&instance(name)].1
    }
}

#[test]
fn dependents_start_last_stop_first() {
    let mut world = SupervisionWorld::new(&[process("b", "after = [\"a\"]"), process("a", "instances = 2")].concat());
    assert_eq!(world.running(), ["a.1", "a.2"]);
    assert_eq!(world.progress("b.1"), InstanceProgress::Waiting);
    world.report_ready("a.1");
    assert_eq!(world.running(), ["a.1", "a.2"]);
    world.report_ready("a.2");
    assert_eq!(world.running(), ["a.1", "a.2", "b.1"]);
    world.report_ready("b.1");
    world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(1)));
    world.report_end("b.1", InstanceEnd::Status(EndStatus::Exited(1)));
    assert_eq!(world.running(), ["a.1", "a.2", "b.1"]);
    world.command(&OperatorCommand::Stop(Vec::new())).unwrap();
    assert_eq!(world.stopped, [instance("b.1")]);
    world.report_end("b.1", InstanceEnd::Status(EndStatus::Exited(0)));
    assert_eq!(world.stopped, ["b.1", "a.1", "a.2"].map(instance));
    world.report_end("a.1", InstanceEnd::Status(EndStatus::Signaled { signal: 15, has_core: false }));
    assert!(!world.supervision.is_over());
    world.report_end("a.2", InstanceEnd::Status(EndStatus::Exited(0)));
    assert!(world.supervision.is_over());
    assert_eq!(world.supervision.next_deadline_ns(), None);
}

#[test]
fn initialised_stage_is_sufficient() {
    let text = [
        process("a", "ready = \"notify\""),
        process("b", "after = [{ process = \"a\", is = \"initialised\" }]"),
        process("c", "after = [\"a\"]"),
    ];
    let mut world = SupervisionWorld::new(&text.concat());
    world.report_started("a.1");
    assert_eq!(world.running(), ["a.1"]);
    world.handle(ProcessEvent::Initialised { instance: instance("a.1"), incarnation: 1 });
    assert_eq!(world.running(), ["a.1", "b.1"]);
    world.report_ready("a.1");
    assert_eq!(world.running(), ["a.1", "b.1", "c.1"]);
}

#[test]
fn restarts_back_off_then_hold() {
    let restart =
        "restart = { backoff_first = \"100 ms\", backoff_max = \"300 ms\", restarts_max = 5, within = \"1 min\" }";
    let mut world = SupervisionWorld::new(&process("a", restart));
    for (number, pause_ms) in [0, 100, 200, 300, 300].into_iter().enumerate() {
        world.report_ready("a.1");
        world.report_end("a.1", InstanceEnd::Status(EndStatus::Signaled { signal: 9, has_core: false }));
        if pause_ms > 0 {
            let until_ns = world.now_ns + pause_ms * MILLISECOND;
            assert_eq!(world.progress("a.1"), InstanceProgress::BackingOff { until_ns }, "restart {number}");
            assert_eq!(world.supervision.next_deadline_ns(), Some(until_ns));
            world.advance(pause_ms * MILLISECOND - 1);
            assert_eq!(world.running(), [] as [String; 0]);
            world.advance(1);
        }
        assert_eq!(world.running(), ["a.1"], "restart {number}");
    }
    world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(3)));
    assert_eq!(world.progress("a.1"), InstanceProgress::Held);
    world.advance(3600 * SECOND);
    assert_eq!(world.running(), [] as [String; 0]);
    let persistent = world.supervision.persistent_state().processes["a"].instances[&1].clone();
    assert_eq!((persistent.restarts, persistent.last_end), (5, Some(InstanceEnd::Status(EndStatus::Exited(3)))));
    world.command(&OperatorCommand::Start(vec!["a".to_owned()])).unwrap();
    assert_eq!(world.running(), ["a.1"]);
    world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(3)));
    assert_eq!(world.running(), ["a.1"], "a start by an operator resets the counters");
}

/// Promise of the guide about the defaults.
#[test]
fn default_limits_hold_crash_loops() {
    let held_after = |runs_ms: u64, more: &str| {
        let mut world = SupervisionWorld::new(&process("a", more));
        for restarts in 0..50 {
            world.report_ready("a.1");
            world.advance(runs_ms * MILLISECOND);
            world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(1)));
            match world.progress("a.1") {
                InstanceProgress::Held => return Some((restarts, (world.now_ns - SECOND) / SECOND)),
                InstanceProgress::BackingOff { until_ns } => world.advance(until_ns - world.now_ns),
                _ => {}
            }
        }
        None
    };
    assert_eq!(held_after(0, ""), Some((10, 51)));
    assert_eq!(held_after(1000, ""), None);
    assert_eq!(held_after(1000, "restart = { within = \"5 min\" }").map(|(restarts, _)| restarts), Some(10));
}

#[test]
fn health_resets_the_backoff() {
    let mut world = SupervisionWorld::new(&process("a", "restart = { restarts_max = 100, healthy_after = \"10 s\" }"));
    for _ in 0..20 {
        world.report_ready("a.1");
        world.advance(10 * SECOND);
        world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(1)));
        assert_eq!(world.running(), ["a.1"]);
    }
}

#[test]
fn restart_policies_and_tasks() {
    let policy = |policy: &str| format!("restart = {{ policy = \"{policy}\" }}");
    let text = [
        process("always", &policy("always")),
        process("failure", &policy("on-failure")),
        process("never", &policy("never")),
        process("task", "once = true"),
        process("later", "after = [\"task\"]"),
    ];
    let mut world = SupervisionWorld::new(&text.concat());
    for name in ["always.1", "failure.1", "never.1", "task.1"] {
        world.report_ready(name);
    }
    assert_eq!(world.started.len(), 5, "a running task must not start its dependents: {:?}", world.started);
    for name in ["always.1", "failure.1", "never.1", "task.1"] {
        world.report_end(name, InstanceEnd::Status(EndStatus::Exited(0)));
    }
    assert_eq!(world.running(), ["always.1", "later.1"]);
    assert_eq!((world.progress("never.1"), world.progress("task.1")), (InstanceProgress::Done, InstanceProgress::Done));
}

#[test]
fn timeouts_lead_to_kills() {
    let mut world = SupervisionWorld::new(&process("a", "ready_within = \"5 s\"\nstop = { grace = \"2 s\" }"));
    world.advance(5 * SECOND - 1);
    assert_eq!(world.end_request("a.1"), EndRequest::Nothing);
    world.advance(1);
    assert_eq!(world.end_request("a.1"), EndRequest::Kill);
    world.report_end("a.1", InstanceEnd::Status(EndStatus::Signaled { signal: 9, has_core: false }));
    world.report_ready("a.1");
    world.command(&OperatorCommand::Stop(Vec::new())).unwrap();
    world.advance(2 * SECOND - 1);
    assert_eq!(world.end_request("a.1"), EndRequest::Stop);
    world.advance(1);
    assert_eq!(world.end_request("a.1"), EndRequest::Kill);
    assert_eq!(world.supervision.next_deadline_ns(), None);
    world.advance(30 * SECOND - 1);
    assert_eq!(world.supervision.find_unkillable(world.now_ns), None);
    world.advance(1);
    assert_eq!(world.supervision.find_unkillable(world.now_ns), Some(instance("a.1")));
    world.report_end("a.1", InstanceEnd::Status(EndStatus::Signaled { signal: 9, has_core: false }));
    assert_eq!(world.supervision.find_unkillable(world.now_ns), None);
}

#[test]
fn overlapping_reload() {
    let mut world = SupervisionWorld::new(&process("a", "instances = 2\nready = { route = \"r\" }"));
    world.report_ready("a.1");
    world.report_ready("a.2");
    world.command(&OperatorCommand::Reload(Vec::new())).unwrap();
    assert_eq!(world.running(), ["a.1", "a.2", "a.3"]);
    assert_eq!(world.stopped, []);
    world.report_ready("a.3");
    assert_eq!(world.stopped, [instance("a.1")]);
    world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(0)));
    assert_eq!(world.running(), ["a.1", "a.2", "a.3"]);
    assert_eq!(world.stopped.len(), 1, "one at a time");
    world.report_ready("a.1");
    assert_eq!(world.stopped, ["a.1", "a.2"].map(instance));
    world.report_end("a.2", InstanceEnd::Status(EndStatus::Exited(0)));
    world.report_ready("a.2");
    assert_eq!(world.stopped, ["a.1", "a.2", "a.3"].map(instance));
    world.report_end("a.3", InstanceEnd::Status(EndStatus::Exited(0)));
    world.advance(SECOND);
    assert_eq!(world.running(), ["a.1", "a.2"]);
    assert_eq!(world.started.len(), 5);
}

#[test]
fn failed_reload_keeps_the_old() {
    for route in ["", "ready = { route = \"r\" }"] {
        let restart = "restart = { restarts_max = 1 }";
        let mut world = SupervisionWorld::new(&process("a", &format!("instances = 2\n{restart}\n{route}")));
        world.report_ready("a.1");
        world.report_ready("a.2");
        world.command(&OperatorCommand::Reload(Vec::new())).unwrap();
        let new = if route.is_empty() {
            world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(0)));
            "a.1"
        } else {
            "a.3"
        };
        world.report_end(new, InstanceEnd::Status(EndStatus::Exited(1)));
        world.report_end(new, InstanceEnd::Status(EndStatus::Exited(1)));
        assert_eq!(world.progress(new), InstanceProgress::Held);
        world.advance(3600 * SECOND);
        assert!(matches!(world.progress("a.2"), InstanceProgress::Ready { .. }));
        world.command(&OperatorCommand::Reload(Vec::new())).unwrap();
        assert!(world.running.contains_key(&instance(new)));
    }
}

#[test]
fn scale_stays_within_limits() {
    let mut world = SupervisionWorld::new(&process("a", "instances = { min = 1, max = 3 }"));
    let scale = |instances| OperatorCommand::Scale(vec![("a".to_owned(), instances)]);
    world.command(&scale(3)).unwrap();
    assert_eq!(world.running(), ["a.1", "a.2", "a.3"]);
    let error = world.command(&scale(4)).unwrap_err();
    assert_eq!(error.to_string(), "4 instances of a are not allowed; the file allows 1 to 3");
    let error = world.command(&OperatorCommand::Stop(vec!["a".to_owned(), "b".to_owned()])).unwrap_err();
    assert_eq!(error.to_string(), "\"b\" is no process of the file; a are");
    assert_eq!(world.stopped, []);
    let several = OperatorCommand::Scale(vec![("a".to_owned(), 1), ("a".to_owned(), 99)]);
    assert!(world.command(&several).is_err());
    assert_eq!(world.stopped, [], "all or nothing");
    world.command(&scale(1)).unwrap();
    assert_eq!(world.stopped, ["a.2", "a.3"].map(instance));
}

#[test]
fn changed_processes_reload() {
    let mut world = SupervisionWorld::new(&["a", "b", "c"].map(|name| process(name, "")).concat());
    ["a.1", "b.1", "c.1"].into_iter().for_each(|name| world.report_ready(name));
    let text = [process("d", ""), process("a", "stop = { grace = 1 }"), process("b", "environment = { X = \"1\" }")];
    let mut actions = Vec::new();
    world.supervision.replace(world.now_ns, &config(&text.concat()), has_other_environment, &mut actions);
    world.act(actions);
    assert_eq!(world.stopped, ["b.1", "c.1"].map(instance));
    assert_eq!(world.running(), ["a.1", "b.1", "c.1", "d.1"]);
    world.report_end("c.1", InstanceEnd::Status(EndStatus::Exited(0)));
    world.report_end("b.1", InstanceEnd::Status(EndStatus::Exited(0)));
    assert_eq!(world.running(), ["a.1", "b.1", "d.1"]);
    assert_eq!(world.supervision.processes().len(), 3);
}

#[test]
fn standbys_have_no_deadline() {
    let mut world = SupervisionWorld::new(
        &[process("a", "singleton = true\ninstances = 2"), process("b", "after = [\"a\"]")].concat(),
    );
    world.report_started("a.2");
    world.handle(ProcessEvent::Standby { instance: instance("a.2"), incarnation: 2 });
    world.report_ready("a.1");
    assert_eq!(world.running(), ["a.1", "a.2", "b.1"]);
    world.advance(3600 * SECOND);
    assert_eq!(world.end_request("a.2"), EndRequest::Nothing);
    world.handle(ProcessEvent::Active { instance: instance("a.2"), incarnation: 2 });
    world.advance(3600 * SECOND);
    assert_eq!(world.end_request("a.2"), EndRequest::Kill, "an active instance has the usual deadline");
}

#[test]
fn reload_replaces_the_active_last() {
    let mut world = SupervisionWorld::new(&process("a", "singleton = true\ninstances = 2"));
    world.report_started("a.2");
    world.handle(ProcessEvent::Standby { instance: instance("a.2"), incarnation: 2 });
    world.report_ready("a.1");
    let mut actions = Vec::new();
    world.supervision.command(world.now_ns, &OperatorCommand::Reload(vec!["a".to_owned()]), &mut actions).unwrap();
    world.act(actions);
    assert_eq!(world.stopped, [instance("a.2")]);
    world.report_end("a.2", InstanceEnd::Status(EndStatus::Signaled { signal: 15, has_core: false }));
    world.report_started("a.2");
    assert_eq!(world.stopped, [instance("a.2")], "it is not a standby yet");
    world.handle(ProcessEvent::Standby { instance: instance("a.2"), incarnation: 3 });
    assert_eq!(world.stopped, [instance("a.2"), instance("a.1")]);
}

#[test]
fn random_events_settle_as_wanted() {
    let text = [
        process(
            "a",
            "instances = { min = 1, max = 3 }\nready = { route = \"r\" }\nrestart = { restarts_max = 1000000 }",
        ),
        process("b", "instances = 2\nafter = [\"a\"]\nrestart = { restarts_max = 1000000 }"),
        process("c", "after = [\"b\", \"a\"]\nready = \"notify\"\nrestart = { restarts_max = 1000000 }"),
        process("d", "singleton = true\ninstances = 2\nrestart = { restarts_max = 1000000 }"),
    ]
    .concat();
    let other = text.replace("instances = 2\nafter", "environment = { X = \"1\" }\ninstances = 1\nafter");
    let mut random = Random::new(printed_seed());
    for _ in 0..rounds(300, 30) {
        let mut world = SupervisionWorld::new(&text);
        for _ in 0..200 {
            let running: Vec<InstanceName> = world.running.keys().cloned().collect();
            let name = running.get(random.below(running.len().max(1) as u64) as usize).map(ToString::to_string);
            match (random.below(14), name) {
                (0..4, Some(name)) => world.report_ready(&name),
                (4, Some(name)) => world.report_started(&name),
                (5, Some(name)) => {
                    world.report_end(&name, InstanceEnd::Status(EndStatus::Exited(random.below(2) as i32)))
                }
                (6, Some(name)) => {
                    let (incarnation, _) = world.running[&instance(&name)];
                    world.handle(ProcessEvent::Stuck {
                        instance: instance(&name),
                        incarnation,
                        reason: "it sleeps".to_owned(),
                    });
                }
                (7, Some(name)) if world.end_request(&name) != EndRequest::Nothing => {
                    world.report_end(&name, InstanceEnd::Status(EndStatus::Exited(0)))
                }
                (8, Some(name)) => world.handle(ProcessEvent::Ended {
                    instance: instance(&name),
                    incarnation: 0,
                    end: InstanceEnd::Unseen,
                }),
                (9, _) => {
                    let names = [&[][..], &["a"], &["b", "c"], &["a.1"], &["b.1", "d.2"]];
                    let names: Vec<String> = random.pick(&names).iter().map(ToString::to_string).collect();
                    let command = match random.below(4) {
                        0 => OperatorCommand::Stop(names),
                        1 => OperatorCommand::Restart(names),
                        2 => OperatorCommand::Reload(names),
                        _ => OperatorCommand::Start(names),
                    };
                    world.command(&command).unwrap();
                }
                (10, _) => {
                    world.command(&OperatorCommand::Scale(vec![("a".to_owned(), 1 + random.below(3) as u32)])).unwrap()
                }
                (11, _) => {
                    let mut actions = Vec::new();
                    let text = if random.happens(500) { &text } else { &other };
                    world.supervision.replace(world.now_ns, &config(text), has_other_environment, &mut actions);
                    world.act(actions);
                }
                _ => world.advance(random.below(2 * SECOND)),
            }
        }
        let names = Vec::new();
        let last = if random.happens(500) { OperatorCommand::Start(names) } else { OperatorCommand::Stop(names) };
        world.command(&last).unwrap();
        for _ in 0..200 {
            let running: Vec<(InstanceName, EndRequest)> =
                world.running.iter().map(|(name, (_, end_request))| (name.clone(), *end_request)).collect();
            for (name, end_request) in running {
                if end_request != EndRequest::Nothing {
                    world.report_end(&name.to_string(), InstanceEnd::Status(EndStatus::Exited(0)));
                } else if world.running.contains_key(&name) {
                    world.report_ready(&name.to_string());
                }
            }
            world.advance(SECOND);
        }
        for process in world.supervision.processes() {
            for (number, instance) in process.instances() {
                let name = InstanceName::new(&process.config.name, number).unwrap();
                let shall_run = process.is_wanted() && number <= process.scale();
                assert_eq!(world.running.contains_key(&name), shall_run, "{name}: {instance:?}");
                assert_eq!(
                    matches!(instance.progress(), InstanceProgress::Ready { .. }),
                    shall_run,
                    "{name}: {instance:?}"
                );
                assert!(
                    !shall_run || instance.persistent.generation == process.persistent.generation,
                    "{name}: {instance:?}"
                );
            }
            let instances = process.instances().filter(|(_, instance)| instance.is_running()).count();
            assert_eq!(instances, if process.is_wanted() { process.scale() as usize } else { 0 });
        }
    }
}

#[test]
fn shortage_is_not_a_failure() {
    let mut world = SupervisionWorld::new(&process("a", "restart = { restarts_max = 2 }"));
    for round in 0..50 {
        let lacking = InstanceEnd::Shortage("no space left".to_owned());
        world.report_end("a.1", if round % 2 == 0 { lacking } else { InstanceEnd::Status(EndStatus::Exited(75)) });
        assert!(matches!(world.progress("a.1"), InstanceProgress::BackingOff { .. }));
        world.advance(SECOND);
    }
    world.report_ready("a.1");
    let instances = &world.supervision.processes()[0].instances;
    assert_eq!(instances[&1].persistent.restarts, 0);
    let mut world = SupervisionWorld::new(&process("a", "restart = { policy = \"never\" }"));
    world.report_end("a.1", InstanceEnd::Status(EndStatus::Exited(75)));
    assert_eq!(world.progress("a.1"), InstanceProgress::Done);
}

#[test]
fn unobservable_start_has_more_time() {
    let mut world = SupervisionWorld::new(&process("a", "ready = \"notify\"\nready_within = \"2 s\""));
    world.report_started("a.1");
    let unseen = || ProcessEvent::ReadinessUnknown { instance: instance("a.1"), incarnation: 1 };
    for _ in 0..10 {
        world.handle(unseen());
        world.advance(SECOND);
    }
    assert_eq!(world.end_request("a.1"), EndRequest::Nothing);
    world.advance(SECOND);
    assert_eq!(world.end_request("a.1"), EndRequest::Kill, "observable again, and not ready");
    world.handle(unseen());
    assert_eq!(world.supervision.next_deadline_ns(), Some(u64::MAX), "killed only once");
}
