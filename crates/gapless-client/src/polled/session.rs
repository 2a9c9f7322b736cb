//! Commands are kept until the window has moved past them, so that they can be repeated.

use crate::ClientError;
use crate::session_key::SessionKey;
use gapless_agent::fault::mutant;
use gapless_wire::control::{SessionOpen, SessionOpened};
use gapless_wire::{FrameHeader, Kind};

pub(super) struct CommandSession {
    key: SessionKey,
    id: Option<u64>,
    open: bool,
    /// The service no longer knows it; it can never be used again.
    lost: bool,
    /// The service has refused to open it, because it had too many.
    open_refused: bool,
    /// The first number that the service refused for that.
    refused_from: Option<u64>,
    token: u128,
    window_messages: u32,
    next_session_seq: u64,
    /// Sent so far; message n lies in slot n % window.
    messages: u64,
    in_flight: u32,
    /// No room so far; new commands wait.
    resend_from: Option<u64>,
    slots: Vec<CommandSlot>,
    notices_seen: u64,
    notices_acknowledged: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyKind {
    First,
    Again,
    Acknowledgement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberState<'a> {
    Kept { frames: &'a [u8], in_flight: bool },
    Acknowledgement,
    PartOf(u64),
    InStream,
    NotSent,
}

#[derive(Clone, Copy)]
pub(super) struct UnansweredCommand<'a> {
    /// Place among the commands of all sessions.
    pub place: u64,
    pub session: SessionKey,
    pub first_seq: u64,
    pub frames: &'a [u8],
}

const NOTICES_PER_ACKNOWLEDGE: u64 = 64;

#[derive(Default)]
pub(super) struct CommandSlot {
    first_seq: u64,
    last_seq: u64,
    in_flight: bool,
    /// The application does not see the reply.
    acknowledges: bool,
    place: u64,
    /// Padded, back to back.
    frames: Vec<u8>,
}

impl CommandSlot {
    #[inline]
    pub(super) fn keep(&mut self, frames: &[u8], first_seq: u64, last_seq: u64) {
        self.frames.clear();
        self.frames.extend_from_slice(frames);
        self.first_seq = first_seq;
        self.last_seq = last_seq;
        self.acknowledges = false;
    }
}

impl CommandSession {
    pub(super) fn new(key: SessionKey, token: u128, window_messages: u32) -> Self {
        Self {
            key,
            id: None,
            open: false,
            lost: false,
            open_refused: false,
            refused_from: None,
            token,
            window_messages,
            next_session_seq: 1,
            messages: 0,
            in_flight: 0,
            resend_from: None,
            slots: (0..window_messages).map(|_| CommandSlot::default()).collect(),
            notices_seen: 0,
            notices_acknowledged: 0,
        }
    }

    pub(super) const fn id(&self) -> Option<u64> {
        self.id
    }

    pub(super) const fn token(&self) -> u128 {
        self.token
    }

    pub(super) const fn window_messages(&self) -> u32 {
        self.window_messages
    }

    pub(super) const fn notices_acknowledged(&self) -> u64 {
        self.notices_acknowledged
    }

    pub(super) const fn next_session_seq(&self) -> u64 {
        self.next_session_seq
    }

    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    pub(super) const fn is_lost(&self) -> bool {
        self.lost
    }

    pub(super) const fn is_blank(&self) -> bool {
        self.next_session_seq == 1 && self.notices_seen == 0
    }

    pub(super) const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn slot_index(&self) -> usize {
        (self.messages % u64::from(self.window_messages)) as usize
    }

    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.open && self.resend_from.is_none() && !self.slots[self.slot_index()].in_flight
    }

    #[inline]
    pub(super) fn next_command(&mut self) -> Result<(&mut CommandSlot, FrameHeader), ClientError> {
        if !self.has_room() {
            if self.lost {
                return Err(ClientError::NoSuchSession(self.key));
            }
            if !self.open {
                return Err(ClientError::NotOpen);
            }
            let (session, window_messages) = (self.id.unwrap_or(0), self.window_messages);
            return Err(ClientError::WindowFull { session, window_messages });
        }
        let header = FrameHeader {
            kind: Kind::Command,
            session: self.id.unwrap_or(0),
            session_seq: self.next_session_seq,
            ..FrameHeader::default()
        };
        let index = self.slot_index();
        Ok((&mut self.slots[index], header))
    }

    #[inline]
    pub(super) fn sent(&mut self, frames: u64, place: u64) {
        let index = self.slot_index();
        let slot = &mut self.slots[index];
        (slot.in_flight, slot.place) = (true, place);
        self.messages += 1;
        self.next_session_seq += frames;
        self.in_flight += 1;
    }

    #[inline]
    pub(super) fn answered(&mut self, session_seq: u64) -> ReplyKind {
        // Without fragments the slot follows from the number; otherwise it is searched.
        let likely = ((session_seq.wrapping_sub(1)) % u64::from(self.window_messages)) as usize;
        let is_it = |slot: &CommandSlot| slot.in_flight && slot.last_seq == session_seq;
        let is_likely = self.slots.get(likely).is_some_and(is_it);
        let index = if is_likely { Some(likely) } else { self.slots.iter().position(is_it) };
        let Some(index) = index else { return ReplyKind::Again };
        let slot = &mut self.slots[index];
        slot.in_flight = false;
        self.in_flight -= 1;
        if slot.acknowledges { ReplyKind::Acknowledgement } else { ReplyKind::First }
    }

    pub(super) fn due_acknowledgement(&self) -> Option<u64> {
        let is_due = self.notices_seen - self.notices_acknowledged >= NOTICES_PER_ACKNOWLEDGE;
        is_due.then_some(self.notices_seen)
    }

    pub(super) const fn notices_seen(&self) -> u64 {
        self.notices_seen
    }

    pub(super) fn acknowledging(&mut self, number: u64) {
        self.notices_acknowledged = number;
        let index = self.slot_index();
        self.slots[index].acknowledges = true;
    }

    pub(super) fn number_state(&self, session_seq: u64) -> NumberState<'_> {
        if session_seq == 0 || session_seq >= self.next_session_seq {
            return NumberState::NotSent;
        }
        let mut kept = self.slots.iter().filter(|slot| !slot.frames.is_empty());
        match kept.find(|slot| (slot.first_seq..=slot.last_seq).contains(&session_seq)) {
            Some(slot) if slot.acknowledges => NumberState::Acknowledgement,
            Some(slot) if slot.last_seq != session_seq => NumberState::PartOf(slot.last_seq),
            Some(CommandSlot { frames, in_flight, .. }) => NumberState::Kept { frames, in_flight: *in_flight },
            None => NumberState::InStream,
        }
    }

    pub(super) fn unanswered(&self, from: u64) -> impl Iterator<Item = UnansweredCommand<'_>> {
        let slots = self.slots.iter().filter(move |slot| slot.in_flight && slot.last_seq >= from);
        let session = self.key;
        slots.map(move |slot| {
            let CommandSlot { place, first_seq, frames, .. } = slot;
            UnansweredCommand { place: *place, session, first_seq: *first_seq, frames }
        })
    }

    pub(super) const fn resend_from(&self) -> Option<u64> {
        self.resend_from
    }

    /// `None` if all were resent.
    pub(super) const fn set_resend_from(&mut self, from: Option<u64>) {
        self.resend_from = from;
    }

    /// False if the session is not the same: the stream has lost commands that had replies, or another client uses the
    /// token.
    pub(super) fn opened(&mut self, id: u64, opened: &SessionOpened) -> bool {
        if self.id.is_none() || self.is_blank() {
            let forgotten = u64::from(mutant("forget_the_last_number") && opened.next_session_seq > 1);
            self.next_session_seq = opened.next_session_seq - forgotten;
            self.notices_seen = opened.notices_acknowledged;
            self.notices_acknowledged = opened.notices_acknowledged;
        } else {
            let oldest = self.slots.iter().filter(|slot| slot.in_flight).map(|slot| slot.first_seq).min();
            let continues = oldest.unwrap_or(self.next_session_seq)..=self.next_session_seq;
            if self.id != Some(id) || !continues.contains(&opened.next_session_seq) {
                self.lost();
                return false;
            }
        }
        self.id = Some(id);
        self.open = true;
        true
    }

    pub(super) fn begin_reopen(&mut self) -> SessionOpen {
        self.open = false;
        self.open_refused = false;
        self.resend_from = None;
        SessionOpen {
            token: self.token,
            window_messages: self.window_messages,
            shared: false,
            notices_seen: self.notices_seen,
        }
    }

    pub(super) const fn refuse_open(&mut self) {
        self.open_refused = !self.open && !self.lost;
    }

    pub(super) const fn take_open_refused(&mut self) -> bool {
        std::mem::replace(&mut self.open_refused, false)
    }

    /// The service does not know the session. Its refusal of a repeat says nothing about commands sent before that.
    pub(super) fn refused(&mut self, number: u64) {
        if !self.lost {
            let is_it = |slot: &CommandSlot| slot.in_flight && (slot.first_seq..=slot.last_seq).contains(&number);
            self.refused_from = self.slots.iter().any(is_it).then_some(number);
            self.lost();
        }
    }

    pub(super) const fn refused_from(&self) -> Option<u64> {
        self.refused_from
    }

    pub(super) fn lost(&mut self) {
        self.open = false;
        self.lost = true;
        self.in_flight = 0;
        self.resend_from = None;
        // Its entry stays, as its key is never used again; a client may lose any number of sessions.
        self.slots = Vec::new();
    }

    pub(super) fn notice(&mut self, number: u64) -> bool {
        let new = number.checked_sub(1) == Some(self.notices_seen);
        if new {
            self.notices_seen = number;
        }
        new && !(mutant("drop_notice") && number.is_multiple_of(50))
    }
}

#[cfg(test)]
mod tests;
