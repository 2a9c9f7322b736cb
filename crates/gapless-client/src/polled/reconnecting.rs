//! Resuming after a restart of the service, or at another member of its cluster: the same sessions, every command
//! without a reply resent, and no message lost.

use super::incoming::{DeferredMessage, Incoming, take_message};
use super::waiting::{SILENCE_MAX, ServiceSilence, TimeLimit};
use super::{PolledClient, TCP_PREFIX, append_all};
use crate::ClientError;
use crate::session_key::SessionKey;
use gapless_agent::monotonic::saturating_ns;
use gapless_agent::wait_notices::WaitNotices;
use gapless_log::LogError;
use gapless_transport::addresses::Addresses;
use gapless_transport::connect;
use gapless_transport::connect::ConnectOptions;
use gapless_transport::credentials::Credentials;
use gapless_transport::publisher_link::PublisherLink;
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::control::{Refusal, RefusalCode};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{Fragment, Frame, HEADER_LENGTH, Kind, aligned_length};
use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Clone)]
pub(super) enum ServiceAddress {
    Socket {
        path: PathBuf,
        /// Compared with the paths that members name.
        named: PathBuf,
    },
    Tcp(String),
    ClientEnvironment,
    #[cfg(test)]
    Test(std::sync::Arc<dyn Fn() -> Result<PublisherLink, ClientError> + Send + Sync>),
}

impl ServiceAddress {
    pub fn new(path: &Path) -> Self {
        match path.to_str().and_then(|path| path.strip_prefix(TCP_PREFIX)) {
            Some(address) => Self::Tcp(address.to_owned()),
            None => Self::Socket {
                path: path.to_owned(),
                named: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            },
        }
    }

    pub fn connect(&self, options: &ConnectOptions, credentials: &Credentials) -> Result<PublisherLink, ClientError> {
        let link = match self {
            Self::Socket { path, .. } => connect::shared_memory::connect(path, options)?,
            Self::Tcp(address) => connect::tcp::connect(address, options, credentials)?,
            Self::ClientEnvironment => unreachable!("a client with an environment asks that"),
            #[cfg(test)]
            Self::Test(connect) => connect()?,
        };
        let frame_length_max = link.welcome.frame_length_max;
        if frame_length_max as usize <= HEADER_LENGTH {
            let what = format!("a welcome with frames of at most {frame_length_max} bytes, which hold no payload");
            return Err(ClientError::Protocol { what });
        }
        Ok(link)
    }

    pub fn given(&self) -> String {
        match self {
            Self::Socket { path, .. } => path.display().to_string(),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for ServiceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket { named, .. } => named.display().fmt(f),
            Self::Tcp(address) => write!(f, "{TCP_PREFIX}{address}"),
            Self::ClientEnvironment => f.write_str("the simulated service"),
            #[cfg(test)]
            Self::Test(_) => f.write_str("the service of a test"),
        }
    }
}

const ATTEMPT_TIME_MIN: Duration = Duration::from_millis(5);

/// An attempt to connect to one address, which needs no access to its client.
pub(crate) struct Attempt {
    address: ServiceAddress,
    options: ConnectOptions,
    credentials: Credentials,
}

impl Attempt {
    pub fn connect(&self) -> Result<PublisherLink, ClientError> {
        self.address.connect(&self.options, &self.credentials)
    }
}

/// Result of an attempt to resume.
#[derive(Debug)]
pub(crate) enum Resumption {
    Begun,
    Failed {
        error: ClientError,
        /// Time until the next attempt; `None` if there is no use in one.
        pause: Option<Duration>,
    },
}

/// Bounded, for each connection, by the notices that the service keeps for the open sessions, and by the commands sent.
#[derive(Default)]
pub(super) struct DeferredInput {
    pub frames: VecDeque<Vec<u8>>,
    /// Older than the frames, in their order.
    pub messages: VecDeque<DeferredMessage>,
    pub opened: Vec<SessionKey>,
    pub lost: Vec<SessionKey>,
}

impl DeferredInput {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.opened.is_empty() && self.lost.is_empty() && self.messages.is_empty()
    }

    /// Returns the frame's length.
    #[cold]
    pub fn next_frame(&mut self, frame: &mut Vec<u8>) -> Option<usize> {
        let bytes = self.frames.pop_front()?;
        if frame.len() < aligned_length(bytes.len()) {
            frame.resize(aligned_length(bytes.len()), 0);
        }
        frame[..bytes.len()].copy_from_slice(&bytes);
        Some(bytes.len())
    }
}

impl PolledClient {
    /// Reconnects to a restarted service, or to another member of its cluster, opens every session with its token, and
    /// resends every command without a reply in the original order. Tries all addresses in turn. A session that the
    /// stream has lost (see [`Incoming::SessionLost`]) stays closed.
    ///
    /// # Errors
    /// [`ClientError::TimedOut`], or the last refusal; [`ClientError::Disconnected`] inside the service's own process.
    pub fn reconnect(&mut self) -> Result<(), ClientError> {
        self.reconnect_within(self.options.timeout)
    }

    /// Like [`PolledClient::reconnect`], for at most `limit`. [`Duration::ZERO`] makes one attempt at one address, of a few
    /// milliseconds.
    ///
    /// # Errors
    /// As for [`PolledClient::reconnect`].
    pub fn reconnect_within(&mut self, limit: Duration) -> Result<(), ClientError> {
        self.reconnect_until(TimeLimit::new(self.now(), limit))
    }

    /// Whether [`PolledClient::reconnect`] never sleeps: inside the service's process, and in a simulation.
    #[must_use]
    pub const fn reconnects_at_once(&self) -> bool {
        self.addresses.is_none() || self.environment.is_some()
    }

    pub(super) fn reconnect_until(&mut self, limit: TimeLimit) -> Result<(), ClientError> {
        let deadline = limit.end;
        let begun = self.now();
        if self.silence.is_left
            && let Some(addresses) = &mut self.addresses
        {
            // One stalled member is not a whole failed round.
            let _ = addresses.failed(begun);
        }
        let mut waits = WaitNotices::after_a_second();
        loop {
            self.silence = ServiceSilence::default();
            let error = match self.try_next_address(deadline) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let now = self.now();
            let Some(addresses) = &mut self.addresses else { return Err(error) };
            let wait = match error {
                ClientError::NotLeader { ref leader } => addresses.on_not_leader(leader, now),
                _ => addresses.failed(now),
            };
            if now >= deadline || matches!(error, ClientError::OtherHistory { .. }) {
                return Err(limit.stated_in(error));
            }
            if let Some(waited) = waits.take_due(saturating_ns(now.saturating_duration_since(begun))) {
                let (waited_s, peer) = (waited.as_secs(), self.peer());
                tracing::warn!(waited_s, %error, "no service is there for a client, the last one looked for at {peer}; it goes on looking");
            }
            self.pause(wait.min(deadline.saturating_duration_since(now)));
        }
    }

    /// Resumes over a connection made by the caller, without waiting. Polls reopen the sessions, as the ring has room;
    /// each can be used once its answer arrives through [`PolledClient::poll`].
    ///
    /// # Errors
    /// The ring is damaged.
    #[doc(hidden)] // For the simulator and the shared client.
    pub fn resume_over(&mut self, link: PublisherLink) -> Result<(), ClientError> {
        self.begin_connection(link);
        for (number, session) in self.sessions.iter_mut().enumerate().filter(|(_, session)| !session.is_lost()) {
            let _ = session.begin_reopen();
            self.reopening.push_back(SessionKey(number as u32));
        }
        self.reopen()
    }

    /// Opens sessions again, as far as the ring has room.
    #[cold]
    pub(super) fn reopen(&mut self) -> Result<(), ClientError> {
        while let Some(key) = self.reopening.front() {
            let session = &mut self.sessions[key.index()];
            if !session.is_lost() {
                let open = session.begin_reopen();
                match self.send_open(open) {
                    Err(ClientError::Log(LogError::Full { .. })) => return Ok(()),
                    sent => sent?,
                }
            }
            self.reopening.pop_front();
        }
        Ok(())
    }

    /// Opens the sessions again that the service has refused because it had too many.
    pub(crate) fn reopen_refused(&mut self) {
        for (number, session) in self.sessions.iter_mut().enumerate() {
            if session.take_open_refused() {
                self.reopening.push_back(SessionKey(number as u32));
            }
        }
    }

    fn begin_connection(&mut self, link: PublisherLink) {
        let is_other_incarnation = self.seen.identity != link.welcome.identity;
        self.reopening.clear();
        if is_other_incarnation {
            self.seen = SeenFrame::none_seen(link.welcome.identity);
            // Another incarnation of the stream may reuse the identifiers for other sessions.
            for (number, session) in self.sessions.iter_mut().enumerate() {
                if !session.is_blank() && !session.is_lost() {
                    session.lost();
                    self.deferred.lost.push(SessionKey(number as u32));
                }
            }
        }
        self.link = link;
        self.accepted = (0, 0);
        self.resending.drain(..).for_each(|key| self.sessions[key.index()].set_resend_from(None));
        self.queries.begin_resending(is_other_incarnation);
        self.was_turned_away = false;
        self.assembly.clear();
        self.drop_unfinished();
    }

    fn try_next_address(&mut self, deadline: Instant) -> Result<(), ClientError> {
        let now = self.now();
        let Some(addresses) = &self.addresses else {
            return Err(self.disconnected());
        };
        let has_others = addresses.count() > 1;
        let deadline = if has_others { deadline.min(now + SILENCE_MAX) } else { deadline };
        let link = self.dial(deadline.saturating_duration_since(now))?;
        self.begin_connection(link);
        for number in 0..self.sessions.len() {
            if self.sessions[number].is_lost() {
                continue;
            }
            let open = self.sessions[number].begin_reopen();
            self.send_with_retry(deadline, |client| client.send_open(open))?;
        }
        while self.sessions.iter().any(|session| !session.is_open() && !session.is_lost()) {
            self.read_open_answers()?;
            if self.now() >= deadline {
                return Err(self.timed_out("a session open", deadline.saturating_duration_since(now)));
            }
        }
        // A prefix of this order, over all sessions, is in the stream already.
        let mut unanswered: Vec<_> = self.sessions.iter().flat_map(|session| session.unanswered(0)).collect();
        unanswered.sort_unstable_by_key(|command| command.place);
        let unanswered: Vec<_> = unanswered.into_iter().map(|command| command.frames.to_vec()).collect();
        for frames in unanswered {
            self.send_with_retry(deadline, |client| append_all(&mut client.link, &frames))?;
        }
        self.flush();
        Ok(())
    }

    /// Connects to the current address.
    fn dial(&mut self, limit: Duration) -> Result<PublisherLink, ClientError> {
        let attempt = self.attempt(limit)?;
        match &mut self.environment {
            Some(environment) => environment.connect(attempt.options.timeout),
            None => attempt.connect(),
        }
    }

    fn attempt(&self, limit: Duration) -> Result<Attempt, ClientError> {
        let Some(addresses) = &self.addresses else { return Err(self.disconnected()) };
        let has_others = addresses.count() > 1;
        let mut options = self.options.connect_options(has_others);
        if has_others {
            options.identity = self.identity;
        }
        options.seen = self.seen;
        options.timeout = options.timeout.min(limit.max(ATTEMPT_TIME_MIN));
        Ok(Attempt { address: addresses.current().clone(), options, credentials: self.options.credentials })
    }

    /// The next attempt to connect, at one address and for at most `limit`. [`PolledClient::end_attempt`] takes its
    /// result.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`] inside the service's process.
    pub(crate) fn begin_attempt(&mut self, limit: Duration) -> Result<Attempt, ClientError> {
        let now = self.now();
        if std::mem::take(&mut self.silence).is_left
            && let Some(addresses) = &mut self.addresses
        {
            // One stalled member is not a whole failed round.
            let _ = addresses.failed(now);
        }
        self.attempt(limit)
    }

    /// Resumes over the link of an attempt, and does not wait for the sessions: polls reopen them and resend their
    /// commands.
    pub(crate) fn end_attempt(&mut self, connected: Result<PublisherLink, ClientError>) -> Resumption {
        let Err(error) = connected.and_then(|link| self.resume_over(link)) else {
            return Resumption::Begun;
        };
        let now = self.now();
        let pause = match (&mut self.addresses, &error) {
            (None, _) | (_, ClientError::OtherHistory { .. }) => None,
            (Some(addresses), ClientError::NotLeader { leader }) => Some(addresses.on_not_leader(leader, now)),
            (Some(addresses), _) => Some(addresses.failed(now)),
        };
        Resumption::Failed { error, pause }
    }

    /// Client of a service that the test connects to.
    #[cfg(test)]
    pub(crate) fn connect_by(
        connect: std::sync::Arc<dyn Fn() -> Result<PublisherLink, ClientError> + Send + Sync>,
    ) -> Result<Self, ClientError> {
        let link = connect()?;
        let addresses = Addresses::new(vec![ServiceAddress::Test(connect)]);
        Ok(Self::over(link, Some(addresses), None, super::ClientOptions::default()))
    }

    /// Number of addresses; 0 inside the service's process.
    pub(crate) fn address_count(&self) -> usize {
        self.addresses.as_ref().map_or(0, Addresses::count)
    }

    /// Whether the service ends a connection on which no heartbeats arrive.
    pub(crate) fn needs_heartbeats(&self) -> bool {
        let is_remote = |addresses: &Addresses<ServiceAddress>| {
            addresses.all().iter().any(|address| matches!(address, ServiceAddress::Tcp(_)))
        };
        self.link.pump.is_some() || self.addresses.as_ref().is_some_and(is_remote)
    }

    pub(super) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty() || !self.deferred.frames.is_empty()
    }

    /// The sequencer's refusals concern the old connection; an incomplete message arrives again in full.
    fn drop_unfinished(&mut self) {
        let is_refusal = |frame: &Frame<'_>| {
            let refusal = (frame.flags() & REFUSED_FLAG != 0).then(|| Refusal::from_bytes(frame.payload())).flatten();
            refusal.is_some_and(|refusal| matches!(refusal.code, RefusalCode::Gap | RefusalCode::SessionUnknown))
        };
        self.deferred.frames.retain(|frame| Frame::parse(frame).is_ok_and(|frame| !is_refusal(&frame)));
        let is_last = |frame: &Vec<u8>| Frame::parse(frame).is_ok_and(|frame| frame.fragment().is_last());
        while self.deferred.frames.back().is_some_and(|frame| !is_last(frame)) {
            self.deferred.frames.pop_back();
        }
    }

    pub(super) fn has_other_members(&self) -> bool {
        self.addresses.as_ref().is_some_and(|addresses| addresses.count() > 1) || self.was_turned_away
    }

    #[cold]
    pub(super) fn on_not_leader(&mut self, leader: &str) -> ClientError {
        let (peer, now) = (self.peer(), self.now());
        if let Some(addresses) = &mut self.addresses {
            // No wait here: reconnecting waits if no member is found.
            let _ = addresses.on_not_leader(leader, now);
        }
        self.was_turned_away = true;
        ClientError::Disconnected { peer, reason: None }
    }

    pub(super) fn take_open_answers(&mut self) -> Result<(), ClientError> {
        match self.read_open_answers() {
            Err(ClientError::NotLeader { leader }) => Err(self.on_not_leader(&leader)),
            other => other,
        }
    }

    /// Everything but answers to opens is deferred to the next poll.
    fn read_open_answers(&mut self) -> Result<(), ClientError> {
        if !self.reopening.is_empty() {
            self.reopen()?;
        }
        self.flush();
        let mut is_any = false;
        while let Some(length) = self.link.reader.next_length()? {
            is_any = true;
            let mut bytes = vec![0; aligned_length(length)];
            self.link.reader.copy(&mut bytes);
            self.link.reader.advance(length);
            let frame = Frame::parse(&bytes[..length])
                .and_then(|frame| frame.verify().map(|()| frame))
                .map_err(|error| ClientError::Protocol { what: error.to_string() })?;
            let is_whole = frame.fragment() == Fragment::WHOLE;
            if frame.kind() != Kind::Reply || frame.session_seq() != 0 || !is_whole {
                bytes.truncate(length);
                self.deferred.frames.push_back(bytes);
                continue;
            }
            let Self { sessions, by_id, by_token, deferred, .. } = self;
            let known: Vec<bool> = sessions.iter().map(|session| session.id().is_some()).collect();
            take_message(sessions, by_id, by_token, None, &frame, frame.payload(), &mut |incoming| match incoming {
                Incoming::Opened { session } if !known[session.index()] => deferred.opened.push(session),
                Incoming::SessionLost { session } => deferred.lost.push(session),
                _ => {}
            })?;
        }
        self.link.reader.release();
        if is_any {
            self.silence.end();
            return Ok(());
        }
        self.sleep(Duration::from_millis(1))
    }

    #[cold]
    pub(super) fn deliver_deferred_sessions(&mut self, take: &mut dyn FnMut(Incoming<'_>)) {
        for session in std::mem::take(&mut self.deferred.opened) {
            take(Incoming::Opened { session });
        }
        for session in std::mem::take(&mut self.deferred.lost) {
            take(Incoming::SessionLost { session });
        }
    }

    #[cold]
    pub(super) fn deliver_deferred_messages(
        &mut self,
        messages_max: usize,
        take: &mut dyn FnMut(Incoming<'_>),
    ) -> Result<usize, ClientError> {
        let mut messages = 0;
        while messages < messages_max
            && let Some(message) = self.deferred.messages.pop_front()
        {
            let Some(number) = message.notice_number() else {
                messages += 1;
                take(message.incoming());
                continue;
            };
            if self.sessions[message.session.index()].notice(number) {
                messages += 1;
                take(message.incoming());
            }
            self.acknowledge_notices(message.session)?;
        }
        Ok(messages)
    }
}
