//! [`Connection`]: the polled client below a channel, with a session for each lane. The owner of its lock sends
//! waiting commands and takes arrived replies; no one sleeps or connects with the lock.

use super::call_state::{CallKind, CallState, Ending, Sending};
use super::notice::{Notice, NoticesLost};
use super::outbox::Outbox;
use super::query_lane::QueryLane;
use super::questions::Questions;
use crate::polled::{Attempt, Incoming, PolledClient, Resumption, SavedSession, SleepLimit, WINDOW_COMMANDS_MAX};
use crate::{ClientError, CommandNumber, SessionKey};
use gapless_agent::monotonic::monotonic_ns;
use gapless_agent::wait_notices::WaitNotices;
use gapless_log::LogError;
use gapless_transport::interest::Interest;
use gapless_transport::publisher_link::{PublisherLink, REASON_WITHIN};
use gapless_transport::token::random_token;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// Replies taken by one pass.
const REPLIES_MAX: usize = 256;
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);

pub(super) struct Connection {
    client: PolledClient,
    lanes: Vec<LaneSession>,
    queries: QueryLane,
    questions: Questions,
    by_session: FxHashMap<SessionKey, usize>,
    /// Room of each lane during a pass.
    room: Vec<usize>,
    /// Number of this connection, for copies of its descriptors.
    generation: u64,
    /// Passes of other threads than the watcher that took replies.
    passes_of_callers: u64,
    /// The ring has no room, or unsendable commands have left room to others: nothing wakes the watcher for that.
    is_stuck: bool,
    lost: Option<LostConnection>,
    connected_at: Instant,
    /// Attempts since a connection has lasted for [`CALM`].
    attempts: u32,
    /// When sessions are opened again that the service has refused because it had too many.
    reopens_at: Option<Instant>,
    /// Last time of sending, in ns of a coarse clock.
    sent_ns: u64,
    /// When the sessions of listening tasks were last kept from expiry, by the same clock.
    pub kept_ns: u64,
    /// There is no service any more, for this reason.
    ended: Option<String>,
    /// Record of the only session, of a durable client.
    record: Option<Arc<dyn SessionRecord>>,
}

/// Record of a session that outlives its process.
pub(super) trait SessionRecord: Send + Sync {
    /// Records a session before it is opened.
    ///
    /// # Errors
    /// It must not be opened.
    fn save(&self, session: SavedSession) -> Result<(), ClientError>;

    /// Takes the session as it is after a pass that has received something.
    fn see(&self, session: SavedSession);

    /// The client ends: commands without a reply are left to the next life.
    fn end(&self);
}

struct LostConnection {
    next_attempt: Instant,
    /// The reason of its failure is waited for until then.
    reason_until: Instant,
    waits: WaitNotices,
}

#[derive(Default)]
struct LaneSession {
    /// `None` before it is begun, and after it is lost.
    key: Option<SessionKey>,
    /// Commands that have a place in the window, but no number yet.
    ready: VecDeque<Arc<CallState>>,
    /// Commands by number, in the order in which they were sent.
    in_flight: VecDeque<(u64, Arc<CallState>)>,
    /// The last number that was sent by an earlier connection.
    resent_to: u64,
}

impl LaneSession {
    /// Ends the commands in flight, except those that cannot have had an effect: of numbers from `refused_from` on, and
    /// never sent by another connection. They wait again, in their order.
    fn lose_session(&mut self, refused_from: Option<u64>, outbox: &Outbox, wakers: &mut Vec<Waker>) {
        self.key = None;
        let resent_to = std::mem::take(&mut self.resent_to);
        let is_refused = |number| refused_from.is_some_and(|from| number >= from) && number > resent_to;
        while let Some((number, state)) = self.in_flight.pop_back() {
            if !is_refused(number) {
                wakers.extend(state.end(&outbox.waiting, |number, _| Ending::unknown(number, SESSION_LOST.to_owned())));
            } else if state.unsend(&outbox.waiting) {
                self.ready.push_front(state);
            }
        }
    }

    /// Takes the command of a reply out; that is nearly always the first.
    fn answered(&mut self, number: u64) -> Option<Arc<CallState>> {
        let first = self.in_flight.pop_front_if(|(first, _)| *first == number);
        let found = first.or_else(|| {
            let at = self.in_flight.iter().position(|(sent, _)| *sent == number)?;
            self.in_flight.remove(at)
        });
        found.map(|(_, state)| state)
    }

    fn room(&self, client: &PolledClient) -> usize {
        let open = self.key.filter(|key| client.next_session_seq(*key).is_some());
        let taken = |key| client.in_flight(key) as usize + self.ready.len();
        open.map_or(0, |key| (WINDOW_COMMANDS_MAX as usize).saturating_sub(taken(key)))
    }
}

/// Result of a pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pass {
    pub received: usize,
    /// More has arrived, of which nothing wakes the watcher.
    pub has_input: bool,
    /// A fault or a full ring, new with this pass, that only the watcher attends to.
    pub needs_watcher: bool,
}

/// The next step of a lost connection.
pub(super) enum Reconnection {
    Connected,
    /// Until the next step.
    Pause(Duration),
    /// Connects without the lock; [`Connection::end_attempt`] takes the result.
    Attempt(Attempt),
    Ended,
}

impl Connection {
    pub fn new(mut client: PolledClient, lanes: usize) -> Self {
        client.wait_for_nothing();
        Self {
            client,
            lanes: (0..lanes).map(|_| LaneSession::default()).collect(),
            queries: QueryLane::default(),
            questions: Questions::default(),
            by_session: FxHashMap::default(),
            room: Vec::new(),
            generation: 0,
            passes_of_callers: 0,
            is_stuck: false,
            lost: None,
            connected_at: Instant::now(),
            attempts: 0,
            reopens_at: None,
            sent_ns: coarse_ns(),
            kept_ns: coarse_ns(),
            ended: None,
            record: None,
        }
    }

    /// Takes over a session that is open, and its record.
    pub fn adopt(&mut self, key: SessionKey, record: Arc<dyn SessionRecord>) {
        self.lanes[0].key = Some(key);
        self.by_session.insert(key, 0);
        self.record = Some(record);
    }

    /// Sends waiting commands, takes replies, and sends again where they made room. Wake `wakers` with no lock held.
    pub fn pass(&mut self, outbox: &Outbox, wakers: &mut Vec<Waker>) -> Pass {
        if let Some(reason) = &self.ended {
            outbox.queue.move_out(
                |_| usize::MAX,
                |state| wakers.extend(state.end(&outbox.waiting, |number, _| Ending::unknown(number, reason.clone()))),
            );
            return Pass::default();
        }
        if self.lost.is_some() {
            return Pass::default();
        }
        let was_stuck = std::mem::take(&mut self.is_stuck);
        let passed = self.send_and_receive(outbox, wakers);
        let needs_watcher = self.is_stuck && !was_stuck || passed.is_err();
        if let Err(error) = &passed {
            self.failed(error, outbox, wakers);
        }
        let received = passed.unwrap_or(0);
        Pass { received, has_input: received > 0 && self.client.has_input(), needs_watcher }
    }

    /// A pass of a thread that is not the watcher.
    pub fn pass_of_caller(&mut self, outbox: &Outbox, wakers: &mut Vec<Waker>) -> Pass {
        let pass = self.pass(outbox, wakers);
        self.passes_of_callers += u64::from(pass.received > 0);
        pass
    }

    fn send_and_receive(&mut self, outbox: &Outbox, wakers: &mut Vec<Waker>) -> Result<usize, ClientError> {
        self.reopen_refused();
        self.open_and_send(outbox, wakers)?;
        self.keep_sessions(outbox);
        let received = self.receive(outbox, wakers)?;
        // A lost session is replaced at once: the loss may be no message, and no wake-up follows.
        if received > 0 || !self.has_all_sessions() {
            self.open_and_send(outbox, wakers)?;
            self.client.flush();
        }
        self.is_stuck |= self.client.has_unsent();
        Ok(received)
    }

    #[inline]
    fn open_and_send(&mut self, outbox: &Outbox, wakers: &mut Vec<Waker>) -> Result<(), ClientError> {
        if !self.has_all_sessions() {
            self.open_missing_sessions()?;
        }
        self.send(outbox, wakers);
        self.ask(outbox, wakers);
        Ok(())
    }

    #[inline]
    fn has_all_sessions(&self) -> bool {
        self.by_session.len() == self.lanes.len()
    }

    #[cold]
    fn open_missing_sessions(&mut self) -> Result<(), ClientError> {
        for (number, lane) in self.lanes.iter_mut().enumerate().filter(|(_, lane)| lane.key.is_none()) {
            let new = self.client.unopened_session(random_token(), WINDOW_COMMANDS_MAX);
            if self.record.as_ref().is_some_and(|record| record.save(new).is_err()) {
                self.reopens_at = Some(Instant::now() + PAUSE_MAX);
                return Ok(());
            }
            match self.client.begin_session(new.token, new.window_messages) {
                Ok(key) => {
                    lane.key = Some(key);
                    self.by_session.insert(key, number);
                }
                Err(ClientError::Log(LogError::Full { .. })) => {
                    self.is_stuck = true;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[inline]
    fn reopen_refused(&mut self) {
        if self.reopens_at.is_some_and(|reopens_at| Instant::now() >= reopens_at) {
            self.reopens_at = None;
            self.client.reopen_refused();
        }
    }

    /// Whether to keep commands back: while the client was idle, the service has gone. They are surely not sent, and
    /// wait for the next connection, whose sessions may be others.
    fn has_gone_meanwhile(&mut self) -> bool {
        let now_ns = coarse_ns();
        let is_idle = now_ns.saturating_sub(self.sent_ns) >= IDLE_NS;
        if is_idle && !self.client.is_connected() {
            // The next pass finds the loss, after the last replies.
            self.is_stuck = true;
            return true;
        }
        self.sent_ns = now_ns;
        false
    }

    fn send(&mut self, outbox: &Outbox, wakers: &mut Vec<Waker>) {
        if outbox.waiting.count() == 0 || self.has_gone_meanwhile() {
            return;
        }
        let Self { client, lanes, queries, questions, room, .. } = self;
        room.clear();
        room.extend(lanes.iter().map(|lane| lane.room(client)));
        queries.make_room(client);
        questions.make_room();
        room.extend([queries.room(), questions.room()]);
        outbox.queue.move_out(
            |lane| std::mem::take(&mut room[lane]),
            |state| match lanes.get_mut(state.lane) {
                Some(lane) => lane.ready.push_back(state),
                None => match state.kind {
                    CallKind::Outcome(number) => questions.push(number, state),
                    CallKind::Query { .. } | CallKind::Command => queries.ready.push_back(state),
                },
            },
        );
        if !queries.send(client, outbox, wakers) {
            self.is_stuck = true;
            return;
        }
        for lane in lanes {
            let Some(key) = lane.key else { continue };
            while let Some(state) = lane.ready.front()
                && client.can_send(key)
            {
                let sending = state.send_by(&outbox.waiting, |message, bytes| {
                    if let Some(record) = &state.record {
                        record.number(client.number_to_send(key, bytes.len())?)?;
                    }
                    let session_seq = client.enqueue(key, message, bytes.len(), |buffer| {
                        buffer.copy_from_slice(bytes);
                        Ok(bytes.len())
                    })?;
                    Ok(CommandNumber { session: client.session_id(key).unwrap_or(0), session_seq })
                });
                match sending {
                    Sending::Sent(number) => {
                        lane.in_flight.extend(lane.ready.pop_front().map(|state| (number.session_seq, state)));
                    }
                    Sending::Skipped => _ = lane.ready.pop_front(),
                    Sending::Failed(ClientError::WindowFull { .. } | ClientError::NotOpen) => break,
                    Sending::Failed(ClientError::Log(LogError::Full { .. })) => {
                        self.is_stuck = true;
                        return;
                    }
                    Sending::Failed(error) => {
                        wakers.extend(state.end(&outbox.waiting, |_, _| Ending::unsendable(&error)));
                        lane.ready.pop_front();
                        self.is_stuck = true;
                    }
                }
            }
        }
    }

    #[inline]
    fn ask(&mut self, outbox: &Outbox, wakers: &mut Vec<Waker>) {
        if self.questions.are_due() {
            let Self { client, lanes, by_session, questions, .. } = self;
            let is_own = |session| by_session.contains_key(&session);
            let is_in_flight = |session, number| {
                let lane = by_session.get(&session).map(|lane| &lanes[*lane]);
                lane.is_some_and(|lane| lane.in_flight.iter().any(|(sent, _)| *sent == number))
            };
            self.is_stuck |= !questions.ask(client, is_own, is_in_flight, outbox, wakers);
        }
    }

    /// A session that only listens would expire, and its notices be lost without a word.
    #[inline]
    fn keep_sessions(&mut self, outbox: &Outbox) {
        if outbox.subscribers.are_none() {
            return;
        }
        let now_ns = coarse_ns();
        if now_ns.saturating_sub(self.kept_ns) < KEEP_NS {
            return;
        }
        self.kept_ns = now_ns;
        for key in self.lanes.iter().filter_map(|lane| lane.key) {
            // Without room it is in use.
            let _ = self.client.keep_session(key);
        }
    }

    fn receive(&mut self, outbox: &Outbox, wakers: &mut Vec<Waker>) -> Result<usize, ClientError> {
        let Self { client, lanes, by_session, reopens_at, questions, .. } = self;
        let (mut notices, mut last, mut lost) = (0, None, Vec::new());
        let mut seen = client.seen_sequence();
        let received = client.poll(REPLIES_MAX, |incoming| match incoming {
            Incoming::Reply { session, reply, first: true } => {
                let lane = match last {
                    Some((key, lane)) if key == session => lane,
                    _ => {
                        let Some(lane) = by_session.get(&session).copied() else { return };
                        last = Some((session, lane));
                        lane
                    }
                };
                // Before the end of its call, which may ask for it at once.
                if reply.sequence > seen {
                    seen = reply.sequence;
                    outbox.see(seen);
                }
                questions.answered(session, &reply, outbox, wakers);
                let state = lanes[lane].answered(reply.session_seq);
                wakers.extend(state.and_then(|state| {
                    state.end(&outbox.waiting, |number, bytes| Ending::of_reply(number, bytes, &reply))
                }));
            }
            Incoming::SessionLost { session } => {
                last = None;
                lost.extend(by_session.remove(&session).map(|lane| (session, lane)));
            }
            Incoming::Opened { session } => {
                questions.repeat(session);
                if reopens_at.is_none() {
                    outbox.set_trouble(None);
                }
            }
            Incoming::Notice { .. } if outbox.subscribers.are_none() => notices += 1,
            Incoming::Notice { notice, .. } => outbox.subscribers.deliver(&Ok(Notice::of(&notice)), wakers),
            Incoming::Reply { session, reply, .. } => questions.answered(session, &reply, outbox, wakers),
        });
        for (session, lane) in lost {
            lanes[lane].lose_session(client.refused_from(session), outbox, wakers);
            questions.lose(session, client.last_number(session), SESSION_LOST, outbox, wakers);
            outbox.subscribers.deliver(&Err(NoticesLost::Session), wakers);
        }
        if notices > 0 {
            outbox.count_notices(notices);
        }
        if !matches!(received, Ok(0))
            && let Some(record) = &self.record
            && let Some(session) = self.lanes[0].key.and_then(|key| self.client.saved_session(key))
        {
            record.see(session);
        }
        self.queries.receive(&mut self.client, outbox, wakers);
        outbox.see(self.client.seen_sequence());
        received
    }

    #[cold]
    fn failed(&mut self, error: &ClientError, outbox: &Outbox, wakers: &mut Vec<Waker>) {
        match error {
            ClientError::Log(LogError::Full { .. }) => self.is_stuck = true,
            // Of a session, because the service has too many; the others are used meanwhile.
            ClientError::Refused { .. } => {
                outbox.set_trouble(Some(error.to_string()));
                self.reopens_at = Some(Instant::now() + PAUSE_MAX);
            }
            error if self.client.reconnects_at_once() || !is_passing(error) => {
                self.end(&error.to_string(), outbox, wakers);
            }
            error => {
                if !matches!(error, ClientError::Disconnected { .. }) {
                    tracing::warn!("a client reconnects: {error}");
                }
                outbox.set_trouble(Some(error.to_string()));
                let now = Instant::now();
                if now.saturating_duration_since(self.connected_at) >= CALM {
                    self.attempts = 0;
                }
                let (next_attempt, reason_until) = (now + self.pause(), now + REASON_WITHIN);
                self.lost = Some(LostConnection { next_attempt, reason_until, waits: WaitNotices::after_a_second() });
            }
        }
    }

    pub const fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Grows with the rounds of attempts without a lasting connection.
    fn pause(&self) -> Duration {
        let round = self.client.address_count().max(1) as u32;
        match self.attempts / round {
            0 => Duration::ZERO,
            rounds => (PAUSE_MIN * (1 << rounds.min(8))).min(PAUSE_MAX),
        }
    }

    /// Ends all calls, and the client.
    #[cold]
    pub fn end(&mut self, reason: &str, outbox: &Outbox, wakers: &mut Vec<Waker>) {
        tracing::warn!("the client has no service any more: {reason}");
        if let Some(record) = &self.record {
            record.end();
        }
        for lane in &mut self.lanes {
            let ready = lane.ready.drain(..);
            for state in ready.chain(lane.in_flight.drain(..).map(|(_, state)| state)) {
                wakers.extend(state.end(&outbox.waiting, |number, _| Ending::unknown(number, reason.to_owned())));
            }
        }
        self.queries.end(outbox, reason, wakers);
        self.questions.end(reason, outbox, wakers);
        self.lost = None;
        outbox.end(reason, wakers);
        self.ended = Some(reason.to_owned());
        // Waiting commands end, too.
        self.pass(outbox, wakers);
    }

    pub const fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Next step of a lost connection: an attempt of at most `limit`, if one is due. Only the watcher calls this.
    pub fn reconnect(&mut self, limit: Duration, outbox: &Outbox, wakers: &mut Vec<Waker>) -> Reconnection {
        let Some(lost) = &mut self.lost else { return Reconnection::Connected };
        let now = Instant::now();
        if now < lost.reason_until {
            if self.client.awaits_failure() {
                return Reconnection::Pause(REASON_INTERVAL);
            }
            if let error @ ClientError::Disconnected { reason: Some(_), .. } = self.client.disconnected() {
                outbox.set_trouble(Some(error.to_string()));
            }
            lost.reason_until = now;
        }
        let left = lost.next_attempt.saturating_duration_since(now);
        if !left.is_zero() {
            return Reconnection::Pause(left);
        }
        self.attempts = self.attempts.saturating_add(1);
        match self.client.begin_attempt(limit) {
            Ok(attempt) => Reconnection::Attempt(attempt),
            Err(error) => {
                self.end(&error.to_string(), outbox, wakers);
                Reconnection::Ended
            }
        }
    }

    /// Takes the result of an attempt.
    pub fn end_attempt(
        &mut self,
        connected: Result<PublisherLink, ClientError>,
        outbox: &Outbox,
        wakers: &mut Vec<Waker>,
    ) {
        let Some(lost) = &mut self.lost else { return };
        // Queries that no one awaits are not asked again.
        self.queries.forget_abandoned(&mut self.client);
        match self.client.end_attempt(connected) {
            Resumption::Begun => {
                self.generation += 1;
                self.lost = None;
                self.connected_at = Instant::now();
                self.reopens_at = None;
                for lane in &mut self.lanes {
                    lane.resent_to = lane.in_flight.back().map_or(0, |(number, _)| *number);
                }
            }
            Resumption::Failed { error, pause: Some(pause) } => {
                lost.next_attempt = Instant::now() + pause;
                if let Some(waited) = lost.waits.take_due(monotonic_ns()) {
                    let waited_s = waited.as_secs();
                    tracing::warn!(waited_s, %error, "a client has no service; it goes on looking, and its calls wait");
                }
                outbox.set_trouble(Some(error.to_string()));
            }
            Resumption::Failed { error, pause: None } => self.end(&error.to_string(), outbox, wakers),
        }
    }

    /// Passes by callers with replies since the last call.
    pub fn take_passes_of_callers(&mut self) -> u64 {
        std::mem::take(&mut self.passes_of_callers)
    }

    /// Prepares a sleep without the lock. `None`: pass again instead.
    pub fn begin_sleep(&mut self, outbox: &Outbox, wakers: &mut Vec<Waker>) -> Option<SleepLimit> {
        if self.ended.is_some() {
            return Some(SleepLimit { longest: Duration::MAX, sends: false });
        }
        match self.client.begin_sleep() {
            Ok(Some(SleepLimit { longest, sends })) => {
                let is_full = self.is_stuck && !sends;
                let longest = if is_full { longest.min(RETRY_INTERVAL) } else { longest };
                let due = [self.reopens_at, self.questions.next_round()].into_iter().flatten().min();
                let longest = due.map_or(longest, |at| longest.min(at.saturating_duration_since(Instant::now())));
                Some(SleepLimit { longest, sends })
            }
            Ok(None) => None,
            Err(error) => {
                self.failed(&error, outbox, wakers);
                None
            }
        }
    }

    pub fn end_sleep(&mut self, outbox: &Outbox, wakers: &mut Vec<Waker>) {
        if self.ended.is_none()
            && self.lost.is_none()
            && let Err(error) = self.client.end_sleep()
        {
            self.failed(&error, outbox, wakers);
        }
    }

    /// Copies of the descriptors, if `known` is of another connection.
    pub fn interest(&self, known: Option<u64>) -> Option<(u64, Result<Interest, ClientError>)> {
        (known != Some(self.generation)).then(|| (self.generation, self.client.interest()))
    }

    /// Closes the sessions that have nothing in flight; the service's expiry ends the others. The next life of a durable
    /// client needs its session.
    pub fn close(&mut self) {
        if self.lost.is_none() && self.ended.is_none() && self.record.is_none() {
            for key in self.lanes.iter().filter_map(|lane| lane.key) {
                let _ = self.client.close_session(key);
            }
        }
    }
}

/// No wake-up comes with room in a ring.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);
const SESSION_LOST: &str = "the service no longer knows its session, which has expired, or its stream was restored";

/// A connection that lasts so long ends a series of attempts.
const CALM: Duration = Duration::from_secs(1);
/// After so long without a command the connection is checked before the next one.
const IDLE_NS: u64 = 50_000_000;
/// A silent session expires after a day, if the service's options say nothing else.
const KEEP_NS: u64 = 60_000_000_000;
const REASON_INTERVAL: Duration = Duration::from_millis(1);

/// Clock of a few milliseconds, read in as many nanoseconds.
fn coarse_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Whether another connection may be without the fault.
const fn is_passing(error: &ClientError) -> bool {
    !matches!(error, ClientError::OtherHistory { .. } | ClientError::OtherStream { .. } | ClientError::Option { .. })
}
