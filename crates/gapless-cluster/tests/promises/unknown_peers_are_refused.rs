#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::linked_members::{Member, ScriptedPeer, connected_pair, identity, listening, peer};
use gapless_cluster::link::wire::{ClusterName, LinkRefusalCode, MAGIC, MemberIdentity, MessageHeader, MessageKind};
use gapless_cluster::link::{Links, MemberLinkOptions, PeerOptions};
use gapless_testkit::wait::turn_until;
use std::io::Write;
use std::net::TcpStream;

/// Returns the events of the first member, whose hello is changed, and the counts of the second.
fn refused(change: impl FnOnce(&mut MemberIdentity)) -> Vec<String> {
    let mut second = Member::listens(2, &[peer(1, &[])]);
    let mut own = identity(1);
    change(&mut own);
    let mut first = Member::new(MemberLinkOptions::default(), own, &[peer(2, &[second.address()])]);
    turn_until("the first member gets the refusal", || {
        first.idle();
        second.idle();
        !first.events.is_empty()
    });
    assert_eq!(second.event_texts(), Vec::<String>::new());
    assert!(second.links.pending_statistics().refused > 0 && !first.links.is_connected(2));
    first.event_texts()
}

#[test]
fn foreign_identity_is_refused() {
    let told = refused(|own| own.cluster = ClusterName::new("markt").unwrap());
    assert_eq!(told, ["refused 2: OtherCluster"]);
    assert_eq!(refused(|own| own.stream_id = 6), ["refused 2: OtherStream"]);
    assert_eq!(refused(|own| own.incarnation = 3), ["refused 2: OtherIncarnation"]);
}

#[test]
fn peer_without_stream_is_accepted() {
    let mut second = Member::listens(2, &[peer(1, &[])]);
    let own = MemberIdentity { stream_id: 0, incarnation: 0, ..identity(1) };
    let mut first = Member::new(MemberLinkOptions::default(), own, &[peer(2, &[second.address()])]);
    turn_until("the member is accepted", || {
        first.idle();
        second.idle();
        !first.events.is_empty()
    });
    assert_eq!(first.event_texts(), ["connected 2"]);
    first.links.set_stream(5, 2);
    assert_eq!(*first.links.identity(), identity(1));
}

#[test]
fn unknown_member_is_refused() {
    let mut third = Member::listens(3, &[peer(2, &[])]);
    let mut first = Member::new(MemberLinkOptions::default(), identity(1), &[peer(3, &[third.address()])]);
    turn_until("the member is refused", || {
        first.idle();
        third.idle();
        !first.events.is_empty()
    });
    assert_eq!(first.event_texts(), ["refused 3: UnknownMember"]);
    third.links.add_peer(&peer(1, &[])).unwrap();
    turn_until("the member is connected", || {
        first.idle();
        third.idle();
        third.links.is_connected(1) && first.links.is_connected(3)
    });
}

#[test]
fn newcomer_is_accepted() {
    // The lower one connects; the higher one asks why the lower does not.
    for (own, newcomer) in [(3, 2), (2, 3)] {
        let mut member = Member::listens(own, &[]);
        member.links.set_numbers_used(1);
        let options = listening();
        let mut other = Member::new(options, identity(newcomer), &[peer(own, &[member.address()])]);
        turn_until("the member is connected", || {
            member.idle();
            other.idle();
            !member.events.is_empty() && !other.events.is_empty()
        });
        assert_eq!(member.event_texts(), [format!("connected {newcomer}")]);
        assert_eq!(other.event_texts(), [format!("connected {own}")]);
        assert!(!member.links.is_peer(newcomer) && member.links.is_connected(newcomer));
        member.links.add_peer(&peer(newcomer, &[other.address()])).unwrap();
        assert!(member.links.is_peer(newcomer) && member.links.is_connected(newcomer));
        assert!(member.links.add_peer(&peer(newcomer, &[other.address()])).is_err());
        assert_eq!(member.links.statistics(newcomer).unwrap().connections, 1);
        let at = other.address();
        drop(other);
        let options = MemberLinkOptions { listen: Some(at), ..listening() };
        let mut other = Member::new(options, identity(newcomer), &[peer(own, &[member.address()])]);
        turn_until("the member is connected again", || {
            member.idle();
            other.idle();
            other.links.is_connected(own) && member.links.is_connected(newcomer)
        });
    }
}

#[test]
fn gone_newcomer_is_forgotten() {
    let mut member = Member::listens(3, &[]);
    let refusal = |member: &mut Member, own: MemberIdentity| {
        let mut other = Member::new(MemberLinkOptions::default(), own, &[peer(3, &[member.address()])]);
        turn_until("the member gets the refusal", || {
            member.idle();
            other.idle();
            !other.events.is_empty()
        });
        other.event_texts()
    };
    assert_eq!(refusal(&mut member, identity(2)), ["refused 3: UnknownMember"], "the file counts");
    member.links.set_numbers_used(1);
    assert_eq!(refusal(&mut member, identity(1)), ["refused 3: Removed"]);
    let stranger = MemberIdentity { stream_id: 0, incarnation: 0, ..identity(2) };
    assert_eq!(refusal(&mut member, stranger), ["refused 3: UnknownMember"]);
    assert_eq!(refusal(&mut member, MemberIdentity { stream_id: 6, ..identity(2) }), ["refused 3: OtherStream"]);
    assert_eq!(refusal(&mut member, identity(2)), ["connected 3"]);
    turn_until("the newcomer is forgotten", || {
        member.idle();
        member.links.peers().next().is_none()
    });
}

#[test]
fn wrong_address_is_refused() {
    let mut third = Member::listens(3, &[peer(1, &[])]);
    let mut first = Member::new(MemberLinkOptions::default(), identity(1), &[peer(2, &[third.address()])]);
    turn_until("the member is refused", || {
        first.idle();
        third.idle();
        !first.events.is_empty()
    });
    assert_eq!(first.event_texts(), ["refused 2: OtherMember"]);

    let mut alone = Member::new(listening(), identity(1), &[]);
    let address = alone.address();
    alone.links.add_peer(&peer(2, &[address])).unwrap();
    turn_until("the member is refused", || {
        alone.idle();
        !alone.events.is_empty()
    });
    assert_eq!(alone.event_texts(), ["refused 2: Itself"]);
}

#[test]
fn duplicate_number_is_refused() {
    let (mut first, mut second) = connected_pair(MemberLinkOptions::default());
    let twin = MemberIdentity { instance: 9, ..identity(1) };
    let mut twin = Member::new(MemberLinkOptions::default(), twin, &[peer(2, &[second.address()])]);
    turn_until("the twin is refused", || {
        first.idle();
        second.idle();
        twin.idle();
        !twin.events.is_empty()
    });
    assert_eq!(twin.event_texts(), ["refused 2: DuplicateIdentity"]);
    assert_eq!((first.event_texts(), second.event_texts()), (vec![], vec![]), "the first connection stays");
    drop(first);
    turn_until("the twin is accepted", || {
        second.idle();
        twin.idle();
        twin.links.is_connected(2)
    });
    assert_eq!(second.event_texts(), ["gone 1", "connected 1"]);
}

#[test]
fn reconnection_replaces_old() {
    let (first, mut second) = connected_pair(MemberLinkOptions::default());
    let mut puppet = ScriptedPeer::hello(second.address(), identity(1), 2);
    turn_until("the connection is replaced", || {
        second.idle();
        second.events.len() == 2
    });
    assert_eq!(second.event_texts(), ["gone 1: it has connected anew", "connected 1"]);
    assert_eq!(puppet.read().unwrap().0, MessageKind::Welcome);
    drop(first);
}

#[test]
fn other_version_gets_the_reason() {
    let mut second = Member::listens(2, &[peer(1, &[])]);
    let mut puppet = ScriptedPeer::dial(second.address());
    let mut hello = MAGIC.to_le_bytes().to_vec();
    hello.extend([3, 1]);
    hello.extend([0x5a; 200]);
    puppet.stream.write_all(&hello).unwrap();
    turn_until("the member is refused", || {
        second.idle();
        second.links.pending_statistics().refused == 1
    });
    let refusal = puppet.read_refusal();
    assert_eq!((refusal.code, refusal.text.as_str()), (LinkRefusalCode::OtherVersion, "here version 2, there 3"));

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut first =
        Member::new(MemberLinkOptions::default(), identity(1), &[peer(2, &[listener.local_addr().unwrap()])]);
    listener.set_nonblocking(true).unwrap();
    let mut accepted: Vec<TcpStream> = Vec::new();
    turn_until("the member gets the refusal", || {
        first.idle();
        if let Ok((mut stream, _)) = listener.accept() {
            stream.write_all(&hello).unwrap();
            accepted.push(stream);
        }
        !first.events.is_empty()
    });
    assert_eq!(first.event_texts(), ["refused 2: OtherVersion"]);
}

#[test]
fn garbage_and_silence_are_dropped() {
    let options = MemberLinkOptions { handshake_ns_max: 500_000_000, ..listening() };
    let mut second = Member::new(options, identity(2), &[peer(1, &[])]);
    let mut garbage = ScriptedPeer::dial(second.address());
    garbage.stream.write_all(b"GET / HTTP/1.1\r\nHost: market.example\r\n\r\n").unwrap();
    let mut early = ScriptedPeer::dial(second.address());
    let message = early.message(MessageKind::Consensus, b"let me in", b"");
    early.stream.write_all(&message).unwrap();
    let mut damaged = ScriptedPeer::dial(second.address());
    let mut message = damaged.message(MessageKind::Hello, &[7; 136], b"");
    message[40] ^= 1;
    damaged.stream.write_all(&message).unwrap();
    let mut mute = ScriptedPeer::dial(second.address());
    let mut slow = ScriptedPeer::dial(second.address());
    slow.stream.write_all(&message[..20]).unwrap();
    turn_until("all of them are dropped", || {
        second.idle();
        [&mut garbage, &mut early, &mut damaged, &mut mute, &mut slow].into_iter().all(ScriptedPeer::is_closed)
    });
    let statistics = second.links.pending_statistics();
    assert_eq!((statistics.accepted, statistics.garbage, statistics.silent), (5, 3, 2));
    assert_eq!(second.event_texts(), Vec::<String>::new());
}

#[test]
fn long_claim_is_dropped() {
    let options = MemberLinkOptions { handshake_ns_max: 60_000_000_000, ..listening() };
    let mut second = Member::new(options, identity(2), &[peer(1, &[])]);
    let mut strangers: Vec<ScriptedPeer> = (0..3).map(|_| ScriptedPeer::dial(second.address())).collect();
    for (stranger, kind) in
        strangers.iter_mut().zip([MessageKind::Consensus, MessageKind::CatchUpFrames, MessageKind::Members])
    {
        let (_, frames_length) = kind.lengths_max();
        stranger.stream.write_all(&MessageHeader::new(kind, 1, b"", frames_length).to_bytes()).unwrap();
    }
    turn_until("all of them are dropped", || {
        second.idle();
        strangers.iter_mut().all(ScriptedPeer::is_closed)
    });
    let statistics = second.links.pending_statistics();
    assert_eq!((statistics.garbage, statistics.silent), (3, 0), "before their timeout");
}

#[test]
fn silent_flood_blocks_no_member() {
    let options = MemberLinkOptions { half_open_max: 8, handshake_ns_max: 60_000_000_000, ..listening() };
    let mut second = Member::new(options, identity(2), &[peer(1, &[])]);
    let mut flood: Vec<ScriptedPeer> = (0..100).map(|_| ScriptedPeer::dial(second.address())).collect();
    let mut first = Member::new(MemberLinkOptions::default(), identity(1), &[peer(2, &[second.address()])]);
    turn_until("the member is accepted", || {
        // With the listener's backlog full, the next would wait for this thread.
        if flood.len() < 100 + second.links.pending_statistics().displaced as usize {
            flood.push(ScriptedPeer::dial(second.address()));
        }
        first.idle();
        second.idle();
        !first.events.is_empty() && !second.events.is_empty()
    });
    assert_eq!(first.event_texts(), ["connected 2"]);
    let statistics = second.links.pending_statistics();
    assert!(statistics.displaced >= 90, "{statistics:?}");
    turn_until("no more than eight are left", || {
        second.idle();
        flood.iter_mut().filter_map(|puppet| (!puppet.is_closed()).then_some(())).count() <= 8
    });
}

#[test]
fn invalid_peers_are_an_error() {
    let error = |options: MemberLinkOptions, member: u64, addresses: &[&str]| {
        let its = PeerOptions { member, addresses: addresses.iter().map(|text| (*text).to_owned()).collect() };
        Links::open(options, identity(2), &[its]).unwrap_err().to_string()
    };
    assert!(error(listening(), 2, &[]).contains("it is the member itself"));
    assert!(error(listening(), 0, &[]).contains("0 is no member"));
    assert!(error(listening(), 3, &[]).contains("it has no address"));
    assert!(error(MemberLinkOptions::default(), 1, &[]).contains("nothing listens"));
    assert!(error(listening(), 3, &["somewhere"]).contains("is not an address"));
    let taken = Member::listens(2, &[]);
    let options = MemberLinkOptions { listen: Some(taken.address()), ..MemberLinkOptions::default() };
    assert!(Links::open(options, identity(2), &[]).unwrap_err().to_string().contains("cannot listen"));
    let mut second = Member::listens(2, &[peer(1, &[])]);
    assert!(second.links.add_peer(&peer(1, &[])).unwrap_err().to_string().contains("it is one already"));
}
