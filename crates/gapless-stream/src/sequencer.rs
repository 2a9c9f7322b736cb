//! [`Sequencer`]: decides on each published frame, without I/O: (state, frame, now) in, decision out. Its state is a
//! fold of the stream.

use gapless_wire::control::{SessionOpen, TimerFired, WINDOW_MESSAGES_MAX};
use gapless_wire::descriptor::{REFUSED_FLAG, SEQUENCER_FLAGS, TRANSACTION_FLAG};
use gapless_wire::feed_session::FeedSession;
use gapless_wire::mark::Mark;
use gapless_wire::{Fragment, Frame, Kind};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

use gapless_client::feed_sessions::Feeds;
use gapless_transport::link::ConnectionId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Next frame of its session.
    Append,
    /// Asks for a timer beyond the limit: append it, marked as refused; it sets no timer, and its publisher continues.
    AppendRefused,
    /// Duplicate: not appended again; the service has or will have its reply.
    Repeat,
    /// Open request with the token of an open session.
    Reopen {
        session: u64,
        token: u128,
        next_session_seq: u64,
    },
    /// Earlier frames of the session are missing.
    Gap {
        next_session_seq: u64,
    },
    /// Unknown, ended, or not opened by this connection.
    SessionUnknown,
    Limit {
        token: u128,
    },
    /// Not appended: the service answers it from its state; without one it is refused.
    Query,
    Malformed(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequencerRules {
    /// Sequenced time without a frame until a session closes, ns.
    pub session_expiry_ns: u64,
    /// Publishers may send events and ask for timers; a service takes only commands, which have replies.
    pub takes_events: bool,
    /// Largest declared window of messages in flight.
    pub window_messages_max: u32,
    pub sessions_max: usize,
    pub timers_max: usize,
}

impl SequencerRules {
    /// Rules for a service, which keeps the replies to a session's window.
    #[must_use]
    pub const fn of_service(session_expiry_ns: u64) -> Self {
        Self {
            takes_events: false,
            window_messages_max: gapless_client::polled::WINDOW_COMMANDS_MAX,
            ..Self::of_stream(session_expiry_ns)
        }
    }

    #[must_use]
    pub const fn of_stream(session_expiry_ns: u64) -> Self {
        Self {
            session_expiry_ns,
            takes_events: true,
            window_messages_max: WINDOW_MESSAGES_MAX,
            sessions_max: 1 << 20,
            timers_max: 1 << 20,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionState {
    pub next_session_seq: u64,
    /// Sequenced time of the last frame, ns since the epoch.
    pub last_active_ns: u64,
    pub token: u128,
    /// Several connections may publish (instances of one service, whose numbers must not start over); never expires.
    pub shared: bool,
    connection: Option<ConnectionId>,
    sharing: Vec<ConnectionId>,
}

impl SessionState {
    #[inline]
    fn is_of(&self, connection: ConnectionId) -> bool {
        self.connection == Some(connection) || (!self.sharing.is_empty() && self.sharing.contains(&connection))
    }

    #[inline]
    fn append(&mut self, frames: u64, timestamp_ns: u64) {
        self.next_session_seq += frames;
        self.last_active_ns = timestamp_ns;
    }
}

/// Timer of a publisher, or of the stream's service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timer {
    /// Sequenced time, ns since the epoch.
    pub deadline_ns: u64,
    /// Session; 0 for the stream's own service.
    pub owner: u64,
    /// Chosen by the owner.
    pub timer: u64,
}

/// One total order: gapless sequences, strictly increasing time, each session's frames once and in order.
pub struct Sequencer {
    rules: SequencerRules,
    last_sequence: u64,
    last_timestamp_ns: u64,
    term: u64,
    /// Last frame before this member last led, and that frame's term.
    led: (u64, u64),
    next_expiry_scan_ns: u64,
    sessions: FxHashMap<u64, SessionState>,
    tokens: FxHashMap<u128, u64>,
    timers: BTreeSet<Timer>,
    deadlines: FxHashMap<(u64, u64), u64>,
    feeds: Feeds,
    is_halted: bool,
    has_fault_rules: bool,
}

pub(crate) const NOT_A_PUBLISHERS_FLAG: &str = "a flag of the sequencer is not a publisher's";

const EXPIRY_SCAN_INTERVAL_NS: u64 = 1_000_000_000;

impl Sequencer {
    #[must_use]
    pub fn new(rules: SequencerRules) -> Self {
        Self {
            rules,
            last_sequence: 0,
            last_timestamp_ns: 0,
            term: 0,
            led: (0, 0),
            next_expiry_scan_ns: 0,
            sessions: FxHashMap::default(),
            tokens: FxHashMap::default(),
            timers: BTreeSet::new(),
            deadlines: FxHashMap::default(),
            feeds: Feeds::default(),
            is_halted: false,
            has_fault_rules: false,
        }
    }

    /// Continues after a snapshot.
    pub fn resume_at(&mut self, sequence: u64, timestamp_ns: u64) {
        self.last_sequence = sequence;
        self.last_timestamp_ns = timestamp_ns;
    }

    pub fn restore_session(&mut self, session: u64, token: u128, next_session_seq: u64, last_active_ns: u64) {
        self.tokens.insert(token, session);
        let (connection, sharing) = (None, Vec::new());
        let state = SessionState { next_session_seq, last_active_ns, token, shared: false, connection, sharing };
        self.sessions.insert(session, state);
    }

    pub fn restore_shared(&mut self, session: u64) {
        if let Some(state) = self.sessions.get_mut(&session) {
            state.shared = true;
        }
    }

    pub fn restore_feeds(&mut self, feeds: Feeds, is_halted: bool) {
        self.feeds = feeds;
        self.is_halted = is_halted;
    }

    /// Applies a frame of the stream, in recovery and as a follower.
    pub fn observe(&mut self, frame: &Frame<'_>) {
        self.last_sequence = frame.sequence();
        self.last_timestamp_ns = frame.timestamp_ns();
        self.term = frame.term();
        match frame.kind() {
            Kind::SessionOpen => {
                if let Some(open) = SessionOpen::from_bytes(frame.payload()) {
                    self.restore_session(frame.session(), open.token, 1, frame.timestamp_ns());
                    if open.shared {
                        self.restore_shared(frame.session());
                    }
                }
            }
            Kind::SessionClose => self.forget(frame.session()),
            Kind::Mark => {
                if let Some(mark) = Mark::from_bytes(frame.payload()) {
                    self.note(frame.sequence(), mark);
                }
            }
            // Set again by the stream's own service when this member leads.
            Kind::Timer if frame.flags() & TRANSACTION_FLAG != 0 => {}
            Kind::Timer => {
                if let Some(fired) = TimerFired::from_bytes(frame.payload()) {
                    self.fired(frame.session(), fired);
                }
            }
            kind => {
                if let Some(state) = self.sessions.get_mut(&frame.session()) {
                    state.next_session_seq = frame.session_seq().saturating_add(1);
                    state.last_active_ns = frame.timestamp_ns();
                }
                if kind == Kind::TimerRequest
                    && frame.flags() & REFUSED_FLAG == 0
                    && let Some(request) = TimerFired::from_bytes(frame.payload())
                {
                    self.request_timer(frame.session(), request);
                }
            }
        }
    }

    /// Prefetches the sessions decided next; returns their number.
    #[inline]
    pub fn prefetch(&self, sessions: &[u64]) -> usize {
        for state in sessions.iter().filter_map(|session| self.sessions.get(session)) {
            gapless_wire::prefetch::prefetch(state);
        }
        sessions.len()
    }

    /// Decides on a frame with valid checksums. [`Decision::Append`] counts it: the caller must stamp it at `epoch_ns`
    /// and append it, or the session loses its order.
    #[inline]
    pub fn decide(&mut self, frame: &Frame<'_>, connection: ConnectionId, epoch_ns: u64) -> Decision {
        if frame.flags() & SEQUENCER_FLAGS != 0 {
            return Decision::Malformed(NOT_A_PUBLISHERS_FLAG);
        }
        match frame.kind() {
            Kind::Command | Kind::Acknowledge | Kind::SessionClose => {}
            Kind::Event | Kind::TimerRequest if self.rules.takes_events => {}
            Kind::SessionOpen => return self.decide_open(frame),
            Kind::Query => return decide_query(frame),
            _ => return Decision::Malformed("a publisher may not send frames of this kind"),
        }
        let timestamp_ns = self.next_timestamp_ns(epoch_ns);
        let Some(state) = self.sessions.get_mut(&frame.session()).filter(|state| state.is_of(connection)) else {
            return Decision::SessionUnknown;
        };
        match decide_by_number(frame.session_seq(), state.next_session_seq) {
            Decision::Append => {}
            other => return other,
        }
        if frame.kind() == Kind::TimerRequest {
            let Some(request) = TimerFired::from_bytes(frame.payload()) else {
                return Decision::Malformed("the payload of a timer request has another form");
            };
            if frame.flags() & REFUSED_FLAG != 0 {
                return Decision::Malformed("whether a timer is refused is for the sequencer to say");
            }
            state.append(1, timestamp_ns);
            let is_known = self.deadlines.contains_key(&(frame.session(), request.timer));
            if request.deadline_ns != 0 && !is_known && self.deadlines.len() >= self.rules.timers_max {
                return Decision::AppendRefused;
            }
            self.request_timer(frame.session(), request);
            return Decision::Append;
        }
        state.append(1, timestamp_ns);
        if frame.kind() == Kind::SessionClose {
            self.forget(frame.session());
        }
        Decision::Append
    }

    /// Next session_seq of a session, for a frame of `connection`.
    ///
    /// # Errors
    /// [`Decision::SessionUnknown`].
    #[inline]
    pub fn expected(&self, session: u64, connection: ConnectionId) -> Result<u64, Decision> {
        // A session belongs to the owner of its token: its identifier can be guessed, and a dead publisher's ring may
        // have frames when its successor continues.
        match self.sessions.get(&session) {
            Some(state) if state.is_of(connection) => Ok(state.next_session_seq),
            _ => Err(Decision::SessionUnknown),
        }
    }

    /// Reverts the last counted frame, which is not appended.
    #[cold]
    pub(crate) fn take_back(&mut self, session: u64, last_timestamp_ns: u64) {
        if let Some(state) = self.sessions.get_mut(&session) {
            state.next_session_seq -= 1;
        }
        self.take_stamp_back(last_timestamp_ns);
    }

    /// Reverts the last stamp, whose frame is not appended.
    #[cold]
    pub(crate) const fn take_stamp_back(&mut self, last_timestamp_ns: u64) {
        self.last_sequence -= 1;
        self.last_timestamp_ns = last_timestamp_ns;
    }

    /// Counts a message of `frames` frames.
    pub fn count_message(&mut self, session: u64, frames: u64) {
        if let Some(state) = self.sessions.get_mut(&session) {
            state.append(frames, self.last_timestamp_ns);
        }
    }

    #[cold]
    fn decide_open(&mut self, frame: &Frame<'_>) -> Decision {
        let Some(open) = SessionOpen::from_bytes(frame.payload()) else {
            return Decision::Malformed("the payload of a session open has another form");
        };
        if open.window_messages > self.rules.window_messages_max {
            return Decision::Malformed("a session's window is larger than this stream allows");
        }
        // Clients of a service wait for the reply to a close.
        if frame.session_seq() != 0 || (frame.session() != 0 && !self.rules.takes_events) {
            return Decision::Malformed("a session is opened with session 0 and session_seq 0");
        }
        match self.tokens.get(&open.token) {
            Some(session) if [0, *session].contains(&frame.session()) => {
                let next_session_seq = self.sessions[session].next_session_seq;
                Decision::Reopen { session: *session, token: open.token, next_session_seq }
            }
            // A publisher that names a session accepts no other: it has published the close of that one.
            _ if frame.session() != 0 => Decision::SessionUnknown,
            _ if self.sessions.len() >= self.rules.sessions_max => Decision::Limit { token: open.token },
            _ => Decision::Append,
        }
    }

    /// Lets `connection` publish to `session`. If it and the session are `shared`, the previous connections stay; else
    /// it replaces them.
    pub fn attach(&mut self, session: u64, connection: ConnectionId, shared: bool) {
        let Some(state) = self.sessions.get_mut(&session) else { return };
        if !(shared && state.shared) {
            state.sharing.clear();
        } else if let Some(other) = state.connection.filter(|other| *other != connection) {
            state.sharing.retain(|each| *each != connection);
            state.sharing.push(other);
        }
        state.connection = Some(connection);
    }

    /// Removes a connection from its shared sessions.
    pub fn detach(&mut self, connection: ConnectionId) {
        for state in self.sessions.values_mut() {
            state.sharing.retain(|each| *each != connection);
            if state.connection == Some(connection) {
                state.connection = state.sharing.pop();
            }
        }
    }

    /// Opens the session of the frame just stamped.
    pub fn open(&mut self, sequence: u64, open: &SessionOpen, connection: ConnectionId) {
        self.restore_session(sequence, open.token, 1, self.last_timestamp_ns);
        if open.shared {
            self.restore_shared(sequence);
        }
        self.attach(sequence, connection, open.shared);
    }

    fn forget(&mut self, session: u64) {
        if let Some(state) = self.sessions.remove(&session) {
            self.tokens.remove(&state.token);
            let timers = &mut self.timers;
            self.deadlines.retain(|(owner, timer), deadline_ns| {
                if *owner == session {
                    timers.remove(&Timer { deadline_ns: *deadline_ns, owner: *owner, timer: *timer });
                }
                *owner != session
            });
        }
    }

    /// Next sequence and its time: max(previous + 1 ns, `epoch_ns`).
    #[inline]
    pub fn stamp(&mut self, epoch_ns: u64) -> (u64, u64) {
        self.last_sequence += 1;
        self.last_timestamp_ns = self.next_timestamp_ns(epoch_ns);
        (self.last_sequence, self.last_timestamp_ns)
    }

    #[inline]
    fn next_timestamp_ns(&self, epoch_ns: u64) -> u64 {
        (self.last_timestamp_ns + 1).max(epoch_ns)
    }

    #[must_use]
    pub const fn rules(&self) -> &SequencerRules {
        &self.rules
    }

    #[inline]
    #[must_use]
    pub const fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Last time assigned, ns since the epoch.
    #[must_use]
    pub const fn last_timestamp_ns(&self) -> u64 {
        self.last_timestamp_ns
    }

    /// Term of the leader; 0 without a cluster.
    #[inline]
    #[must_use]
    pub const fn term(&self) -> u64 {
        self.term
    }

    /// Stamps frames with `term` from now on.
    pub const fn begin_term(&mut self, term: u64) {
        self.led = (self.last_sequence, self.term);
        self.term = term;
    }

    /// Stops stamping. A term without frames never was in the stream: the next frame may be of an earlier term.
    pub const fn end_term(&mut self) {
        let (behind, before) = self.led;
        if self.last_sequence == behind {
            self.term = before;
        }
    }

    /// Detaches all publishers; each must reopen its sessions.
    pub fn detach_all(&mut self) {
        for state in self.sessions.values_mut() {
            state.connection = None;
            state.sharing.clear();
        }
    }

    pub(crate) fn is_detached(&self, session: u64) -> bool {
        self.sessions.get(&session).is_some_and(|state| state.connection.is_none())
    }

    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    #[must_use]
    pub fn session(&self, session: u64) -> Option<&SessionState> {
        self.sessions.get(&session)
    }

    /// Open sessions, sorted by identifier.
    #[must_use]
    pub fn sessions(&self) -> Vec<(u64, &SessionState)> {
        let mut sessions: Vec<_> = self.sessions.iter().map(|(session, state)| (*session, state)).collect();
        sessions.sort_unstable_by_key(|(session, _)| *session);
        sessions
    }

    #[must_use]
    pub const fn feeds(&self) -> &Feeds {
        &self.feeds
    }

    /// Forgets feed sessions without frames left in the journal.
    pub fn forget_feeds_before(&mut self, first_sequence: u64) {
        self.feeds.forget_before(first_sequence);
    }

    /// Whether the stream is halted: publishers' messages wait.
    #[must_use]
    pub const fn is_halted(&self) -> bool {
        self.is_halted
    }

    /// Whether a feed session has ended and no other begun: no frames may stand there.
    #[must_use]
    pub fn is_between_feeds(&self) -> bool {
        self.feeds.newest().is_some_and(|feed| feed.last_sequence.is_some())
    }

    /// Whether publishers' messages wait: halted, or between two feed sessions.
    #[inline]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_halted || self.is_between_feeds()
    }

    pub fn note(&mut self, sequence: u64, mark: Mark<'_>) {
        match mark {
            Mark::FeedBegan { feed_session } => self.feeds.begin(feed_session, sequence),
            Mark::FeedEnded { .. } => self.feeds.end(sequence),
            Mark::Halted { .. } => self.is_halted = true,
            Mark::Resumed => self.is_halted = false,
            Mark::ServiceVersion { .. } | Mark::Skipped { .. } => {}
            Mark::FaultRules(_) => self.has_fault_rules = true,
        }
    }

    /// Whether a mark with fault rules was applied.
    #[must_use]
    pub const fn has_fault_rules(&self) -> bool {
        self.has_fault_rules
    }

    #[must_use]
    pub fn feed_session(&self) -> Option<FeedSession> {
        self.feeds.current().map(|feed| feed.name)
    }

    fn request_timer(&mut self, owner: u64, request: TimerFired) {
        let TimerFired { timer, deadline_ns } = request;
        if let Some(before_ns) = self.deadlines.remove(&(owner, timer)) {
            self.timers.remove(&Timer { deadline_ns: before_ns, owner, timer });
        }
        if deadline_ns != 0 {
            self.deadlines.insert((owner, timer), deadline_ns);
            self.timers.insert(Timer { deadline_ns, owner, timer });
        }
    }

    fn fired(&mut self, owner: u64, fired: TimerFired) {
        let TimerFired { timer, deadline_ns } = fired;
        self.timers.remove(&Timer { deadline_ns, owner, timer });
        if self.deadlines.get(&(owner, timer)) == Some(&deadline_ns) {
            self.deadlines.remove(&(owner, timer));
        }
    }

    pub fn restore_timer(&mut self, timer: Timer) {
        self.request_timer(timer.owner, TimerFired { timer: timer.timer, deadline_ns: timer.deadline_ns });
    }

    /// Publishers' timers, by deadline.
    pub fn timers(&self) -> impl Iterator<Item = &Timer> {
        self.timers.iter()
    }

    /// Sets a timer of the stream's own service, which remembers its timers itself.
    pub fn set_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.timers.insert(Timer { deadline_ns, owner: 0, timer });
    }

    pub fn cancel_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.timers.remove(&Timer { deadline_ns, owner: 0, timer });
    }

    /// Forgets the timers of the stream's own service, which sets them again.
    pub fn forget_own_timers(&mut self) {
        self.timers.retain(|timer| timer.owner != 0);
        self.deadlines.retain(|(owner, _), _| *owner != 0);
    }

    /// First due timer, until [`Sequencer::take_timer`].
    #[inline]
    #[must_use]
    pub fn due_timer(&self, epoch_ns: u64) -> Option<Timer> {
        let first = *self.timers.first()?;
        (first.deadline_ns <= epoch_ns.max(self.last_timestamp_ns)).then_some(first)
    }

    /// Removes a timer whose frame is appended.
    pub fn take_timer(&mut self, timer: Timer) {
        self.fired(timer.owner, TimerFired { timer: timer.timer, deadline_ns: timer.deadline_ns });
    }

    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.timers.first().map(|timer| timer.deadline_ns)
    }

    /// Finds sessions silent too long, once a second. Each stays open until its close is appended and
    /// [`Sequencer::close_expired`] called.
    #[inline]
    pub fn look_for_expired_sessions(&mut self, epoch_ns: u64) -> Vec<u64> {
        if epoch_ns < self.next_expiry_scan_ns {
            return Vec::new();
        }
        self.next_expiry_scan_ns = epoch_ns + EXPIRY_SCAN_INTERVAL_NS;
        let is_expired = |session: &u64| self.is_expired(*session, epoch_ns);
        let mut expired: Vec<u64> = self.sessions.keys().copied().filter(is_expired).collect();
        expired.sort_unstable();
        expired
    }

    /// Whether a session was silent too long; shared ones never are.
    #[must_use]
    pub fn is_expired(&self, session: u64, epoch_ns: u64) -> bool {
        let now_ns = epoch_ns.max(self.last_timestamp_ns);
        let is_silent = |state: &SessionState| {
            !state.shared && now_ns.saturating_sub(state.last_active_ns) > self.rules.session_expiry_ns
        };
        self.sessions.get(&session).is_some_and(is_silent)
    }

    /// Closes a session whose close is appended.
    pub fn close_expired(&mut self, session: u64) {
        self.forget(session);
    }
}

#[cold]
pub(crate) fn decide_query(frame: &Frame<'_>) -> Decision {
    let is_plain = frame.flags() & (REFUSED_FLAG | SEQUENCER_FLAGS) == 0 && frame.fragment() == Fragment::WHOLE;
    match (frame.session(), frame.session_seq()) {
        (0, 1..) if is_plain => Decision::Query,
        _ => Decision::Malformed("a query has one frame, session 0, and numbers from 1 on"),
    }
}

#[inline]
pub(crate) const fn decide_by_number(session_seq: u64, expected: u64) -> Decision {
    if session_seq == expected {
        Decision::Append
    } else if session_seq == 0 {
        Decision::Malformed("session_seq starts at 1")
    } else if session_seq < expected {
        Decision::Repeat
    } else {
        Decision::Gap { next_session_seq: expected }
    }
}

#[cfg(test)]
mod tests;
