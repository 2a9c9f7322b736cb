//! [`Sequencer`]: what becomes of each published frame. A core without I/O: (state, frame, now) in,
//! decision out. The state is a fold of the stream, so a replay rebuilds it.

use gapless_wire::control::SessionOpen;
use gapless_wire::{Frame, Kind};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

use crate::link::ConnectionId;

/// What becomes of a published frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is the next of its session: append it.
    Append,
    /// It was appended before: never again; the service has or will have its reply.
    Repeat,
    /// The token of a session that is open already.
    Reopen {
        /// The session that the token names.
        session: u64,
        /// The next session_seq that it accepts.
        next_session_seq: u64,
    },
    /// Earlier frames of the session are missing.
    Gap {
        /// The next session_seq that it accepts.
        next_session_seq: u64,
    },
    /// There is no such session, or no longer, or the connection has not opened it.
    SessionUnknown,
    /// Not a frame that a publisher may send.
    Malformed(&'static str),
}

/// What the sequencer knows of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionState {
    /// The next session_seq that it accepts.
    pub next_session_seq: u64,
    /// Sequenced time of its last frame, ns since the epoch.
    pub last_active_ns: u64,
    /// The token that opened it.
    pub token: u128,
    connection: Option<ConnectionId>,
}

/// One total order: gapless sequences, strictly rising time, each session's frames once and in order.
pub struct Sequencer {
    last_sequence: u64,
    last_timestamp_ns: u64,
    term: u64,
    session_expiry_ns: u64,
    next_expiry_scan_ns: u64,
    sessions: FxHashMap<u64, SessionState>,
    tokens: FxHashMap<u128, u64>,
    timers: BTreeSet<(u64, u64)>,
}

/// Sessions are looked through for expired ones this often.
const EXPIRY_SCAN_INTERVAL_NS: u64 = 1_000_000_000;

impl Sequencer {
    /// An empty stream. Sessions expire after `session_expiry_ns` of sequenced time without a frame.
    #[must_use]
    pub fn new(session_expiry_ns: u64) -> Self {
        Self {
            last_sequence: 0,
            last_timestamp_ns: 0,
            term: 0,
            session_expiry_ns,
            next_expiry_scan_ns: 0,
            sessions: FxHashMap::default(),
            tokens: FxHashMap::default(),
            timers: BTreeSet::new(),
        }
    }

    /// Continues behind a snapshot: the stream stood at `sequence`.
    pub fn resume_at(&mut self, sequence: u64, timestamp_ns: u64) {
        self.last_sequence = sequence;
        self.last_timestamp_ns = timestamp_ns;
    }

    /// Puts a session of a snapshot back.
    pub fn restore_session(&mut self, session: u64, token: u128, next_session_seq: u64, last_active_ns: u64) {
        self.tokens.insert(token, session);
        self.sessions.insert(session, SessionState { next_session_seq, last_active_ns, token, connection: None });
    }

    /// Folds in a frame that is in the stream already (recovery).
    pub fn observe(&mut self, frame: &Frame<'_>) {
        self.last_sequence = frame.sequence();
        self.last_timestamp_ns = frame.timestamp_ns();
        match frame.kind() {
            Kind::SessionOpen => {
                if let Some(open) = SessionOpen::from_bytes(frame.payload()) {
                    self.restore_session(frame.session(), open.token, 1, frame.timestamp_ns());
                }
            }
            Kind::SessionClose => self.forget(frame.session()),
            _ => {
                if let Some(state) = self.sessions.get_mut(&frame.session()) {
                    state.next_session_seq = frame.session_seq().saturating_add(1);
                    state.last_active_ns = frame.timestamp_ns();
                }
            }
        }
    }

    /// A frame of `session` is on its way: its state is asked for now, while the frame is copied and checked.
    #[inline]
    pub fn prefetch(&self, session: u64) {
        if let Some(state) = self.sessions.get(&session) {
            gapless_wire::prefetch::prefetch(state);
        }
    }

    /// Decides on a frame from `connection` whose checksums are right. A frame to be appended is
    /// counted as appended: the caller appends it, or calls nothing and loses the session's order.
    #[inline]
    pub fn decide(&mut self, frame: &Frame<'_>, connection: ConnectionId) -> Decision {
        match frame.kind() {
            Kind::Command | Kind::Acknowledge | Kind::SessionClose => {}
            Kind::SessionOpen => return self.decide_open(frame),
            _ => return Decision::Malformed("a publisher may not send frames of this kind"),
        }
        let Some(state) = self.sessions.get_mut(&frame.session()) else {
            return Decision::SessionUnknown;
        };
        // A session is its token's: its identifier can be guessed, and a publisher that has died may have
        // left frames in its ring when its successor goes on.
        if state.connection != Some(connection) {
            return Decision::SessionUnknown;
        }
        let session_seq = frame.session_seq();
        if session_seq == state.next_session_seq {
            state.next_session_seq += 1;
            // The time of the last stamp is close enough, and the same at every replay within the scan's second.
            state.last_active_ns = self.last_timestamp_ns;
            if frame.kind() == Kind::SessionClose {
                self.forget(frame.session());
            }
            return Decision::Append;
        }
        if session_seq == 0 {
            return Decision::Malformed("session_seq starts at 1");
        }
        if session_seq < state.next_session_seq {
            return Decision::Repeat;
        }
        Decision::Gap { next_session_seq: state.next_session_seq }
    }

    fn decide_open(&mut self, frame: &Frame<'_>) -> Decision {
        let Some(open) = SessionOpen::from_bytes(frame.payload()) else {
            return Decision::Malformed("the payload of a session open has another form, or its window is not 1..=64");
        };
        if frame.session() != 0 || frame.session_seq() != 0 {
            return Decision::Malformed("a session is opened with session 0 and session_seq 0");
        }
        match self.tokens.get(&open.token) {
            Some(session) => {
                Decision::Reopen { session: *session, next_session_seq: self.sessions[session].next_session_seq }
            }
            None => Decision::Append,
        }
    }

    /// Remembers where a session's replies go; the caller tells the service.
    pub fn attach(&mut self, session: u64, connection: ConnectionId) {
        if let Some(state) = self.sessions.get_mut(&session) {
            state.connection = Some(connection);
        }
    }

    /// Opens the session that the frame with `sequence`, just stamped, declares.
    pub fn open(&mut self, sequence: u64, token: u128, connection: ConnectionId) {
        self.restore_session(sequence, token, 1, self.last_timestamp_ns);
        self.attach(sequence, connection);
    }

    fn forget(&mut self, session: u64) {
        if let Some(state) = self.sessions.remove(&session) {
            self.tokens.remove(&state.token);
        }
    }

    /// The next sequence and its time: max(previous + 1 ns, `epoch_ns`).
    #[inline]
    pub fn stamp(&mut self, epoch_ns: u64) -> (u64, u64) {
        self.last_sequence += 1;
        self.last_timestamp_ns = (self.last_timestamp_ns + 1).max(epoch_ns);
        (self.last_sequence, self.last_timestamp_ns)
    }

    /// The last sequence given.
    #[inline]
    #[must_use]
    pub const fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// The last time given, ns since the epoch.
    #[must_use]
    pub const fn last_timestamp_ns(&self) -> u64 {
        self.last_timestamp_ns
    }

    /// The leader's term; 0 without a cluster.
    #[inline]
    #[must_use]
    pub const fn term(&self) -> u64 {
        self.term
    }

    /// How many sessions are open.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// A session's state.
    #[must_use]
    pub fn session(&self, session: u64) -> Option<&SessionState> {
        self.sessions.get(&session)
    }

    /// A timer of the service is to fire at `deadline_ns`, sequenced time.
    pub fn set_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.timers.insert((deadline_ns, timer));
    }

    /// A timer of the service is not to fire any more.
    pub fn cancel_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.timers.remove(&(deadline_ns, timer));
    }

    /// Takes a timer that is due at `epoch_ns`: (timer, deadline).
    #[inline]
    pub fn take_due_timer(&mut self, epoch_ns: u64) -> Option<(u64, u64)> {
        let (deadline_ns, timer) = *self.timers.first()?;
        if deadline_ns > epoch_ns.max(self.last_timestamp_ns) {
            return None;
        }
        self.timers.pop_first();
        Some((timer, deadline_ns))
    }

    /// When the next timer is due, ns since the epoch.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.timers.first().map(|(deadline_ns, _)| *deadline_ns)
    }

    /// Takes sessions that have been silent for too long, once a second; the caller appends their close.
    #[inline]
    pub fn take_expired_sessions(&mut self, epoch_ns: u64) -> Vec<u64> {
        if epoch_ns < self.next_expiry_scan_ns {
            return Vec::new();
        }
        self.next_expiry_scan_ns = epoch_ns + EXPIRY_SCAN_INTERVAL_NS;
        let now_ns = epoch_ns.max(self.last_timestamp_ns);
        let is_expired = |state: &SessionState| now_ns.saturating_sub(state.last_active_ns) > self.session_expiry_ns;
        let mut expired: Vec<u64> =
            self.sessions.iter().filter(|(_, state)| is_expired(state)).map(|(session, _)| *session).collect();
        expired.sort_unstable();
        for session in &expired {
            self.forget(*session);
        }
        expired
    }
}
