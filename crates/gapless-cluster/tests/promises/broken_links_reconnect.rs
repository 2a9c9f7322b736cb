#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::linked_members::{Member, ScriptedPeer, connected_pair, identity, listening, now, peer};
use gapless_cluster::link::wire::MessageKind;
use gapless_cluster::link::{MemberLinkOptions, MessageContent, SendError};
use gapless_testkit::ports::free_address;
use gapless_testkit::random::Random;
use gapless_testkit::wait::turn_until;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

#[test]
fn death_mid_message_is_noticed() {
    let options = MemberLinkOptions { silence_ns_max: u64::MAX, ..MemberLinkOptions::default() };
    let (mut first, mut second) = connected_pair(options);
    // More than the operating system's buffers: queued bytes are lost with their sender.
    first.links.send(2, MessageContent::Consensus, b"half", &[&vec![1; 60_000_000]]).unwrap();
    assert!(first.links.statistics(2).unwrap().queued_bytes > 0);
    (0..100).for_each(|_| second.idle());
    let address = second.address();
    drop(first);
    turn_until("the end of the connection is noticed", || {
        second.idle();
        !second.events.is_empty()
    });
    assert_eq!(second.event_texts(), ["gone 1"]);
    assert_eq!(second.links.send(1, MessageContent::Consensus, b"", &[]), Err(SendError::NotConnected));

    let mut first = Member::new(MemberLinkOptions::default(), identity(1), &[peer(2, &[address])]);
    let mut taken = Vec::new();
    turn_until("both are connected again and whole messages pass", || {
        first.idle();
        if first.events.len() == 1 && taken.is_empty() {
            first.send(2, b"whole");
        }
        second.turn(|message| taken.push(message.consensus.to_vec()));
        !taken.is_empty()
    });
    assert_eq!(taken[0], b"whole");
    assert_eq!(second.event_texts(), ["connected 1"]);
}

#[test]
fn listener_is_redialled() {
    let (mut first, mut second) = connected_pair(MemberLinkOptions::default());
    let address = second.address();
    for _ in 0..3 {
        drop(second);
        turn_until("the end of the connection is noticed", || {
            first.idle();
            !first.events.is_empty()
        });
        assert_eq!(first.event_texts(), ["gone 2"]);
        let options = MemberLinkOptions { listen: Some(address), ..MemberLinkOptions::default() };
        second = Member::new(options, identity(2), &[peer(1, &[])]);
        turn_until("both are connected", || {
            first.idle();
            second.idle();
            !first.events.is_empty() && !second.events.is_empty()
        });
        assert_eq!(first.event_texts(), ["connected 2"]);
    }
    assert_eq!(first.links.statistics(2).unwrap().connections, 4);
}

#[test]
fn torn_message_is_dropped_whole() {
    let mut second = Member::listens(2, &[peer(1, &[])]);
    let length = {
        let mut puppet = ScriptedPeer { stream: TcpStream::connect(second.address()).unwrap(), number: 0 };
        puppet.message(MessageKind::Consensus, b"torn", &[9; 40]).len()
    };
    for cut in 0..length {
        let mut puppet = ScriptedPeer::hello(second.address(), identity(1), 2);
        let whole = puppet.message(MessageKind::Consensus, b"whole", &[8; 40]);
        let torn = puppet.message(MessageKind::Consensus, b"torn", &[9; 40]);
        let mut taken = Vec::new();
        turn_until("the member is accepted", || {
            second.idle();
            !second.events.is_empty()
        });
        puppet.stream.write_all(&[&whole[..], &torn[..cut]].concat()).unwrap();
        drop(puppet);
        turn_until("the end of the connection is noticed", || {
            second.turn(|message| taken.push(message.consensus.to_vec()));
            second.events.len() >= 2
        });
        assert_eq!(taken, [b"whole"], "cut at byte {cut}");
        assert_eq!(second.event_texts(), ["connected 1", "gone 1"]);
    }
}

#[test]
fn garbage_closes_connection() {
    let mut second = Member::listens(2, &[peer(1, &[])]);
    for garbage in 0..4 {
        let mut puppet = ScriptedPeer::hello(second.address(), identity(1), 2);
        turn_until("the member is accepted", || {
            second.idle();
            !second.events.is_empty()
        });
        let mut bytes = puppet.message(MessageKind::Consensus, b"good", b"");
        let mut bad = puppet.message(MessageKind::Consensus, b"bad!", b"");
        match garbage {
            0 => bad[0] ^= 1,
            1 => bad[33] ^= 1,
            2 => bad = bytes.clone(),
            _ => bad = puppet.message(MessageKind::Hello, b"", b""),
        }
        bytes.extend(bad);
        puppet.stream.write_all(&bytes).unwrap();
        let mut taken = 0;
        turn_until("the connection is closed", || {
            second.turn(|message| {
                assert_eq!(message.consensus, b"good");
                taken += 1;
            });
            second.events.len() >= 2
        });
        assert_eq!(taken, 1);
        let told = second.event_texts();
        assert!(told[1].starts_with("gone 1: it sends what is no message"), "{told:?}");
        turn_until("the other side sees the connection closed", || {
            second.idle();
            puppet.is_closed()
        });
    }
    assert_eq!(second.links.statistics(1).unwrap().garbage, 4);
}

#[test]
fn dead_address_is_skipped() {
    let mut second = Member::listens(2, &[peer(1, &[])]);
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let addresses = [free_address(), mute.local_addr().unwrap(), second.address()];
    let options = MemberLinkOptions { handshake_ns_max: 50_000_000, ..MemberLinkOptions::default() };
    let mut first = Member::new(options, identity(1), &[peer(2, &addresses)]);
    turn_until("the third address answers", || {
        first.idle();
        second.idle();
        !first.events.is_empty() && !second.events.is_empty()
    });
    assert_eq!(first.event_texts(), ["connected 2"]);
}

#[test]
fn host_name_is_dialled() {
    let listens = MemberLinkOptions { listen: Some(([127, 0, 0, 1], 0).into()), ..MemberLinkOptions::default() };
    let mut second = Member::new(listens, identity(2), &[peer(1, &[])]);
    let name = format!("localhost:{}", second.address().port());
    let its = gapless_cluster::link::PeerOptions { member: 2, addresses: vec![name] };
    let mut first = Member::new(MemberLinkOptions::default(), identity(1), &[its]);
    turn_until("the name is resolved", || {
        first.idle();
        second.idle();
        !first.events.is_empty()
    });
    assert_eq!(first.event_texts(), ["connected 2"]);
}

#[test]
fn mutual_dials_make_one_link() {
    let nowhere = free_address();
    for _ in 0..20 {
        let mut second = Member::listens(2, &[peer(1, &[nowhere])]);
        let mut first = Member::listens(1, &[]);
        assert!(second.links.remove_peer(1));
        second.links.add_peer(&peer(1, &[first.address()])).unwrap();
        first.links.add_peer(&peer(2, &[second.address()])).unwrap();
        let (mut taken, mut is_sent) = (0, false);
        turn_until("a message passes", || {
            first.idle();
            second.turn(|_| taken += 1);
            if !is_sent && first.links.is_connected(2) {
                first.send(2, b"one");
                is_sent = true;
            }
            taken > 0
        });
        (0..1000).for_each(|_| {
            first.idle();
            second.idle();
        });
        assert_eq!(
            (first.event_texts(), second.event_texts()),
            (vec!["connected 2".to_owned()], vec!["connected 1".to_owned()])
        );
        for (member, other) in [(&first, 2), (&second, 1)] {
            assert_eq!(member.links.statistics(other).unwrap().connections, 1);
        }
        assert_eq!((first.links.pending_statistics().accepted, second.links.pending_statistics().accepted), (0, 1));
    }
}

#[test]
fn wrong_side_is_refused() {
    let mut first = Member::new(listening(), identity(1), &[peer(2, &[free_address()])]);
    let address = first.address();
    let mut puppet = ScriptedPeer::hello(address, identity(2), 1);
    turn_until("the member is refused", || {
        first.idle();
        first.links.pending_statistics().refused == 1
    });
    assert!(puppet.read_refusal().to_string().contains("lower number"));
}

#[test]
fn silence_ends_the_link() {
    let options =
        MemberLinkOptions { ping_interval_ns: 20_000_000, silence_ns_max: 400_000_000, ..MemberLinkOptions::default() };
    let (mut first, mut second) = connected_pair(options);
    let begun = now().monotonic_ns;
    turn_until("a second passes", || {
        first.idle();
        second.idle();
        now().monotonic_ns - begun > 1_000_000_000
    });
    assert_eq!((first.event_texts(), second.event_texts()), (vec![], vec![]), "pings keep the link alive");
    turn_until("the silence is noticed", || {
        first.idle();
        !first.events.is_empty()
    });
    assert_eq!(first.event_texts()[0], "gone 2: nothing has come from it for 400 ms");
}

#[test]
fn own_pause_is_no_silence() {
    let options =
        MemberLinkOptions { ping_interval_ns: 20_000_000, silence_ns_max: 100_000_000, ..MemberLinkOptions::default() };
    let (mut first, _second) = connected_pair(options);
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(150));
        first.idle();
    }
    assert_eq!(first.event_texts(), Vec::<String>::new());
}

#[test]
fn sleeper_notices_silence() {
    let second = 1_000_000_000;
    let options = MemberLinkOptions {
        ping_interval_ns: 300 * second,
        silence_ns_max: 3600 * second,
        ..MemberLinkOptions::default()
    };
    let (mut first, mut other) = connected_pair(options);
    let sleep = |member: &mut Member| {
        member.poll();
        let timeout_ns = member.links.next_deadline_ns().saturating_sub(now().monotonic_ns);
        assert!(timeout_ns > 200 * second, "no deadline for a long time: {timeout_ns} ns");
        let mut descriptors = Vec::new();
        member.links.watch(&mut descriptors);
        let mut watched: Vec<PollFd<'_>> =
            descriptors.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert!(rustix::event::poll(&mut watched, Some(&timeout)).unwrap() > 0, "the member is not woken");
    };
    first.send(2, b"wake up");
    sleep(&mut other);
    let mut taken = 0;
    other.turn(|_| taken += 1);
    assert_eq!(taken, 1);
    drop(first);
    sleep(&mut other);
    other.idle();
    other.poll();
    assert_eq!(other.event_texts(), ["gone 1"]);

    let options =
        MemberLinkOptions { ping_interval_ns: 20_000_000, silence_ns_max: 400_000_000, ..MemberLinkOptions::default() };
    let (mut first, _hangs) = connected_pair(options);
    turn_until("the silence is noticed", || {
        first.idle();
        std::thread::sleep(Duration::from_millis(25));
        !first.events.is_empty()
    });
}

/// Each connection until a random number of bytes has passed in one direction.
fn cutting_proxy(target: SocketAddr, mut random: Random, stop: Arc<AtomicBool>, cuts: Arc<AtomicU64>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let Ok((near, _)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            let Ok(far) = TcpStream::connect(target) else { continue };
            let (to_far, to_near) = (random.below(60_000), random.below(60_000));
            let pumps = [pump(near.try_clone().unwrap(), far.try_clone().unwrap(), to_far), pump(far, near, to_near)];
            pumps.into_iter().for_each(|pump| pump.join().unwrap());
            cuts.fetch_add(1, Ordering::Relaxed);
        }
    });
    address
}

fn pump(mut from: TcpStream, mut to: TcpStream, mut limit: u64) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut bytes = [0; 1500];
        while limit > 0 {
            let room = bytes.len().min(limit as usize);
            let Ok(length @ 1..) = from.read(&mut bytes[..room]) else { break };
            if to.write_all(&bytes[..length]).is_err() {
                break;
            }
            limit -= length as u64;
        }
        for stream in [from, to] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    })
}

#[test]
fn cut_link_spoils_no_message() {
    const MESSAGES: u64 = 3_000;
    let mut random = Random::seeded();
    let (stop, cuts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut second = Member::listens(2, &[peer(1, &[])]);
    let proxy = cutting_proxy(second.address(), Random::new(random.number()), stop.clone(), cuts.clone());
    let options = MemberLinkOptions { back_off_ns_max: 5_000_000, ..MemberLinkOptions::default() };
    let mut first = Member::new(options, identity(1), &[peer(2, &[proxy])]);
    let content = |number: u64| {
        let mut random = Random::new(number);
        let length = random.below(120) as usize * 8;
        let words = (0..length / 8).flat_map(|_| random.number().to_le_bytes());
        words.collect::<Vec<u8>>()
    };
    let (mut next_sent, mut next_taken) = (0, 0);
    let mut is_connected = false;
    turn_until("everything is there", || {
        first.poll();
        for event in first.event_texts() {
            is_connected = event == "connected 2";
            next_sent = next_taken;
        }
        first.links.receive(|_| panic!("nothing is sent to this side"));
        for _ in 0..8 {
            if is_connected && next_sent < MESSAGES {
                let bytes = content(next_sent);
                let number: u64 = next_sent;
                match first.links.send(2, MessageContent::Consensus, &number.to_le_bytes(), &[&bytes]) {
                    Ok(()) => next_sent += 1,
                    Err(SendError::Full) => break,
                    Err(_) => is_connected = false,
                }
            }
        }
        second.poll();
        let mut expected: Option<u64> = None;
        second.links.receive(|message| {
            let number = u64::from_le_bytes(message.consensus.try_into().unwrap());
            assert!(message.frames == content(number), "message {number} is spoiled");
            assert!(expected.is_none_or(|expected| expected == number), "message {number} out of order");
            expected = Some(number + 1);
            assert!(number <= next_taken, "message {number} although {next_taken} is missing");
            next_taken = next_taken.max(number + 1);
        });
        next_taken == MESSAGES
    });
    stop.store(true, Ordering::Relaxed);
    let cuts = cuts.load(Ordering::Relaxed);
    assert!(cuts >= 10, "only {cuts} cuts");
    assert!(second.event_texts().iter().filter(|told| told.starts_with("gone")).count() >= 3);
}
