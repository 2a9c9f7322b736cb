//! [`DatagramLink`]: upstream by packets to the command port, downstream by MoldUDP64, from the sequencer alone or from
//! multicast groups.

use super::feed_receiver::{FeedCounts, FeedReceiver, FeedReceiverOptions};
use super::link::{ConnectionInfo, LinkRead, LinkReads, NodeLink, Start};
use super::rewind_driver::{RewindDriver, RewindPort};
use super::upstream::{connected, hello, refusal_error, report, welcome_feed};
use crate::ClientError;
use crate::node_progress::ProgressReport;
use gapless_transport::TransportError;
use gapless_transport::network::{Datagrams, Interface, Peer, Segmentation, SendRefusal, UdpOptions, UdpSocket};
use gapless_transport::seen_frame::SeenFrame;
use gapless_transport::token::random_token;
use gapless_wire::mtu::Mtu;
use gapless_wire::soup::Field;
use gapless_wire::upstream::{
    HEADER_LENGTH, NodeReport, NodeWelcome, RefusalReason, UpstreamBody, UpstreamPacket, finish_frames,
};
use gapless_wire::{Frame, aligned_length, upstream};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatagramOptions {
    pub command: Peer,
    /// Request port of the replayer.
    pub request: Peer,
    /// Rewind port of the sequencer: large gaps are then filled over TCP.
    pub rewind: Option<SocketAddr>,
    pub username: Field<6>,
    pub password: Field<10>,
    /// Whether a packet may hold several frames.
    pub batch: bool,
    /// Longest sent packet, bytes; one that holds a frame of the stream may be longer.
    pub packet_length_max: usize,
    /// Stated by the node; without one it takes the stream's.
    pub mtu: Option<Mtu>,
    /// Silence after which the sequencer counts as gone, ns.
    pub silence_ns_max: u64,
    pub receiver: FeedReceiverOptions,
}

impl DatagramOptions {
    /// Defaults, for a sequencer at `command` and a replayer at `request`.
    #[must_use]
    pub fn new(command: Peer, request: Peer) -> Self {
        Self {
            command,
            request,
            rewind: None,
            username: Field::BLANK,
            password: Field::BLANK,
            batch: true,
            packet_length_max: gapless_wire::mold::PACKET_LENGTH_UDP,
            mtu: None,
            silence_ns_max: 3_000_000_000,
            receiver: FeedReceiverOptions::default(),
        }
    }
}

pub struct DatagramLink<S: Datagrams> {
    options: DatagramOptions,
    main: S,
    requests: S,
    /// Empty if the feed is sent to this node alone.
    groups: Vec<S>,
    state: DatagramLinkState,
    renewed_ns: u64,
    /// Back to back; the last packet may grow.
    outgoing: Vec<u8>,
    lengths: Vec<usize>,
    answers: VecDeque<Vec<u8>>,
    looks: u32,
    progress: Option<ProgressReport>,
    rewind_driver: RewindDriver,
}

enum DatagramLinkState {
    Down,
    Connecting { nonce: u64, start: Start, sent_ns: u64, came: Option<HelloAnswer> },
    Up(Box<DatagramConnection>),
}

enum HelloAnswer {
    Accepted(u64, NodeWelcome),
    Refused(RefusalReason, String),
}

struct DatagramConnection {
    key: u64,
    nonce: u64,
    receiver: FeedReceiver,
    last_received_ns: u64,
    reported_ns: u64,
    heartbeat_interval_ns: u64,
    /// The sequencer no longer knows this node, or has left.
    is_forgotten: bool,
    asked_feed_ns: u64,
    ask_interval_ns: u64,
    was_forgery_notified: bool,
    was_late_notified: bool,
}

const HELLO_INTERVAL_NS: u64 = 20_000_000;
const ASK_INTERVAL_NS_MAX: u64 = 1_000_000_000;
const RENEW_INTERVAL_NS: u64 = 1_000_000_000;
/// Multicast groups carry the feed, so the own socket is read in one of this many polls.
const LOOKS_PER_MAIN: u32 = 8;
/// Pending packets are sent at this length.
const OUTGOING_LENGTH_MAX: usize = 60_000;

impl DatagramLink<UdpSocket> {
    /// Opens sockets of the operating system; the feed comes from `groups` on `interface`. There need not be a route to
    /// the sequencer yet.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn open(
        groups: &[Peer],
        interface: &Interface,
        segmentation: Segmentation,
        options: DatagramOptions,
    ) -> Result<Self, ClientError> {
        let open = |socket: UdpOptions| {
            let opened = UdpSocket::open(&UdpOptions { segmentation, ..socket });
            let action = || format!("opening a way to {}", options.command);
            opened.map_err(|source| TransportError::System { action: action(), source })
        };
        let join = |group: &Peer| open(UdpOptions::of_group(group.ip(), group.port(), interface.clone()));
        let (main, requests) = (open(UdpOptions::to(options.command))?, open(UdpOptions::to(options.request))?);
        let groups = groups.iter().map(join).collect::<Result<_, TransportError>>()?;
        Ok(Self::new(main, requests, groups, options))
    }
}

impl<S: Datagrams> DatagramLink<S> {
    /// `main` may reach only the command port, `requests` only the request port. Without `groups` the feed comes to
    /// `main`.
    #[must_use]
    pub fn new(main: S, requests: S, groups: Vec<S>, options: DatagramOptions) -> Self {
        let (username, password) = (options.username, options.password);
        let port = options.rewind.map(|server| RewindPort { server, username, password });
        Self {
            options,
            main,
            requests,
            groups,
            state: DatagramLinkState::Down,
            renewed_ns: 0,
            outgoing: Vec::new(),
            lengths: Vec::new(),
            answers: VecDeque::new(),
            looks: 0,
            progress: None,
            rewind_driver: RewindDriver::new(port),
        }
    }

    #[must_use]
    pub fn counts(&self) -> FeedCounts {
        match &self.state {
            DatagramLinkState::Up(up) => *up.receiver.counts(),
            _ => FeedCounts::default(),
        }
    }

    /// The host may have got another address, or a route.
    fn renew_routes(&mut self, now_ns: u64) {
        self.renewed_ns = now_ns;
        for socket in [&mut self.main, &mut self.requests] {
            if let Err(error) = socket.renew() {
                tracing::debug!(%error, "the way to the stream could not be looked for anew");
            }
        }
    }

    fn send_hello(&mut self, nonce: u64, position: u64, seen: SeenFrame) {
        let credentials = (self.options.username, self.options.password);
        let hello = hello(nonce, position, credentials, seen, self.options.mtu);
        self.send_control(0, UpstreamBody::Hello(hello));
    }

    fn send_control(&mut self, key: u64, body: UpstreamBody<'_>) {
        let mut packet = [0; 256];
        let length = UpstreamPacket { key, body }.write_to(&mut packet).expect("these are short");
        // A lost packet is resent.
        let _ = self.main.send(self.options.command, &packet[..length], length);
    }

    fn check_route(&self, frame_length_max: usize) -> Result<(), ClientError> {
        let of_one_frame = HEADER_LENGTH + aligned_length(frame_length_max);
        let longest = self.options.packet_length_max.max(of_one_frame);
        let Some(route) = self.main.route() else { return Ok(()) };
        route.check(longest, self.options.command.ip()).map_err(|narrow| {
            TransportError::Handshake { peer: self.peer(), status: None, reason: narrow.to_string() }.into()
        })
    }

    fn receive(&mut self, now_ns: u64) -> Result<(), ClientError> {
        let Self { main, requests, groups, state, answers, looks, options, .. } = self;
        *looks = looks.wrapping_add(1);
        let carrier = |source| TransportError::System { action: "receiving packets".to_owned(), source };
        let is_quick =
            groups.is_empty() || !matches!(state, DatagramLinkState::Up(_)) || looks.is_multiple_of(LOOKS_PER_MAIN);
        if let DatagramLinkState::Up(up) = state {
            for group in groups.iter_mut() {
                let count = group.receive(&mut |_, bytes| up.receiver.take_packet(bytes, now_ns)).map_err(carrier)?;
                if count > 0 {
                    up.last_received_ns = now_ns;
                }
            }
            if up.receiver.missing() > 0 {
                requests.receive(&mut |_, bytes| up.receiver.take_packet(bytes, now_ns)).map_err(carrier)?;
            }
        }
        if !is_quick {
            return Ok(());
        }
        main.receive(&mut |from, bytes| match upstream::peek(bytes) {
            Ok(Some(_)) if from == options.command => take_answer(state, answers, bytes, now_ns),
            Ok(_) => {}
            Err(_) => {
                if let DatagramLinkState::Up(up) = state {
                    up.receiver.take_packet(bytes, now_ns);
                    up.last_received_ns = now_ns;
                }
            }
        })
        .map_err(carrier)?;
        Ok(())
    }

    fn sockets(&self) -> impl Iterator<Item = &S> {
        let is_asking = matches!(&self.state, DatagramLinkState::Up(up) if up.receiver.missing() > 0);
        std::iter::once(&self.main).chain(&self.groups).chain(is_asking.then_some(&self.requests))
    }

    fn connection_lost(&mut self) -> ClientError {
        self.state = DatagramLinkState::Down;
        self.outgoing.clear();
        self.lengths.clear();
        self.answers.clear();
        self.rewind_driver.stop();
        ClientError::Disconnected { peer: self.peer(), reason: None }
    }

    /// Returns whether all were sent.
    fn send_outgoing(&mut self) -> Result<bool, ClientError> {
        let DatagramLinkState::Up(up) = &self.state else { return Err(self.connection_lost()) };
        let mut start = 0;
        for length in &self.lengths {
            finish_frames(&mut self.outgoing[start..start + length], up.key);
            start += length;
        }
        let taken = match self.lengths.as_slice() {
            [] => return Ok(true),
            [length] => {
                self.main.send(self.options.command, &self.outgoing, *length).map(|bytes| usize::from(bytes > 0))
            }
            lengths => self.main.send_uneven(self.options.command, &self.outgoing, lengths),
        };
        let taken = match taken {
            Ok(taken) => taken,
            Err(source) if SendRefusal::is_too_narrow(&source) => {
                return Err(TransportError::System { action: "publishing".to_owned(), source }.into());
            }
            // A refused packet counts as lost: it is resent when it does not come back.
            Err(_) => self.lengths.len(),
        };
        if taken == self.lengths.len() {
            self.outgoing.clear();
            self.lengths.clear();
            return Ok(true);
        }
        let bytes: usize = self.lengths[..taken].iter().sum();
        self.outgoing.drain(..bytes);
        self.lengths.drain(..taken);
        Ok(false)
    }
}

impl DatagramConnection {
    fn take_answered_feed(&mut self, welcome: &NodeWelcome) {
        let Some(refuted) = self.receiver.set_feed(welcome_feed(welcome), welcome.released_sequence) else {
            self.ask_interval_ns = HELLO_INTERVAL_NS;
            return;
        };
        self.ask_interval_ns = (self.ask_interval_ns * 2).min(ASK_INTERVAL_NS_MAX);
        if !std::mem::replace(&mut self.was_forgery_notified, true) {
            let (announced, released) = (refuted, welcome.released_sequence);
            tracing::warn!(
                announced,
                released,
                feed_session = %welcome.feed_session,
                "a heartbeat announces frames that the sequencer has never released: somebody else sends it, or another \
                 stream has the same feed session; it is not believed, and others like it are only counted"
            );
        }
    }
}

fn take_answer(state: &mut DatagramLinkState, answers: &mut VecDeque<Vec<u8>>, bytes: &[u8], now_ns: u64) {
    let Ok(packet) = UpstreamPacket::parse(bytes) else { return };
    match (state, packet.body) {
        (DatagramLinkState::Connecting { nonce, came, .. }, UpstreamBody::Welcome(welcome))
            if welcome.nonce == *nonce =>
        {
            *came = Some(HelloAnswer::Accepted(packet.key, welcome));
        }
        (
            DatagramLinkState::Connecting { nonce, came, .. },
            UpstreamBody::Refusal { nonce: answered, reason, text },
        ) if answered == *nonce => {
            *came = Some(HelloAnswer::Refused(reason, text.to_owned()));
        }
        (DatagramLinkState::Up(up), body) => {
            match body {
                UpstreamBody::Answers(frames) if packet.key == up.key => answers.push_back(frames.to_vec()),
                UpstreamBody::Welcome(welcome) if welcome.nonce == up.nonce => {
                    up.take_answered_feed(&welcome);
                }
                UpstreamBody::Unknown | UpstreamBody::Farewell if packet.key == up.key => up.is_forgotten = true,
                _ => return,
            }
            up.last_received_ns = now_ns;
        }
        _ => {}
    }
}

impl<S: Datagrams> NodeLink for DatagramLink<S> {
    fn connect(&mut self, start: Start, seen: SeenFrame, now_ns: u64) -> Result<Option<ConnectionInfo>, ClientError> {
        if !matches!(self.state, DatagramLinkState::Connecting { start: asked, .. } if asked == start) {
            let nonce = random_token() as u64 | 1;
            self.renew_routes(now_ns);
            self.state = DatagramLinkState::Connecting { nonce, start, sent_ns: now_ns, came: None };
            self.send_hello(nonce, start.wire_position(), seen);
            return Ok(None);
        }
        self.receive(now_ns)?;
        let DatagramLinkState::Connecting { nonce, sent_ns, came, .. } = &mut self.state else { return Ok(None) };
        let nonce = *nonce;
        match came.take() {
            None => {
                if now_ns.saturating_sub(*sent_ns) >= HELLO_INTERVAL_NS {
                    *sent_ns = now_ns;
                    if now_ns.saturating_sub(self.renewed_ns) >= RENEW_INTERVAL_NS {
                        self.renew_routes(now_ns);
                    }
                    self.send_hello(nonce, start.wire_position(), seen);
                }
                Ok(None)
            }
            Some(HelloAnswer::Refused(reason, text)) => {
                refusal_error((reason, &text), start, seen, self.peer()).map(|()| None)
            }
            Some(HelloAnswer::Accepted(key, welcome)) => {
                let connected = connected(&welcome);
                self.check_route(connected.frame_length_max)?;
                let mut receiver = FeedReceiver::new(self.options.receiver, connected.feed, welcome.position);
                if let Some(feed) = connected.feed {
                    receiver.set_feed(feed, welcome.released_sequence);
                }
                self.send_control(
                    key,
                    UpstreamBody::Report(NodeReport { position: welcome.position, ..NodeReport::default() }),
                );
                self.state = DatagramLinkState::Up(Box::new(DatagramConnection {
                    key,
                    nonce,
                    receiver,
                    last_received_ns: now_ns,
                    reported_ns: now_ns,
                    heartbeat_interval_ns: welcome.heartbeat_interval_ns,
                    is_forgotten: false,
                    asked_feed_ns: now_ns,
                    ask_interval_ns: HELLO_INTERVAL_NS,
                    was_forgery_notified: false,
                    was_late_notified: true,
                }));
                Ok(Some(connected))
            }
        }
    }

    #[inline]
    fn send(&mut self, frame: &[u8]) -> Result<bool, ClientError> {
        if self.outgoing.len() >= OUTGOING_LENGTH_MAX && !self.send_outgoing()? {
            return Ok(false);
        }
        let fits = |last: &usize| self.options.batch && last + frame.len() <= self.options.packet_length_max;
        match self.lengths.last_mut() {
            Some(last) if fits(last) => *last += frame.len(),
            _ => {
                self.outgoing.resize(self.outgoing.len() + HEADER_LENGTH, 0);
                self.lengths.push(HEADER_LENGTH + frame.len());
            }
        }
        self.outgoing.extend_from_slice(frame);
        Ok(true)
    }

    #[inline]
    fn flush(&mut self) -> Result<(), ClientError> {
        self.send_outgoing().map(|_| ())
    }

    #[inline]
    fn answers(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError> {
        let mut count = 0;
        while let Some(frames) = self.answers.pop_front() {
            let mut position = 0;
            while let Ok(frame) = Frame::parse(&frames[position..]) {
                if frame.verify().is_err() {
                    break;
                }
                take(&frame);
                count += 1;
                position = (position + aligned_length(frame.length())).min(frames.len());
            }
        }
        Ok(count)
    }

    fn take_in(&mut self, now_ns: u64) -> Result<(), ClientError> {
        self.receive(now_ns)
    }

    #[inline]
    fn read(&mut self, now_ns: u64) -> Result<LinkRead<'_>, ClientError> {
        let has_frame = matches!(&self.state, DatagramLinkState::Up(up) if up.receiver.has_frame());
        if !has_frame {
            self.receive(now_ns)?;
            if let DatagramLinkState::Up(up) = &mut self.state
                && !up.receiver.has_frame()
            {
                self.rewind_driver.turn(&mut up.receiver, now_ns);
            }
        }
        match &mut self.state {
            DatagramLinkState::Up(up) => {
                if !up.receiver.has_frame() && up.was_late_notified != up.receiver.wants_rewind() {
                    up.was_late_notified = !up.was_late_notified;
                    if up.was_late_notified {
                        return Ok(LinkRead::Lapped);
                    }
                }
                Ok(up.receiver.next_frame().map_or(LinkRead::Empty, LinkRead::Frame))
            }
            _ => Ok(LinkRead::Empty),
        }
    }

    #[inline]
    fn read_each(
        &mut self,
        limit: usize,
        now_ns: u64,
        take: &mut impl FnMut(&Frame<'_>) -> Result<(), ClientError>,
    ) -> Result<LinkReads, ClientError> {
        let mut reads = LinkReads::default();
        if limit == 0 {
            return Ok(reads);
        }
        match self.read(now_ns)? {
            LinkRead::Frame(frame) => take(&frame)?,
            LinkRead::Empty => return Ok(reads),
            LinkRead::Lapped => {
                reads.is_lapped = true;
                return Ok(reads);
            }
        }
        reads.frames = 1;
        let DatagramLinkState::Up(up) = &mut self.state else { return Ok(reads) };
        while reads.frames < limit
            && let Some(frame) = up.receiver.next_frame()
        {
            take(&frame)?;
            reads.frames += 1;
        }
        Ok(reads)
    }

    fn released_sequence(&self) -> u64 {
        match &self.state {
            DatagramLinkState::Up(up) => up.receiver.released_sequence(),
            _ => 0,
        }
    }

    fn loses(&self) -> bool {
        true
    }

    #[inline]
    fn note(&mut self, progress: ProgressReport) {
        self.progress = Some(progress);
    }

    #[inline]
    fn tick(&mut self, now_ns: u64) -> Result<(), ClientError> {
        if !self.lengths.is_empty() {
            self.send_outgoing()?;
        }
        let DatagramLinkState::Up(up) = &mut self.state else { return Err(self.connection_lost()) };
        if up.is_forgotten || now_ns.saturating_sub(up.last_received_ns) > self.options.silence_ns_max {
            return Err(self.connection_lost());
        }
        while !self.rewind_driver.is_flowing(now_ns)
            && let Some(request) = up.receiver.due_request(now_ns)
        {
            // A lost request is resent.
            let request = request.to_bytes();
            let _ = self.requests.send(self.options.request, &request, request.len());
        }
        let has_question = up.receiver.is_lost() || up.receiver.has_unconfirmed_end();
        if has_question && now_ns.saturating_sub(up.asked_feed_ns) >= up.ask_interval_ns {
            up.asked_feed_ns = now_ns;
            up.receiver.note_probe();
            let (nonce, position) = (up.nonce, up.receiver.next_sequence());
            // The node's history was checked when it was admitted.
            self.send_hello(nonce, position, SeenFrame::default());
            return Ok(());
        }
        if now_ns.saturating_sub(up.reported_ns) >= up.heartbeat_interval_ns {
            up.reported_ns = now_ns;
            let counts = up.receiver.counts();
            let report = NodeReport {
                frames_requested: counts.frames_requested,
                packets_refused: counts.packets_damaged + counts.packets_foreign + counts.claims_refuted,
                ..report(up.receiver.next_sequence(), self.progress, up.receiver.missing() == 0)
            };
            let key = up.key;
            self.send_control(key, UpstreamBody::Report(report));
        }
        Ok(())
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), ClientError> {
        let fds: Vec<_> = self.sockets().filter_map(Datagrams::fd).collect();
        if fds.is_empty() {
            // A network in memory advances only when its owner advances it.
            return Ok(());
        }
        let mut fds: Vec<_> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        fds.extend(self.rewind_driver.poll_fd());
        let timeout = timeout.min(Duration::from_millis(2));
        let timeout = rustix::time::Timespec { tv_sec: 0, tv_nsec: i64::from(timeout.subsec_nanos()) };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(TransportError::system("waiting for packets")(errno).into()),
        }
    }

    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend(self.sockets().filter_map(Datagrams::fd));
    }

    fn peer(&self) -> String {
        self.options.command.to_string()
    }
}
