use super::instance_program::{LEAVE_MANY, STAY};
use super::test_place::{TestPlace, children, descriptors, ended, kill, lines, name, next_message, no_zombies};
use gapless_supervisor::EndStatus;
use gapless_supervisor::guardian::GuardianClient;
use gapless_supervisor::guardian::protocol::{GuardianMessage, GuardianRequest};
use gapless_supervisor::state_directory::StateSocket;
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .with_choices("hostile_packets_close_connections", hostile_packets_close_connections)
        .scenario("silent_peer_times_out", silent_peer_times_out)
        .scenario("supervisor_without_reads_is_dropped", supervisor_without_reads_is_dropped)
        .scenario("requests_outlive_their_supervisor", requests_outlive_their_supervisor)
        .scenario("failed_fork_is_reported", failed_fork_is_reported)
        .scenario("missing_descriptors_are_survived", missing_descriptors_are_survived)
        .scenario("a_thousand_orphans_are_reaped", a_thousand_orphans_are_reaped)
        .scenario("full_disk_is_survived", full_disk_is_survived)
}

fn connect(place: &TestPlace) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let address = SocketAddrUnix::new(place.directory.socket(StateSocket::Guardian)).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    socket
}

fn say(socket: &OwnedFd, bytes: &[u8]) {
    let _ = rustix::net::send(socket, bytes, SendFlags::NOSIGNAL);
}

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

fn hostile_packets_close_connections(random: &mut Random) {
    let place = TestPlace::without_supervisor();
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
        (&[HELLO, br#"{"ask":"start","copy":"../../x.1","incarnation":1}"#], "names no instance"),
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
    assert_eq!(unnamed, [] as [String; 0], "nothing was started");
}

fn silent_peer_times_out() {
    let place = TestPlace::without_supervisor();
    drop(place.connect());
    let _silent = connect(&place);
    let mut client = place.connect();
    assert_eq!(client.list(PATIENCE).unwrap(), []);
}

fn supervisor_without_reads_is_dropped() {
    let place = TestPlace::without_supervisor();
    let guardian = place.connect().guardian_process_id();
    let socket = connect(&place);
    say(&socket, HELLO);
    let (mut asked, mut is_closed) = (0, false);
    while !is_closed {
        let ask = br#"{"ask":"list"}"#;
        is_closed = rustix::net::send(&socket, ask, SendFlags::NOSIGNAL).is_err();
        asked += 1;
        assert!(asked < 1_000_000, "the queue has no limit");
    }
    let memory = std::fs::read_to_string(format!("/proc/{guardian}/status")).unwrap();
    let resident = memory.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    let kilobytes: u64 = resident.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 40_000, "{resident}");
    let mut client = place.connect();
    assert_eq!((client.list(PATIENCE).unwrap(), client.guardian_process_id()), (vec![], guardian));
}

fn requests_outlive_their_supervisor() {
    let place = TestPlace::without_supervisor();
    for round in 1..=30 {
        let instance = name(&format!("a.{round}"));
        place.write_plan(&instance, 1, STAY);
        let mut client = place.connect();
        for _ in 0..20 {
            client.ask(&GuardianRequest::List).unwrap();
        }
        client.ask(&GuardianRequest::Start { instance: instance.clone(), incarnation: 1 }).unwrap();
        drop(client);
        let mut next = GuardianClient::connect(&place.directory, PATIENCE).unwrap().unwrap();
        let known = next.list(PATIENCE).unwrap();
        assert!(known.iter().any(|child| child.instance == instance), "round {round}: {known:?}");
        if round == 30 {
            assert_eq!(known.len(), 30);
        }
    }
}

/// Root is exempt from the process limit: the test limits memory instead.
fn failed_fork_is_reported() {
    let place = TestPlace::without_supervisor();
    let mut client = place.connect();
    let guardian = client.guardian_process_id();
    let first = place.start(&mut client, "a.1", 1, STAY);
    place.wait_for_start("a.1", 1);
    let process = Pid::from_raw(guardian as i32);
    let none = Rlimit { current: Some(1), maximum: None };
    let (resource, expected) = match rustix::process::geteuid().is_root() {
        true => (Resource::As, "memory"),
        false => (Resource::Nproc, "temporarily unavailable"),
    };
    let before = prlimit(process, resource, none).unwrap();
    place.write_plan(&name("b.1"), 1, STAY);
    let mut reasons = Vec::new();
    for _ in 0..50 {
        client.ask(&GuardianRequest::Start { instance: name("b.1"), incarnation: 1 }).unwrap();
        match next_message(&mut client, |told| {
            matches!(told, GuardianMessage::NotStarted { .. } | GuardianMessage::Started { .. })
        }) {
            GuardianMessage::NotStarted { reason, .. } => reasons.push(reason),
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

fn missing_descriptors_are_survived() {
    let place = TestPlace::without_supervisor();
    let mut client = place.connect();
    let guardian = client.guardian_process_id();
    let process = Pid::from_raw(guardian as i32);
    // The first descriptors stay open all the time; others vary with supervisors.
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    let before = prlimit(process, Resource::Nofile, Rlimit { current: Some(3), maximum }).unwrap();
    place.write_plan(&name("a.1"), 1, STAY);
    client.ask(&GuardianRequest::Start { instance: name("a.1"), incarnation: 1 }).unwrap();
    let refused = next_message(&mut client, |told| matches!(told, GuardianMessage::NotStarted { .. }));
    let is_told = |reason: &str| reason.contains("open files");
    assert!(
        matches!(&refused, GuardianMessage::NotStarted { reason, is_shortage: true, .. } if is_told(reason)),
        "{refused:?}"
    );
    drop(client);
    let used = cpu_ticks(guardian);
    let waiting = [connect(&place), connect(&place)];
    std::thread::sleep(Duration::from_millis(500));
    assert!(cpu_ticks(guardian) - used < 20, "the guardian is in a busy loop");
    prlimit(process, Resource::Nofile, before).unwrap();
    drop(waiting);
    let mut client = place.connect();
    assert_eq!(client.guardian_process_id(), guardian);
    place.start(&mut client, "a.1", 1, STAY);
    place.wait_for_start("a.1", 1);
}

fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect::<Vec<_>>();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn a_thousand_orphans_are_reaped() {
    let place = TestPlace::without_supervisor();
    let mut client = place.connect();
    let guardian = client.guardian_process_id();
    let open = descriptors(guardian);
    let pid = place.start(&mut client, "a.1", 1, &format!("{LEAVE_MANY}1000"));
    until("all orphans are left", || place.folder().join("left").exists());
    let mut orphans = 0;
    while orphans < 1000 {
        match client.wait(PATIENCE).unwrap().expect("orphans end") {
            GuardianMessage::OrphanEnded { .. } => orphans += 1,
            other => panic!("{other:?}"),
        }
    }
    kill(pid, Signal::KILL);
    assert_eq!(ended(&mut client, "a.1", 1), EndStatus::Signaled { signal: 9, has_core: false });
    no_zombies(guardian);
    until("it has no child left", || children(guardian).is_empty());
    until("its descriptors are as before", || descriptors(guardian) <= open);
}

fn full_disk_is_survived() {
    let place = TestPlace::without_supervisor();
    let mut client = place.connect();
    let guardian = client.guardian_process_id();
    place.write_plan(&name("a.1"), 1, STAY);
    let Some(disk) = gapless_testkit::folder::SmallDisk::mount(&place.folder().join("disk"), 64) else { return };
    let mut plan = place.plan(&name("b.1"), 1, STAY);
    plan.log = disk.path.join("log");
    let files = place.directory.instance(&name("b.1"));
    files.prepare().unwrap();
    files.write_launch(&plan).unwrap();
    let _full = std::fs::write(disk.path.join("filler"), vec![1; 100_000]);
    for instance in ["a.1", "b.1"] {
        client.ask(&GuardianRequest::Start { instance: name(instance), incarnation: 1 }).unwrap();
        next_message(&mut client, |told| matches!(told, GuardianMessage::Started { .. }));
        place.wait_for_start(instance, 1);
    }
    assert_eq!(client.guardian_process_id(), guardian);
    assert!(client.list(PATIENCE).unwrap().iter().all(|child| child.ended.is_none()));
}
