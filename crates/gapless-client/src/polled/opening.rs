//! Sessions of a client: opening, finding again and closing them.

use super::session::CommandSession;
use super::waiting::{CallWaits, TimeLimit};
use super::{PolledClient, WINDOW_COMMANDS_MAX};
use crate::{ClientError, CommandNumber, SessionKey};
use gapless_log::LogError;
use gapless_wire::control::SessionOpen;
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, Kind};
use std::time::Duration;

impl PolledClient {
    /// Opens the session of `token`, or finds it again: the same token names the same session, also for a restarted
    /// process. `window_messages` (1..=64) commands may be in flight. If the service has lost the session
    /// ([`SessionLost`](super::Incoming::SessionLost)), this opens a new one, with another key.
    ///
    /// # Errors
    /// A token of 0 or a window out of range; no answer in time; the service is gone.
    pub fn open_session(&mut self, token: u128, window_messages: u32) -> Result<SessionKey, ClientError> {
        let begun = self.now();
        let (limit, mut waits) = (TimeLimit::new(begun, self.options.timeout), CallWaits::since(begun));
        let deadline = limit.end;
        let key = loop {
            match self.begin_session(token, window_messages) {
                Err(ClientError::Log(LogError::Full { .. })) if self.now() < deadline => match self.take_open_answers()
                {
                    Err(ClientError::Disconnected { .. }) if self.has_other_members() => self.reconnect_until(limit)?,
                    other => other?,
                },
                begun => break begun?,
            }
        };
        while !self.session(key)?.is_open() {
            let outcome = self.take_open_answers();
            if self.session(key)?.is_open() {
                break;
            }
            let left = deadline.saturating_duration_since(self.now());
            if left.is_zero() {
                return Err(self.timed_out("a session open", self.options.timeout));
            }
            match outcome.and_then(|()| self.sleep(left.min(Duration::from_millis(20)))) {
                Err(ClientError::Disconnected { .. }) if self.has_other_members() => self.reconnect_until(limit)?,
                other => other?,
            }
            waits.log_if_due(self, "a session to be opened");
        }
        self.deferred.opened.retain(|opened| *opened != key);
        Ok(key)
    }

    /// Like [`PolledClient::open_session`], without waiting: the session can be used after
    /// [`Opened`](super::Incoming::Opened). Many sessions take one round trip.
    ///
    /// # Errors
    /// A token of 0 or a window out of range; the ring is full; the service is gone. A later poll gives
    /// [`ClientError::Refused`] if the service has too many sessions: begin it again some time later.
    pub fn begin_session(&mut self, token: u128, window_messages: u32) -> Result<SessionKey, ClientError> {
        let refuse = |option, reason| Err(ClientError::Option { option, reason });
        if token == 0 {
            return refuse("token", "a random number is expected, not 0".to_owned());
        }
        if !(1..=WINDOW_COMMANDS_MAX).contains(&window_messages) {
            return refuse("window_messages", format!("1 to {WINDOW_COMMANDS_MAX} are allowed, not {window_messages}"));
        }
        if let Some(key) = self.by_token.get(&token)
            && let session = &mut self.sessions[key.index()]
            && !session.is_lost()
        {
            let key = *key;
            if session.take_open_refused() {
                self.reopening.push_back(key);
                self.reopen()?;
            }
            return Ok(key);
        }
        self.send_open(SessionOpen { token, window_messages, shared: false, notices_seen: 0 })?;
        let key = SessionKey(self.sessions.len() as u32);
        self.sessions.push(CommandSession::new(key, token, window_messages));
        self.by_token.insert(token, key);
        Ok(key)
    }

    /// Closes a session for good; its token then opens a new one. If the service dies before it has taken the close,
    /// the session lives until it expires.
    ///
    /// # Errors
    /// [`ClientError::InFlight`] while commands have no reply; [`ClientError::NoSuchSession`]; [`LogError::Full`].
    pub fn close_session(&mut self, key: SessionKey) -> Result<(), ClientError> {
        let session = self.sessions.get_mut(key.index()).filter(|session| session.is_open());
        let session = session.ok_or(ClientError::NoSuchSession(key))?;
        let (id, in_flight) = (session.id().unwrap_or(0), session.in_flight());
        if in_flight > 0 {
            return Err(ClientError::InFlight { session: id, in_flight });
        }
        let (_, header) = session.next_command()?;
        let claim = self.link.writer.claim(HEADER_LENGTH)?;
        let length = FrameWriter::new(claim).finish(&FrameHeader { kind: Kind::SessionClose, ..header }, 0);
        self.link.writer.commit(length);
        self.by_id.remove(&id);
        self.by_token.remove(&session.token());
        session.lost();
        self.deferred.messages.retain(|message| message.session != key);
        self.flush();
        Ok(())
    }

    pub(super) fn send_open(&mut self, open: SessionOpen) -> Result<(), ClientError> {
        let claim = self.link.writer.claim(HEADER_LENGTH + SessionOpen::LENGTH)?;
        let mut writer = FrameWriter::new(claim);
        writer.payload_mut()[..SessionOpen::LENGTH].copy_from_slice(&open.to_bytes());
        let header = FrameHeader { kind: Kind::SessionOpen, ..FrameHeader::default() };
        let length = writer.finish(&header, SessionOpen::LENGTH);
        self.link.writer.commit(length);
        self.flush();
        Ok(())
    }

    pub(super) fn session(&self, key: SessionKey) -> Result<&CommandSession, ClientError> {
        self.sessions.get(key.index()).ok_or(ClientError::NoSuchSession(key))
    }

    /// `None` before the session is open.
    #[must_use]
    pub fn session_id(&self, key: SessionKey) -> Option<u64> {
        self.sessions.get(key.index()).and_then(CommandSession::id)
    }

    /// Number of the next command if it has one frame; 1 for a session new to the stream. A longer command uses a
    /// number for each frame, and so does each acknowledgement of notices. [`PolledClient::outcome`] gives the fate of lower
    /// numbers to a restarted process.
    #[must_use]
    pub fn next_session_seq(&self, key: SessionKey) -> Option<u64> {
        self.sessions.get(key.index()).filter(|session| session.is_open()).map(CommandSession::next_session_seq)
    }

    /// Session with this identifier that is not lost.
    pub(crate) fn session_of(&self, id: u64) -> Option<SessionKey> {
        let key = *self.by_id.get(&id)?;
        let session = self.sessions.get(key.index())?;
        (session.id() == Some(id) && !session.is_lost()).then_some(key)
    }

    /// Last number that a session has used, also after its loss.
    pub(crate) fn last_number(&self, key: SessionKey) -> Option<CommandNumber> {
        let session = self.sessions.get(key.index())?;
        let session_seq = session.next_session_seq() - 1;
        session.id().filter(|_| session_seq > 0).map(|session| CommandNumber { session, session_seq })
    }

    /// The first command of a lost session that the service refused, as it did not know the session any more.
    pub(crate) fn refused_from(&self, key: SessionKey) -> Option<u64> {
        self.session(key).ok().and_then(CommandSession::refused_from)
    }

    #[must_use]
    pub fn in_flight(&self, key: SessionKey) -> u32 {
        self.sessions.get(key.index()).map_or(0, CommandSession::in_flight)
    }

    #[inline]
    #[must_use]
    pub fn can_send(&self, key: SessionKey) -> bool {
        self.sessions.get(key.index()).is_some_and(CommandSession::has_room)
    }
}
