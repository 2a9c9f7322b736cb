//! [`SequencerState`]: a sequencer's state in a file. It lets older segments of the journal be deleted, and shortens
//! the replay at a restart.
//!
//! ```text
//!  0  u64  magic "GAPSEQS\1"             then, for each feed session (32 bytes):
//!  8  u128 stream id                      0  name, 10 bytes, padded with spaces; 6 bytes 0
//! 24  u64  incarnation                   16  u64 first sequence
//! 32  u64  sequence                      24  u64 last sequence, 0 while it is open
//! 40  u64  timestamp, ns                 for each session (48 bytes):
//! 48  u32  flags: bit 0 halted            0  u64 session, 8 u128 token, 24 u64 next session_seq,
//! 52  u32  feed sessions                 32  u64 last active, ns, 40 u64 flags: bit 0 shared
//! 56  u32  sessions                      for each timer (24 bytes):
//! 60  u32  timers                         0  u64 deadline, ns, 8 u64 owner, 16 u64 timer
//! 64  …                                  and at the end u32 CRC-32C of all before it
//! ```

use crate::sequencer::{Sequencer, SequencerRules, Timer};
use gapless_agent::checked_file;
use gapless_client::feed_sessions::{Feed, Feeds};
use gapless_log::StreamIdentity;
use gapless_wire::checksum::crc32c;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::fields::{FieldWriter, u32_at, u64_at, u128_at};
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

const MAGIC: u64 = u64::from_le_bytes(*b"GAPSEQS\x01");
const FIXED_LENGTH: usize = 64;
const FEED_LENGTH: usize = 32;
const SESSION_LENGTH: usize = 48;
const TIMER_LENGTH: usize = 24;
const HALTED_FLAG: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    pub session: u64,
    pub token: u128,
    pub next_session_seq: u64,
    /// Sequenced time of the last frame, ns since the epoch.
    pub last_active_ns: u64,
    /// Several connections may publish.
    pub shared: bool,
}

/// State of a sequencer at a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequencerState {
    pub identity: StreamIdentity,
    pub sequence: u64,
    /// Last assigned time, ns since the epoch.
    pub timestamp_ns: u64,
    pub is_halted: bool,
    /// Oldest first.
    pub feeds: Vec<Feed>,
    pub sessions: Vec<SessionRecord>,
    pub timers: Vec<Timer>,
}

impl SequencerState {
    #[must_use]
    pub fn of(sequencer: &Sequencer, identity: StreamIdentity) -> Self {
        let record = |(session, state): (u64, &crate::sequencer::SessionState)| SessionRecord {
            session,
            token: state.token,
            next_session_seq: state.next_session_seq,
            last_active_ns: state.last_active_ns,
            shared: state.shared,
        };
        Self {
            identity,
            sequence: sequencer.last_sequence(),
            timestamp_ns: sequencer.last_timestamp_ns(),
            is_halted: sequencer.is_halted(),
            feeds: sequencer.feeds().all().to_vec(),
            sessions: sequencer.sessions().into_iter().map(record).collect(),
            timers: sequencer.timers().copied().collect(),
        }
    }

    #[must_use]
    pub fn restore(&self, rules: SequencerRules) -> Sequencer {
        let mut sequencer = Sequencer::new(rules);
        sequencer.resume_at(self.sequence, self.timestamp_ns);
        sequencer.restore_feeds(Feeds::restored(self.feeds.clone()), self.is_halted);
        for each in &self.sessions {
            sequencer.restore_session(each.session, each.token, each.next_session_seq, each.last_active_ns);
            if each.shared {
                sequencer.restore_shared(each.session);
            }
        }
        for timer in &self.timers {
            sequencer.restore_timer(*timer);
        }
        sequencer
    }

    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = FIXED_LENGTH
            + self.feeds.len() * FEED_LENGTH
            + self.sessions.len() * SESSION_LENGTH
            + self.timers.len() * TIMER_LENGTH
            + 4;
        let mut bytes = Vec::with_capacity(length);
        let mut out = FieldWriter::new(&mut bytes);
        out.u64(MAGIC).u128(self.identity.stream_id).u64(self.identity.incarnation);
        out.u64(self.sequence).u64(self.timestamp_ns).u32(if self.is_halted { HALTED_FLAG } else { 0 });
        out.u32(self.feeds.len() as u32).u32(self.sessions.len() as u32).u32(self.timers.len() as u32);
        for feed in &self.feeds {
            out.bytes(&feed.name.bytes()).bytes(&[0; 6]);
            out.u64(feed.first_sequence).u64(feed.last_sequence.unwrap_or(0));
        }
        for each in &self.sessions {
            out.u64(each.session).u128(each.token).u64(each.next_session_seq);
            out.u64(each.last_active_ns).u64(u64::from(each.shared));
        }
        for timer in &self.timers {
            out.u64(timer.deadline_ns).u64(timer.owner).u64(timer.timer);
        }
        let sum = crc32c(&bytes);
        FieldWriter::new(&mut bytes).u32(sum);
        bytes
    }

    fn declared_length(head: &[u8]) -> usize {
        let [feeds, sessions, timers] = [52, 56, 60].map(|offset| u32_at(head, offset) as usize);
        FIXED_LENGTH + feeds * FEED_LENGTH + sessions * SESSION_LENGTH + timers * TIMER_LENGTH + 4
    }

    /// Reads a file; only its head, if the length in it is wrong.
    ///
    /// # Errors
    /// An error of the operating system, or the fault of the contents.
    pub fn read(path: &Path) -> io::Result<Result<Self, String>> {
        let mut file = checked_file::open(path)?;
        let mut head = Vec::new();
        (&file).take(FIXED_LENGTH as u64).read_to_end(&mut head)?;
        let length = file.metadata()?.len();
        if head.len() == FIXED_LENGTH && u64_at(&head, 0) == MAGIC {
            let declared = Self::declared_length(&head) as u64;
            if length != declared {
                return Ok(Err(format!("it has {length} bytes, and its first bytes say {declared}")));
            }
            file.rewind()?;
            head = checked_file::read_from(&file, length)?;
        }
        Ok(Self::from_bytes(&head))
    }

    /// Parses the contents of a file.
    ///
    /// # Errors
    /// The fault of the contents.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (content, sum) = bytes.split_last_chunk::<4>().ok_or("it is empty")?;
        if content.len() < FIXED_LENGTH || u64_at(content, 0) != MAGIC {
            return Err("it does not begin as a sequencer's state does".to_owned());
        }
        let (found, computed) = (u32::from_le_bytes(*sum), crc32c(content));
        if found != computed {
            return Err(format!("its checksum is {found:#010x}, its bytes give {computed:#010x}"));
        }
        let count_at = |offset| u32_at(content, offset) as usize;
        let (feeds, sessions) = (count_at(52), count_at(56));
        let expected = Self::declared_length(content) - 4;
        let flags = u32_at(content, 48);
        if content.len() != expected || flags & !HALTED_FLAG != 0 {
            return Err(format!("{} bytes and flags {flags:#x}, {expected} bytes are expected", content.len()));
        }
        let (feeds, rest) = content[FIXED_LENGTH..].split_at(feeds * FEED_LENGTH);
        let (sessions, timers) = rest.split_at(sessions * SESSION_LENGTH);
        let state = Self {
            identity: StreamIdentity::at(content, 8),
            sequence: u64_at(content, 32),
            timestamp_ns: u64_at(content, 40),
            is_halted: flags & HALTED_FLAG != 0,
            feeds: feeds.chunks_exact(FEED_LENGTH).map(feed).collect::<Option<_>>().ok_or("a feed session's name")?,
            sessions: sessions.chunks_exact(SESSION_LENGTH).map(session).collect(),
            timers: timers.chunks_exact(TIMER_LENGTH).map(timer).collect(),
        };
        Ok(state)
    }
}

fn feed(bytes: &[u8]) -> Option<Feed> {
    let name = FeedSession::from_bytes(*bytes.first_chunk()?).filter(|name| !name.is_blank())?;
    let last = u64_at(bytes, 24);
    Some(Feed { name, first_sequence: u64_at(bytes, 16), last_sequence: (last != 0).then_some(last) })
}

fn session(bytes: &[u8]) -> SessionRecord {
    SessionRecord {
        session: u64_at(bytes, 0),
        token: u128_at(bytes, 8),
        next_session_seq: u64_at(bytes, 24),
        last_active_ns: u64_at(bytes, 32),
        shared: u64_at(bytes, 40) & 1 != 0,
    }
}

fn timer(bytes: &[u8]) -> Timer {
    Timer { deadline_ns: u64_at(bytes, 0), owner: u64_at(bytes, 8), timer: u64_at(bytes, 16) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> SequencerState {
        let name = |text| FeedSession::new(text).unwrap();
        SequencerState {
            identity: StreamIdentity { stream_id: 7 << 64 | 5, incarnation: 3 },
            sequence: 1_000,
            timestamp_ns: 99,
            is_halted: true,
            feeds: vec![
                Feed { name: name("A"), first_sequence: 1, last_sequence: Some(10) },
                Feed { name: name("B"), first_sequence: 11, last_sequence: None },
            ],
            sessions: vec![SessionRecord {
                session: 2,
                token: 1 << 100,
                next_session_seq: 50,
                last_active_ns: 98,
                shared: true,
            }],
            timers: vec![Timer { deadline_ns: 120, owner: 2, timer: 1 }],
        }
    }

    #[test]
    fn state_round_trip() {
        let state = sample();
        let read = SequencerState::from_bytes(&state.to_bytes()).unwrap();
        assert_eq!(read, state);
        let sequencer = read.restore(SequencerRules::of_stream(1));
        assert_eq!(SequencerState::of(&sequencer, state.identity), state);
        assert!(sequencer.is_halted() && sequencer.session(2).unwrap().next_session_seq == 50);
    }

    #[test]
    fn wrong_file_length_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes = sample().to_bytes();
        std::fs::write(file.path(), &bytes).unwrap();
        assert_eq!(SequencerState::read(file.path()).unwrap(), Ok(sample()));
        for length in [0, 63, bytes.len() as u64 - 1, 1 << 40] {
            file.as_file().set_len(length).unwrap();
            let reason = SequencerState::read(file.path()).unwrap().unwrap_err();
            let expected = if length < 64 { "begin" } else { &format!("it has {length} bytes") };
            assert!(reason.contains(expected) || length == 0, "{reason}");
            std::fs::write(file.path(), &bytes).unwrap();
        }
    }

    #[test]
    fn all_damage_is_detected() {
        let bytes = sample().to_bytes();
        for position in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[position] ^= 0x10;
            assert!(SequencerState::from_bytes(&damaged).is_err(), "byte {position}");
            assert!(SequencerState::from_bytes(&bytes[..position]).is_err(), "cut at {position}");
        }
    }
}
