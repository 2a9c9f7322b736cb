//! `PeerLink`: the link to one other member, through all of its connections.

use super::addresses::{PeerAddresses, Resolver};
use super::connection::{ConnectionError, PeerConnection};
use super::content::{MessageContent, ReceivedMessage};
use super::dial::dial;
use super::error::{DisconnectReason, LinkError, LinkEvent, SendError};
use super::handshake::judge;
use super::log_state::{Acknowledgement, LogState};
use super::options::{MemberLinkOptions, PeerOptions};
use super::pending_connections::refuse;
use super::wire;
use super::wire::{Introduction, LinkRefusal, LinkRefusalCode, MemberIdentity, MemberNumber, MessageKind, WireError};
use gapless_transport::sockets::Address;
use gapless_transport::warnings::Warnings;
use rustix::fd::{AsFd, BorrowedFd};
use std::io::ErrorKind;

const MESSAGES_PER_TURN: usize = 256;
/// Addresses tried at one check because the previous one failed at once.
const DIALS_PER_LOOK: usize = 4;

/// Time until an absent peer that should dial is asked for its reason.
const QUESTION_INTERVAL_NS: u64 = 3_000_000_000;

/// Counters of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Given to the connection or its queue.
    pub messages_sent: u64,
    /// Dropped because the queue was full.
    pub messages_dropped: u64,
    /// Returned to the caller.
    pub messages_received: u64,
    /// Given to the connection or its queue.
    pub bytes_sent: u64,
    /// Returned to the caller.
    pub bytes_received: u64,
    pub connections: u64,
    /// Connections closed because of bytes that were no message.
    pub garbage: u64,
    pub queued_bytes: u64,
}

#[derive(Debug)]
enum DialState {
    Listens,
    Waits { until_ns: u64 },
    UnderWay { connection: Box<PeerConnection>, address: Address, deadline_ns: u64 },
}

enum DialOutcome {
    Nothing,
    Welcome(Introduction),
    Refusal(LinkRefusal),
    Failed(ConnectionError),
}

#[derive(Debug)]
pub(super) struct PeerLink {
    pub(super) member: MemberNumber,
    pub(super) addresses: PeerAddresses,
    connection: Option<PeerConnection>,
    dial: DialState,
    dials: bool,
    /// Connected by itself, without a record of its membership or addresses yet.
    is_newcomer: bool,
    back_off_ns: u64,
    connected_ns: u64,
    instance: u64,
    /// Required instance; 0 while unknown.
    known_instance: u64,
    acknowledged: Acknowledgement,
    reported_log: LogState,
    next_question_ns: u64,
    last_received_ns: u64,
    last_sent_ns: u64,
    /// Whether the last event taken was [`LinkEvent::Connected`].
    is_reported: bool,
    disconnected: Option<DisconnectReason>,
    /// A refusal that was not taken yet, and whether this side refuses.
    refusal: Option<(LinkRefusal, bool)>,
    statistics: LinkStatistics,
    warnings: Warnings,
}

impl PeerLink {
    pub(super) fn new(own: MemberNumber, peer: &PeerOptions, options: &MemberLinkOptions) -> Result<Self, LinkError> {
        let wrong = |rule| Err(LinkError::Peer { member: peer.member, rule });
        if peer.member == 0 {
            return wrong("0 is no member");
        }
        if peer.member == own {
            return wrong("it is the member itself");
        }
        let dials = own < peer.member;
        if dials && peer.addresses.is_empty() && options.discovery.is_none() {
            return wrong("its number is higher, so that it is to be connected to, but it has no address");
        }
        if !dials && options.listen.is_none() && options.listen_shared.is_none() {
            return wrong("its number is lower, so that it connects, but nothing listens for it");
        }
        Ok(Self::with(peer.member, PeerAddresses::new(peer)?, dials, options))
    }

    pub(super) fn newcomer(member: MemberNumber, options: &MemberLinkOptions) -> Self {
        Self { is_newcomer: true, ..Self::with(member, PeerAddresses::empty(member), false, options) }
    }

    fn with(member: MemberNumber, addresses: PeerAddresses, dials: bool, options: &MemberLinkOptions) -> Self {
        Self {
            member,
            addresses,
            connection: None,
            dial: if dials { DialState::Waits { until_ns: 0 } } else { DialState::Listens },
            dials,
            is_newcomer: false,
            back_off_ns: options.back_off_ns_min,
            connected_ns: 0,
            instance: 0,
            known_instance: 0,
            acknowledged: Acknowledgement::default(),
            reported_log: LogState::default(),
            next_question_ns: 0,
            last_received_ns: 0,
            last_sent_ns: 0,
            is_reported: false,
            disconnected: None,
            refusal: None,
            statistics: LinkStatistics::default(),
            warnings: Warnings::default(),
        }
    }

    pub(super) const fn is_newcomer(&self) -> bool {
        self.is_newcomer
    }

    pub(super) const fn is_departed_newcomer(&self) -> bool {
        self.is_newcomer && self.connection.is_none() && !self.is_reported && self.refusal.is_none()
    }

    pub(super) fn adopt(&mut self, added: Self) {
        let Self { addresses, dial, dials, .. } = added;
        (self.addresses, self.dial, self.dials, self.is_newcomer) = (addresses, dial, dials, false);
    }

    pub(super) const fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    pub(super) const fn has_other_instance_than(&self, instance: u64) -> bool {
        self.connection.is_some() && self.instance != instance
    }

    pub(super) const fn instance(&self) -> u64 {
        self.instance
    }

    pub(super) const fn set_known_instance(&mut self, instance: u64) {
        self.known_instance = instance;
    }

    pub(super) const fn set_acknowledged(&mut self, acknowledged: Acknowledgement) {
        self.acknowledged = acknowledged;
    }

    pub(super) const fn reported_log(&self) -> LogState {
        self.reported_log
    }

    pub(super) fn introduction(&mut self, own: &MemberIdentity, log: LogState) -> Introduction {
        self.reported_log = log;
        Introduction { from: own.clone(), to: self.member, log }
    }

    pub(super) fn check_instance_and_log(&self, theirs: &Introduction) -> Option<Box<LinkRefusal>> {
        let member = self.member;
        let no = |code, text| Some(Box::new(LinkRefusal::new(code, text)));
        if self.known_instance != 0 && self.known_instance != theirs.from.instance {
            let text = format!(
                "it may have forgotten what it acknowledged; bring back its original directory, no copy, or begin it anew \
                 with an empty directory and a new number: `gapless cluster add --replace {member}`"
            );
            return no(LinkRefusalCode::OtherDirectory, text);
        }
        let (log, Acknowledgement { term, index }) = (theirs.log, self.acknowledged);
        if !log.has_kept(self.acknowledged) {
            let text = format!(
                "entry {index} of term {term}, and it has entry {} and term {}; an older copy of its directory? Run \
                 `gapless cluster add --replace {member}`",
                log.last_index, log.term
            );
            return no(LinkRefusalCode::LostAcknowledged, text);
        }
        None
    }

    pub(super) fn statistics(&self) -> LinkStatistics {
        let queued_bytes = self.connection.as_ref().map_or(0, PeerConnection::unsent) as u64;
        LinkStatistics { queued_bytes, ..self.statistics }
    }

    #[inline]
    pub(super) fn send(
        &mut self,
        content: MessageContent,
        consensus: &[u8],
        frames: &[&[u8]],
        queue_bytes_max: usize,
    ) -> Result<(), SendError> {
        let Some(connection) = &mut self.connection else { return Err(SendError::NotConnected) };
        let kind = content.kind();
        let frames_length = frames.iter().map(|part| part.len()).sum();
        let (consensus_length_max, frames_length_max) = kind.lengths_max();
        if consensus.len() > consensus_length_max || frames_length > frames_length_max {
            return Err(SendError::TooLong);
        }
        match connection.send(kind, consensus, frames, frames_length, queue_bytes_max) {
            Ok(true) => {
                self.statistics.messages_sent += 1;
                self.statistics.bytes_sent += (consensus.len() + frames_length) as u64;
                Ok(())
            }
            Ok(false) => {
                self.statistics.messages_dropped += 1;
                Err(SendError::Full)
            }
            Err(broken) => {
                self.close(broken.into());
                Err(SendError::NotConnected)
            }
        }
    }

    #[inline]
    pub(super) fn flush(&mut self) -> usize {
        let Some(connection) = &mut self.connection else { return 0 };
        match connection.flush() {
            Ok(sent) => usize::from(sent > 0),
            Err(broken) => {
                self.close(broken.into());
                1
            }
        }
    }

    #[inline]
    pub(super) fn receive(&mut self, now_ns: u64, take: &mut impl FnMut(ReceivedMessage<'_>)) -> usize {
        // Messages of a connection are returned once its event was taken.
        if !self.is_reported || self.disconnected.is_some() {
            return 0;
        }
        let Some(connection) = &mut self.connection else { return 0 };
        let mut handed = 0;
        let outcome = deliver(self.member, connection, &mut handed, &mut self.statistics, take).and_then(|()| {
            if handed == 0 && connection.read()? {
                deliver(self.member, connection, &mut handed, &mut self.statistics, take)?;
            }
            Ok(())
        });
        if let Err(why) = outcome {
            if let DisconnectReason::Garbage(error) = &why {
                self.statistics.garbage += 1;
                let member = self.member;
                self.warnings.warn(now_ns, || format!("the connection to member {member} is closed: {error}"));
            }
            self.close(why);
        }
        handed
    }

    /// This member did not run for `gap_ns` since the last call.
    pub(super) fn keep_alive(&mut self, now_ns: u64, gap_ns: u64, options: &MemberLinkOptions) {
        let Some(connection) = &mut self.connection else { return };
        connection.socket.check();
        self.last_received_ns = if connection.take_received() { now_ns } else { self.last_received_ns + gap_ns };
        if connection.take_sent() {
            self.last_sent_ns = now_ns;
        }
        if now_ns.saturating_sub(self.last_received_ns) >= options.silence_ns_max {
            self.close(DisconnectReason::Silent { silence_ms: options.silence_ns_max / 1_000_000 });
            return;
        }
        let is_due = now_ns.saturating_sub(self.last_sent_ns) >= options.ping_interval_ns && connection.unsent() == 0;
        if is_due && let Err(broken) = connection.send(MessageKind::Ping, &[], &[], 0, options.queue_bytes_max) {
            self.close(broken.into());
        }
    }

    pub(super) fn arm(&self) {
        self.connection.iter().for_each(|connection| connection.socket.arm());
    }

    pub(super) fn disarm(&mut self) {
        self.connection.iter_mut().for_each(|connection| connection.socket.disarm());
    }

    pub(super) fn shrink(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.shrink();
        }
    }

    pub(super) fn connect(
        &mut self,
        mut connection: PeerConnection,
        instance: u64,
        now_ns: u64,
        options: &MemberLinkOptions,
    ) {
        if self.connection.is_some() {
            self.close(DisconnectReason::Replaced);
        }
        connection.accept_messages(options.receive_buffer_bytes);
        if let Some(detached) = &options.detached_send {
            connection.detach_sending(detached);
        }
        self.connection = Some(connection);
        self.instance = instance;
        self.back_off_ns = options.back_off_ns_min;
        (self.connected_ns, self.last_received_ns, self.last_sent_ns) = (now_ns, now_ns, now_ns);
        self.refusal = None;
        self.statistics.connections += 1;
        tracing::info!(member = self.member, "connected");
    }

    fn close(&mut self, why: DisconnectReason) {
        self.connection = None;
        tracing::info!(member = self.member, %why, "not connected any more");
        if self.is_reported {
            self.disconnected.get_or_insert(why);
        }
        if let DialState::Waits { until_ns } = &mut self.dial {
            // No pause, unless the connection was made just now: a peer accepted and dropped in turns waits.
            *until_ns = self.connected_ns + self.back_off_ns;
        }
    }

    pub(super) fn next_event(&mut self) -> Option<LinkEvent> {
        if let Some(why) = self.disconnected.take() {
            self.is_reported = false;
            return Some(LinkEvent::Disconnected(self.member, why));
        }
        if let Some((refusal, is_own)) = self.refusal.take() {
            let event = if is_own { LinkEvent::NotWanted } else { LinkEvent::Refused };
            return Some(event(self.member, refusal));
        }
        if self.connection.is_some() && !self.is_reported {
            self.is_reported = true;
            return Some(LinkEvent::Connected(self.member));
        }
        None
    }

    pub(super) fn dial(
        &mut self,
        now_ns: u64,
        options: &MemberLinkOptions,
        own: (&MemberIdentity, LogState),
        resolver: &mut Resolver,
    ) {
        match &mut self.dial {
            // The peer may have forgotten this member; then it answers so.
            DialState::Listens => {
                if self.connection.is_some() || self.next_question_ns == 0 {
                    self.next_question_ns = now_ns + QUESTION_INTERVAL_NS;
                } else if now_ns >= self.next_question_ns {
                    self.next_question_ns = now_ns + QUESTION_INTERVAL_NS;
                    self.addresses.begin_round(now_ns, resolver);
                    self.dial_next(now_ns, options, own);
                }
            }
            DialState::Waits { until_ns } => {
                if self.connection.is_none() && now_ns >= *until_ns {
                    self.addresses.begin_round(now_ns, resolver);
                    self.dial_next(now_ns, options, own);
                }
            }
            DialState::UnderWay { connection, address, deadline_ns } => {
                let address = address.clone();
                match read_welcome(connection, now_ns >= *deadline_ns) {
                    DialOutcome::Nothing => {}
                    DialOutcome::Welcome(theirs) => self.handle_welcome(&theirs, &address, now_ns, options, own.0),
                    // A refusal of another member says nothing about the peer's other addresses.
                    DialOutcome::Refusal(refusal) if refusal.code == LinkRefusalCode::OtherMember => {
                        self.note_refusal(refusal, &address, now_ns, false);
                        self.dial_next(now_ns, options, own);
                    }
                    DialOutcome::Refusal(refusal) => {
                        self.note_refusal(refusal, &address, now_ns, false);
                        self.dial = self.dial_at(now_ns + options.back_off_ns_max);
                    }
                    DialOutcome::Failed(broken) => {
                        let is_wrong =
                            matches!(&broken, ConnectionError::System(error) if error.kind() == ErrorKind::InvalidData);
                        let (member, why) = (self.member, DisconnectReason::from(broken));
                        if is_wrong {
                            self.warnings
                                .warn(now_ns, || format!("no connection to member {member} at {address}: {why}"));
                        } else {
                            tracing::debug!(member, %address, %why, "no connection");
                        }
                        self.addresses.note_failure(&address);
                        self.dial_next(now_ns, options, own);
                    }
                }
            }
        }
    }

    fn dial_next(&mut self, now_ns: u64, options: &MemberLinkOptions, (own, log): (&MemberIdentity, LogState)) {
        for _ in 0..DIALS_PER_LOOK {
            let Some(address) = self.addresses.next() else { break };
            let hello = self.introduction(own, log).to_bytes();
            let dialled = dial(&address, self.member, options).map_err(ConnectionError::from).and_then(|socket| {
                let mut connection = PeerConnection::new(socket);
                connection.send(MessageKind::Hello, &hello, &[], 0, usize::MAX)?;
                Ok(connection)
            });
            match dialled {
                Ok(connection) => {
                    let deadline_ns = now_ns + options.handshake_ns_max;
                    self.dial = DialState::UnderWay { connection: Box::new(connection), address, deadline_ns };
                    return;
                }
                Err(broken) => {
                    let why = DisconnectReason::from(broken);
                    tracing::debug!(member = self.member, %address, %why, "no connection");
                }
            }
        }
        self.dial = self.dial_at(now_ns + self.back_off_ns);
        self.back_off_ns = (self.back_off_ns * 2).min(options.back_off_ns_max);
    }

    fn handle_welcome(
        &mut self,
        theirs: &Introduction,
        address: &Address,
        now_ns: u64,
        options: &MemberLinkOptions,
        own: &MemberIdentity,
    ) {
        let after = self.dial_at(now_ns + options.back_off_ns_max);
        let DialState::UnderWay { mut connection, .. } = std::mem::replace(&mut self.dial, after) else { return };
        let judged = judge(own, theirs, |member| member == self.member);
        match judged.and_then(|()| self.check_instance_and_log(theirs).map_or(Ok(()), Err)) {
            Ok(()) => {
                self.addresses.note_success(address.clone());
                self.connect(*connection, theirs.from.instance, now_ns, options);
            }
            Err(refusal) => {
                // A peer that does not receive the refusal sees the connection closed.
                let _ = refuse(&mut connection, &refusal);
                self.note_refusal(*refusal, address, now_ns, true);
            }
        }
    }

    const fn dial_at(&self, until_ns: u64) -> DialState {
        if self.dials { DialState::Waits { until_ns } } else { DialState::Listens }
    }

    fn note_refusal(&mut self, refusal: LinkRefusal, address: &Address, now_ns: u64, is_own: bool) {
        let member = self.member;
        if !self.dials && refusal.code == LinkRefusalCode::WrongSide {
            tracing::debug!(member, %address, "it is there, and has not connected");
            return;
        }
        self.warnings.warn(now_ns, || format!("no connection to member {member} at {address}: {refusal}"));
        self.refusal = Some((refusal, is_own));
    }

    /// A final refusal becomes an event, because the peer may not connect again.
    pub(super) fn note_judgement(&mut self, judged: &Result<(), Box<LinkRefusal>>) {
        let refusal = judged.as_ref().err().filter(|refusal| refusal.code == LinkRefusalCode::OtherDirectory);
        self.refusal = refusal.map(|refusal| (LinkRefusal::clone(refusal), true)).or_else(|| self.refusal.take());
    }

    pub(super) fn deadline_ns(&self, soon_ns: u64) -> Option<u64> {
        if self.disconnected.is_some() || self.refusal.is_some() || (self.connection.is_some() && !self.is_reported) {
            return Some(0);
        }
        match (&self.connection, &self.dial) {
            (Some(connection), _) => connection.has_unsent().then_some(soon_ns),
            (None, DialState::UnderWay { .. }) => Some(soon_ns),
            (None, DialState::Waits { until_ns }) => Some(*until_ns.max(&soon_ns)),
            (None, DialState::Listens) => None,
        }
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let dialled = match &self.dial {
            DialState::UnderWay { connection, .. } => Some(connection.as_fd()),
            _ => None,
        };
        self.connection.iter().map(AsFd::as_fd).chain(dialled)
    }
}

#[inline]
fn deliver(
    from: MemberNumber,
    connection: &mut PeerConnection,
    handed: &mut usize,
    statistics: &mut LinkStatistics,
    take: &mut impl FnMut(ReceivedMessage<'_>),
) -> Result<(), DisconnectReason> {
    while *handed < MESSAGES_PER_TURN {
        let Some(message) = connection.next_message().map_err(DisconnectReason::Garbage)? else { break };
        let Some(content) = MessageContent::from_kind(message.kind) else {
            match message.kind {
                MessageKind::Ping => continue,
                MessageKind::Refusal => {
                    return Err(LinkRefusal::parse(message.consensus)
                        .map_or_else(DisconnectReason::Garbage, DisconnectReason::Refused));
                }
                kind => return Err(DisconnectReason::Garbage(WireError::Kind { found: kind as u8 })),
            }
        };
        *handed += 1;
        statistics.messages_received += 1;
        statistics.bytes_received += (message.consensus.len() + message.frames.len()) as u64;
        take(ReceivedMessage { from, content, consensus: message.consensus, frames: message.frames });
    }
    Ok(())
}

fn read_welcome(connection: &mut PeerConnection, is_late: bool) -> DialOutcome {
    connection.socket.check();
    let received = connection.flush().and_then(|_| connection.read());
    let message = match received {
        Ok(_) => connection.next_message(),
        Err(broken) => return DialOutcome::Failed(broken),
    };
    let parsed = match message {
        Ok(Some(message)) => match message.kind {
            MessageKind::Welcome => Introduction::parse(message.consensus).map(DialOutcome::Welcome),
            MessageKind::Refusal => LinkRefusal::parse(message.consensus).map(DialOutcome::Refusal),
            kind => Err(WireError::Kind { found: kind as u8 }),
        },
        Ok(None) if is_late => {
            return DialOutcome::Failed(ConnectionError::System(std::io::ErrorKind::TimedOut.into()));
        }
        Ok(None) => return DialOutcome::Nothing,
        Err(error) => Err(error),
    };
    match parsed {
        Ok(dialled) => dialled,
        Err(WireError::Version { found }) => {
            let text = format!("this member speaks version {}, the other one {found}", wire::VERSION);
            DialOutcome::Refusal(LinkRefusal::new(LinkRefusalCode::OtherVersion, text))
        }
        Err(error) => DialOutcome::Failed(ConnectionError::Wire(error)),
    }
}
