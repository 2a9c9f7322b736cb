use gapless_agent::Now;
use gapless_cluster::link::log_state::LogState;
use gapless_cluster::link::wire::{
    ClusterName, HEADER_LENGTH, Introduction, LinkRefusal, MemberIdentity, MemberNumber, MessageHeader, MessageKind,
    WireError,
};
use gapless_cluster::link::{
    DisconnectReason, LinkEvent, Links, MemberLinkOptions, MessageContent, PeerOptions, ReceivedMessage,
};
use gapless_testkit::ports::own_loopback;
use gapless_testkit::wait::turn_until;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(60);

static CLOCK: LazyLock<Instant> = LazyLock::new(Instant::now);

pub fn now() -> Now {
    Now { monotonic_ns: CLOCK.elapsed().as_nanos() as u64, epoch_ns: 0 }
}

pub fn identity(member: MemberNumber) -> MemberIdentity {
    MemberIdentity {
        cluster: ClusterName::new("market").unwrap(),
        stream_id: 5,
        incarnation: 2,
        member,
        instance: 1000 + member,
    }
}

/// A loopback address that the test may give up and listen on again.
pub fn listening() -> MemberLinkOptions {
    MemberLinkOptions { listen: Some((own_loopback(), 0).into()), ..MemberLinkOptions::default() }
}

pub fn peer(member: MemberNumber, addresses: &[SocketAddr]) -> PeerOptions {
    PeerOptions { member, addresses: addresses.iter().map(ToString::to_string).collect() }
}

pub struct Member {
    pub links: Links,
    pub events: Vec<LinkEvent>,
}

impl Member {
    pub fn new(options: MemberLinkOptions, identity: MemberIdentity, peers: &[PeerOptions]) -> Self {
        Self { links: Links::open(options, identity, peers).unwrap(), events: Vec::new() }
    }

    pub fn listens(member: MemberNumber, peers: &[PeerOptions]) -> Self {
        Self::new(listening(), identity(member), peers)
    }

    pub fn address(&self) -> SocketAddr {
        self.links.local_address().unwrap()
    }

    pub fn turn(&mut self, take: impl FnMut(ReceivedMessage<'_>)) {
        self.poll();
        self.links.receive(take);
    }

    /// Expects no message.
    pub fn idle(&mut self) {
        self.turn(|message| panic!("an unexpected message from member {}", message.from));
    }

    pub fn poll(&mut self) {
        self.links.poll(now());
        while let Some(event) = self.links.next_event() {
            self.events.push(event);
        }
    }

    pub fn send(&mut self, to: MemberNumber, text: &[u8]) {
        self.links.send(to, MessageContent::Consensus, text, &[]).unwrap();
    }

    pub fn event_texts(&mut self) -> Vec<String> {
        self.events.drain(..).map(|event| event_text(&event)).collect()
    }
}

pub fn event_text(event: &LinkEvent) -> String {
    match event {
        LinkEvent::Connected(member) => format!("connected {member}"),
        LinkEvent::Disconnected(member, DisconnectReason::Closed | DisconnectReason::Broken(_)) => {
            format!("gone {member}")
        }
        LinkEvent::Disconnected(member, why) => format!("gone {member}: {why}"),
        LinkEvent::Refused(member, refusal) => format!("refused {member}: {:?}", refusal.code),
        LinkEvent::NotWanted(member, refusal) => format!("not wanted {member}: {:?}", refusal.code),
    }
}

pub fn connected_pair(options: MemberLinkOptions) -> (Member, Member) {
    let listening = MemberLinkOptions { listen: listening().listen, ..options.clone() };
    let mut second = Member::new(listening, identity(2), &[peer(1, &[])]);
    let mut first = Member::new(options, identity(1), &[peer(2, &[second.address()])]);
    turn_until("both are connected", || {
        first.idle();
        second.idle();
        !first.events.is_empty() && !second.events.is_empty()
    });
    assert_eq!(
        (first.event_texts(), second.event_texts()),
        (vec!["connected 2".to_owned()], vec!["connected 1".to_owned()])
    );
    (first, second)
}

pub struct ScriptedPeer {
    pub stream: TcpStream,
    pub number: u64,
}

impl ScriptedPeer {
    pub fn dial(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, number: 0 }
    }

    /// While the other side is not polled.
    pub fn hello(address: SocketAddr, from: MemberIdentity, to: MemberNumber) -> Self {
        let mut puppet = Self::dial(address);
        let message =
            puppet.message(MessageKind::Hello, &Introduction { from, to, log: LogState::default() }.to_bytes(), b"");
        puppet.stream.write_all(&message).unwrap();
        puppet
    }

    pub fn message(&mut self, kind: MessageKind, consensus: &[u8], frames: &[u8]) -> Vec<u8> {
        self.number += 1;
        let mut bytes = MessageHeader::new(kind, self.number, consensus, frames.len()).to_bytes().to_vec();
        for part in [consensus, frames] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        bytes
    }

    pub fn read(&mut self) -> Result<(MessageKind, Vec<u8>), WireError> {
        let mut header = [0; HEADER_LENGTH];
        self.stream.read_exact(&mut header).unwrap();
        let parsed = MessageHeader::parse(&header)?;
        let mut message = header.to_vec();
        message.resize(parsed.message_length(), 0);
        self.stream.read_exact(&mut message[HEADER_LENGTH..]).unwrap();
        let (consensus, _) = parsed.parts(&message)?;
        Ok((parsed.kind, consensus.to_vec()))
    }

    pub fn read_refusal(&mut self) -> LinkRefusal {
        let (kind, consensus) = self.read().unwrap();
        assert_eq!(kind, MessageKind::Refusal);
        LinkRefusal::parse(&consensus).unwrap()
    }

    pub fn is_closed(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let outcome = self.stream.read(&mut [0; 4096]);
        self.stream.set_nonblocking(false).unwrap();
        match outcome {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}
