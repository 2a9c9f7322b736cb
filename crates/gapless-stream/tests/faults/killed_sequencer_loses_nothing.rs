//! Kills the sequencer's process, and nodes, repeatedly: without debug assertions at random moments, with them at each
//! named crash point. Prints its seed and takes one from `GAPLESS_SEED`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_agent::fault::{CRASH_POINTS, STREAM_CRASH_POINTS};
use gapless_client::node::{
    AnyLink, DatagramLink, DatagramOptions, NodeEvent, SharedMemoryLink, SharedMemoryOptions, StreamNode,
    StreamNodeOptions,
};
use gapless_client::polled::MessageType;
use gapless_journal::JournalReader;
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::endpoints::PacketNetwork;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::free_address;
use gapless_testkit::process::{Process, this_program};
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::scenarios::Module;
use gapless_transport::Tier;
use gapless_transport::network::{Interface, Segmentation};
use gapless_wire::{Encoding, Kind};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const PATIENCE: Duration = Duration::from_secs(120);

fn kills_from_outside_count() -> u64 {
    rounds(8, 3)
}

fn kills_per_point() -> u64 {
    rounds(4, 1)
}

fn node_kills() -> u64 {
    rounds(6, 3)
}

const SIDE_BY_SIDE: usize = 2;

const SEQUENCER: &str = "killed_sequencer_loses_nothing::sequencer";
const NODE: &str = "killed_sequencer_loses_nothing::node";

pub fn play_a_part_if_asked() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, SEQUENCER, directory, tier, command, request] => {
            sequence(Path::new(directory), tier, command.parse().unwrap(), request.parse().unwrap())
        }
        [_, NODE, directory, token] => publish_for_ever(Path::new(directory), token.parse().unwrap()),
        _ => {}
    }
}

pub fn module() -> Module {
    let module = Module::new(module_path!())
        .with_choices("nodes_are_killed", nodes_are_killed)
        .with_choices("killed_from_outside", kills_from_outside);
    if !cfg!(debug_assertions) {
        return module;
    }
    let of_services = ["before_reply", "in_snapshot_write", "before_snapshot_rename"];
    let points = || CRASH_POINTS.into_iter().chain(STREAM_CRASH_POINTS).filter(|point| !of_services.contains(point));
    let at_journal = points().filter(|point| !point.ends_with("_sync")).map(|point| ("journal", point));
    let cases = at_journal.chain(points().map(|point| ("sync", point)));
    cases.fold(module.side_by_side(SIDE_BY_SIDE), |module, (tier, point)| {
        module.with_choices(format!("{point}_at_tier_{tier}"), move |random| kills_at(tier, point, random))
    })
}

fn options(directory: &Path, tier: Tier, network: Option<(SocketAddr, SocketAddr)>) -> EventStreamOptions {
    let mut options = EventStreamOptions::in_directory(directory);
    options.tier = tier;
    options.persistence = Persistence { segment_length_bytes: 1 << 20, ..Persistence::default() };
    options.window_bytes = 4 << 20;
    options.message_length_max = 1 << 20;
    options.frame_length_max = 1_376;
    options.state_interval_frames = 2_000;
    options.state_interval_min = Duration::ZERO;
    options.packets = network.map(|(command, request)| PacketNetwork::udp(command, request));
    options
}

fn sequence(directory: &Path, tier: &str, command: SocketAddr, request: SocketAddr) -> ! {
    let tier = if tier == "sync" { Tier::Sync } else { Tier::Journal };
    let stream = EventStream::start(&options(directory, tier, Some((command, request)))).unwrap();
    println!("running");
    loop {
        std::thread::sleep(Duration::from_millis(50));
        if let Some(failure) = stream.failure() {
            eprintln!("{failure}");
            std::process::exit(3);
        }
    }
}

fn publish_for_ever(directory: &Path, token: u128) -> ! {
    let link = SharedMemoryLink::new(directory, SharedMemoryOptions::default());
    let mut node = StreamNode::new(link, StreamNodeOptions::with_token(token));
    node.wait_open(PATIENCE).unwrap();
    println!("running");
    loop {
        let number = node.next_session_seq().unwrap();
        // One frame each, so that the message's number is the frame's.
        let _ = node.publish(TYPE, &payload(token as u64, number, 40));
        node.poll(64, |_| {}).unwrap();
    }
}

fn payload(owner: u64, number: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![(owner ^ number) as u8; length.max(16)];
    bytes[..8].copy_from_slice(&owner.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes
}

struct Sequencer(Process);

impl Sequencer {
    fn start(deployment: &Deployment, environment: &[(&str, String)]) -> Self {
        let mut command = this_program();
        command.args([SEQUENCER, deployment.directory.path().to_str().unwrap(), deployment.tier]);
        command.args([deployment.command.to_string(), deployment.request.to_string()]);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let mut process = Process::start(&mut command);
        process.next_line();
        Self(process)
    }

    fn kill(mut self) {
        self.0.kill();
    }

    fn has_died(&mut self) -> bool {
        let Some(status) = self.0.ended() else { return false };
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!(signal, Some(9), "it ended by itself: {status}");
        true
    }
}

struct Deployment {
    directory: tempfile::TempDir,
    tier: &'static str,
    command: SocketAddr,
    request: SocketAddr,
}

impl Deployment {
    fn new(tier: &'static str) -> Self {
        Self { directory: tempfile::tempdir().unwrap(), tier, command: free_address(), request: free_address() }
    }

    fn visitor(&self) -> StreamNode<AnyLink> {
        StreamNode::new(self.udp(), StreamNodeOptions::default())
    }

    fn udp(&self) -> AnyLink {
        let options = DatagramOptions::new(self.command, self.request);
        DatagramLink::open(&[], &Interface::Default, Segmentation::Auto, options).unwrap().into()
    }

    fn nodes(&self) -> Vec<Node> {
        let shared =
            || -> AnyLink { SharedMemoryLink::new(self.directory.path(), SharedMemoryOptions::default()).into() };
        vec![Node::new(1, shared()), Node::new(2, shared()), Node::new(3, self.udp())]
    }
}

struct Node {
    owner: u64,
    node: StreamNode<AnyLink>,
    sent: u64,
    own: u64,
    met: Vec<(u64, u64, u64)>,
}

impl Node {
    fn new(owner: u64, link: AnyLink) -> Self {
        let node = StreamNode::new(link, StreamNodeOptions::with_token(u128::from(owner)));
        Self { owner, node, sent: 0, own: 0, met: Vec::new() }
    }

    fn poll(&mut self, publish: bool) -> usize {
        if publish && self.node.can_publish() && self.node.in_flight() < 200 {
            let length = [16, 100, 1_000, 4_000][self.sent as usize % 4];
            if self.node.publish(TYPE, &payload(self.owner, self.sent + 1, length)).is_ok() {
                self.sent += 1;
            }
        }
        let Self { owner, node, own, met, .. } = self;
        node.poll(256, |event| {
            let NodeEvent::Message(message) = event else { return };
            let (from, number) = message.payload.split_at(8);
            let from = u64::from_le_bytes(from.try_into().unwrap());
            let number = u64::from_le_bytes(number[..8].try_into().unwrap());
            assert_eq!(message.payload, payload(from, number, message.payload.len()), "not a byte is changed");
            assert_eq!(message.own, from == *owner);
            if message.own {
                assert_eq!(number, *own + 1, "its own come back once, in order");
                *own = number;
            }
            met.push((message.sequence, from, number));
        })
        .unwrap()
    }
}

fn poll(nodes: &mut [Node], publish: bool) {
    let came: usize = nodes.iter_mut().map(|node| node.poll(publish)).sum();
    if came == 0 {
        std::thread::sleep(Duration::from_micros(50));
    }
}

fn settle(nodes: &mut [Node], deployment: &Deployment) {
    let deadline = Instant::now() + PATIENCE;
    let all = |nodes: &[Node]| nodes.iter().map(|node| node.sent).sum::<u64>();
    while nodes.iter().any(|node| node.own < node.sent || (node.met.len() as u64) < all(nodes)) {
        poll(nodes, false);
        let state: Vec<_> = nodes.iter().map(|n| (n.sent, n.own, n.met.len(), n.node.state())).collect();
        assert!(Instant::now() < deadline, "{state:?}");
    }
    let (first, others) = nodes.split_first().unwrap();
    for other in others {
        assert!(first.met == other.met, "two nodes have met different streams");
    }
    assert_eq!(first.met.len() as u64, all(nodes));
    let mut replay = JournalReader::open(deployment.directory.path().join("journal")).unwrap().replay(1).unwrap();
    let (mut sequence, mut last_ns, mut numbers) = (0, 0, HashMap::<u64, u64>::new());
    while let Some(frame) = replay.next_frame().unwrap() {
        sequence += 1;
        assert_eq!(frame.sequence(), sequence);
        assert!(frame.timestamp_ns() > last_ns, "time rises");
        last_ns = frame.timestamp_ns();
        if frame.kind() == Kind::Event {
            let number = numbers.entry(frame.session()).or_default();
            *number += 1;
            assert_eq!(frame.session_seq(), *number, "each number of a session once");
        }
    }
}

fn kills_from_outside(random: &mut Random) {
    for tier in ["journal", "sync"] {
        let deployment = Deployment::new(tier);
        let mut nodes = deployment.nodes();
        for _ in 0..kills_from_outside_count() {
            let sequencer = Sequencer::start(&deployment, &[]);
            let until = Instant::now() + Duration::from_millis(20 + random.below(150));
            while Instant::now() < until {
                poll(&mut nodes, true);
            }
            sequencer.kill();
        }
        let sequencer = Sequencer::start(&deployment, &[]);
        settle(&mut nodes, &deployment);
        let sent: Vec<_> = nodes.iter().map(|node| node.sent).collect();
        println!("{} kills at tier {tier} while {sent:?} messages were published", kills_from_outside_count());
        sequencer.kill();
    }
}

fn kills_at(tier: &'static str, point: &str, random: &mut Random) {
    let is_rare = point.contains("segment") || point.contains("state") || point == "before_answer";
    let passes_max = match tier {
        _ if is_rare => 2,
        // Each pass may take as long as a sync.
        "sync" => 40,
        _ => 400,
    };
    let passes = (0..kills_per_point()).map(|_| random.below(passes_max) + 1).collect::<Vec<_>>();
    let deployment = Deployment::new(tier);
    let mut nodes = deployment.nodes();
    let mut hits = 0;
    let mut visitor = None;
    for pass in &passes {
        let mut sequencer = Sequencer::start(&deployment, &[("GAPLESS_CRASH_POINT", format!("{point}:{pass}"))]);
        let until = Instant::now() + if hits == 0 { PATIENCE } else { Duration::from_secs(20) };
        while !sequencer.has_died() && Instant::now() < until {
            poll(&mut nodes, true);
            if point == "before_answer" {
                let visitor = visitor.get_or_insert_with(|| deployment.visitor());
                if visitor.poll(64, |_| {}).is_err() || visitor.session().is_some() {
                    *visitor = deployment.visitor();
                }
            }
        }
        hits += u32::from(sequencer.has_died());
    }
    let sequencer = Sequencer::start(&deployment, &[]);
    settle(&mut nodes, &deployment);
    println!("{point}: {hits} of {} kills at tier {tier}", passes.len());
    assert!(hits > 0, "{point} was never hit");
    sequencer.kill();
}

fn nodes_are_killed(random: &mut Random) {
    let deployment = Deployment::new("journal");
    let sequencer = Sequencer::start(&deployment, &[]);
    let mut nodes = deployment.nodes();
    for round in 0..node_kills() {
        // In turn, so that each resumes its session after a death.
        let token = 100 + round % 2;
        let place = deployment.directory.path().to_str().unwrap();
        let mut node = Process::start(this_program().args([NODE, place, &token.to_string()]));
        node.next_line();
        let begun = Instant::now();
        let time = Duration::from_millis(10 + random.below(100));
        let (mut looked_at, mut has_published) = (nodes[0].met.len(), false);
        while begun.elapsed() < time || !has_published {
            poll(&mut nodes, true);
            has_published |= nodes[0].met[looked_at..].iter().any(|(_, owner, _)| *owner == token);
            looked_at = nodes[0].met.len();
            assert!(begun.elapsed() < PATIENCE, "no message of node {token} came");
        }
        node.kill();
    }
    poll(&mut nodes, false);
    let deadline = Instant::now() + PATIENCE;
    while nodes.iter().any(|node| node.own < node.sent) {
        poll(&mut nodes, false);
        assert!(Instant::now() < deadline);
    }
    let mut last = HashMap::new();
    for (_, owner, number) in nodes[0].met.iter().filter(|(_, owner, _)| *owner >= 100) {
        let expected = last.entry(*owner).or_insert(0);
        *expected += 1;
        assert_eq!(number, expected, "of node {owner}");
    }
    println!("{} nodes killed while they published; what they left: {last:?}", node_kills());
    assert_eq!(last.len(), 2);
    sequencer.kill();
}
