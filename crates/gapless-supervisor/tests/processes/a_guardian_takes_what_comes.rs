//! Hostile bytes, forks that fail, orphans by the thousand, a full disk: nothing of it ends a guardian.

use super::copy_program::{LEAVE_MANY, STAY};
use super::place::{Place, children, descriptors, ended, kill, lines, name, no_zombies, told};
use gapless_supervisor::EndStatus;
use gapless_supervisor::guardian::Client;
use gapless_supervisor::guardian::protocol::{Ask, Told};
use gapless_supervisor::state_directory::Socket;
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .with_choices("hostile_packets_end_their_own_connection", hostile_packets)
        .scenario("a_peer_that_says_nothing_holds_up_nobody_for_long", a_peer_that_says_nothing)
        .scenario("a_supervisor_that_does_not_read_is_let_go", a_supervisor_that_does_not_read)
        .scenario("what_a_dead_supervisor_has_asked_for_is_done", what_a_dead_supervisor_has_asked_for)
        .scenario("a_fork_that_fails_is_told_and_tried_again", a_fork_that_fails)
        .scenario("without_descriptors_it_waits", without_descriptors)
        .scenario("a_thousand_orphans_are_waited_for", a_thousand_orphans)
        .scenario("a_full_disk_is_none_of_its_affairs", a_full_disk)
}

fn connect(place: &Place) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let address = SocketAddrUnix::new(place.directory.socket(Socket::Guardian)).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    socket
}

fn say(socket: &OwnedFd, bytes: &[u8]) {
    // It may be closed already.
    let _ = rustix::net::send(socket, bytes, SendFlags::NOSIGNAL);
}

/// What it says until it closes.
fn hear(socket: &OwnedFd) -> String {
    let mut all = String::new();
    let mut buffer = vec![0; 1 << 17];
    loop {
        match rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((0, _)) => return all,
            Ok((length, _)) => all += &String::from_utf8_lossy(&buffer[..length]),
            Err(rustix::io::Errno::CONNRESET) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

const HELLO: &[u8] = br#"{"ask":"hello","version":4}"#;

fn hostile_packets(random: &mut Random) {
    let place = Place::without_supervisor();
    // Counted while one is connected, as at the end.
    let first = place.connect();
    let guardian = first.guardian_process_id();
    let open = descriptors(guardian);
    drop(first);
    for (packets, expected) in [
        (&[&b"\xff\xfe"[..]][..], "cannot be read"),
        (&[b"{}"], "cannot be read"),
        (&[&[b'['; 60_000]], "cannot be read"),
        (&[&vec![b' '; 100_000]], "more than 65536 bytes"),
        (&[br#"{"ask":"list"}"#], "hello first"),
        (&[br#"{"ask":"hello","version":3}"#], "version 3 of the protocol, and this guardian version 4"),
        (&[HELLO, HELLO], "hello twice"),
        (&[HELLO, br#"{"ask":"start","copy":"../../x.1","incarnation":1}"#], "names no copy"),
        (&[HELLO, br#"{"ask":"start","copy":"a.1","incarnation":-1}"#], "cannot be read"),
        (&[HELLO, br#"{"ask":"fork"}"#], "cannot be read"),
    ] {
        let socket = connect(&place);
        packets.iter().for_each(|packet| say(&socket, packet));
        let heard = hear(&socket);
        assert!(heard.contains("refused") && heard.contains(expected), "{expected}: {heard}");
    }
    let samples: [&[u8]; 4] = [
        HELLO,
        br#"{"ask":"start","copy":"a.1","incarnation":1}"#,
        br#"{"ask":"list"}"#,
        br#"{"ask":"forget","copy":"a.1","incarnation":1}"#,
    ];
    for _ in 0..300 {
        let socket = connect(&place);
        say(&socket, HELLO);
        for _ in 0..random.below(5) {
            let mut packet = random.pick(&samples).to_vec();
            let at = random.below(packet.len() as u64) as usize;
            packet[at] = random.below(256) as u8;
            packet.truncate(packet.len() - random.below(3) as usize);
            say(&socket, &packet);
        }
    }
    let mut client = place.connect();
    assert_eq!(client.guardian_process_id(), guardian);
    client.list(PATIENCE).unwrap();
    until("its descriptors are as before", || descriptors(guardian) <= open);
    no_zombies(guardian);
    let unnamed = lines(&place.folder().join("starts"));
    assert_eq!(unnamed, [] as [String; 0], "there is no intent for any of it");
}

fn a_peer_that_says_nothing() {
    let place = Place::without_supervisor();
    drop(place.connect());
    let _silent = connect(&place);
    let mut client = place.connect();
    assert_eq!(client.list(PATIENCE).unwrap(), []);
}

fn a_supervisor_that_does_not_read() {
    let place = Place::without_supervisor();
    let guardian = place.connect().guardian_process_id();
    let socket = connect(&place);
    say(&socket, HELLO);
    let (mut asked, mut is_closed) = (0, false);
    while !is_closed {
        let ask = br#"{"ask":"list"}"#;
        is_closed = rustix::net::send(&socket, ask, SendFlags::NOSIGNAL).is_err();
        asked += 1;
        assert!(asked < 1_000_000, "it queues without end");
    }
    let memory = std::fs::read_to_string(format!("/proc/{guardian}/status")).unwrap();
    let resident = memory.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    let kilobytes: u64 = resident.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 40_000, "{resident}");
    let mut client = place.connect();
    assert_eq!((client.list(PATIENCE).unwrap(), client.guardian_process_id()), (vec![], guardian));
}

/// A list is the whole truth: what was asked for before is done before it.
fn what_a_dead_supervisor_has_asked_for() {
    let place = Place::without_supervisor();
    for round in 1..=30 {
        let copy = name(&format!("a.{round}"));
        place.intend(&copy, 1, STAY);
        let mut client = place.connect();
        for _ in 0..20 {
            client.ask(&Ask::List).unwrap();
        }
        client.ask(&Ask::Start { copy: copy.clone(), incarnation: 1 }).unwrap();
        // It goes without reading.
        drop(client);
        let mut next = Client::connect(&place.directory, PATIENCE).unwrap().unwrap();
        let known = next.list(PATIENCE).unwrap();
        assert!(known.iter().any(|child| child.copy == copy), "round {round}: {known:?}");
        if round == 30 {
            assert_eq!(known.len(), 30);
        }
    }
}

/// Processes of root are not counted, so where the test is root, the guardian is another one's.
fn a_fork_that_fails() {
    let place = Place::without_supervisor();
    let mut client = place.connect();
    let guardian = client.guardian_process_id();
    let first = place.start(&mut client, "a.1", 1, STAY);
    place.wait_for_start("a.1", 1);
    let process = Pid::from_raw(guardian as i32);
    // Neither does a process start without memory for it, which root is counted for as well.
    let none = Rlimit { current: Some(1), maximum: None };
    let (resource, expected) = match rustix::process::geteuid().is_root() {
        true => (Resource::As, "memory"),
        false => (Resource::Nproc, "temporarily unavailable"),
    };
    let before = prlimit(process, resource, none).unwrap();
    place.intend(&name("b.1"), 1, STAY);
    let mut reasons = Vec::new();
    for _ in 0..50 {
        client.ask(&Ask::Start { copy: name("b.1"), incarnation: 1 }).unwrap();
        match told(&mut client, |told| matches!(told, Told::NotStarted { .. } | Told::Started { .. })) {
            Told::NotStarted { reason, .. } => reasons.push(reason),
            other => panic!("{other:?}"),
        }
    }
    assert!(reasons.iter().all(|reason| reason.contains(expected)), "{reasons:?}");
    prlimit(process, resource, before).unwrap();
    place.start(&mut client, "b.1", 1, STAY);
    place.wait_for_start("b.1", 1);
    let known = client.list(PATIENCE).unwrap();
    assert_eq!(known.iter().map(|child| child.ended).collect::<Vec<_>>(), [None, None], "{first}");
    no_zombies(guardian);
}

fn without_descriptors() {
    let place = Place::without_supervisor();
    let mut client = place.connect();
    let guardian = client.guardian_process_id();
    let process = Pid::from_raw(guardian as i32);
    // As it was inherited from here. Its first numbers are taken as long as it lives; others come and go with supervisors.
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    let before = prlimit(process, Resource::Nofile, Rlimit { current: Some(3), maximum }).unwrap();
    place.intend(&name("a.1"), 1, STAY);
    client.ask(&Ask::Start { copy: name("a.1"), incarnation: 1 }).unwrap();
    let refused = told(&mut client, |told| matches!(told, Told::NotStarted { .. }));
    let is_told = |reason: &str| reason.contains("open files");
    assert!(matches!(&refused, Told::NotStarted { reason, is_shortage: true, .. } if is_told(reason)), "{refused:?}");
    drop(client);
    let used = cpu_ticks(guardian);
    // Two connections more than it has room for.
    let waiting = [connect(&place), connect(&place)];
    std::thread::sleep(Duration::from_millis(500));
    assert!(cpu_ticks(guardian) - used < 20, "it does not spin");
    prlimit(process, Resource::Nofile, before).unwrap();
    drop(waiting);
    let mut client = place.connect();
    assert_eq!(client.guardian_process_id(), guardian);
    place.start(&mut client, "a.1", 1, STAY);
    place.wait_for_start("a.1", 1);
}

/// User and system time of a process, in hundredths of a second.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect::<Vec<_>>();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn a_thousand_orphans() {
    let place = Place::without_supervisor();
    let mut client = place.connect();
    let guardian = client.guardian_process_id();
    let open = descriptors(guardian);
    let pid = place.start(&mut client, "a.1", 1, &format!("{LEAVE_MANY}1000"));
    until("all are left", || place.folder().join("left").exists());
    let mut orphans = 0;
    while orphans < 1000 {
        match client.wait(PATIENCE).unwrap().expect("orphans end") {
            Told::OrphanEnded { .. } => orphans += 1,
            other => panic!("{other:?}"),
        }
    }
    kill(pid, Signal::KILL);
    assert_eq!(ended(&mut client, "a.1", 1), EndStatus::Signaled { signal: 9, has_core: false });
    no_zombies(guardian);
    until("it has no child left", || children(guardian).is_empty());
    // And perhaps that of a supervisor, which ends at once.
    until("its descriptors are as before", || descriptors(guardian) <= open);
}

fn a_full_disk() {
    let place = Place::without_supervisor();
    let mut client = place.connect();
    let guardian = client.guardian_process_id();
    place.intend(&name("a.1"), 1, STAY);
    let Some(disk) = gapless_testkit::folder::SmallDisk::mount(&place.folder().join("disk"), 64) else { return };
    let mut plan = place.plan(&name("b.1"), 1, STAY);
    plan.log = disk.path.join("log");
    let files = place.directory.copy(&name("b.1"));
    files.prepare().unwrap();
    files.write_launch(&plan).unwrap();
    let _full = std::fs::write(disk.path.join("filler"), vec![1; 100_000]);
    for copy in ["a.1", "b.1"] {
        client.ask(&Ask::Start { copy: name(copy), incarnation: 1 }).unwrap();
        told(&mut client, |told| matches!(told, Told::Started { .. }));
        place.wait_for_start(copy, 1);
    }
    assert_eq!(client.guardian_process_id(), guardian);
    assert!(client.list(PATIENCE).unwrap().iter().all(|child| child.ended.is_none()));
}
