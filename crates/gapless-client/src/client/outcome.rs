//! The outcome of a command, also of one that a process has sent which has died since; and sending one again under the
//! number that it had.

use super::incoming::OwnedReply;
use super::session::Known;
use super::waiting::TimeLimit;
use super::{Client, MessageType, append_all};
use crate::session_key::SessionKey;
use crate::{ClientError, CommandNumber};
use gapless_agent::fault::mutant;
use gapless_log::LogError;
use gapless_wire::control::RefusalCode;
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, Kind};
use std::time::Duration;

/// A service that has not answered for so long is asked again.
const ASK_INTERVAL: Duration = Duration::from_millis(200);

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done; this is its reply.
    Done(OwnedReply),
    /// It was refused, and had no effect.
    Refused {
        /// The kind of refusal.
        code: RefusalCode,
        /// The application's own code; 0 where its handler has given none.
        detail: u64,
        /// The service's text.
        reason: String,
    },
    /// It is done; its reply is longer than any may be, and nobody has it.
    ReplyTooLong {
        /// The command's place in the total order.
        sequence: u64,
        /// The length that its handler asked for.
        length_bytes: u64,
    },
    /// The stream has it, and it will be done or refused once; there was no answer in time, because it is not done yet or
    /// no service runs where this client is connected. Ask again.
    NotYetDone,
    /// It has not arrived, has no effect, and never has one unless it is sent again.
    NotArrived {
        /// The first number that the stream does not have.
        next_session_seq: u64,
    },
    /// It was done or refused, and its reply made room for those of later commands.
    NoLongerKept {
        /// The first number whose reply is kept; those of all later ones are.
        first_kept: u64,
    },
    /// The number is no command's. A command that was to have it has not arrived and never does; it may be sent under another.
    NoCommand {
        /// The longer command whose frame has this number; `None`: the client has acknowledged notices with it.
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

impl Client {
    /// Asks for the fate of the session's command `session_seq`, and waits for the answer: of a command of this
    /// process, such as one whose [`Client::call`] ended with [`ClientError::OutcomeUnknown`], or of one that had the
    /// session before (see [`Client::resume_session`]). It changes nothing, and asking again gives the same, as long as
    /// the reply is kept: until so many numbers later as the session's window has. A service that is restarted
    /// meanwhile is connected to again.
    ///
    /// Other messages that arrive meanwhile are handed out by the next [`Client::poll`]; among them, with `first:
    /// false`, may be the answer once more, where it took longer than 200 ms and was asked for again.
    ///
    /// # Errors
    /// - [`ClientError::OutcomeUnknown`]: this process has sent the command, and there is no answer within `timeout`; or the
    ///   service is gone and does not come back in that time;
    /// - [`ClientError::NotOpen`], [`ClientError::Disconnected`] or [`ClientError::TimedOut`]: the session was not open, and is
    ///   not open in that time;
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
            self.await_reply(key, None, deadline, limit)?;
        }
        // A command that was just sent is asked for if its reply stays away.
        let mut asks = !matches!(self.known(key, session_seq)?, Known::Kept { in_flight: true, .. });
        loop {
            let is_in_stream = match self.known(key, session_seq)? {
                Known::NotSent => {
                    let next_session_seq = self.session(key)?.next_session_seq();
                    return Ok(Outcome::NotArrived { next_session_seq });
                }
                Known::Acknowledgement => return Ok(Outcome::NoCommand { part_of: None }),
                Known::PartOf(command) => return Ok(Outcome::NoCommand { part_of: Some(command) }),
                Known::Kept { in_flight, .. } => !in_flight,
                Known::InStream => true,
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
                match self.await_reply(key, Some(session_seq), until, limit) {
                    Ok(Some(answer)) => return Outcome::of(answer),
                    Ok(None) if self.now() < until => {}
                    Ok(None) if self.now() < deadline => break None,
                    Ok(None) if is_in_stream || self.is_accepted(key, session_seq) => return Ok(Outcome::NotYetDone),
                    Ok(None) => break Some(self.why_no_reply(key, session_seq, timeout)),
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

    /// Sends a command under a number that somebody has noted for it: it has its effect once, however often
    /// and by however many processes, one after the other, it is sent. A number that the stream has already is asked for, and
    /// the payload not looked at; otherwise it is sent, and the numbers before it that nobody has used are used up.
    ///
    /// A process that must not lose its commands when it is killed notes each with its number before it sends it, and begins
    /// by sending those again, in their order, that have no outcome yet:
    ///
    /// ```
    /// # use gapless_client::{Client, ClientError, CommandNumber, SessionKey, client::MessageType};
    /// # use std::{collections::BTreeMap, time::Duration};
    /// fn send(client: &mut Client, session: SessionKey, notes: &mut BTreeMap<CommandNumber, Vec<u8>>, message: MessageType) -> Result<(), ClientError> {
    ///     for (number, payload) in std::mem::take(notes) {
    ///         client.send_as(session, number, message, &payload)?;
    ///         let outcome = client.outcome(session, number.session_seq, Duration::from_secs(5))?;
    ///         println!("{number}: {outcome:?}");
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// The number to note is that of [`Client::number_for`], asked for just before.
    ///
    /// # Errors
    /// - as for [`Client::send`]; nothing was sent, but numbers before it may have been used up;
    /// - [`ClientError::OtherSession`]: the number is of another session, and nobody can say any more whether its command had
    ///   its effect;
    /// - [`ClientError::NotSent`]: this process has used the number for something else;
    /// - [`ClientError::Option`]: the number is none that this session's last process can have given.
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
        let is_new = self.known(key, session_seq)? == Known::NotSent;
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

    /// Sends the command `session_seq` of a session once more, or asks for its reply if another process had sent it. It has
    /// no second effect; its original reply comes again, by [`Client::poll`], with `first: false`. [`Client::outcome`] waits
    /// for it.
    ///
    /// # Errors
    /// [`ClientError::NotSent`]; [`ClientError::NotOpen`]; [`ClientError::NoSuchSession`]; [`LogError::Full`].
    pub fn repeat(&mut self, key: SessionKey, session_seq: u64) -> Result<(), ClientError> {
        self.known(key, session_seq)?;
        let session = &self.sessions[key.index()];
        match session.known(session_seq) {
            Known::Kept { frames, .. } => append_all(&mut self.link, frames),
            Known::InStream => self.ask_for_reply(key, session_seq),
            Known::Acknowledgement | Known::PartOf(_) | Known::NotSent => {
                let (session, next_session_seq) = (session.id().unwrap_or(0), session.next_session_seq());
                Err(ClientError::NotSent { session, session_seq, next_session_seq })
            }
        }
    }

    /// The number that the session's next command gets, of a payload of so many bytes: that of the last of its frames.
    /// `None` if the session is not open.
    #[must_use]
    pub fn number_for(&self, key: SessionKey, payload_length: usize) -> Option<CommandNumber> {
        let session_seq = self.next_session_seq(key)? + self.frames_for(payload_length) - 1;
        Some(CommandNumber { session: self.session_id(key)?, session_seq })
    }

    fn frames_for(&self, payload_length: usize) -> u64 {
        payload_length.div_ceil(self.link.welcome.frame_length_max as usize - HEADER_LENGTH).max(1) as u64
    }

    /// The state of a number of an open session.
    fn known(&self, key: SessionKey, session_seq: u64) -> Result<Known<'_>, ClientError> {
        let session = self.session(key)?;
        if session.is_lost() {
            return Err(ClientError::NoSuchSession(key));
        }
        if session.is_open() { Ok(session.known(session_seq)) } else { Err(ClientError::NotOpen) }
    }

    /// An empty command under a number that the stream has: the sequencer appends no repeat, and the service answers it.
    fn ask_for_reply(&mut self, key: SessionKey, session_seq: u64) -> Result<(), ClientError> {
        let session = self.session(key)?.id().unwrap_or(0);
        let claim = self.link.writer.claim(HEADER_LENGTH)?;
        let header = FrameHeader { kind: Kind::Command, session, session_seq, ..FrameHeader::default() };
        let length = FrameWriter::new(claim).finish(&header, 0);
        self.link.writer.commit(length);
        Ok(())
    }
}
