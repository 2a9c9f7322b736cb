//! Processes that keep to the protocol, and are killed and stopped.

use super::Domain;
use super::member::{attach, memory};
use crate::registry::packets::{AttachRefusal, RouteDescription, RouteState};
use crate::registry::{CallingSide, DomainDirectory, DomainLocation, InstanceNumber, IoThread, PeerProcess};
use gapless_agent::monotonic::monotonic_ns;
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::wait::{until, until_some};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::process::Signal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn routes_appear_change_and_disappear() {
    let domain = Domain::new();
    let mut instance = domain.member(&["announce orders"]);
    let mut caller = domain.member(&["discover"]);
    caller.expect(&format!("found 1 {} member", instance.pid()));
    caller.expect("route 1 orders Open");
    caller.expect("listed 1");
    caller.expect("settled");
    instance.tell("announce prices");
    caller.expect("route 1 prices Open");
    instance.tell("suspend orders");
    caller.expect("route 1 orders Suspended");
    instance.tell("withdraw orders");
    caller.expect("route 1 orders Gone");
    let mut later = domain.member(&["discover"]);
    later.expect("route 1 prices Open");
    later.expect("listed 1");
    later.expect_no("route 1 orders");
    let second = domain.member(&["announce orders"]);
    for caller in [&mut caller, &mut later] {
        caller.expect(&format!("found 2 {}", second.pid()));
        caller.expect("route 2 orders Open");
    }
    assert_eq!(domain.files(), 4);
    instance.quit();
    for caller in [&mut caller, &mut later] {
        caller.expect("closed 1");
        caller.expect("dead 1");
        caller.expect_no("closed 2");
    }
    assert_eq!(domain.files(), 2);
}

#[test]
fn short_look_makes_no_watch() {
    let domain = Domain::new();
    let instance = domain.member(&["announce orders"]);
    let mut caller = until_some("a short look", || {
        let mut caller = domain.member(&["glance"]);
        match caller.expect("glance ").as_str() {
            "glance 0 true" => Some(caller),
            said => {
                assert!(said.ends_with("false"), "{said}");
                None
            }
        }
    });
    caller.expect_found(instance.pid());
    until("it watches", || {
        caller.tell("watches");
        caller.expect("watches ") == "watches 1"
    });
    let later = domain.member(&["announce orders"]);
    caller.expect_found(later.pid());
}

#[test]
fn caller_changes_route_state() {
    let domain = Domain::new();
    let mut instance = domain.member(&["announce orders"]);
    let mut caller = domain.member(&["discover"]);
    caller.expect("listed 1");
    caller.tell("change 1 orders");
    instance.expect("change orders Suspended");
    caller.tell("change 1 prices");
    instance.expect("change prices Suspended");
    caller.tell("change 2 orders");
    instance.expect_no("change");
    caller.expect_no("closed");
}

#[test]
fn process_does_not_call_itself() {
    let domain = Domain::new();
    let mut both = domain.member(&["announce orders", "discover"]);
    both.expect("settled");
    let mut other = domain.member(&["discover", "announce orders"]);
    both.expect(&format!("found 1 {}", other.pid()));
    other.expect(&format!("found 1 {}", both.pid()));
    both.expect_no("found");
    other.expect_no("found");
}

#[test]
fn call_tables_attach_and_detach() {
    let domain = Domain::new();
    let mut instance = domain.member(&["announce orders"]);
    let mut caller = domain.member(&["discover"]);
    caller.expect("listed 1");
    caller.tell("attach 1 7 orders");
    instance.expect(&format!("attach 1 7 of {} as 1: a region", caller.pid()));
    caller.expect("attached 1 7");
    caller.expect("completions 7");
    caller.tell("attach 1 8 refused");
    caller.expect("refused 1 8 NoRoute 2048");
    caller.tell("detach 1 7");
    instance.expect("detach 1 7");
    caller.tell("attach 1 9 orders");
    caller.expect("attached 1 9");
    caller.process.kill();
    instance.expect("gone 1");
}

#[test]
fn killed_instance_is_swept() {
    let domain = Domain::new();
    let mut caller = domain.member(&["discover"]);
    let mut instance = domain.member(&["announce orders"]);
    caller.expect("listed 1");
    instance.process.kill();
    caller.expect("dead 1");
    assert!(caller.seen.iter().any(|line| line == "closed 1"), "{:?}", caller.seen);
    until("the caller sweeps", || domain.files() == 0);
    caller.quit();

    for next in ["announce orders", "discover"] {
        let mut instance = domain.member(&["announce orders"]);
        instance.process.kill();
        assert_eq!(domain.files(), 2);
        domain.member(&[next]).quit();
        assert_eq!(domain.files(), 0);
    }
}

#[test]
fn stopped_instance_is_not_dead() {
    let domain = Domain::new();
    let instance = domain.member(&["announce orders"]);
    let mut caller = domain.member(&["discover"]);
    caller.expect("listed 1");
    instance.process.signal(Signal::STOP);
    let mut later = domain.member(&["discover"]);
    later.expect("settled");
    later.expect_no("found");
    caller.expect_no("closed");
    assert_eq!(domain.files(), 2);
    instance.process.signal(Signal::CONT);
    later.expect("found");
    later.expect("route");
    caller.expect_no("closed");
}

#[test]
fn kills_leak_no_descriptors() {
    let domain = Domain::new();
    let mut random = Random::seeded();
    let mut caller = domain.member(&["discover"]);
    let mut instance = domain.member(&["announce orders"]);
    caller.expect("listed 1");
    caller.tell("attach 1 1 orders");
    caller.expect("attached 1 1");
    // The instance may hold descriptors that it has passed on until the next command.
    instance.tell("announce another");
    caller.expect("route 1 another");
    let (of_caller, of_instance) = (caller.descriptors(), instance.descriptors());
    for _ in 0..rounds(100, 20) {
        let mut others = (0..2).map(|_| domain.member(&["announce orders"])).collect::<Vec<_>>();
        for other in &mut others {
            if random.happens(500) {
                let number = caller.expect_found(other.pid());
                let attachment = 1 + random.below(2);
                caller.tell(&format!("attach {number} {attachment} orders"));
            } else if random.happens(500) {
                other.tell("discover");
                other.expect("listed");
                other.tell(&format!("attach {} 5 orders", 1 + random.below(2)));
            }
            other.process.kill();
        }
    }
    caller.expect_descriptors(of_caller);
    instance.expect_descriptors(of_instance);
    until("the dead are swept", || domain.files() == 2);
}

#[test]
fn limits_are_enforced_and_named() {
    let domain = Domain::new();
    let open = || DomainDirectory::open(&DomainLocation::Path(domain.path().to_owned()), None).unwrap();
    let side = Arc::new(super::member::Teller::default());
    let long = IoThread::start(open(), &"x".repeat(129), side.clone(), side.clone()).err().unwrap();
    assert!(long.to_string().contains("at most 128"), "{long}");
    let thread = IoThread::start(open(), "tested", side.clone(), side).unwrap();
    let handle = thread.handle();
    assert!(handle.announce(RouteDescription::new("a b")).is_err());
    let mut large = RouteDescription::new("large");
    large.version = "x".repeat(4096);
    assert!(handle.announce(large).unwrap_err().to_string().contains("at most 4096"));
    assert_eq!(domain.files(), 0);
    for number in 0..1024 {
        handle.announce(RouteDescription::new(format!("route/{number}"))).unwrap();
    }
    let error = handle.announce(RouteDescription::new("one-more")).unwrap_err().to_string();
    assert!(error.contains("at most 1024 routes"), "{error}");
    handle.announce(RouteDescription::new("route/5")).unwrap();
    assert!(handle.change_state("route/5", RouteState::Gone).unwrap());
    assert!(!handle.change_state("route/5", RouteState::Open).unwrap());
    handle.announce(RouteDescription::new("one-more")).unwrap();
    let mut caller = domain.member(&["discover"]);
    caller.expect("settled");
    let routes = caller.seen.iter().filter(|line| line.starts_with("route 1 ")).count();
    assert_eq!(routes, 1024);
    drop(thread);
    assert_eq!(domain.files(), 0);
    caller.expect("closed 1");
    assert!(handle.announce(RouteDescription::new("late")).unwrap_err().to_string().contains("closed it"));
    assert!(handle.discover().is_err());
    let region = memory("");
    let descriptors = [(); 3].map(|()| Arc::clone(&region));
    handle.attach(crate::registry::InstanceNumber(1), attach(1, "late"), descriptors).unwrap();
    assert_eq!(Arc::strong_count(&region), 1);
}

#[derive(Default)]
struct Counter {
    completions: AtomicU64,
    deadline_ns: AtomicU64,
    ticks: AtomicU64,
}

impl CallingSide for Counter {
    fn instance_found(&self, _: InstanceNumber, _: &Arc<PeerProcess>) {}
    fn route_changed(&self, _: InstanceNumber, _: &RouteDescription) {}
    fn instance_listed(&self, _: InstanceNumber) {}
    fn settled(&self) {}
    fn attached(&self, _: InstanceNumber, _: u64, _: OwnedFd, _: OwnedFd) {}
    fn refused(&self, _: InstanceNumber, _: u64, _: AttachRefusal) {}
    fn instance_closed(&self, _: InstanceNumber) {}
    fn instance_dead(&self, _: InstanceNumber) {}

    fn completions(&self, token: u64) {
        self.completions.fetch_add(token, Ordering::SeqCst);
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        Some(self.deadline_ns.load(Ordering::SeqCst)).filter(|deadline_ns| *deadline_ns != 0)
    }

    fn tick(&self, now_ns: u64) {
        assert!(now_ns >= self.deadline_ns.swap(0, Ordering::SeqCst));
        self.ticks.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn completions_and_deadlines_wake() {
    let domain = Domain::new();
    let directory = DomainDirectory::open(&DomainLocation::Path(domain.path().to_owned()), None).unwrap();
    let counter = Arc::new(Counter::default());
    let thread = IoThread::start(directory, "", Arc::new(super::member::Teller::default()), counter.clone()).unwrap();
    let handle = thread.handle();
    let eventfd = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
    let write = || rustix::io::write(&*eventfd, &1u64.to_ne_bytes()).unwrap();
    write();
    handle.register_completion(100, Arc::clone(&eventfd));
    for number in 1..=500 {
        until("a completion", || counter.completions.load(Ordering::SeqCst) == number * 100);
        write();
    }
    until("the last one", || counter.completions.load(Ordering::SeqCst) == 50_100);
    handle.unregister_completion(100);
    handle.register_completion(1, Arc::clone(&eventfd));
    until("the other token", || counter.completions.load(Ordering::SeqCst) == 50_101);
    for number in 1..=20 {
        counter.deadline_ns.store(monotonic_ns() + 3_000_000, Ordering::SeqCst);
        handle.wake();
        until("a tick", || counter.ticks.load(Ordering::SeqCst) == number);
    }
    drop(thread);
    assert_eq!(Arc::strong_count(&eventfd), 1);
}
