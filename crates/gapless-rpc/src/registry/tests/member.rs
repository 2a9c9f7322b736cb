//! The program of a member.

use super::DOMAIN;
use crate::registry::callbacks::{
    AttachAnswer, AttachMemory, CallerNumber, CallingSide, InstanceNumber, PeerProcess, ServingSide, UnknownServer,
};
use crate::registry::directory::InstanceId;
use crate::registry::packets::{
    Attach, AttachRefusal, AttachRefusalReason, RouteDescription, RouteState, TypeDescription,
};
use crate::registry::{DomainDirectory, DomainLocation, IoThread};
use gapless_agent::monotonic::monotonic_ns;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io::BufRead as _;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Default)]
pub struct Teller {
    held: Mutex<Vec<(u64, u64, AttachMemory)>>,
    is_settled: AtomicBool,
}

fn say(text: &str) {
    // One write, since two threads print.
    println!("@{text}");
}

fn new_eventfd() -> Arc<OwnedFd> {
    Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap())
}

fn signal(eventfd: impl AsFd) {
    rustix::io::write(eventfd, &1u64.to_ne_bytes()).unwrap();
}

impl ServingSide for Teller {
    fn attach(
        &self,
        caller: CallerNumber,
        process: &Arc<PeerProcess>,
        attach: Attach,
        memory: AttachMemory,
    ) -> Result<AttachAnswer, AttachRefusal> {
        if attach.route == "refused" {
            return Err(AttachRefusal::new(AttachRefusalReason::NoRoute, "x".repeat(10_000)));
        }
        let mut text = [0; 64];
        let file = std::fs::File::from(memory.request_region.try_clone().unwrap());
        let length = file.read_at(&mut text, 0).unwrap_or(0);
        let (text, number) = (String::from_utf8_lossy(&text[..length]), attach.instance_number);
        say(&format!("attach {} {} of {} as {number}: {text}", caller.0, attach.attachment, process.process_id));
        signal(&memory.completion);
        self.held.lock().unwrap().push((caller.0, attach.attachment, memory));
        Ok(AttachAnswer { bell: new_eventfd(), eventfd: new_eventfd() })
    }

    fn detach(&self, caller: CallerNumber, attachment: u64) {
        self.held.lock().unwrap().retain(|held| (held.0, held.1) != (caller.0, attachment));
        say(&format!("detach {} {attachment}", caller.0));
    }

    fn change(&self, route: &str, to: RouteState) {
        say(&format!("change {route} {to:?}"));
    }

    fn caller_gone(&self, caller: CallerNumber) {
        self.held.lock().unwrap().retain(|held| held.0 != caller.0);
        say(&format!("gone {}", caller.0));
    }
}

impl CallingSide for Teller {
    fn unknown_server(&self, _id: InstanceId, unknown_server: Option<UnknownServer>) {
        match unknown_server {
            Some(UnknownServer { process_id, version, .. }) => {
                say(&format!("unknown_server {} {version:?}", process_id.unwrap_or(0)));
            }
            None => say("heard"),
        }
    }

    fn instance_found(&self, instance: InstanceNumber, process: &Arc<PeerProcess>) {
        say(&format!("found {} {} {}", instance.0, process.process_id, process.name));
    }

    fn route_changed(&self, instance: InstanceNumber, route: &RouteDescription) {
        say(&format!("route {} {} {:?}", instance.0, route.name, route.state));
    }

    fn instance_listed(&self, instance: InstanceNumber) {
        say(&format!("listed {}", instance.0));
    }

    fn settled(&self) {
        self.is_settled.store(true, Ordering::Release);
        say("settled");
    }

    fn attached(&self, instance: InstanceNumber, attachment: u64, bell: OwnedFd, eventfd: OwnedFd) {
        signal(bell);
        signal(eventfd);
        say(&format!("attached {} {attachment}", instance.0));
    }

    fn refused(&self, instance: InstanceNumber, attachment: u64, refused: AttachRefusal) {
        say(&format!("refused {} {attachment} {:?} {}", instance.0, refused.reason, refused.text.len()));
    }

    fn instance_closed(&self, instance: InstanceNumber) {
        say(&format!("closed {}", instance.0));
    }

    fn instance_dead(&self, instance: InstanceNumber) {
        say(&format!("dead {}", instance.0));
    }

    fn completions(&self, token: u64) {
        say(&format!("completions {token}"));
    }
}

pub fn attach(attachment: u64, route: &str) -> Attach {
    Attach {
        attachment,
        instance_number: 0,
        request_region_bytes: 0,
        claim_region_bytes: 0,
        route: route.to_owned(),
        request: TypeDescription::default(),
        reply: TypeDescription::default(),
        reply_older: 0,
    }
}

pub fn memory(text: &str) -> Arc<OwnedFd> {
    let fd = memfd_create("gapless-test", MemfdFlags::CLOEXEC).unwrap();
    rustix::io::write(&fd, text.as_bytes()).unwrap();
    Arc::new(fd)
}

fn watches() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|file| file.unwrap().path().read_link().ok());
    files.filter(|target| target.ends_with("anon_inode:inotify")).count()
}

#[test]
fn entry() {
    let Some(path) = std::env::var_os(DOMAIN) else { return };
    let directory = DomainDirectory::open(&DomainLocation::Path(path.into()), None).unwrap();
    let teller = Arc::new(Teller::default());
    let thread = IoThread::start(directory, "member", teller.clone(), teller.clone()).unwrap();
    let handle = thread.handle();
    let completion = new_eventfd();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["discover"] => handle.discover().unwrap(),
            ["glance"] => {
                let (begun_ns, watch_after) = (monotonic_ns(), Duration::from_millis(50));
                handle.delay_watch(watch_after);
                handle.discover().unwrap();
                while !teller.is_settled.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                let watches = watches();
                let is_early = Duration::from_nanos(monotonic_ns() - begun_ns) < watch_after;
                say(&format!("glance {watches} {is_early}"));
            }
            ["watches"] => say(&format!("watches {}", watches())),
            ["announce", route] => handle.announce(RouteDescription::new(route)).unwrap(),
            ["suspend", route] => assert!(handle.change_state(route, RouteState::Suspended).unwrap()),
            ["withdraw", route] => assert!(handle.change_state(route, RouteState::Gone).unwrap()),
            ["toggle", route, times] => {
                for _ in 0..times.parse::<usize>().unwrap() {
                    handle.change_state(route, RouteState::Suspended).unwrap();
                    handle.change_state(route, RouteState::Open).unwrap();
                }
            }
            ["attach", instance, attachment, route] => {
                let (instance, attachment) = (InstanceNumber(instance.parse().unwrap()), attachment.parse().unwrap());
                handle.register_completion(attachment, Arc::clone(&completion));
                let descriptors = [memory("a region"), memory(""), Arc::clone(&completion)];
                handle.attach(instance, attach(attachment, route), descriptors).unwrap();
            }
            ["detach", instance, attachment] => {
                let attachment = attachment.parse().unwrap();
                handle.unregister_completion(attachment);
                handle.detach(InstanceNumber(instance.parse().unwrap()), attachment);
            }
            ["change", instance, route] => {
                handle.change(InstanceNumber(instance.parse().unwrap()), route, RouteState::Suspended).unwrap();
            }
            ["count"] => say(&format!("count {}", std::fs::read_dir("/proc/self/fd").unwrap().count())),
            ["descriptors", most] => {
                let most = Some(most.parse().unwrap());
                setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
            }
            _ => panic!("{line:?} is no command"),
        }
        say(&format!("done {line}"));
    }
}
