//! [`PolledClient`]: the publisher's side. Opens sessions, sends commands, delivers replies, and keeps every command until
//! its reply arrives, so that none is lost or duplicated when either side dies.
//!
//! | module | what lives there |
//! |---|---|
//! | this | [`PolledClient`]: connecting, sending, polling |
//! | `call` | [`PolledClient::call`]: one command and its reply |
//! | `typed_messages` | the same for messages that a schema describes |
//! | `mismatch` | [`PolledClient::find_mismatch`]: why the service does not handle a request |
//! | `queries` | [`PolledClient::query_request`]: reading the service's state |
//! | `outcome` | [`PolledClient::outcome`]: the fate of a command; resending one under its number |
//! | `opening` | opening and closing sessions |
//! | `acknowledging` | acknowledgements of notices |
//! | `saved_session` | [`SavedSession`]: data that a process keeps, so that a successor can resume its session |
//! | `reconnecting` | resuming the same sessions, at the same or another member of a cluster |
//! | `environment` | time, sleep and connections, replaceable by a simulation |
//! | `waiting` | sleeping until the service sends something; noticing that it is gone |
//! | `session` | one session's commands in flight |
//! | `incoming` | messages delivered by a poll |

mod acknowledging;
mod call;
mod environment;
mod incoming;
pub(crate) mod mismatch;
mod opening;
mod outcome;
mod queries;
mod reconnecting;
mod saved_session;
mod session;
mod typed_messages;
mod waiting;

use crate::SessionKey;
pub use crate::message_type::MessageType;
pub use environment::ClientEnvironment;
pub use incoming::{Incoming, OwnedReply, Reply};
pub use outcome::Outcome;
pub use queries::QUERIES_IN_FLIGHT_MAX;
pub(crate) use queries::QueryAnswer;
pub use saved_session::SavedSession;
pub use waiting::ClientWaker;

pub(crate) use reconnecting::{Attempt, Resumption};
pub(crate) use waiting::SleepLimit;

use crate::ClientError;
use crate::assembly::Assembly;
use crate::error::THIS_PROCESS;
use crate::quiet_polls::QuietPolls;
use gapless_log::{LogError, StreamIdentity};
use gapless_transport::addresses::Addresses;
use gapless_transport::connect::ConnectOptions;
use gapless_transport::credentials::Credentials;
use gapless_transport::handshake::Welcome;
use gapless_transport::link::{ANSWER_LENGTH_MAX, RingSizes};
use gapless_transport::publisher_link::PublisherLink;
use gapless_transport::seen_frame::SeenFrame;
use gapless_transport::tier::Tier;
use gapless_wire::prefetch::{FramesAhead, prefetch};
use gapless_wire::{Fragment, Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, MessageParts, aligned_length};
use incoming::{is_without_service, take_message};
use queries::QueriesInFlight;
use reconnecting::{DeferredInput, ServiceAddress};
use rustc_hash::FxHashMap;
use session::CommandSession;
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};
use waiting::{SILENCE_MAX, ServiceSilence};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    pub link: RingSizes,
    /// Limit of the handshake, of opening a session, and of [`PolledClient::reconnect`]. Connection refused is an error at
    /// once.
    pub timeout: Duration,
    /// Required stream; zeros for any.
    pub identity: StreamIdentity,
    /// Required by TCP if the service accepts only known users.
    pub credentials: Credentials,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            link: RingSizes::default(),
            timeout: Duration::from_secs(5),
            identity: StreamIdentity::default(),
            credentials: Credentials::BLANK,
        }
    }
}

impl ClientOptions {
    /// Options of one attempt. With several addresses, a silent one is soon left for the next.
    fn connect_options(&self, has_others: bool) -> ConnectOptions {
        let timeout = if has_others { self.timeout.min(SILENCE_MAX) } else { self.timeout };
        ConnectOptions {
            link: self.link,
            identity: self.identity,
            reads: false,
            seen: SeenFrame::default(),
            mtu: None,
            timeout,
        }
    }
}

pub struct PolledClient {
    link: PublisherLink,
    /// `None` inside the service's process.
    addresses: Option<Addresses<ServiceAddress>>,
    environment: Option<Box<dyn ClientEnvironment>>,
    /// Another member must serve the same stream.
    identity: StreamIdentity,
    seen: SeenFrame,
    deferred: DeferredInput,
    /// Whether the connected member does not lead.
    was_turned_away: bool,
    options: ClientOptions,
    sessions: Vec<CommandSession>,
    sent: u64,
    by_id: FxHashMap<u64, SessionKey>,
    /// Most replies are for it and need no lookup.
    sent_last: SessionKey,
    by_token: FxHashMap<u128, SessionKey>,
    frame: Vec<u8>,
    /// Encoded request; its memory is reused.
    request: Vec<u8>,
    assembly: Assembly,
    quiet_polls: QuietPolls,
    resending: Vec<SessionKey>,
    /// Sessions whose acknowledgements of notices wait for room.
    acknowledging: Vec<SessionKey>,
    /// Sessions whose opens wait for room in the ring.
    reopening: VecDeque<SessionKey>,
    /// Shared by threads that must not sleep.
    waits_for_nothing: bool,
    /// Whether messages other than the awaited reply are kept for the next poll.
    awaits_reply: bool,
    asks: bool,
    /// Reported by a member without a service: session and number of the last message.
    accepted: (u64, u64),
    silence: ServiceSilence,
    queries: QueriesInFlight,
}

/// Prefix of a TCP address.
pub const TCP_PREFIX: &str = "tcp:";
/// Largest window: a service keeps a reply for each command in flight.
pub const WINDOW_COMMANDS_MAX: u32 = 64;

impl PolledClient {
    /// Connects to a socket of this machine, or by TCP to a cluster member: `tcp:HOST:PORT`.
    ///
    /// # Errors
    /// Connection refused; another stream; no answer in time.
    pub fn connect(path: impl AsRef<Path>, options: ClientOptions) -> Result<Self, ClientError> {
        Self::connect_any(&[path], options)
    }

    /// Connects to the first of a cluster's members that admits the client, each at one of `paths`. A member that does
    /// not lead names the leader.
    ///
    /// # Errors
    /// As for [`PolledClient::connect`], of the last attempt.
    ///
    /// # Panics
    /// If `paths` is empty.
    pub fn connect_any(paths: &[impl AsRef<Path>], options: ClientOptions) -> Result<Self, ClientError> {
        let mut addresses = Addresses::new(paths.iter().map(|path| ServiceAddress::new(path.as_ref())).collect());
        let connect_options = options.connect_options(addresses.count() > 1);
        for remaining in (0..addresses.count()).rev() {
            match addresses.current().connect(&connect_options, &options.credentials) {
                Ok(link) => return Ok(Self::over(link, Some(addresses), None, options)),
                Err(error) if remaining == 0 => return Err(error),
                Err(_) => _ = addresses.failed(Instant::now()),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Client inside the service's process, over a `link` given by the service.
    #[doc(hidden)] // `ServiceHost::connect` is the application's way.
    #[must_use]
    pub fn local(link: PublisherLink, options: ClientOptions) -> Self {
        Self::over(link, None, None, options)
    }

    /// For simulations: connects, sleeps and reads the time through `environment`.
    ///
    /// # Errors
    /// Errors of the attempt to connect.
    #[doc(hidden)] // For the simulator.
    pub fn connect_in(
        mut environment: Box<dyn ClientEnvironment>,
        options: ClientOptions,
    ) -> Result<Self, ClientError> {
        let link = environment.connect(options.timeout)?;
        let addresses = Addresses::new(vec![ServiceAddress::ClientEnvironment]);
        Ok(Self::over(link, Some(addresses), Some(environment), options))
    }

    fn over(
        link: PublisherLink,
        addresses: Option<Addresses<ServiceAddress>>,
        environment: Option<Box<dyn ClientEnvironment>>,
        options: ClientOptions,
    ) -> Self {
        Self {
            identity: link.welcome.identity,
            seen: SeenFrame::none_seen(link.welcome.identity),
            link,
            addresses,
            environment,
            deferred: DeferredInput::default(),
            was_turned_away: false,
            options,
            sessions: Vec::new(),
            sent: 0,
            by_id: FxHashMap::default(),
            sent_last: SessionKey(0),
            by_token: FxHashMap::default(),
            frame: Vec::new(),
            request: Vec::new(),
            assembly: Assembly::default(),
            quiet_polls: QuietPolls::default(),
            resending: Vec::new(),
            acknowledging: Vec::new(),
            reopening: VecDeque::new(),
            waits_for_nothing: false,
            awaits_reply: false,
            asks: false,
            accepted: (0, 0),
            silence: ServiceSilence::default(),
            queries: QueriesInFlight::default(),
        }
    }

    /// Answer of the service at the handshake.
    #[must_use]
    pub const fn welcome(&self) -> &Welcome {
        &self.link.welcome
    }

    /// Durability that a reply promises.
    #[must_use]
    pub fn tier(&self) -> Option<Tier> {
        Tier::from_value(self.link.welcome.tier)
    }

    fn peer(&self) -> String {
        self.addresses.as_ref().map_or_else(|| THIS_PROCESS.to_owned(), |all| all.current().given())
    }

    /// Sends a command. `encode` writes the payload of at most `length_max` bytes and returns its length. Returns the
    /// command's number in the session, as in its reply.
    ///
    /// # Errors
    /// [`ClientError::WindowFull`], [`ClientError::NotOpen`] and [`LogError::Full`]: poll and retry.
    /// [`ClientError::NoSuchSession`]: open the token again.
    pub fn send(
        &mut self,
        key: SessionKey,
        message: MessageType,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, ClientError>,
    ) -> Result<u64, ClientError> {
        let number = self.enqueue(key, message, length_max, encode)?;
        self.flush();
        Ok(number)
    }

    /// Like [`PolledClient::send`], but the service sees the command at the next [`PolledClient::flush`] or [`PolledClient::poll`]: one
    /// hand-over for several commands.
    ///
    /// # Errors
    /// As for [`PolledClient::send`].
    #[inline]
    pub fn enqueue(
        &mut self,
        key: SessionKey,
        message: MessageType,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, ClientError>,
    ) -> Result<u64, ClientError> {
        let session = self.sessions.get_mut(key.index()).ok_or(ClientError::NoSuchSession(key))?;
        let (slot, mut header) = session.next_command()?;
        header.schema = message.schema;
        header.flags = message.encoding.flags();
        if HEADER_LENGTH + length_max > self.link.welcome.frame_length_max as usize {
            return self.enqueue_long(key, header, length_max, encode);
        }
        let claim = self.link.writer.claim(HEADER_LENGTH + length_max)?;
        let mut writer = FrameWriter::new(claim);
        let payload_length = encode(&mut writer.payload_mut()[..length_max])?;
        let length = writer.finish(&header, payload_length);
        slot.keep(&claim[..aligned_length(length)], header.session_seq, header.session_seq);
        self.link.writer.commit(length);
        self.sent += 1;
        session.sent(1, self.sent);
        self.sent_last = key;
        Ok(header.session_seq)
    }

    #[cold]
    fn enqueue_long(
        &mut self,
        key: SessionKey,
        header: FrameHeader,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, ClientError>,
    ) -> Result<u64, ClientError> {
        let frame_payload = self.link.welcome.frame_length_max as usize - HEADER_LENGTH;
        if length_max.div_ceil(frame_payload) > usize::from(u16::MAX) {
            return Err(self.too_long(length_max));
        }
        let mut payload = vec![0; length_max];
        let payload_length = encode(&mut payload)?;
        let parts = MessageParts::new(&payload[..payload_length], frame_payload);
        let count = parts.count();
        self.check_length(payload_length)?;
        let mut frames = Vec::with_capacity(payload_length + count * (HEADER_LENGTH + 8));
        for (fragment, part) in parts.iter() {
            let start = frames.len();
            frames.resize(start + aligned_length(HEADER_LENGTH + part.len()), 0);
            let mut writer = FrameWriter::new(&mut frames[start..]);
            writer.payload_mut()[..part.len()].copy_from_slice(part);
            let session_seq = header.session_seq + u64::from(fragment.index);
            writer.finish(&FrameHeader { fragment, session_seq, ..header }, part.len());
        }
        self.flush();
        append_all(&mut self.link, &frames)?;
        let session = self.sessions.get_mut(key.index()).ok_or(ClientError::NoSuchSession(key))?;
        let last_seq = header.session_seq + count as u64 - 1;
        session.next_command()?.0.keep(&frames, header.session_seq, last_seq);
        self.sent += 1;
        session.sent(count as u64, self.sent);
        Ok(last_seq)
    }

    fn check_length(&self, payload_length: usize) -> Result<(), ClientError> {
        let frame_payload = self.link.welcome.frame_length_max as usize - HEADER_LENGTH;
        let count = payload_length.div_ceil(frame_payload);
        let is_long = count > 1 && payload_length + count * (HEADER_LENGTH + 8) > self.message_bytes_max();
        if is_long || count > usize::from(u16::MAX) { Err(self.too_long(payload_length)) } else { Ok(()) }
    }

    fn message_bytes_max(&self) -> usize {
        (self.link.welcome.message_length_max as usize).min(self.link.writer.frame_length_max())
    }

    fn too_long(&self, length_bytes: usize) -> ClientError {
        ClientError::TooLong { length_bytes, limit_bytes: self.message_bytes_max() }
    }

    /// Makes everything enqueued visible to the service.
    #[inline]
    pub fn flush(&mut self) {
        self.link.flush();
    }

    /// Flushes, and passes up to `messages_max` messages to `take`. Returns their number.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`] once the service is gone and all its messages are taken, checked after 50 ms
    /// without a message, or if one of several members has owed an answer for a second. [`ClientError::Protocol`] for
    /// an invalid frame.
    #[inline]
    pub fn poll(&mut self, messages_max: usize, mut take: impl FnMut(Incoming<'_>)) -> Result<usize, ClientError> {
        self.poll_into(messages_max, &mut take)
    }

    /// Compiled once instead of for each closure.
    fn poll_into(&mut self, messages_max: usize, take: &mut dyn FnMut(Incoming<'_>)) -> Result<usize, ClientError> {
        self.flush();
        let mut messages = 0;
        if !self.deferred.is_empty() {
            self.deliver_deferred_sessions(take);
            messages = self.deliver_deferred_messages(messages_max, take)?;
        }
        let mut frames_ahead = FramesAhead::default();
        while messages < messages_max {
            let Some(length) = self.next_frame()? else { break };
            frames_ahead.step(|sessions| self.prefetch(self.link.reader.peek_sessions(sessions)));
            let frame = Frame::parse(&self.frame[..length])
                .and_then(|frame| frame.verify().map(|()| frame))
                .map_err(|error| ClientError::Protocol { what: error.to_string() })?;
            let whole = if frame.fragment() == Fragment::WHOLE {
                frame.payload()
            } else {
                match self.assembly.add(&frame, ANSWER_LENGTH_MAX)? {
                    Some(payload) => payload,
                    None => continue,
                }
            };
            messages += 1;
            if frame.sequence() == 0 && is_without_service(&frame) {
                self.accepted = (frame.session(), frame.session_seq());
                continue;
            }
            self.seen.observe(frame.sequence(), frame.timestamp_ns());
            let last = self.sessions.get(self.sent_last.index());
            let is_of_last = last.is_some_and(|last| last.is_open() && last.id() == Some(frame.session()));
            let key = if is_of_last { Some(self.sent_last) } else { self.by_id.get(&frame.session()).copied() };
            if key.is_none() && frame.kind() == Kind::Answer {
                self.queries.answered(&frame, whole);
                continue;
            }
            if self.awaits_reply && frame.kind() == Kind::Notice {
                // A notice counts as received once the application has seen it.
                if let Some(session) = key {
                    take(Incoming::Notice { session, notice: Reply::new(&frame, whole)? });
                }
                continue;
            }
            let noticed = (frame.kind() == Kind::Notice).then(|| frame.session());
            let taken = take_message(&mut self.sessions, &mut self.by_id, &self.by_token, key, &frame, whole, take);
            let resend = match taken {
                Err(ClientError::NotLeader { leader }) => return Err(self.on_not_leader(&leader)),
                other => other?,
            };
            if let Some((key, from)) = resend {
                let session = &mut self.sessions[key.index()];
                match session.resend_from() {
                    Some(earlier) => session.set_resend_from(Some(earlier.min(from))),
                    None if session.in_flight() > 0 => {
                        session.set_resend_from(Some(from));
                        self.resending.push(key);
                    }
                    None => {}
                }
            }
            if let Some(key) = noticed.and_then(|session| self.by_id.get(&session).copied()) {
                self.acknowledge_notices(key)?;
            }
        }
        self.link.reader.release();
        if !self.reopening.is_empty() {
            self.reopen()?;
        }
        if !self.resending.is_empty() {
            self.resend()?;
        }
        if self.queries.are_resent() {
            self.resend_queries()?;
        }
        if !self.acknowledging.is_empty() {
            self.retry_acknowledgements()?;
        }
        if messages == 0 {
            if self.quiet_polls.take_clock_check() {
                let now = self.now();
                if self.quiet_polls.take_due_question(now) {
                    self.check_connected()?;
                }
            }
        } else {
            self.quiet_polls.end();
            self.silence.end();
            // The service has read the command by now, and its prefetcher perhaps a few lines more.
            self.link.writer.prefetch();
        }
        Ok(messages)
    }

    /// Returns the number of messages.
    #[inline]
    fn prefetch(&self, sessions: &[u64]) -> usize {
        for key in sessions.iter().filter_map(|session| self.by_id.get(session)) {
            prefetch(&self.sessions[key.index()]);
        }
        sessions.len()
    }

    #[inline]
    fn next_frame(&mut self) -> Result<Option<usize>, ClientError> {
        if !self.deferred.frames.is_empty() {
            return Ok(self.deferred.next_frame(&mut self.frame));
        }
        let Some(length) = self.link.reader.next_length()? else { return Ok(None) };
        if self.frame.len() < aligned_length(length) {
            self.frame.resize(aligned_length(length), 0);
        }
        self.link.reader.copy(&mut self.frame[..aligned_length(length)]);
        self.link.reader.advance(length);
        Ok(Some(length))
    }

    #[cold]
    fn resend(&mut self) -> Result<(), ClientError> {
        let Self { sessions, resending, link, .. } = self;
        let again = resending.iter().map(|key| &sessions[key.index()]);
        let again = again.filter_map(|session| Some(session.unanswered(session.resend_from()?)));
        let mut unanswered: Vec<_> = again.flatten().collect();
        unanswered.sort_unstable_by_key(|command| command.place);
        let mut left = Vec::new();
        for (index, command) in unanswered.iter().enumerate() {
            match append_all(link, command.frames) {
                Ok(()) => {}
                Err(ClientError::Log(LogError::Full { .. })) => {
                    left.extend(unanswered[index..].iter().map(|command| (command.session, command.first_seq)));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        resending.drain(..).for_each(|key| sessions[key.index()].set_resend_from(None));
        // Numbers of a session rise with the places, so its first command is enough.
        for (key, first_seq) in left {
            let session = &mut sessions[key.index()];
            if session.resend_from().is_none() {
                session.set_resend_from(Some(first_seq));
                resending.push(key);
            }
        }
        self.flush();
        Ok(())
    }

    fn send_with_retry(
        &mut self,
        deadline: Instant,
        mut send: impl FnMut(&mut Self) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        loop {
            match send(self) {
                Err(ClientError::Log(LogError::Full { .. })) if self.now() < deadline => {
                    self.flush();
                    self.pause(Duration::ZERO);
                }
                other => return other,
            }
        }
    }

    fn timed_out(&self, request: &str, given: Duration) -> ClientError {
        let (peer, request) = (self.peer(), request.to_owned());
        ClientError::TimedOut { peer, request, timeout_ms: given.as_millis() as u64 }
    }
}

/// All or none.
fn append_all(link: &mut PublisherLink, frames: &[u8]) -> Result<(), ClientError> {
    // A message that does not fit must not drop frames enqueued before it.
    link.flush();
    let mut position = 0;
    while position < frames.len() {
        let frame = Frame::parse(&frames[position..]).map_err(|error| ClientError::Encode(error.to_string()))?;
        let padded = aligned_length(frame.length());
        if let Err(error) = link.writer.append(&frames[position..position + padded]) {
            link.writer.discard_unpublished();
            return Err(error.into());
        }
        position += padded;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
