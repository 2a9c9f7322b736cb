//! The outcome of a command, also of one sent by a process that has died; and resending a command under its number.

use super::incoming::OwnedReply;
use super::session::NumberState;
use super::waiting::TimeLimit;
use super::{MessageType, PolledClient, append_all};
use crate::session_key::SessionKey;
use crate::{ClientError, CommandNumber};
use gapless_agent::fault::mutant;
use gapless_log::LogError;
use gapless_wire::control::RefusalCode;
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, Kind};
use std::time::Duration;

const ASK_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(OwnedReply),
    Refused {
        code: RefusalCode,
        /// Given by the application's handler; 0 if it gave none.
        detail: u64,
        reason: String,
    },
    /// Done, but the reply was longer than allowed and is lost.
    ReplyTooLong {
        sequence: u64,
        length_bytes: u64,
    },
    /// The command is not done yet, or no service runs on the connected member. Ask again.
    NotYetDone,
    /// No effect, unless it is resent.
    NotArrived {
        /// First number that the stream does not have.
        next_session_seq: u64,
    },
    /// Done or refused; the reply was discarded for those of later commands.
    NoLongerKept {
        /// First number whose reply is kept.
        first_kept: u64,
    },
    /// The number does not belong to a command. A command meant for it never arrives.
    NoCommand {
        /// Longer command with this frame; `None` for an acknowledgement of notices.
        part_of: Option<u64>,
    },
}

impl Outcome {
    fn of(answer: Result<OwnedReply, ClientError>) -> Result<Self, ClientError> {
        Ok(match answer {
            Ok(reply) => Self::Done(reply),
            Err(ClientError::Refused { code: RefusalCode::ReplyExpired, detail, .. }) => {
                Self::NoLongerKept { first_kept: detail }
            }
            Err(ClientError::Refused { code: RefusalCode::NotACommand, detail, .. }) => {
                Self::NoCommand { part_of: (detail != 0).then_some(detail) }
            }
            Err(ClientError::Refused { code, detail, reason }) => Self::Refused { code, detail, reason },
            Err(ClientError::ReplyTooLong { sequence, length_bytes }) => Self::ReplyTooLong { sequence, length_bytes },
            Err(error) => return Err(error),
        })
    }
}

impl PolledClient {
    /// Asks for the fate of the session's command `session_seq`, and waits for the answer. The command may be of this
    /// process, such as one whose [`PolledClient::call`] ended with [`ClientError::OutcomeUnknown`], or of an earlier owner
    /// of the session (see [`PolledClient::resume_session`]). Asking changes nothing and can be repeated as long as the reply
    /// is kept: for as many later numbers as the session's window has.
    ///
    /// # Errors
    /// - [`ClientError::OutcomeUnknown`]: this process has sent the command, and there is no answer within `timeout`;
    ///   or the service is gone and does not come back in that time;
    /// - [`ClientError::NotOpen`], [`ClientError::Disconnected`] or [`ClientError::TimedOut`]: the session was not
    ///   open, and did not open in that time;
    /// - [`ClientError::NoSuchSession`], [`ClientError::OtherHistory`].
    pub fn outcome(&mut self, key: SessionKey, session_seq: u64, timeout: Duration) -> Result<Outcome, ClientError> {
        self.asks = true;
        let outcome = self.ask(key, session_seq, timeout);
        self.asks = false;
        outcome
    }

    fn ask(&mut self, key: SessionKey, session_seq: u64, timeout: Duration) -> Result<Outcome, ClientError> {
        let limit = TimeLimit::new(self.now(), timeout);
        let deadline = limit.end;
        while !self.session(key)?.is_open() && !self.session(key)?.is_lost() && self.now() < deadline {
            self.await_reply(Some(key), None, deadline, limit)?;
        }
        let mut asks = !matches!(self.number_state(key, session_seq)?, NumberState::Kept { in_flight: true, .. });
        loop {
            let is_in_stream = match self.number_state(key, session_seq)? {
                NumberState::NotSent => {
                    let next_session_seq = self.session(key)?.next_session_seq();
                    return Ok(Outcome::NotArrived { next_session_seq });
                }
                NumberState::Acknowledgement => return Ok(Outcome::NoCommand { part_of: None }),
                NumberState::PartOf(command) => return Ok(Outcome::NoCommand { part_of: Some(command) }),
                NumberState::Kept { in_flight, .. } => !in_flight,
                NumberState::InStream => true,
            };
            if asks {
                match self.repeat(key, session_seq) {
                    Ok(()) | Err(ClientError::Log(LogError::Full { .. })) => {}
                    Err(error) => return Err(error),
                }
            }
            asks = true;
            let until = deadline.min(self.now() + ASK_INTERVAL);
            let reason = loop {
                match self.await_reply(Some(key), Some(session_seq), until, limit) {
                    Ok(Some(answer)) => return Outcome::of(answer),
                    Ok(None) if self.now() < until => {}
                    Ok(None) if self.now() < deadline => break None,
                    Ok(None) if is_in_stream || self.is_accepted(key, session_seq) => return Ok(Outcome::NotYetDone),
                    Ok(None) => break Some(self.no_reply_reason(key, session_seq, timeout)),
                    Err(error @ (ClientError::NoSuchSession(_) | ClientError::OtherHistory { .. })) => {
                        return Err(error);
                    }
                    Err(error) => break Some(error.to_string()),
                }
            };
            if let Some(reason) = reason {
                return Err(ClientError::OutcomeUnknown { session_seq, reason });
            }
        }
    }

    /// Sends a command under a number recorded for it: it takes effect once, however often it is sent, and by however
    /// many processes in succession. If the stream has the number already, only its outcome is requested, and the
    /// payload is ignored.
    ///
    /// A process that must not lose commands when it is killed records each with its number before sending it. It
    /// starts by resending, in order, those that have no outcome yet:
    ///
    /// ```
    /// # use gapless_client::{PolledClient, ClientError, CommandNumber, SessionKey, polled::MessageType};
    /// # use std::{collections::BTreeMap, time::Duration};
    /// fn send(client: &mut PolledClient, session: SessionKey, notes: &mut BTreeMap<CommandNumber, Vec<u8>>, message: MessageType) -> Result<(), ClientError> {
    ///     for (number, payload) in std::mem::take(notes) {
    ///         client.send_as(session, number, message, &payload)?;
    ///         let outcome = client.outcome(session, number.session_seq, Duration::from_secs(5))?;
    ///         println!("{number}: {outcome:?}");
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// Record the number returned by [`PolledClient::number_for`] just before sending.
    ///
    /// # Errors
    /// - as for [`PolledClient::send`]; nothing was sent, but numbers before it may have been used up;
    /// - [`ClientError::OtherSession`]: the number is of another session, and it is no longer known whether its command
    ///   took effect;
    /// - [`ClientError::NotSent`]: this process has used the number for something else;
    /// - [`ClientError::Option`]: the session's last process cannot have assigned this number.
    pub fn send_as(
        &mut self,
        key: SessionKey,
        number: CommandNumber,
        message: MessageType,
        payload: &[u8],
    ) -> Result<(), ClientError> {
        let renumbers = mutant("send_again_under_a_new_number");
        let number = self.number_for(key, payload.len()).filter(|_| renumbers).unwrap_or(number);
        let session_seq = number.session_seq;
        let is_new = self.number_state(key, session_seq)? == NumberState::NotSent;
        if let Some(session) = self.session(key)?.id().filter(|session| *session != number.session) {
            return Err(ClientError::OtherSession { number, session });
        }
        if !is_new {
            return self.repeat(key, session_seq).map(|()| self.flush());
        }
        let session = self.session(key)?;
        let (next, window) = (session.next_session_seq(), u64::from(session.window_messages()));
        let frames = self.frames_for(payload.len());
        let first = (session_seq + 1).saturating_sub(frames);
        if !(next..=next + window).contains(&first) {
            let reason = format!(
                "{session_seq} is not the number of a command of {frames} frames where {next} is the next: up to {window} may be \
                 left out"
            );
            return Err(ClientError::Option { option: "session_seq", reason });
        }
        while self.session(key)?.next_session_seq() < first {
            let acknowledged = self.session(key)?.notices_acknowledged();
            self.acknowledge(key, acknowledged)?;
        }
        let encode = |buffer: &mut [u8]| {
            buffer.copy_from_slice(payload);
            Ok(payload.len())
        };
        let sent = self.send(key, message, payload.len(), encode)?;
        assert_eq!(sent, session_seq, "its frames were counted");
        Ok(())
    }

    /// Resends the session's command `session_seq`, or asks for its reply if another process had sent it, without a
    /// second effect. The original reply arrives with `first: false`.
    ///
    /// # Errors
    /// [`ClientError::NotSent`]; [`ClientError::NotOpen`]; [`ClientError::NoSuchSession`]; [`LogError::Full`].
    pub fn repeat(&mut self, key: SessionKey, session_seq: u64) -> Result<(), ClientError> {
        self.number_state(key, session_seq)?;
        let session = &self.sessions[key.index()];
        match session.number_state(session_seq) {
            NumberState::Kept { frames, .. } => append_all(&mut self.link, frames),
            NumberState::InStream => self.ask_for_reply(key, session_seq),
            NumberState::Acknowledgement | NumberState::PartOf(_) | NumberState::NotSent => {
                let (session, next_session_seq) = (session.id().unwrap_or(0), session.next_session_seq());
                Err(ClientError::NotSent { session, session_seq, next_session_seq })
            }
        }
    }

    /// Number of the session's next command with such a payload: that of its last frame. `None` if the session is not
    /// open.
    #[must_use]
    pub fn number_for(&self, key: SessionKey, payload_length: usize) -> Option<CommandNumber> {
        let session_seq = self.next_session_seq(key)? + self.frames_for(payload_length) - 1;
        Some(CommandNumber { session: self.session_id(key)?, session_seq })
    }

    /// Number of the next command with such a payload, if it can be sent.
    ///
    /// # Errors
    /// The session is not open; the payload is too long.
    pub(crate) fn number_to_send(&self, key: SessionKey, payload_length: usize) -> Result<CommandNumber, ClientError> {
        self.check_length(payload_length)?;
        self.number_for(key, payload_length).ok_or(ClientError::NotOpen)
    }

    fn frames_for(&self, payload_length: usize) -> u64 {
        payload_length.div_ceil(self.link.welcome.frame_length_max as usize - HEADER_LENGTH).max(1) as u64
    }

    fn number_state(&self, key: SessionKey, session_seq: u64) -> Result<NumberState<'_>, ClientError> {
        let session = self.session(key)?;
        if session.is_lost() {
            return Err(ClientError::NoSuchSession(key));
        }
        if session.is_open() { Ok(session.number_state(session_seq)) } else { Err(ClientError::NotOpen) }
    }

    /// Sends an empty command under a number that the stream has: the sequencer appends nothing, and the service
    /// answers.
    fn ask_for_reply(&mut self, key: SessionKey, session_seq: u64) -> Result<(), ClientError> {
        let session = self.session(key)?.id().unwrap_or(0);
        let claim = self.link.writer.claim(HEADER_LENGTH)?;
        let header = FrameHeader { kind: Kind::Command, session, session_seq, ..FrameHeader::default() };
        let length = FrameWriter::new(claim).finish(&header, 0);
        self.link.writer.commit(length);
        Ok(())
    }
}
