//! [`Fragments`]: messages of which not every part is there yet. A message enters the stream whole, so its parts
//! wait here, in memory of a stated size.

use crate::link::ConnectionId;
use crate::sequencer::{Decision, compare};
use gapless_wire::{Fragment, Frame, FrameHeader, Kind};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The parts of one message so far.
struct Partial {
    /// Who sent them.
    connection: ConnectionId,
    /// The header of the first part.
    begin: FrameHeader,
    /// Each part, padded, back to back.
    bytes: Vec<u8>,
    frames: Vec<Range<usize>>,
    /// Bytes that are set aside for it.
    reserved_bytes: usize,
}

/// What became of a part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Collected {
    /// It is kept; more parts are missing.
    Kept,
    /// It was the last one that was missing: the message can be appended.
    Complete,
    /// There is no memory for one more message now: the part is to be offered again.
    Later,
    /// It is not taken, and this is why.
    Answer(Decision),
}

/// The unfinished messages of all sessions.
pub(crate) struct Fragments {
    partial: FxHashMap<u64, Partial>,
    /// Sum of what is set aside.
    reserved_bytes: usize,
    /// Its limit; one message is always let in.
    bytes_max: usize,
    /// The longest message, with headers and padding.
    message_bytes_max: usize,
}

impl Fragments {
    pub fn new(bytes_max: usize, message_bytes_max: usize) -> Self {
        Self { partial: FxHashMap::default(), reserved_bytes: 0, bytes_max, message_bytes_max }
    }

    /// Whether there is something of a message of `session`.
    pub fn has(&self, session: u64) -> bool {
        self.partial.contains_key(&session)
    }

    /// Offers a part of a message of a session that accepts `expected` next. `frame` is whole, checked, and of the
    /// session's publisher `connection`; `padded` is the same with its padding.
    pub fn add(&mut self, connection: ConnectionId, frame: &Frame<'_>, padded: &[u8], expected: u64) -> Collected {
        let header = frame.header();
        let malformed = |reason| Collected::Answer(Decision::Malformed(reason));
        if !matches!(header.kind, Kind::Command | Kind::Event) {
            return malformed("only messages come in fragments");
        }
        let Some(partial) = self.partial.get_mut(&header.session) else {
            match compare(header.session_seq, expected) {
                Decision::Append if header.fragment.index == 0 => {}
                Decision::Append => return malformed("a message begins with its fragment 0"),
                other => return Collected::Answer(other),
            }
            if header.session_seq.checked_add(u64::from(header.fragment.count)).is_none() {
                return malformed("a fragment's session_seq runs over");
            }
            let count = usize::from(header.fragment.count);
            // All but the last are of one length.
            let reserved_bytes = count.saturating_mul(padded.len());
            if reserved_bytes > self.message_bytes_max {
                return malformed("a message is longer than the stream's limit");
            }
            if !self.partial.is_empty() && self.reserved_bytes + reserved_bytes > self.bytes_max {
                return Collected::Later;
            }
            self.reserved_bytes += reserved_bytes;
            let bytes = Vec::with_capacity(reserved_bytes);
            let mut partial = Partial { connection, begin: header, bytes, frames: Vec::new(), reserved_bytes };
            partial.push(frame.length(), padded);
            let is_complete = header.fragment.is_last();
            self.partial.insert(header.session, partial);
            return if is_complete { Collected::Complete } else { Collected::Kept };
        };
        let have = partial.frames.len() as u64;
        match compare(header.session_seq, partial.begin.session_seq + have) {
            Decision::Append => {}
            other => return Collected::Answer(other),
        }
        let fragment = Fragment { index: have as u16, count: partial.begin.fragment.count };
        let due = FrameHeader { session_seq: header.session_seq, fragment, ..partial.begin };
        if header != due {
            return malformed("fragments differ only in session_seq and index, from 0");
        }
        if partial.bytes.len() + padded.len() > partial.reserved_bytes {
            return malformed("no fragment is longer than its message's first");
        }
        partial.push(frame.length(), padded);
        if header.fragment.is_last() { Collected::Complete } else { Collected::Kept }
    }

    /// The number that the unfinished message of `session` expects next, if there is one.
    #[inline]
    pub fn expected(&self, session: u64) -> Option<u64> {
        if self.partial.is_empty() {
            return None;
        }
        let partial = self.partial.get(&session)?;
        Some(partial.begin.session_seq + partial.frames.len() as u64)
    }

    /// The complete message of `session`: its bytes, and each frame's place in them.
    pub fn complete(&self, session: u64) -> (&[u8], &[Range<usize>]) {
        let partial = self.partial.get(&session).expect("the caller was told that it is complete");
        (&partial.bytes, &partial.frames)
    }

    /// Forgets what there is of a message of `session`.
    pub fn forget(&mut self, session: u64) {
        if let Some(partial) = self.partial.remove(&session) {
            self.reserved_bytes -= partial.reserved_bytes;
        }
    }

    /// Forgets what there is of messages that came from `connection`.
    pub fn forget_from(&mut self, connection: ConnectionId) {
        let reserved_bytes = &mut self.reserved_bytes;
        self.partial.retain(|_, partial| {
            if partial.connection == connection {
                *reserved_bytes -= partial.reserved_bytes;
            }
            partial.connection != connection
        });
    }
}

impl Partial {
    fn push(&mut self, length: usize, padded: &[u8]) {
        let start = self.bytes.len();
        self.frames.push(start..start + length);
        self.bytes.extend_from_slice(padded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_wire::{FrameWriter, HEADER_LENGTH, aligned_length};

    fn part(session: u64, session_seq: u64, index: u16, count: u16, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; aligned_length(HEADER_LENGTH + length)];
        let fragment = Fragment { index, count };
        let header = FrameHeader { session, session_seq, fragment, ..FrameHeader::default() };
        FrameWriter::new(&mut bytes).finish(&header, length);
        bytes
    }

    fn add(fragments: &mut Fragments, bytes: &[u8], expected: u64) -> Collected {
        fragments.add(ConnectionId(1), &Frame::parse(bytes).unwrap(), bytes, expected)
    }

    #[test]
    fn parts_are_kept_until_all_are_there() {
        let mut fragments = Fragments::new(1 << 20, 1 << 20);
        assert_eq!(add(&mut fragments, &part(1, 5, 0, 3, 100), 5), Collected::Kept);
        assert_eq!(
            add(&mut fragments, &part(1, 7, 2, 3, 10), 5),
            Collected::Answer(Decision::Gap { next_session_seq: 6 })
        );
        assert_eq!(add(&mut fragments, &part(1, 5, 0, 3, 100), 5), Collected::Answer(Decision::Repeat));
        assert_eq!(add(&mut fragments, &part(1, 6, 1, 3, 100), 5), Collected::Kept);
        assert_eq!(add(&mut fragments, &part(1, 7, 2, 3, 10), 5), Collected::Complete);
        let (bytes, frames) = fragments.complete(1);
        assert_eq!((bytes.len(), frames.len()), (2 * 168 + 80, 3));
        assert_eq!(Frame::parse(&bytes[frames[2].clone()]).unwrap().session_seq(), 7);
        fragments.forget(1);
        assert!(!fragments.has(1) && fragments.reserved_bytes == 0);
    }

    #[test]
    fn what_does_not_belong_together_is_malformed() {
        let is_malformed = |collected| matches!(collected, Collected::Answer(Decision::Malformed(_)));
        let mut fragments = Fragments::new(1 << 20, 1 << 12);
        assert!(is_malformed(add(&mut fragments, &part(1, 1, 1, 3, 10), 1)), "no beginning");
        assert!(is_malformed(add(&mut fragments, &part(1, 1, 0, 60, 100), 1)), "too long");
        assert!(is_malformed(add(&mut fragments, &part(1, u64::MAX - 1, 0, 2, 100), u64::MAX - 1)), "runs over");
        assert_eq!(add(&mut fragments, &part(1, 1, 0, 3, 10), 1), Collected::Kept);
        assert!(is_malformed(add(&mut fragments, &part(1, 2, 1, 4, 10), 1)), "another count");
        assert!(is_malformed(add(&mut fragments, &part(1, 2, 2, 3, 10), 1)), "another index");
        assert!(is_malformed(add(&mut fragments, &part(1, 2, 1, 3, 999), 1)), "longer than the first");
    }

    #[test]
    fn memory_is_bounded_and_the_first_is_always_let_in() {
        let mut fragments = Fragments::new(100, 1 << 20);
        assert_eq!(add(&mut fragments, &part(1, 1, 0, 2, 100), 1), Collected::Kept);
        assert_eq!(add(&mut fragments, &part(2, 1, 0, 2, 100), 1), Collected::Later);
        fragments.forget_from(ConnectionId(1));
        assert_eq!(fragments.reserved_bytes, 0);
        assert_eq!(add(&mut fragments, &part(2, 1, 0, 2, 100), 1), Collected::Kept);
    }
}
