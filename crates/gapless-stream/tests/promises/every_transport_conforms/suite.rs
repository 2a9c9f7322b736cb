use super::world::{ReceivedMessage, TestNode, World, open, payload, run, settle};
use gapless_client::ClientError;
use gapless_client::node::{NodeState, PublisherOptions, Start, StreamNodeOptions};
use gapless_client::throttle::Throttle;
use gapless_stream::messages::SequencerRequest;
use gapless_testkit::random::rounds;
use gapless_wire::feed_session::FeedSession;
use std::time::Duration;

fn same_everywhere<L>(parties: &[&TestNode<L>]) {
    let first: Vec<_> = parties[0].messages.iter().map(ReceivedMessage::shared).collect();
    for (number, party) in parties.iter().enumerate().skip(1) {
        let other: Vec<_> = party.messages.iter().map(ReceivedMessage::shared).collect();
        assert!(first == other, "node {number} met something else than node 0");
    }
    assert!(first.is_sorted_by(|a, b| a.0 < b.0), "sequences rise");
}

fn own_payloads<L>(party: &TestNode<L>) -> Vec<Vec<u8>> {
    party.messages.iter().filter(|met| met.own).map(|met| met.payload.clone()).collect()
}

pub fn all_nodes_read_the_same_order<W: World>() {
    let mut world = W::start(|_| {});
    let mut parties: Vec<_> = (0..3).map(|_| open(&mut world, StreamNodeOptions::default())).collect();
    let mut sent = vec![Vec::new(); 3];
    for number in 0..300u64 {
        for (index, party) in parties.iter_mut().enumerate() {
            let length = [0, 1, 7, 8, 64, 100, 256, 1000][(number as usize + index) % 8];
            let bytes = payload(number * 3 + index as u64, length);
            party.publish(&bytes);
            sent[index].push(bytes);
        }
        if number % 7 == 0 {
            let mut all: Vec<_> = parties.iter_mut().collect();
            run(&mut world, &mut all, "a turn", |_| true);
        }
    }
    let mut all: Vec<_> = parties.iter_mut().collect();
    settle(&mut world, &mut all);
    assert_eq!(parties[0].messages.len(), 900);
    same_everywhere(&parties.iter().collect::<Vec<_>>());
    for (party, sent) in parties.iter().zip(&sent) {
        assert!(own_payloads(party) == *sent, "each node's own messages keep their order, once each");
        assert_eq!(party.node.state(), NodeState::Live);
    }
}

pub fn long_messages_arrive_whole<W: World>() {
    let mut world = W::start(|_| {});
    let (mut a, mut b) =
        (open(&mut world, StreamNodeOptions::default()), open(&mut world, StreamNodeOptions::default()));
    let longest = if W::LOSES { rounds(1_500_000, 150_000) as usize } else { 1_500_000 };
    let lengths = [1_000, 1_312, 1_313, 2_624, 2_625, 70_000, longest / 5, longest];
    for (number, length) in lengths.into_iter().enumerate() {
        a.publish(&payload(number as u64, length));
        b.publish(&payload(number as u64 + 100, length / 2 + 1));
    }
    settle(&mut world, &mut [&mut a, &mut b]);
    same_everywhere(&[&a, &b]);
    let expected: Vec<_> = lengths.iter().enumerate().map(|(number, length)| payload(number as u64, *length)).collect();
    assert!(own_payloads(&a) == expected, "every byte of every part");
    assert_eq!(b.messages.len(), 2 * lengths.len());
    let too_long = a.node.publish(super::world::TYPE, &vec![0; 64 << 20]);
    assert!(matches!(too_long, Err(ClientError::TooLong { .. })), "{too_long:?}");
    a.publish(b"and it goes on");
    settle(&mut world, &mut [&mut a, &mut b]);
}

pub fn late_joiner_reads_history<W: World>() {
    let mut world = W::start(|_| {});
    let mut early = open(&mut world, StreamNodeOptions::default());
    for number in 0..500 {
        early.publish(&payload(number, 200));
    }
    settle(&mut world, &mut [&mut early]);
    let middle = early.messages[250].sequence;
    let mut first = TestNode::new(&mut world, StreamNodeOptions::reading(Start::First));
    let mut later = TestNode::new(&mut world, StreamNodeOptions::reading(Start::Sequence(middle)));
    let mut live = TestNode::new(&mut world, StreamNodeOptions::reading(Start::Live));
    {
        let mut all = [&mut first, &mut later, &mut live];
        run(&mut world, &mut all, "all are live", |parties| {
            parties.iter().all(|party| party.node.state() == NodeState::Live)
        });
    }
    assert!(first.states.contains(&NodeState::Rewinding), "{:?}", first.states);
    for number in 500..600 {
        early.publish(&payload(number, 200));
    }
    settle(&mut world, &mut [&mut early, &mut first, &mut later, &mut live]);
    assert_eq!((first.messages.len(), later.messages.len(), live.messages.len()), (600, 350, 100));
    same_everywhere(&[&early, &first]);
    assert_eq!(later.messages[0].sequence, middle);
    assert_eq!(live.messages[0].payload, payload(500, 200));
    assert!(!first.messages[0].own && early.messages[0].own);
}

pub fn restarted_sequencer_resumes<W: World>() {
    let mut world = W::start(|_| {});
    let (mut a, mut b) =
        (open(&mut world, StreamNodeOptions::default()), open(&mut world, StreamNodeOptions::default()));
    let mut number = 0;
    for round in 0..4 {
        for _ in 0..100 {
            a.publish(&payload(number, 150));
            b.publish(&payload(number + 10_000, 90));
            number += 1;
        }
        if round % 2 == 0 {
            run(&mut world, &mut [&mut a, &mut b], "a turn", |_| true);
        }
        world.restart();
    }
    settle(&mut world, &mut [&mut a, &mut b]);
    same_everywhere(&[&a, &b]);
    assert!(own_payloads(&a) == (0..number).map(|each| payload(each, 150)).collect::<Vec<_>>());
    assert!(own_payloads(&b) == (0..number).map(|each| payload(each + 10_000, 90)).collect::<Vec<_>>());
    assert!(a.states.contains(&NodeState::Connecting), "it noticed: {:?}", a.states);
}

pub fn restarted_node_keeps_its_numbers<W: World>() {
    let mut world = W::start(|_| {});
    let options = StreamNodeOptions::with_token(77);
    let mut node = open(&mut world, options.clone());
    for each in 0..50 {
        assert_eq!(node.publish(&payload(each, 40)), each + 1);
    }
    settle(&mut world, &mut [&mut node]);
    let session = node.node.session();
    drop(node);
    let mut node = open(&mut world, options);
    assert_eq!((node.node.session(), node.node.next_session_seq()), (session, Some(51)));
    assert!(node.has_noted("open 51"));
    node.publish(b"the next");
    settle(&mut world, &mut [&mut node]);
    assert_eq!(node.messages.len(), 51, "all messages are replayed, and the new one comes once");
    assert!(node.messages.iter().all(|met| met.own), "messages of its predecessor count as its own");
}

pub fn limits_lose_nothing<W: World>() {
    let mut world = W::start(|_| {});
    let throttle = Throttle { frames_per_s: 100, burst_frames: 20 };
    let publisher = PublisherOptions { window_messages: 8, throttle: Some(throttle), ..PublisherOptions::default() };
    let mut node = open(&mut world, StreamNodeOptions { publisher: Some(publisher), ..StreamNodeOptions::default() });
    let (mut windows, mut throttles, mut sent) = (0, 0, 0);
    while sent < 60 || windows == 0 || throttles == 0 {
        assert!(sent < 10_000, "{windows} times the window, {throttles} times the rate");
        match node.node.publish(super::world::TYPE, &payload(sent, 30)) {
            Ok(_) => sent += 1,
            Err(ClientError::WindowFull { window_messages: 8, .. }) => windows += 1,
            Err(ClientError::Throttled { wait_ns }) => {
                assert!(wait_ns > 0);
                throttles += 1;
            }
            Err(error) => panic!("{error}"),
        }
        if windows + throttles > 0 {
            run(&mut world, &mut [&mut node], "a turn", |_| true);
        }
    }
    settle(&mut world, &mut [&mut node]);
    assert!(own_payloads(&node) == (0..sent).map(|each| payload(each, 30)).collect::<Vec<_>>());
}

pub fn sequencer_throttles_fast_sender<W: World>() {
    let throttle = Throttle { frames_per_s: W::THROTTLED_PER_S, burst_frames: 50 };
    let mut world = W::start(move |options| options.throttle = Some(throttle));
    let (mut greedy, mut modest) =
        (open(&mut world, StreamNodeOptions::default()), open(&mut world, StreamNodeOptions::default()));
    for each in 0..200 {
        greedy.publish(&payload(each, 30));
    }
    run(&mut world, &mut [&mut greedy], "the node is notified", |parties| parties[0].has_noted("throttled"));
    modest.publish(b"I wait for nobody");
    run(&mut world, &mut [&mut greedy, &mut modest], "the modest one goes before", |parties| {
        parties[1].node.in_flight() == 0
    });
    let waiting = greedy.node.in_flight();
    assert!(waiting > 0, "the greedy one still waits");
    run(&mut world, &mut [&mut greedy, &mut modest], "it goes on at its rate", |parties| {
        parties[0].node.in_flight() < waiting
    });
    assert!(greedy.node.in_flight() > 0, "and not all at once");
    world.lift_throttle();
    settle(&mut world, &mut [&mut greedy, &mut modest]);
    assert!(own_payloads(&greedy) == (0..200).map(|each| payload(each, 30)).collect::<Vec<_>>());
}

pub fn timers_fire_once_for_all<W: World>() {
    let mut world = W::start(|_| {});
    let (mut a, mut b) =
        (open(&mut world, StreamNodeOptions::default()), open(&mut world, StreamNodeOptions::default()));
    let now_ns = 1;
    a.node.set_timer(5, now_ns).unwrap();
    a.node.set_timer(6, u64::MAX / 2).unwrap();
    a.node.set_timer(7, u64::MAX / 2).unwrap();
    a.node.set_timer(7, 0).unwrap();
    b.node.set_timer(5, 2).unwrap();
    run(&mut world, &mut [&mut a, &mut b], "both fire", |parties| {
        parties.iter().all(|party| party.has_noted("timer 5 own true") && party.has_noted("timer 5 own false"))
    });
    settle(&mut world, &mut [&mut a, &mut b]);
    world.restart();
    a.publish(b"behind the restart");
    settle(&mut world, &mut [&mut a, &mut b]);
    let fired = |party: &TestNode<W::Link>| party.notes.iter().filter(|note| note.starts_with("timer")).count();
    assert_eq!((fired(&a), fired(&b)), (2, 2), "once each, and not again after a restart");
}

pub fn halt_overtakes_queued_messages<W: World>() {
    let mut world = W::start(|_| {});
    let (mut a, mut b) =
        (open(&mut world, StreamNodeOptions::default()), open(&mut world, StreamNodeOptions::default()));
    a.publish(b"before");
    settle(&mut world, &mut [&mut a, &mut b]);
    world.stream().ask(SequencerRequest::Halt { reason: "prices are wrong".to_owned() }).unwrap();
    run(&mut world, &mut [&mut a, &mut b], "both hear of it", |parties| {
        parties.iter().all(|party| party.has_noted("halted prices are wrong"))
    });
    assert!(matches!(a.node.publish(super::world::TYPE, b"no"), Err(ClientError::Halted)));
    world.restart();
    let mut late = TestNode::new(&mut world, StreamNodeOptions::default());
    run(&mut world, &mut [&mut a, &mut b, &mut late], "it is halted still", |parties| {
        parties[2].has_noted("halted prices are wrong") && parties[2].node.state() == NodeState::Live
    });
    world.stream().ask(SequencerRequest::Resume).unwrap();
    run(&mut world, &mut [&mut a, &mut b, &mut late], "it goes on", |parties| {
        parties.iter().all(|party| party.has_noted("resumed"))
    });
    a.publish(b"after");
    settle(&mut world, &mut [&mut a, &mut b, &mut late]);
    assert_eq!(late.messages.len(), 2);
}

pub fn feed_sessions_roll_over_and_end<W: World>() {
    let mut world = W::start(|options| options.feed_session = FeedSession::new("MONDAY").unwrap());
    let mut a = open(&mut world, StreamNodeOptions::default());
    a.publish(b"on monday");
    settle(&mut world, &mut [&mut a]);
    world.stream().ask(SequencerRequest::BeginFeed { name: FeedSession::new("TUESDAY").unwrap() }).unwrap();
    run(&mut world, &mut [&mut a], "it rolls", |parties| parties[0].has_noted("feed began TUESDAY"));
    a.publish(b"on tuesday");
    settle(&mut world, &mut [&mut a]);
    world.stream().ask(SequencerRequest::EndFeed).unwrap();
    run(&mut world, &mut [&mut a], "it ends", |parties| parties[0].has_noted("feed ended TUESDAY"));
    a.publish(b"waits for wednesday");
    world.restart();
    let mut late = TestNode::new(&mut world, StreamNodeOptions::reading(Start::First));
    run(&mut world, &mut [&mut a, &mut late], "the late one reads all", |parties| {
        parties[1].has_noted("feed ended TUESDAY")
    });
    world.stream().ask(SequencerRequest::BeginFeed { name: FeedSession::new("WEDNESDAY").unwrap() }).unwrap();
    settle(&mut world, &mut [&mut a, &mut late]);
    let expected = ["MONDAY", "TUESDAY", "WEDNESDAY"];
    let began: Vec<_> = late.notes.iter().filter_map(|note| note.strip_prefix("feed began ")).collect();
    assert_eq!(began, expected);
    let payloads: Vec<_> = late.messages.iter().map(|met| met.payload.as_slice()).collect();
    assert_eq!(payloads, [&b"on monday"[..], b"on tuesday", b"waits for wednesday"]);
}

pub fn slow_reader_delays_no_other<W: World>() {
    let mut world = W::start(|options| {
        options.window_bytes = 1 << 20;
        options.message_length_max = 64 << 10;
    });
    let mut fast = open(&mut world, StreamNodeOptions::default());
    let mut slow = TestNode::new(&mut world, StreamNodeOptions::reading(Start::First));
    run(&mut world, &mut [&mut slow], "it is there", |parties| parties[0].node.state() == NodeState::Live);
    let count = if W::LOSES { rounds(6_000, 2_200) } else { 6_000 };
    for number in 0..count {
        fast.publish(&payload(number, 500));
        if number % 500 == 499 {
            settle(&mut world, &mut [&mut fast]);
        }
    }
    fast.publish(b"the last");
    settle(&mut world, &mut [&mut fast, &mut slow]);
    assert_eq!(slow.messages.len() as u64, count + 1);
    same_everywhere(&[&fast, &slow]);
    assert!(slow.has_noted("lapped") || !W::FORGETS, "it was told");
    assert!(!fast.has_noted("lapped") || W::LOSES);
}

pub fn token_takes_over_the_session<W: World>() {
    let mut world = W::start(|_| {});
    let mut first = open(&mut world, StreamNodeOptions::with_token(5));
    first.publish(b"from the first");
    settle(&mut world, &mut [&mut first]);
    let mut second = open(&mut world, StreamNodeOptions::with_token(5));
    assert_eq!(second.node.next_session_seq(), Some(2));
    second.publish(b"from the second");
    settle(&mut world, &mut [&mut second]);
    assert_eq!(second.messages.len(), 2);
}

pub fn closed_session_is_gone<W: World>() {
    let mut world = W::start(|_| {});
    let mut a = open(&mut world, StreamNodeOptions::with_token(9));
    let mut reader = TestNode::new(&mut world, StreamNodeOptions::reading(Start::First));
    let first = a.node.session().unwrap();
    let opened = reader.node.wait_open(Duration::MAX);
    assert!(matches!(opened, Err(ClientError::NotOpen)), "a reader opens no session, and does not wait for one");
    for number in 0..50 {
        a.publish(&payload(number, 100));
    }
    a.node.close_session().unwrap();
    a.node.close_session().unwrap();
    assert!(matches!(a.node.publish(super::world::TYPE, b"too late"), Err(ClientError::NotOpen)));
    run(&mut world, &mut [&mut a, &mut reader], "it is closed", |parties| {
        parties[0].node.is_session_closed() && parties[1].has_noted(&format!("session closed {first}"))
    });
    assert_eq!((a.node.in_flight(), a.node.session(), reader.messages.len()), (0, None, 50));

    // The same token now opens another session.
    world.restart();
    let mut again = open(&mut world, StreamNodeOptions::with_token(9));
    assert_eq!(again.node.next_session_seq(), Some(1));
    assert_ne!(again.node.session(), Some(first));
    again.publish(b"once more");
    settle(&mut world, &mut [&mut again]);
    again.node.close_session().unwrap();
    again.node.flush().unwrap();
    world.restart();
    run(&mut world, &mut [&mut a, &mut again, &mut reader], "it is closed, too", |parties| {
        let count = |what: &str| parties[2].notes.iter().filter(|note| note.starts_with(what)).count();
        parties[1].node.is_session_closed()
            && count("session opened ") >= 2
            && count("session opened ") == count("session closed ")
    });
    assert!(a.node.is_session_closed(), "it has opened no other");
    assert_eq!(reader.messages.len(), 51);
}

macro_rules! conformance {
    ($world:ty) => {
        $crate::every_transport_conforms::suite::conformance!(@each $world:
            all_nodes_read_the_same_order
            long_messages_arrive_whole
            late_joiner_reads_history
            restarted_sequencer_resumes
            restarted_node_keeps_its_numbers
            limits_lose_nothing
            sequencer_throttles_fast_sender
            timers_fire_once_for_all
            halt_overtakes_queued_messages
            feed_sessions_roll_over_and_end
            slow_reader_delays_no_other
            token_takes_over_the_session
            closed_session_is_gone
        );
    };
    (@each $world:ty: $($name:ident)*) => {
        $(#[test] fn $name() { $crate::every_transport_conforms::suite::$name::<$world>(); })*
    };
}
pub(crate) use conformance;
