//! The session table: the last W replies of each session, which answer duplicates, and its unacknowledged notices. A
//! fold over the stream; part of every snapshot.

use crate::outputs::Outputs;
use gapless_schema::Encoding;
use gapless_transport::ConnectionId;
use gapless_wire::control::Refusal;
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::prefetch::{AHEAD_BYTES, FRAMES_AHEAD, prefetch, prefetch_bytes_for_writing};
use gapless_wire::{Frame, FrameHeader, Kind};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Unacknowledged notices of a session; one more is an error. Fixed forever, so that a replay hits the limit at the
/// same messages.
pub const NOTICES_UNRECEIVED_MAX: usize = 1024;
/// Bytes.
const REFUSAL_TEXT_MAX: usize = 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredReply {
    /// Number of the command's last frame; 0 in an empty slot.
    pub session_seq: u64,
    pub sequence: u64,
    /// Sequenced time, ns since the epoch.
    pub timestamp_ns: u64,
    /// Schema id << 16 | template id.
    pub schema: u32,
    pub flags: u16,
    pub payload: Vec<u8>,
}

impl StoredReply {
    #[inline]
    #[must_use]
    pub fn header(&self, session: u64) -> FrameHeader {
        FrameHeader {
            kind: Kind::Reply,
            flags: self.flags,
            sequence: self.sequence,
            timestamp_ns: self.timestamp_ns,
            session,
            session_seq: self.session_seq,
            schema: self.schema,
            ..FrameHeader::default()
        }
    }

    #[inline]
    pub(crate) fn begin(&mut self, frame: &Frame<'_>) {
        self.session_seq = frame.session_seq();
        self.sequence = frame.sequence();
        self.timestamp_ns = frame.timestamp_ns();
        self.schema = 0;
        self.flags = 0;
        self.payload.clear();
    }

    /// Truncates a text above 1,024 bytes.
    pub(crate) fn refuse(&mut self, refusal: &Refusal<'_>) {
        self.flags = REFUSED_FLAG;
        self.payload.resize(Refusal::FIXED_LENGTH + refusal.text.len().min(REFUSAL_TEXT_MAX), 0);
        let length = refusal.write_to(&mut self.payload);
        self.payload.truncate(length);
    }

    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        self.flags & REFUSED_FLAG != 0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredNotice {
    /// Number among the session's notices, from 1.
    pub number: u64,
    pub sequence: u64,
    /// Sequenced time, ns since the epoch.
    pub timestamp_ns: u64,
    /// Schema id << 16 | template id.
    pub schema: u32,
    pub encoding: Encoding,
    pub payload: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEntry {
    pub session: u64,
    pub token: u128,
    pub last_session_seq: u64,
    /// Handled commands; command n's reply is in slot n % W.
    pub messages: u64,
    /// Sequenced time, ns since the epoch.
    pub last_active_ns: u64,
    /// W: limit of commands in flight.
    pub window_messages: u32,
    /// Slots used so far, so that an idle session takes little memory.
    pub replies: Vec<StoredReply>,
    pub notices: VecDeque<StoredNotice>,
    pub last_notice: u64,
    /// Current connection for replies; not part of a snapshot.
    pub connection: Option<ConnectionId>,
}

impl SessionEntry {
    #[must_use]
    pub fn find_reply(&self, session_seq: u64) -> Option<&StoredReply> {
        // Without fragments the slot follows from the number; otherwise search.
        let likely = self.replies.get((session_seq.wrapping_sub(1) % u64::from(self.window_messages)) as usize);
        let likely = likely.filter(|reply| reply.session_seq == session_seq);
        if likely.is_some() {
            return likely;
        }
        self.replies.iter().find(|reply| reply.session_seq == session_seq)
    }

    #[must_use]
    pub fn first_stored(&self) -> u64 {
        self.stored_numbers().min().unwrap_or(self.last_session_seq + 1)
    }

    /// Command with a frame of this number before its last one, if certain. The frames of the first kept command are
    /// unknown if there were commands before it.
    #[must_use]
    pub fn command_over(&self, session_seq: u64) -> Option<u64> {
        let has_all = self.messages <= u64::from(self.window_messages);
        let is_certain = has_all || self.stored_numbers().any(|kept| kept < session_seq);
        self.stored_numbers().filter(|kept| *kept > session_seq).min().filter(|_| is_certain)
    }

    fn stored_numbers(&self) -> impl Iterator<Item = u64> {
        self.replies.iter().map(|reply| reply.session_seq).filter(|kept| *kept != 0)
    }

    /// Slot for the current command's reply; the command acknowledges the slot's old reply, W commands ago (decision
    /// 6).
    #[inline]
    pub(crate) fn next_slot(&mut self, session_seq: u64) -> usize {
        let slot = self.slot_of_next();
        if slot >= self.replies.len() {
            self.replies.resize_with(slot + 1, StoredReply::default);
        }
        self.messages += 1;
        self.last_session_seq = session_seq;
        slot
    }

    #[inline]
    fn slot_of_next(&self) -> usize {
        let slots = u64::from(self.window_messages);
        // A division costs as much as the rest.
        (if slots.is_power_of_two() { self.messages & (slots - 1) } else { self.messages % slots }) as usize
    }

    pub fn acknowledge_notices(&mut self, number: u64) {
        while self.notices.front().is_some_and(|notice| notice.number <= number) {
            self.notices.pop_front();
        }
    }
}

/// The sessions at a message, for handlers: equal at each replay and on each member.
pub(crate) trait NoticeReceivers {
    /// `None` if the session is not open.
    fn unacknowledged_notices(&self, session: u64) -> Option<usize>;
}

impl NoticeReceivers for SessionTable {
    fn unacknowledged_notices(&self, session: u64) -> Option<usize> {
        self.get(session).map(|entry| entry.notices.len())
    }
}

#[derive(Clone, Debug, Default)]
pub struct SessionTable {
    index: FxHashMap<u64, u32>,
    entries: Vec<Option<SessionEntry>>,
    vacant: Vec<u32>,
}

impl SessionTable {
    pub fn open(&mut self, session: u64, token: u128, window_messages: u32, now_ns: u64) -> &mut SessionEntry {
        self.insert(SessionEntry {
            session,
            token,
            last_session_seq: 0,
            messages: 0,
            last_active_ns: now_ns,
            window_messages,
            replies: Vec::new(),
            notices: VecDeque::new(),
            last_notice: 0,
            connection: None,
        })
    }

    pub fn insert(&mut self, entry: SessionEntry) -> &mut SessionEntry {
        let slot = self.vacant.pop().unwrap_or(self.entries.len() as u32);
        if slot as usize == self.entries.len() {
            self.entries.push(None);
        }
        self.index.insert(entry.session, slot);
        self.entries[slot as usize].insert(entry)
    }

    pub fn close(&mut self, session: u64) {
        if let Some(slot) = self.index.remove(&session) {
            self.entries[slot as usize] = None;
            self.vacant.push(slot);
        }
    }

    #[inline]
    #[must_use]
    pub fn get(&self, session: u64) -> Option<&SessionEntry> {
        self.entries[*self.index.get(&session)? as usize].as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, session: u64) -> Option<&mut SessionEntry> {
        self.entries[*self.index.get(&session)? as usize].as_mut()
    }

    #[inline]
    pub(crate) fn first_over_notice_limit(&self, outputs: &Outputs) -> Option<u64> {
        if outputs.notices.is_empty() { None } else { self.first_over_notice_limit_of(outputs) }
    }

    #[cold]
    fn first_over_notice_limit_of(&self, outputs: &Outputs) -> Option<u64> {
        let is_flooded = |session: u64| {
            let new = outputs.notices.iter().filter(|(other, _)| *other == session).count();
            self.unacknowledged_notices(session).is_some_and(|kept| kept + new > NOTICES_UNRECEIVED_MAX)
        };
        outputs.notices.iter().map(|(session, _)| *session).find(|session| is_flooded(*session))
    }

    /// Asks for all entries first, then for the reply slots, then for the payloads. Returns the number of commands.
    #[inline]
    pub(crate) fn prefetch(&self, sessions: &[u64]) -> usize {
        let mut entries: [Option<&Option<SessionEntry>>; FRAMES_AHEAD] = [None; FRAMES_AHEAD];
        for (entry, session) in entries.iter_mut().zip(sessions) {
            *entry = self.index.get(session).map(|slot| &self.entries[*slot as usize]);
            entry.iter().for_each(|entry| prefetch(*entry));
        }
        let mut replies = [None; FRAMES_AHEAD];
        for (reply, entry) in replies.iter_mut().zip(entries) {
            *reply = entry.and_then(Option::as_ref).and_then(|entry| entry.replies.get(entry.slot_of_next()));
            reply.iter().for_each(|reply| prefetch(*reply));
        }
        for payload in replies.into_iter().flatten().map(|reply| &reply.payload) {
            prefetch_bytes_for_writing(payload.as_ptr(), payload.capacity().min(AHEAD_BYTES));
        }
        sessions.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &SessionEntry> {
        self.entries.iter().flatten()
    }

    #[must_use]
    pub fn sorted(&self) -> Vec<&SessionEntry> {
        let mut all: Vec<&SessionEntry> = self.iter().collect();
        all.sort_unstable_by_key(|entry| entry.session);
        all
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }
}

#[cfg(test)]
mod tests;
